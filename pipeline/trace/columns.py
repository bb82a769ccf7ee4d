"""Columns and rows of the tables of a trace (see `schema`), as far as they follow from a single request and its response.

No function of this module needs earlier requests. A `Row` is a dict of column names to values. In all functions, `keys` is a `Row` with the columns
that identify the request, and `where` a `Row` with the columns that identify the partition; rows contain both. This module does not depend on where
rows are stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from kafkaproto.api import ApiKey, codec
from kafkaproto.errors import DecodeError
from kafkaproto.header import RequestHeader
from kafkaproto.pipeline.trace.schema import KEYS, REQUEST_KEYS, TABLES
from kafkaproto.pipeline.trace.sessions import PartitionKey, RequestedPartition
from kafkaproto.records.batch import BatchHeader, records
from kafkaproto.records.control import EndOfTransaction, end_of_transaction
from kafkaproto.records.message_set import MessageHeader
from kafkaproto.trace.cutting import read_heads, read_kept
from kafkaproto.trace.decoded import Decoded
from kafkaproto.trace.format import Buffer, Exchange

Row = dict[str, Any]
NO_TOPIC_ID = bytes(16)
NS_PER_MS = 1_000_000
_BATCH_KEYS = (*(column.name for column in (*KEYS, *REQUEST_KEYS)), "api", "acks")


def empty_row(table: str) -> Row:
    return dict.fromkeys(column.name for column in TABLES[table])


def recording_columns(exchange: Exchange) -> Row:
    """Return the columns of the table `requests` that need no decoded frame, such as times and sizes, as a dict of names to values."""
    row: Row = {
        "conn": exchange.connection,
        "clock_ms": exchange.clock_ms or None,
        "handled_ms": exchange.handled_ms or None,
        "received_ns": exchange.received_ns,
        "handled_ns": exchange.handled_ns or None,
        "ready_ns": exchange.ready_ns,
        "wait_ms": exchange.wait_ns / NS_PER_MS if exchange.wait_ns >= 0 else None,
        "sent_ns": exchange.sent_ns or None,
        "bytes_in": exchange.request_bytes,
        "bytes_out": exchange.response_bytes,
        "has_response": exchange.answered,
        "held": exchange.held,
        "applied_throttle_ms": exchange.throttle_ms,
        "records_bytes": sum(exchange.request_records) + sum(exchange.response_records),
    }
    if exchange.throttle_ms > 0 and exchange.clock_ms and not exchange.held:
        row |= {"muted_from_ms": exchange.clock_ms, "muted_until_ms": exchange.clock_ms + exchange.throttle_ms}
    return row


def throttle(facts: Row) -> Row:
    """Return the columns `throttle_quota` and `quota_*` of a throttled request, as a dict of names to values.

    facts: the fields of the event `throttle` that the recorder wrote for the request, by name. If a test forced the throttle, `throttle_quota` is
    "Forced", and the `quota_*` columns are None.
    """
    window_ms = facts.get("window_ms")
    return {
        "throttle_quota": facts.get("quota", "Forced"),
        "quota_entity": facts.get("entity") or None,
        "quota_value": _double(facts.get("value")),
        "quota_bound": _double(facts.get("bound")),
        "quota_rate": _double(facts.get("rate")),
        "quota_window_ms": None if window_ms is None else int(window_ms),
    }


def _double(value: Any) -> float | None:
    return None if value is None else float(value)


@cache
def _has_throttle_time(api_key: int, api_version: int) -> bool:
    return "throttleTimeMs" in codec(api_key, api_version).response.cls().to_json(api_version)


def response_columns(decoded: Decoded, header: RequestHeader) -> Row:
    if decoded.response is None:
        return {}
    has_throttle_time = _has_throttle_time(header.api_key, decoded.response_version)
    return {
        "error": next(decoded.errors(), 0),
        "throttle_ms": decoded.response.throttle_time_ms if has_throttle_time else None,
    }


def _fetch_columns(request: Any, response: Any) -> Row:
    replica = request.replica_state.replica_id
    return {
        "max_bytes": request.max_bytes,
        "min_bytes": request.min_bytes,
        "max_wait_ms": request.max_wait_ms,
        "isolation": request.isolation_level,
        "session_id": request.session_id,
        "session_epoch": request.session_epoch,
        "returned_session_id": None if response is None else response.session_id,
        "replica_id": replica if replica != -1 else request.replica_id,
        "rack": request.rack_id,
        **_fetch_response_columns(request, response),
    }


def _fetch_response_columns(request: Any, response: Any) -> Row:
    """Return the columns of the table `requests` that summarise the partitions of a Fetch response, as a dict of names to values.

    response: None if the trace lacks the response.
    """
    partitions = [] if response is None else [p for topic in response.responses for p in topic.partitions]
    first = next((p.records for p in partitions if p.records), None)
    heads = _batch_headers(first)
    return {
        "redirects": sum(p.preferred_read_replica >= 0 or p.diverging_epoch.epoch >= 0 for p in partitions),
        "first_batch_bytes": heads[0].size if heads else None,
    }


def _list_offsets_columns(request: Any, _: Any) -> Row:
    return {"isolation": request.isolation_level, "replica_id": request.replica_id}


def _produce_columns(request: Any, _: Any) -> Row:
    return {"acks": request.acks}


def topic_columns(name: str | None, topic_id: bytes = NO_TOPIC_ID) -> Row:
    return {"topic": name or None, "topic_id": None if topic_id == NO_TOPIC_ID else topic_id.hex()}


def _record_headers(records: Any) -> tuple[list[BatchHeader], list[MessageHeader]]:
    """Return (headers of the batches of magic 2, headers of the messages of magic 0 and 1) in a records field. One of the two lists is empty.

    records: the field as a trace stores it, in which most batches and messages have only their headers. None or empty if there are none.
    """
    headers: list[Any] = read_heads(records or b"")
    return ([], headers) if headers and type(headers[0]) is MessageHeader else (headers, [])


def _batch_headers(records: Any) -> list[BatchHeader]:
    return _record_headers(records)[0]


def _marker(batch: Buffer) -> EndOfTransaction | None:
    """Return the transaction marker in a control batch; None if the batch has another control record, or if the trace lacks the record."""
    try:
        return end_of_transaction(next(records(batch))) if batch else None
    except (DecodeError, StopIteration):
        return None


def _records_columns(heads: list[BatchHeader], length: int) -> Row:
    return {
        "batches": len(heads),
        "records": sum(head.record_count for head in heads),
        "bytes": length,
        "first_batch_bytes": heads[0].size if heads else None,
    }


def _batch_keys(keys: Row) -> Row:
    return {name: keys.get(name) for name in _BATCH_KEYS}


def _batch_rows(keys: Row, where: Row, heads: list[BatchHeader], base_offset: int | None) -> Iterator[tuple[str, Row]]:
    """Yield ("batches", row of that table) for each batch header. A row is a dict of column names to values.

    keys, where: the columns that identify the request and the partition, with their values; each row contains them. heads: the headers of successive
    batches. base_offset: the offset that the broker assigned to the first batch; None to take the base offset from each header.
    """
    for position, head in enumerate(heads):
        base = head.base_offset if base_offset is None else base_offset
        yield (
            "batches",
            {
                **_batch_keys(keys),
                **where,
                "position": position,
                "base_offset": base if base >= 0 else None,
                "last_offset": base + head.last_offset_delta if base >= 0 else None,
                "count": head.record_count,
                "bytes": head.size,
                "epoch": head.partition_leader_epoch,
                "producer_id": head.producer_id,
                "producer_epoch": head.producer_epoch,
                "base_sequence": head.base_sequence,
                "codec": head.compression,
                "transactional": head.is_transactional,
                "control": head.is_control,
                "committed": None,
                "coordinator_epoch": None,
                "max_timestamp": head.max_timestamp,
                "crc": head.crc,
            },
        )


def _with_markers(rows: Iterator[tuple[str, Row]], stored_records: Any) -> Iterator[tuple[str, Row]]:
    """Add the columns of transaction markers to the rows of control batches, and yield all rows.

    rows: (table name, row) for each batch, from `_batch_rows`. stored_records: the records field of these batches as the trace stores it.
    """
    for (table, row), (_, batch) in zip(rows, read_kept(stored_records or b""), strict=True):
        marker = _marker(batch)
        if marker is not None:
            row |= {"committed": marker.committed, "coordinator_epoch": marker.coordinator_epoch}
        yield table, row


def _message_rows(
    keys: Row, where: Row, messages: list[MessageHeader], fetch_offset: int | None
) -> Iterator[tuple[str, Row]]:
    """Yield ("batches", row of that table) for each message of magic 0 or 1; the producer columns are -1.

    keys, where: the columns that identify the request and the partition, with their values; each row contains them. messages: the headers of
    successive messages. fetch_offset: the offset in the Fetch request; None for a Produce request. A compressed message has only the offset of its
    last record. Its base offset is therefore the offset after the previous message or, for the first message, `fetch_offset`.
    """
    next_offset = fetch_offset
    for position, head in enumerate(messages):
        base = head.offset if next_offset is None or not head.compression else min(next_offset, head.offset)
        next_offset = head.next_offset
        yield (
            "batches",
            {
                **_batch_keys(keys),
                **where,
                "position": position,
                "base_offset": base,
                "last_offset": head.last_offset,
                "count": head.next_offset - base,
                "bytes": head.size,
                "epoch": -1,
                "producer_id": -1,
                "producer_epoch": -1,
                "base_sequence": -1,
                "codec": head.compression,
                "transactional": False,
                "control": False,
                "committed": None,
                "coordinator_epoch": None,
                "max_timestamp": head.max_timestamp,
                "crc": None,
            },
        )


def produce_rows(keys: Row, exchange: Exchange, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    lengths = iter(exchange.request_records)
    partition_responses = {
        (topic.name, topic.topic_id, partition_response.index): partition_response
        for topic in (() if response is None else response.responses)
        for partition_response in topic.partition_responses
    }
    position = 0
    for topic in request.topic_data:
        for data in topic.partition_data:
            length = 0 if data.records is None else next(lengths, 0)
            heads = _batch_headers(data.records)
            partition_response = partition_responses.get((topic.name, topic.topic_id, data.index))
            base = -1 if partition_response is None else partition_response.base_offset
            partition_columns = {**topic_columns(topic.name, topic.topic_id), "partition": data.index}
            row = {
                **empty_row("partitions"),
                **keys,
                **partition_columns,
                "position": position,
                **_records_columns(heads, length),
            }
            if partition_response is not None:
                row |= {"error": partition_response.error_code, "log_start": partition_response.log_start_offset}
                if base >= 0:
                    row |= {
                        "base_offset": base,
                        "next_offset": base + heads[0].last_offset_delta + 1 if heads else None,
                    }
            yield "partitions", row
            yield from _batch_rows(keys, partition_columns, heads, base)
            position += 1


def fetch_rows(
    keys: Row, exchange: Exchange, response: Any, requested: dict[PartitionKey, RequestedPartition]
) -> Iterator[tuple[str, Row]]:
    lengths = iter(exchange.response_records)
    position = 0
    for topic in () if response is None else response.responses:
        for data in topic.partitions:
            length = 0 if data.records is None else next(lengths, 0)
            heads, messages = _record_headers(data.records)
            partition_columns = {**topic_columns(topic.topic, topic.topic_id), "partition": data.partition_index}
            row = {
                **empty_row("partitions"),
                **keys,
                **partition_columns,
                "position": position,
                **_records_columns(heads, length),
            }
            row |= {
                "error": data.error_code,
                "base_offset": heads[0].base_offset if heads else None,
                "next_offset": heads[-1].next_offset if heads else None,
                "high_watermark": data.high_watermark,
                "last_stable_offset": data.last_stable_offset,
                "log_start": data.log_start_offset,
                "preferred_replica": data.preferred_read_replica,
                "aborted": _aborted(data.aborted_transactions),
            }
            requested_partition = requested.get((topic.topic, topic.topic_id, data.partition_index))
            if requested_partition is not None:
                row |= {
                    "requested_offset": requested_partition.offset,
                    "limit_bytes": requested_partition.limit_bytes,
                    "requested_epoch": requested_partition.epoch,
                }
            message_rows = list(_message_rows(keys, partition_columns, messages, row["requested_offset"]))
            if message_rows:
                row |= {
                    "base_offset": message_rows[0][1]["base_offset"],
                    "next_offset": message_rows[-1][1]["last_offset"] + 1,
                }
            yield "partitions", row
            if heads:
                yield from _with_markers(_batch_rows(keys, partition_columns, heads, None), data.records)
            yield from message_rows
            position += 1


def _aborted(transactions: Any) -> str | None:
    if transactions is None:
        return None
    return json.dumps(
        [[transaction.producer_id, transaction.first_offset] for transaction in transactions], separators=(",", ":")
    )


def list_offsets_rows(keys: Row, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    partition_responses = {
        (topic.name, p.partition_index): p
        for topic in (() if response is None else response.topics)
        for p in topic.partitions
    }
    position = 0
    for topic in request.topics:
        for partition_request in topic.partitions:
            row = {
                **empty_row("partitions"),
                **keys,
                **topic_columns(topic.name),
                "partition": partition_request.partition_index,
            }
            row |= {
                "position": position,
                "requested_timestamp": partition_request.timestamp,
                "requested_epoch": partition_request.current_leader_epoch,
            }
            partition_response = partition_responses.get((topic.name, partition_request.partition_index))
            if partition_response is not None:
                row |= {
                    "error": partition_response.error_code,
                    "base_offset": partition_response.offset,
                    "returned_epoch": partition_response.leader_epoch,
                    "returned_timestamp": partition_response.timestamp,
                }
            yield "partitions", row
            position += 1


REQUEST_COLUMNS: dict[int, Callable[[Any, Any], Row]] = {
    ApiKey.PRODUCE: _produce_columns,
    ApiKey.FETCH: _fetch_columns,
    ApiKey.LIST_OFFSETS: _list_offsets_columns,
}
