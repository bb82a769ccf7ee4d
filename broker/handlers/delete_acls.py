"""DeleteAcls (key 31, versions 0-3): delete access control lists that match filters (KIP-140).

v1 adds pattern types (KIP-290); v2 is flexible; v3 adds the resource type user.
Behaviour: this broker has no authorizer, so each filter of the request has error SECURITY_DISABLED (54). A filter with an unknown type, operation or
permission closes the connection (AD-34).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


def _results(request: DeleteAclsRequest, error_code: int, message: str | None) -> Reply:
    results = [DeleteAclsFilterResult(int(error_code), message) for _ in request.filters]
    return Reply(DeleteAclsResponse(filter_results=results))


def _failed(exchange: Exchange, request: DeleteAclsRequest, error_code: int) -> Reply:
    return _results(request, error_code, None)


@register(ApiKey.DELETE_ACLS, _failed)
def delete_acls(exchange: Exchange, request: DeleteAclsRequest) -> Reply:
    return _results(request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
