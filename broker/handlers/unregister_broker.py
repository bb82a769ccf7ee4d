"""UnregisterBroker (key 64, version 0): remove the registration of a broker (KIP-500).

Behaviour: a broker that is unknown or already unregistered gets error BROKER_ID_NOT_REGISTERED (102), from Kafka 4.0 on with a message. A running
broker is fenced and leads no partition until it is restarted. The restart registers it again (AD-26).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def _failed(exchange: Exchange, request: UnregisterBrokerRequest, error_code: int) -> Reply:
    return Reply(UnregisterBrokerResponse(error_code=int(error_code)))


@register(ApiKey.UNREGISTER_BROKER, _failed)
def unregister_broker(exchange: Exchange, request: UnregisterBrokerRequest) -> Reply:
    broker = exchange.node.image.brokers.get(request.broker_id)
    if broker is None or not broker.registered:
        message = f"Broker ID {request.broker_id} is not currently registered" if exchange.node.is_release_4 else ""
        return Reply(
            UnregisterBrokerResponse(error_code=int(ErrorCode.BROKER_ID_NOT_REGISTERED), error_message=message)
        )
    exchange.node.cluster.controller.unregister_broker(request.broker_id)
    return Reply(UnregisterBrokerResponse())
