"""InitProducerId (key 22, versions 0-5): a producer id for an idempotent producer.

v2 is flexible; v3 lets a producer keep its id and epoch; v4 and v5 change no layout.
Behaviour: rule P-22. There is no transaction coordinator yet: the error for a transactional id is TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53), which
no client retries.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NONE = -1


def _failed(exchange: Exchange, request: InitProducerIdRequest, error_code: int) -> Reply:
    return Reply(InitProducerIdResponse(error_code=int(error_code), producer_id=NONE, producer_epoch=NONE))


@register(ApiKey.INIT_PRODUCER_ID, 0, 5, _failed)
def init_producer_id(exchange: Exchange, request: InitProducerIdRequest) -> Reply:
    if request.transactional_id == "" or (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return _failed(exchange, request, ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        if exchange.node.events.feature_asked is not None:
            exchange.node.events.feature_asked(exchange, "transactions", [request.transactional_id])
        return _failed(exchange, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    # Without a transactional id Kafka returns a new id each time, whatever id the request has.
    return Reply(InitProducerIdResponse(producer_id=exchange.node.cluster.next_producer_id(), producer_epoch=0))
