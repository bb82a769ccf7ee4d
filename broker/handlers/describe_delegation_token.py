"""DescribeDelegationToken (key 41, versions 0-3): list delegation tokens (KIP-48).

v1 is like v0; v2 is flexible; v3 adds the principal that requested a token (KIP-373).
Behaviour: a connection without authentication cannot see tokens, so the response has error DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (64) and no tokens
(AD-33).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def _failed(exchange: Exchange, request: DescribeDelegationTokenRequest, error_code: int) -> Reply:
    return Reply(DescribeDelegationTokenResponse(int(error_code)))


@register(ApiKey.DESCRIBE_DELEGATION_TOKEN, _failed)
def describe_delegation_token(exchange: Exchange, request: DescribeDelegationTokenRequest) -> Reply:
    return _failed(exchange, request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
