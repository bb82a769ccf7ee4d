"""EndTxn (key 26, versions 0-5): commit or abort the transaction of a producer.

v2 returns PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH; v3 is flexible; v4 changes no layout; v5 belongs to transaction version 2: it raises the
epoch of the producer and returns it (KIP-890).
Behaviour: the response is sent when the decision is stored. The coordinator writes the markers afterwards (TX-36 to TX-39).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.broker.requests.transaction_errors import error_for
from kafkaproto.broker.transaction.operations import EndRequest, ProducerResult
from kafkaproto.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_VERSION_WITH_NEW_EPOCH = 5


def _failed(exchange: Exchange, request: EndTxnRequest, error_code: int) -> Reply:
    return _response(exchange, ProducerResult(int(error_code)))


@register(ApiKey.END_TXN, _failed)
def end_txn(exchange: Exchange, request: EndTxnRequest) -> Reply | Delayed:
    try:
        coordinator = exchange.node.transactions.find_coordinator(request.transactional_id)
    except KafkaError as error:
        return _failed(exchange, request, error.error_code)
    delayed = Delayed()

    def reply(result: ProducerResult, at_ms: int) -> None:
        delayed.complete(lambda: _response(exchange, result), at_ms)

    coordinator.end(
        EndRequest(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.committed,
            client_version=2 if exchange.api_version >= FIRST_VERSION_WITH_NEW_EPOCH else 0,
        ),
        exchange.now_ms,
        reply,
    )
    return delayed


def _response(exchange: Exchange, result: ProducerResult) -> Reply:
    version = exchange.api_version
    error_code = error_for(exchange.api_key, version, result.error_code)
    if version < FIRST_VERSION_WITH_NEW_EPOCH:
        return Reply(EndTxnResponse(error_code=error_code))
    return Reply(EndTxnResponse(error_code=error_code, producer_id=result.producer_id, producer_epoch=result.epoch))
