"""CreateAcls (key 30, versions 0-3): add access control lists (KIP-140).

v1 adds pattern types (KIP-290); v2 is flexible; v3 adds the resource type user.
Behaviour: this broker has no authorizer, so each ACL of the request has error SECURITY_DISABLED (54). An ACL with an unknown type, operation or
permission closes the connection (AD-34).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


def _results(request: CreateAclsRequest, error_code: int, message: str | None) -> Reply:
    return Reply(CreateAclsResponse(results=[AclCreationResult(int(error_code), message) for _ in request.creations]))


def _failed(exchange: Exchange, request: CreateAclsRequest, error_code: int) -> Reply:
    return _results(request, error_code, None)


@register(ApiKey.CREATE_ACLS, _failed)
def create_acls(exchange: Exchange, request: CreateAclsRequest) -> Reply:
    return _results(request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
