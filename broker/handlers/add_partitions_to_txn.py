"""AddPartitionsToTxn (key 24, versions 0-5): add partitions to the transaction of a producer, or verify that they are part of it.

v2 returns PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH; v3 is flexible; v4 is for brokers, takes many transactions, and has a flag that asks
only for verification (KIP-890); v5 changes no layout.
Behaviour: no partition is added if one of them is unknown, or if a client (v0 to v3) names a partition of an internal topic. In a request that only
verifies, a partition outside the transaction gets error TRANSACTION_ABORTABLE (TX-19 to TX-23).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import INTERNAL_TOPICS
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.broker.requests.transaction_errors import error_for
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

FIRST_VERSION_OF_BROKERS = 4

Errors = dict[tuple[str, int], int]
Results = list[AddPartitionsToTxnTopicResult]


def _failed(exchange: Exchange, request: AddPartitionsToTxnRequest, error_code: int) -> Reply:
    if exchange.api_version >= FIRST_VERSION_OF_BROKERS:
        return Reply(AddPartitionsToTxnResponse(error_code=int(error_code)))
    results = _as_requested(request.v3_and_below_topics, error_code)
    return Reply(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))


@register(ApiKey.ADD_PARTITIONS_TO_TXN, _failed)
def add_partitions_to_txn(exchange: Exchange, request: AddPartitionsToTxnRequest) -> Reply | Delayed:
    is_from_broker = exchange.api_version >= FIRST_VERSION_OF_BROKERS
    transactions = request.transactions
    if not is_from_broker:
        transactions = [
            AddPartitionsToTxnTransaction(
                request.v3_and_below_transactional_id,
                request.v3_and_below_producer_id,
                request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
        ]
    delayed = Delayed()
    results: list[AddPartitionsToTxnResult] = []

    def complete(transactional_id: str, listed: Results, at_ms: int) -> None:
        results.append(AddPartitionsToTxnResult(transactional_id, listed))
        if len(results) == len(transactions):
            delayed.complete(build, at_ms)

    def build() -> Reply:
        if not is_from_broker:
            return Reply(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results))
        return Reply(AddPartitionsToTxnResponse(results_by_transaction=results))

    if not transactions:
        return build()
    for transaction in transactions:
        _handle(exchange, transaction, partial(complete, transaction.transactional_id))
    return delayed


def _handle(
    exchange: Exchange, transaction: AddPartitionsToTxnTransaction, done: Callable[[Results, int], None]
) -> None:
    """Add or verify the partitions of one transaction. `done` is called once, with the transaction's results by topic and the current time (ms).

    As in Kafka, if the request adds partitions, and all of them exist and are permitted, the results list the topics and partitions exactly as the
    request does, with repetitions. Otherwise each partition is listed once (TX-19).
    """
    node, now_ms = exchange.node, exchange.now_ms
    keys = _keys(transaction.topics)
    is_from_broker = exchange.api_version >= FIRST_VERSION_OF_BROKERS
    refused_errors: Errors = {}
    for key in keys:
        if key[0] in INTERNAL_TOPICS and not is_from_broker:
            refused_errors[key] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif node.image.partition(*key) is None:
            refused_errors[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if refused_errors:
        done(_results(dict.fromkeys(keys, int(ErrorCode.OPERATION_NOT_ATTEMPTED)) | refused_errors), now_ms)
        return
    producer = transaction.transactional_id, transaction.producer_id, transaction.producer_epoch
    try:
        coordinator = node.transactions.find_coordinator(transaction.transactional_id)
    except KafkaError as error:
        errors = dict.fromkeys(keys, error.error_code)
        done(
            _results(errors) if transaction.verify_only else _as_requested(transaction.topics, error.error_code), now_ms
        )
        return
    if transaction.verify_only:
        done(_results(coordinator.verify_partitions(*producer, keys)), now_ms)
        return

    def added(error_code: int, at_ms: int) -> None:
        done(_as_requested(transaction.topics, error_for(exchange.api_key, exchange.api_version, error_code)), at_ms)

    coordinator.add_partitions(*producer, keys, now_ms, added, client_version=2 if is_from_broker else 0)


def _keys(topics: Sequence[AddPartitionsToTxnTopic]) -> list[tuple[str, int]]:
    return list(dict.fromkeys((topic.name, index) for topic in topics for index in topic.partitions))


def _as_requested(topics: Sequence[AddPartitionsToTxnTopic], error_code: int) -> Results:
    """Return one result for each topic and partition in the request, including repeated ones, and topics without partitions.

    error_code: the error code of every partition, 0 for none.
    """
    return [
        AddPartitionsToTxnTopicResult(
            topic.name, [AddPartitionsToTxnPartitionResult(index, int(error_code)) for index in topic.partitions]
        )
        for topic in topics
    ]


def _results(errors: Errors) -> Results:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (name, index), error_code in errors.items():
        topics.setdefault(name, []).append(AddPartitionsToTxnPartitionResult(index, int(error_code)))
    return [AddPartitionsToTxnTopicResult(name, partitions) for name, partitions in topics.items()]
