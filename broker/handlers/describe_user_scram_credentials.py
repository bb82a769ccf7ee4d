"""DescribeUserScramCredentials (key 50, version 0): the users with SCRAM credentials (KIP-554).

v0 is flexible. kafka-configs sends this request whenever it describes the quotas of users without client ids.
Behaviour: a request without names returns all users that have credentials. A user without credentials gets error RESOURCE_NOT_FOUND (91). A user that
is named twice gets error DUPLICATE_RESOURCE (92). The response contains mechanisms and iterations, but no secrets (AD-32).
"""

from __future__ import annotations

from collections import Counter

from kafkaproto.api import ApiKey
from kafkaproto.broker.metadata.scram import Credentials, described
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def _failed(exchange: Exchange, request: DescribeUserScramCredentialsRequest, error_code: int) -> Reply:
    return Reply(DescribeUserScramCredentialsResponse(error_code=int(error_code)))


@register(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, _failed)
def describe_user_scram_credentials(exchange: Exchange, request: DescribeUserScramCredentialsRequest) -> Reply:
    credentials = exchange.node.image.scram
    user_counts = Counter(user.name for user in request.users or ())
    if not user_counts:
        user_counts = Counter(sorted({user for user, _ in credentials}))
    results = [_result(credentials, name, times) for name, times in user_counts.items()]
    return Reply(DescribeUserScramCredentialsResponse(results=results))


def _result(credentials: Credentials, user: str, times: int) -> DescribeUserScramCredentialsResult:
    infos = described(credentials, user)
    if times > 1:
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        return DescribeUserScramCredentialsResult(user, int(ErrorCode.DUPLICATE_RESOURCE), message)
    if not infos:
        message = f"Attempt to describe a user credential that does not exist: {user}"
        return DescribeUserScramCredentialsResult(user, int(ErrorCode.RESOURCE_NOT_FOUND), message)
    return DescribeUserScramCredentialsResult(user, credential_infos=[CredentialInfo(*info) for info in infos])
