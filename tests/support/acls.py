"""Requests about ACLs that Kafka can decode: no field has code 0 (AD-34)."""

from __future__ import annotations

from typing import Any

ANY = 1
_FIELDS = (
    *("resource_type", "resource_pattern_type", "resource_type_filter", "pattern_type_filter"),
    *("operation", "permission_type"),
)


def with_known_codes(request: Any) -> Any:
    """Replace code 0 in each ACL and ACL filter of a request by code 1 (any), and return the request. Leaves requests of other APIs unchanged."""
    if type(request).__name__ in ("DescribeAclsRequest", "CreateAclsRequest", "DeleteAclsRequest"):
        for acl in (request, *getattr(request, "creations", ()), *getattr(request, "filters", ())):
            for name in _FIELDS:
                if getattr(acl, name, None) == 0:
                    setattr(acl, name, ANY)
    return request
