"""SaslHandshake (key 17, versions 0-1): choose a SASL mechanism before authentication (KIP-43).

v1 announces that tokens follow as SaslAuthenticate requests (KIP-152).
Behaviour: no listener of this broker uses SASL, so the response has error ILLEGAL_SASL_STATE (34) and no mechanisms, like the response of a Kafka
broker on a PLAINTEXT listener. The connection stays open (AD-35).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def _failed(exchange: Exchange, request: SaslHandshakeRequest, error_code: int) -> Reply:
    return Reply(SaslHandshakeResponse(error_code=int(error_code)))


@register(ApiKey.SASL_HANDSHAKE, _failed)
def sasl_handshake(exchange: Exchange, request: SaslHandshakeRequest) -> Reply:
    if exchange.node.events.feature_requested is not None:
        exchange.node.events.feature_requested(exchange, "SASL", [request.mechanism])
    return _failed(exchange, request, ErrorCode.ILLEGAL_SASL_STATE)
