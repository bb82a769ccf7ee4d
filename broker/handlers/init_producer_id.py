"""InitProducerId (key 22, versions 0-5): an id for an idempotent producer.

v2 is flexible; v3 lets a producer keep its id and epoch; v4 and v5 change no layout.
Behaviour: P-22. Transactional ids need the transaction coordinator, which comes with a later issue: they are refused with 53
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which no client retries.
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
        return _failed(exchange, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    # Without a transactional id Kafka hands out a fresh one each time, whatever id the producer brings.
    return Reply(InitProducerIdResponse(producer_id=exchange.node.cluster.next_producer_id(), producer_epoch=0))
