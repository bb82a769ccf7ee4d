"""Rows of the table `transactions`: the contents of requests about transactions, and of their responses.

The requests come from transactional producers, coordinators and admin tools. The rows of a request are made from this request and its response only.
They are therefore the same whether a broker, a proxy or a packet capture recorded the traffic. A `Row` is a dict of column names to values. In
all functions, `keys` is a `Row` with the columns that identify the request. The offsets of a TxnOffsetCommit are rows of `group_offsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.pipeline.trace.columns import Row, empty_row

Rows = Iterator[tuple[str, Row]]
Errors = dict[tuple[Any, ...], int]


def _row(keys: Row, position: int = 0, **fields: Any) -> tuple[str, Row]:
    return "transactions", {**empty_row("transactions"), **keys, "position": position, **fields}


def _error(response: Any) -> int | None:
    return None if response is None else int(response.error_code)


def _continues_with(response: Any) -> Row:
    """Return the producer id and epoch that a response assigns to the producer for its next requests, as a dict of column names to values.

    The dict is empty if there is no response, after an error, and in versions without these fields.
    """
    if response is None or response.error_code or response.producer_id < 0:
        return {}
    return {"returned_producer_id": response.producer_id, "returned_epoch": response.producer_epoch}


# ---- requests of producers ---------------------------------------------------------------------------------------------------


def _init_producer_id(keys: Row, request: Any, response: Any) -> Rows:
    yield _row(
        keys,
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        timeout_ms=request.transaction_timeout_ms,
        error=_error(response),
        **_continues_with(response),
    )


def _errors_of_topics(topics: Iterable[Any]) -> Errors:
    return {
        (topic.name, p.partition_index): p.partition_error_code for topic in topics for p in topic.results_by_partition
    }


def _add_partitions_to_txn(keys: Row, request: Any, response: Any) -> Rows:
    """Yield ("transactions", row) for each partition of each transaction.

    keys: maps the columns that identify the request to their values, which each row gets.

    Before version 4, a request names one transaction, and a response has errors only for partitions, none for the whole request.
    """
    position = 0
    if request.transactions:
        results = (
            {result.transactional_id: result.topic_results for result in response.results_by_transaction}
            if response
            else {}
        )
        for transaction in request.transactions:
            errors = _errors_of_topics(results.get(transaction.transactional_id, ()))
            of_request = response.error_code or None if response else None
            transaction_columns = {
                "transactional_id": transaction.transactional_id,
                "producer_id": transaction.producer_id,
                "producer_epoch": transaction.producer_epoch,
                "verify_only": transaction.verify_only,
            }
            for name, index in _places(transaction.topics, "partitions"):
                error = errors.get((name, index), of_request)
                yield _row(keys, position, **transaction_columns, topic=name, partition=index, error=error)
                position += 1
        return
    errors = {} if response is None else _errors_of_topics(response.results_by_topic_v3_and_below)
    transaction_columns = {
        "transactional_id": request.v3_and_below_transactional_id,
        "producer_id": request.v3_and_below_producer_id,
        "producer_epoch": request.v3_and_below_producer_epoch,
        "verify_only": False,
    }
    for position, (name, index) in enumerate(_places(request.v3_and_below_topics, "partitions")):
        yield _row(keys, position, **transaction_columns, topic=name, partition=index, error=errors.get((name, index)))


def _places(topics: Iterable[Any], field: str) -> Iterator[tuple[str, int]]:
    return ((topic.name, index) for topic in topics for index in getattr(topic, field))


def _of_producer(request: Any) -> Row:
    names = ("transactional_id", "producer_id", "producer_epoch")
    return {name: getattr(request, name) for name in names}


def _add_offsets_to_txn(keys: Row, request: Any, response: Any) -> Rows:
    yield _row(keys, **_of_producer(request), group_id=request.group_id, error=_error(response))


def _txn_offset_commit(keys: Row, request: Any, response: Any) -> Rows:
    """Yield one ("transactions", row) for the whole request. The row's error is the first of the partitions' error codes other than 0, else 0.

    keys: maps the columns that identify the request to their values, which each row gets. response: None if the trace lacks the response; the error
    is then None.
    """
    error = None
    if response is not None:
        codes = (partition.error_code for topic in response.topics for partition in topic.partitions)
        error = next((code for code in codes if code), 0)
    yield _row(keys, **_of_producer(request), group_id=request.group_id, error=error)


def _end_txn(keys: Row, request: Any, response: Any) -> Rows:
    producer = _of_producer(request)
    yield _row(keys, **producer, committed=request.committed, error=_error(response), **_continues_with(response))


# ---- requests of coordinators and admin tools --------------------------------------------------------------------------------


def _write_txn_markers(keys: Row, request: Any, response: Any) -> Rows:
    errors = {
        (marker.producer_id, topic.name, partition.partition_index): partition.error_code
        for marker in (() if response is None else response.markers)
        for topic in marker.topics
        for partition in topic.partitions
    }
    position = 0
    for marker in request.markers:
        marker_columns = {
            "producer_id": marker.producer_id,
            "producer_epoch": marker.producer_epoch,
            "committed": marker.transaction_result,
            "coordinator_epoch": marker.coordinator_epoch,
        }
        for name, index in _places(marker.topics, "partition_indexes"):
            error = errors.get((marker.producer_id, name, index))
            yield _row(keys, position, **marker_columns, topic=name, partition=index, error=error)
            position += 1


def _describe_producers(keys: Row, request: Any, response: Any) -> Rows:
    """Yield ("transactions", row) for each active producer of each partition in the response.

    A partition with an error has one row without a producer.

    keys: maps the columns that identify the request to their values, which each row gets.
    """
    position = 0
    for topic in () if response is None else response.topics:
        for partition in topic.partitions:
            partition_columns = {
                "topic": topic.name,
                "partition": partition.partition_index,
                "error": partition.error_code,
            }
            producers = partition.active_producers or ([None] if partition.error_code else [])
            for producer in producers:
                producer_columns = {} if producer is None else _active_producer(producer)
                yield _row(keys, position, **partition_columns, **producer_columns)
                position += 1


def _active_producer(producer: Any) -> Row:
    return {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "start_offset": producer.current_txn_start_offset,
        "last_sequence": producer.last_sequence,
    }


def _describe_transactions(keys: Row, request: Any, response: Any) -> Rows:
    """Yield ("transactions", row) for each partition of each transaction in the response, or once for a transaction without partitions.

    keys: maps the columns that identify the request to their values, which each row gets.
    """
    position = 0
    for described in () if response is None else response.transaction_states:
        transaction_columns = {
            "transactional_id": described.transactional_id,
            "error": described.error_code,
        }
        if not described.error_code:
            transaction_columns |= {
                **_of_producer(described),
                "state": described.transaction_state,
                "timeout_ms": described.transaction_timeout_ms,
                "start_ms": described.transaction_start_time_ms,
            }
        places = [(topic.topic, index) for topic in described.topics for index in topic.partitions]
        for name, index in places or [(None, None)]:
            yield _row(keys, position, **transaction_columns, topic=name, partition=index)
            position += 1


def _list_transactions(keys: Row, request: Any, response: Any) -> Rows:
    for position, listed in enumerate(() if response is None else response.transaction_states):
        yield _row(
            keys,
            position,
            transactional_id=listed.transactional_id,
            producer_id=listed.producer_id,
            state=listed.transaction_state,
            error=response.error_code,
        )


TRANSACTION_ROWS: dict[int, Callable[[Row, Any, Any], Rows]] = {
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: _add_offsets_to_txn,
    ApiKey.TXN_OFFSET_COMMIT: _txn_offset_commit,
    ApiKey.END_TXN: _end_txn,
    ApiKey.WRITE_TXN_MARKERS: _write_txn_markers,
    ApiKey.DESCRIBE_PRODUCERS: _describe_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: _describe_transactions,
    ApiKey.LIST_TRANSACTIONS: _list_transactions,
}
"""Maps the key of an API of transactions to a function of (keys, request, response) that yields pairs ("transactions", row of that table).

keys: maps the columns that identify the request to their values, which each row gets. request, response: the decoded messages; response is None if
the trace lacks the response.
"""
