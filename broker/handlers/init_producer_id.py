"""InitProducerId (key 22, versions 0-5): a producer id and epoch for an idempotent or transactional producer.

v2 is flexible; v3 lets a producer keep its id and raise its epoch; v4 returns PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH; v5 changes no
layout.
Behaviour: without a transactional id, every request gets a new producer id (P-22). With a transactional id, the transaction coordinator aborts the
open transaction, if there is one, before it returns the producer id of the transactional id with a higher epoch (TX-10 to TX-18).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.broker.requests.transaction_errors import error_for
from kafkaproto.broker.transaction.operations import ProducerResult
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NONE = -1


def _failed(exchange: Exchange, request: InitProducerIdRequest, error_code: int) -> Reply:
    return _response(exchange, ProducerResult(int(error_code)))


@register(ApiKey.INIT_PRODUCER_ID, _failed)
def init_producer_id(exchange: Exchange, request: InitProducerIdRequest) -> Reply | Delayed:
    if request.transactional_id == "" or (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return _failed(exchange, request, ErrorCode.INVALID_REQUEST)
    node = exchange.node
    if request.transactional_id is None:
        # Without a transactional id Kafka returns a new id each time, whatever id the request has.
        return _response(exchange, ProducerResult(0, node.transactions.producer_ids.next_id(exchange.now_ms), 0))
    try:
        coordinator = node.transactions.find_coordinator(request.transactional_id)
    except KafkaError as error:
        return _failed(exchange, request, error.error_code)
    delayed = Delayed()

    def reply(result: ProducerResult, at_ms: int) -> None:
        delayed.complete(lambda: _response(exchange, result), at_ms)

    coordinator.init_producer_id(
        request.transactional_id,
        request.transaction_timeout_ms,
        None if request.producer_id == NONE else (request.producer_id, request.producer_epoch),
        exchange.now_ms,
        reply,
    )
    return delayed


def _response(exchange: Exchange, result: ProducerResult) -> Reply:
    error_code = error_for(exchange.api_key, exchange.api_version, result.error_code)
    return Reply(
        InitProducerIdResponse(error_code=error_code, producer_id=result.producer_id, producer_epoch=result.epoch)
    )
