"""CreateDelegationToken (key 38, versions 0-3): create a delegation token (KIP-48).

v1 is like v0; v2 is flexible; v3 adds the owner of the token and the principal that requests it (KIP-373).
Behaviour: a connection without authentication cannot request tokens, so the response has error DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (64), the owner
and the requester (AD-33).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse

USER, ANONYMOUS = "User", "ANONYMOUS"
NEVER = -1
FIRST_VERSION_WITH_REQUESTER = 3


def _response(exchange: Exchange, error_code: int, owner: tuple[str, str], requester: str) -> Reply:
    response = CreateDelegationTokenResponse(
        int(error_code), *owner, issue_timestamp_ms=NEVER, expiry_timestamp_ms=NEVER, max_timestamp_ms=NEVER
    )
    if exchange.api_version >= FIRST_VERSION_WITH_REQUESTER:
        response.token_requester_principal_type, response.token_requester_principal_name = USER, requester
    return Reply(response)


def _failed(exchange: Exchange, request: CreateDelegationTokenRequest, error_code: int) -> Reply:
    return _response(exchange, error_code, (USER, ANONYMOUS), ANONYMOUS)


@register(ApiKey.CREATE_DELEGATION_TOKEN, _failed)
def create_delegation_token(exchange: Exchange, request: CreateDelegationTokenRequest) -> Reply:
    principal = exchange.peer.principal
    kind, name = request.owner_principal_type, request.owner_principal_name
    if name and kind is None:
        return _failed(exchange, request, ErrorCode.UNKNOWN_SERVER_ERROR)  # a principal needs a type
    owner = (kind or "", name) if name else (USER, principal)
    return _response(exchange, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, owner, principal)
