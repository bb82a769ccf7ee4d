"""ExpireDelegationToken (key 40, versions 0-2): change when a delegation token expires (KIP-48).

v1 is like v0; v2 is flexible.
Behaviour: a connection without authentication cannot manage tokens, so the response has error DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (64) and the
expiry time -1 (AD-33).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


def _failed(exchange: Exchange, request: ExpireDelegationTokenRequest, error_code: int) -> Reply:
    return Reply(ExpireDelegationTokenResponse(int(error_code), expiry_timestamp_ms=-1))


@register(ApiKey.EXPIRE_DELEGATION_TOKEN, _failed)
def expire_delegation_token(exchange: Exchange, request: ExpireDelegationTokenRequest) -> Reply:
    return _failed(exchange, request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
