"""The check of ACLs and ACL filters that Kafka makes while it decodes a request, before the handler of the request runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkaproto.api import ApiKey

UNKNOWN = 0
ACL_APIS = frozenset({ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS})


def unknown_element(api_key: int, request: Any) -> str | None:
    """Return a text that names the unknown field of an ACL request, or None if all fields are known (AD-34).

    A type, operation or permission is unknown if its code is 0. Kafka cannot decode such a request and closes the connection. It accepts
    all other codes, even those without a meaning. api_key: the key of DescribeAcls, CreateAcls or DeleteAcls.
    """
    if api_key == ApiKey.CREATE_ACLS:
        return _first_unknown(
            {"resource type": a.resource_type, "pattern type": a.resource_pattern_type, **_rule(a)}
            for a in request.creations
        )
    filters = [request] if api_key == ApiKey.DESCRIBE_ACLS else request.filters
    return _first_unknown(
        {"resource type": f.resource_type_filter, "pattern type": f.pattern_type_filter, **_rule(f)} for f in filters
    )


def _rule(acl: Any) -> dict[str, int]:
    return {"operation": acl.operation, "permission": acl.permission_type}


def _first_unknown(acls: Iterable[dict[str, int]]) -> str | None:
    return next((name for codes in acls for name, code in codes.items() if code == UNKNOWN), None)
