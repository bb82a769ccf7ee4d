"""DescribeAcls (key 29, versions 0-3): list access control lists (KIP-140).

v1 adds pattern types (KIP-290); v2 is flexible; v3 adds the resource type user.
Behaviour: this broker has no authorizer, so the response has error SECURITY_DISABLED (54) and no ACLs. A filter with an unknown type, operation or
permission closes the connection (AD-34).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def _failed(exchange: Exchange, request: DescribeAclsRequest, error_code: int) -> Reply:
    return Reply(DescribeAclsResponse(error_code=int(error_code), error_message=None))


@register(ApiKey.DESCRIBE_ACLS, _failed)
def describe_acls(exchange: Exchange, request: DescribeAclsRequest) -> Reply:
    message = "No Authorizer is configured on the broker"
    return Reply(DescribeAclsResponse(error_code=int(ErrorCode.SECURITY_DISABLED), error_message=message))
