"""SaslAuthenticate (key 36, versions 0-2): send a SASL token (KIP-152).

v1 adds the lifetime of the session (KIP-368); v2 is flexible.
Behaviour: no listener of this broker uses SASL, so the response has error ILLEGAL_SASL_STATE (34), with the message of a Kafka broker on a PLAINTEXT
listener. The connection stays open (AD-35).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def _failed(exchange: Exchange, request: SaslAuthenticateRequest, error_code: int) -> Reply:
    return Reply(SaslAuthenticateResponse(error_code=int(error_code), error_message=None))


@register(ApiKey.SASL_AUTHENTICATE, _failed)
def sasl_authenticate(exchange: Exchange, request: SaslAuthenticateRequest) -> Reply:
    message = "SaslAuthenticate request received after successful authentication"
    return Reply(SaslAuthenticateResponse(int(ErrorCode.ILLEGAL_SASL_STATE), message))
