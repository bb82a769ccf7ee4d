"""ListTransactions (key 66, versions 0-2): the transactional ids that this broker coordinates (KIP-664).

v1 adds a filter for the duration (KIP-994); v2 adds a filter for the id, a regular expression (KIP-1152).
Behaviour: a transactional id is listed if it passes all filters (TX-72, TX-73). Each broker lists only the ids that it coordinates, so clients send
the request to all brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.broker.transaction.transaction import Transaction
from kafkaproto.broker.transaction.transaction import TransactionState as State
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import scala_map_order
from kafkaproto.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from kafkaproto.partitioner import java_hash_bits

if TYPE_CHECKING:
    from kafkaproto.broker.regular_expressions.pattern import Pattern

NO_FILTER = -1
LONGEST_ID = 32767
"""The maximum length of a transactional id in bytes, because strings in messages cannot be longer."""
STATES = frozenset(state.label for state in State)


def _failed(exchange: Exchange, request: ListTransactionsRequest, error_code: int) -> Reply:
    return Reply(ListTransactionsResponse(error_code=int(error_code)))


@register(ApiKey.LIST_TRANSACTIONS, _failed)
def list_transactions(exchange: Exchange, request: ListTransactionsRequest) -> Reply:
    store = exchange.node.transactions.coordinator.store
    if store.is_loading:
        return _failed(exchange, request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    pattern = None
    if request.transactional_id_pattern:
        from kafkaproto.broker.regular_expressions.pattern import compile_pattern
        from kafkaproto.broker.regular_expressions.program import ExpressionError

        try:
            pattern = compile_pattern(request.transactional_id_pattern, LONGEST_ID)
        except ExpressionError:
            return _failed(exchange, request, ErrorCode.INVALID_REGULAR_EXPRESSION)
    unknown = _unknown_states(request)
    listed_transactions = [
        TransactionState(t.transactional_id, t.data.producer_id, t.data.state.label)
        for t in store
        if _is_listed(t, request, pattern, exchange.now_ms)
    ]
    if unknown and not STATES.intersection(request.state_filters):
        listed_transactions = []
    return Reply(ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=listed_transactions))


def _unknown_states(request: ListTransactionsRequest) -> list[str]:
    """Return the names in the state filter of a request that are no states of transactions, each name once.

    The names have the order of the Scala set in which Kafka keeps the states (TX-72).
    """
    states = scala_map_order(request.state_filters, java_hash_bits)
    return [state for state in states if state not in STATES]


def _is_listed(
    transaction: Transaction, request: ListTransactionsRequest, pattern: Pattern | None, now_ms: int
) -> bool:
    """Return whether a transactional id passes all filters of the request.

    The duration filter selects transactions that have been open for longer than the requested time. As in Kafka, an id without an open transaction
    passes this filter, too (TX-73). pattern: the request's pattern of transactional ids, None for all.
    """
    data = transaction.data
    if request.state_filters and data.state.label not in request.state_filters:
        return False
    if request.producer_id_filters and data.producer_id not in request.producer_id_filters:
        return False
    if request.duration_filter > NO_FILTER and now_ms - data.start_ms <= request.duration_filter:
        return False
    return pattern is None or pattern.matches(transaction.transactional_id)
