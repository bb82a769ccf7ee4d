"""DescribeUserScramCredentials (key 50, version 0): the users with SCRAM credentials (KIP-554). No user has any here.

v0 is flexible. kafka-configs sends it whenever it describes the quotas of users without client ids.
Behaviour: as `ScramImage.describe` in Kafka for an image without credentials.
"""

from __future__ import annotations

from collections import Counter

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def _failed(exchange: Exchange, request: DescribeUserScramCredentialsRequest, error_code: int) -> Reply:
    return Reply(DescribeUserScramCredentialsResponse(error_code=int(error_code)))


@register(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, _failed)
def describe_user_scram_credentials(exchange: Exchange, request: DescribeUserScramCredentialsRequest) -> Reply:
    """Return one result per user: RESOURCE_NOT_FOUND (91) if unknown, DUPLICATE_RESOURCE (92) if repeated. Without names there are no results."""
    named = Counter(user.name for user in request.users or ())
    return Reply(DescribeUserScramCredentialsResponse(results=[_result(name, times) for name, times in named.items()]))


def _result(user: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        error, message = ErrorCode.DUPLICATE_RESOURCE, f"User {user} is named {times} times."
    else:
        error, message = ErrorCode.RESOURCE_NOT_FOUND, f"User {user} has no SCRAM credential."
    return DescribeUserScramCredentialsResult(user, int(error), message)
