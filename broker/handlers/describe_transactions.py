"""DescribeTransactions (key 65, version 0): the state of transactional ids that this broker coordinates (KIP-664).

Behaviour: the response contains the state, timeout, start and partitions of each transaction. An unknown transactional id gets error
TRANSACTIONAL_ID_NOT_FOUND (TX-69 to TX-71).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def _failed(exchange: Exchange, request: DescribeTransactionsRequest, error_code: int) -> Reply:
    states = [TransactionState(int(error_code), transactional_id) for transactional_id in request.transactional_ids]
    return Reply(DescribeTransactionsResponse(transaction_states=states))


@register(ApiKey.DESCRIBE_TRANSACTIONS, _failed)
def describe_transactions(exchange: Exchange, request: DescribeTransactionsRequest) -> Reply:
    states = [_describe(exchange, transactional_id) for transactional_id in request.transactional_ids]
    return Reply(DescribeTransactionsResponse(transaction_states=states))


def _describe(exchange: Exchange, transactional_id: str) -> TransactionState:
    if not transactional_id:
        return TransactionState(int(ErrorCode.INVALID_REQUEST), transactional_id)
    try:
        transaction = exchange.node.transactions.coordinator.store.get(transactional_id)
    except KafkaError as error:
        return TransactionState(int(error.error_code), transactional_id)
    if transaction is None:
        return TransactionState(int(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), transactional_id)
    data = transaction.data
    topics: dict[str, list[int]] = {}
    for topic, index in data.partitions:
        topics.setdefault(topic, []).append(index)
    return TransactionState(
        0,
        transactional_id,
        data.state.label,
        data.timeout_ms,
        data.start_ms,
        data.producer_id,
        data.epoch,
        [TopicData(topic, indexes) for topic, indexes in topics.items()],
    )
