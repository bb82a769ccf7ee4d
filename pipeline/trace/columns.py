"""What the frames of one exchange tell, as columns and rows of the tables in `schema`: functions of that exchange alone.

keys: the columns that say whose a row is. Must never know what other exchanges told, nor where rows go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from kafkaproto.api import ApiKey, codec
from kafkaproto.header import RequestHeader
from kafkaproto.pipeline.trace.schema import KEYS, OF_REQUEST, TABLES
from kafkaproto.pipeline.trace.sessions import Asked, Key
from kafkaproto.records.batch import BatchHeader
from kafkaproto.records.message_set import MessageHeader
from kafkaproto.trace.cutting import read_heads
from kafkaproto.trace.decoded import Decoded
from kafkaproto.trace.format import Exchange

Row = dict[str, Any]
NO_TOPIC_ID = bytes(16)
NS_PER_MS = 1_000_000
_BATCH_KEYS = (*(column.name for column in (*KEYS, *OF_REQUEST)), "api", "acks")


def blank(table: str) -> Row:
    return dict.fromkeys(column.name for column in TABLES[table])


def recorded(one: Exchange) -> Row:
    """What who recorded it knows, without its frames."""
    row: Row = {
        "conn": one.connection,
        "clock_ms": one.clock_ms or None,
        "handled_ms": one.handled_ms or None,
        "received_ns": one.received_ns,
        "handled_ns": one.handled_ns or None,
        "ready_ns": one.ready_ns,
        "wait_ms": one.wait_ns / NS_PER_MS if one.wait_ns >= 0 else None,
        "sent_ns": one.sent_ns or None,
        "bytes_in": one.request_bytes,
        "bytes_out": one.response_bytes,
        "answered": one.answered,
        "held": one.held,
        "decided_ms": one.throttle_ms,
        "records_bytes": sum(one.request_records) + sum(one.response_records),
    }
    if one.throttle_ms > 0 and one.clock_ms and not one.held:
        row |= {"muted_from_ms": one.clock_ms, "muted_until_ms": one.clock_ms + one.throttle_ms}
    return row


def throttle(facts: Row) -> Row:
    """Whose quota, and its numbers; of one that was forced there are none."""
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
def _tells_throttles(api_key: int, api_version: int) -> bool:
    return "throttleTimeMs" in codec(api_key, api_version).response.cls().to_json(api_version)


def answer(seen: Decoded, header: RequestHeader) -> Row:
    if seen.response is None:
        return {}
    tells = _tells_throttles(header.api_key, seen.response_version)
    return {"error": next(seen.errors(), 0), "throttle_ms": seen.response.throttle_time_ms if tells else None}


def _fetch_columns(request: Any, response: Any) -> Row:
    replica = request.replica_state.replica_id
    return {
        "max_bytes": request.max_bytes,
        "min_bytes": request.min_bytes,
        "max_wait_ms": request.max_wait_ms,
        "isolation": request.isolation_level,
        "session_id": request.session_id,
        "session_epoch": request.session_epoch,
        "answered_session_id": None if response is None else response.session_id,
        "replica_id": replica if replica != -1 else request.replica_id,
        "rack": request.rack_id,
        **_answered_fetch(request, response),
    }


def _answered_fetch(request: Any, response: Any) -> Row:
    """What its partitions say of the whole answer. A records field that was not empty still tells that it was there."""
    answered = [] if response is None else [p for topic in response.responses for p in topic.partitions]
    first = next((p.records for p in answered if p.records), None)
    heads = _heads(first)
    return {
        "redirects": sum(p.preferred_read_replica >= 0 or p.diverging_epoch.epoch >= 0 for p in answered),
        "first_batch_bytes": heads[0].size if heads else None,
    }


def _list_offsets_columns(request: Any, _: Any) -> Row:
    return {"isolation": request.isolation_level, "replica_id": request.replica_id}


def _produce_columns(request: Any, _: Any) -> Row:
    return {"acks": request.acks}


def topic_columns(name: str | None, topic_id: bytes = NO_TOPIC_ID) -> Row:
    return {"topic": name or None, "topic_id": None if topic_id == NO_TOPIC_ID else topic_id.hex()}


def _left(records: Any) -> tuple[list[BatchHeader], list[MessageHeader]]:
    """What `kafkaproto.trace.cutting` left of records: headers of batches, or of messages of magic 0 and 1."""
    found: list[Any] = read_heads(records or b"")
    return ([], found) if found and type(found[0]) is MessageHeader else (found, [])


def _heads(records: Any) -> list[BatchHeader]:
    return _left(records)[0]


def _records_columns(heads: list[BatchHeader], length: int) -> Row:
    return {
        "batches": len(heads),
        "records": sum(head.record_count for head in heads),
        "bytes": length,
        "first_batch_bytes": heads[0].size if heads else None,
    }


def _keys_of_batch(keys: Row) -> Row:
    return {name: keys.get(name) for name in _BATCH_KEYS}


def _batch_rows(keys: Row, where: Row, heads: list[BatchHeader], base_offset: int | None) -> Iterator[tuple[str, Row]]:
    """base_offset: what the broker assigned to the first one; None: as it stands in each."""
    for place, head in enumerate(heads):
        base = head.base_offset if base_offset is None else base_offset
        yield (
            "batches",
            {
                **_keys_of_batch(keys),
                **where,
                "place": place,
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
                "max_timestamp": head.max_timestamp,
                "crc": head.crc,
            },
        )


def _message_rows(keys: Row, where: Row, messages: list[MessageHeader], asked: int | None) -> Iterator[tuple[str, Row]]:
    """As batches without a producer. Where a compressed one begins it does not say: behind the one before, the first at the asked offset."""
    begins = asked
    for place, head in enumerate(messages):
        base = head.offset if begins is None or not head.compression else min(begins, head.offset)
        begins = head.next_offset
        yield (
            "batches",
            {
                **_keys_of_batch(keys),
                **where,
                "place": place,
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
                "max_timestamp": head.max_timestamp,
                "crc": None,
            },
        )


def produce_rows(keys: Row, one: Exchange, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    lengths = iter(one.request_records)
    answers = {
        (topic.name, topic.topic_id, answer.index): answer
        for topic in (() if response is None else response.responses)
        for answer in topic.partition_responses
    }
    place = 0
    for topic in request.topic_data:
        for data in topic.partition_data:
            length = 0 if data.records is None else next(lengths, 0)
            heads = _heads(data.records)
            answer = answers.get((topic.name, topic.topic_id, data.index))
            base = -1 if answer is None else answer.base_offset
            where = {**topic_columns(topic.name, topic.topic_id), "partition": data.index}
            row = {**blank("partitions"), **keys, **where, "place": place, **_records_columns(heads, length)}
            if answer is not None:
                row |= {"error": answer.error_code, "log_start": answer.log_start_offset}
                if base >= 0:
                    row |= {
                        "base_offset": base,
                        "next_offset": base + heads[0].last_offset_delta + 1 if heads else None,
                    }
            yield "partitions", row
            yield from _batch_rows(keys, where, heads, base)
            place += 1


def fetch_rows(keys: Row, one: Exchange, response: Any, asked: dict[Key, Asked]) -> Iterator[tuple[str, Row]]:
    lengths = iter(one.response_records)
    place = 0
    for topic in () if response is None else response.responses:
        for data in topic.partitions:
            length = 0 if data.records is None else next(lengths, 0)
            heads, messages = _left(data.records)
            where = {**topic_columns(topic.topic, topic.topic_id), "partition": data.partition_index}
            row = {**blank("partitions"), **keys, **where, "place": place, **_records_columns(heads, length)}
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
            wanted = asked.get((topic.topic, topic.topic_id, data.partition_index))
            if wanted is not None:
                row |= {
                    "asked_offset": wanted.offset,
                    "limit_bytes": wanted.limit_bytes,
                    "asked_epoch": wanted.epoch,
                }
            listed = list(_message_rows(keys, where, messages, row["asked_offset"]))
            if listed:
                row |= {"base_offset": listed[0][1]["base_offset"], "next_offset": listed[-1][1]["last_offset"] + 1}
            yield "partitions", row
            yield from _batch_rows(keys, where, heads, None)
            yield from listed
            place += 1


def _aborted(listed: Any) -> str | None:
    if listed is None:
        return None
    return json.dumps([[one.producer_id, one.first_offset] for one in listed], separators=(",", ":"))


def list_offsets_rows(keys: Row, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    answers = {
        (topic.name, p.partition_index): p
        for topic in (() if response is None else response.topics)
        for p in topic.partitions
    }
    place = 0
    for topic in request.topics:
        for wanted in topic.partitions:
            row = {**blank("partitions"), **keys, **topic_columns(topic.name), "partition": wanted.partition_index}
            row |= {"place": place, "asked_timestamp": wanted.timestamp, "asked_epoch": wanted.current_leader_epoch}
            answer = answers.get((topic.name, wanted.partition_index))
            if answer is not None:
                row |= {
                    "error": answer.error_code,
                    "base_offset": answer.offset,
                    "answered_epoch": answer.leader_epoch,
                    "answered_timestamp": answer.timestamp,
                }
            yield "partitions", row
            place += 1


OF_API: dict[int, Callable[[Any, Any], Row]] = {
    ApiKey.PRODUCE: _produce_columns,
    ApiKey.FETCH: _fetch_columns,
    ApiKey.LIST_OFFSETS: _list_offsets_columns,
}
