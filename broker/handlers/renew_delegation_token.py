"""RenewDelegationToken (key 39, versions 0-2): extend the lifetime of a delegation token (KIP-48).

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
from kafkaproto.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def _failed(exchange: Exchange, request: RenewDelegationTokenRequest, error_code: int) -> Reply:
    return Reply(RenewDelegationTokenResponse(int(error_code), expiry_timestamp_ms=-1))


@register(ApiKey.RENEW_DELEGATION_TOKEN, _failed)
def renew_delegation_token(exchange: Exchange, request: RenewDelegationTokenRequest) -> Reply:
    return _failed(exchange, request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
