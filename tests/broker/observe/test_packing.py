"""The trace writer of a recorder encodes entries like `kafkaproto.trace.format.encoded`."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.api import ApiKey, codec
from kafkaproto.broker.log.files import FileRange, MemoryBudget, SegmentFile, open_temporary_file
from kafkaproto.broker.observe.packing import Entries, Traced, packed_with_records
from kafkaproto.broker.observe.recorder import Recorder
from kafkaproto.broker.requests import responses
from kafkaproto.frame import LENGTH_BYTES
from kafkaproto.header import start_response
from kafkaproto.messages.fetch import RESPONSES, FetchableTopicResponse, FetchResponse, PartitionData
from kafkaproto.records.batch import HEADER_BYTES
from kafkaproto.trace.format import (
    ANSWERED,
    CLOSES,
    HELD,
    LENGTH_AND_KIND,
    POSITIONS_FIELDS,
    STATE_FIELDS,
    Exchange,
    Positions,
    State,
    encoded,
)
from tests.support.wire import batch

INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
UINT32, UINT64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
EXCHANGES = st.builds(
    Exchange,
    seq=UINT64,
    broker=INT32,
    connection=UINT64,
    clock_ms=INT64,
    received_ns=INT64,
    handled_ns=INT64,
    ready_ns=INT64,
    sent_ns=INT64,
    throttle_ms=INT32,
    answered=st.booleans(),
    held=st.booleans(),
    closes=st.booleans(),
    request_bytes=UINT32,
    response_bytes=st.just(0),
    request=st.binary(max_size=100),
    response=st.binary(max_size=100),
    request_records=st.lists(UINT32, max_size=3).map(tuple),
    response_records=st.just(()),
    handled_ms=INT64,
    wait_ns=INT64,
).map(lambda drawn: drawn._replace(response_bytes=len(drawn.response)))


def written(write: Callable[[Callable[[bytes, int], None]], None]) -> bytes:
    """Return the bytes that reach a sink."""
    pieces: list[bytes] = []
    write(lambda piece, count: pieces.append(piece))
    return b"".join(pieces)


def as_recorded(drawn: Exchange) -> Traced:
    """Return the state of a recorder for an exchange whose response has been sent."""
    traced = Traced()
    exchange: Any = SimpleNamespace(
        node=SimpleNamespace(broker_id=drawn.broker),
        peer=SimpleNamespace(connection_id=drawn.connection),
        now_ms=drawn.clock_ms,
        size_bytes=drawn.request_bytes,
    )
    traced.exchange = exchange
    for name in ("seq", "received_ns", "handled_ns", "handled_ms", "ready_ns", "sent_ns", "wait_ns", "throttle_ms"):
        setattr(traced, name, getattr(drawn, name))
    traced.kept_frame = bytearray(drawn.request), drawn.request_records
    traced.flags = ANSWERED * drawn.answered | HELD * drawn.held | CLOSES * drawn.closes
    traced.out = struct.pack(">i", len(drawn.response)) + drawn.response
    traced.splices = ()
    return traced


@given(st.lists(EXCHANGES, min_size=1, max_size=3), st.integers(1, 3))
def test_trace_writer_and_generic_trace_encoder_encode_a_request_identically(
    exchanges: list[Exchange], together: int
) -> None:
    def write(sink: Callable[[bytes, int], None]) -> None:
        entries = Entries(sink, together)
        for exchange in exchanges:
            entries.keep(as_recorded(exchange), 0)
        entries.end()

    assert written(write) == b"".join(map(encoded, exchanges))


class Records(NamedTuple):
    """A records field of a fetch response: complete batches, and a last one that lacks `cut_bytes`. in_file: where they are stored."""

    batches: tuple[bytes, ...]
    cut_bytes: int
    in_file: bool

    @property
    def stored(self) -> bytes:
        data = b"".join(self.batches)
        return data[: len(data) - self.cut_bytes]

    @property
    def heads(self) -> bytes:
        """Return the headers of the complete batches."""
        whole = self.batches[:-1] if self.cut_bytes else self.batches
        return b"".join(whole_batch[:HEADER_BYTES] for whole_batch in whole)


BATCHES = st.integers(0, 3).flatmap(lambda size: st.sampled_from([batch(b"x" * 10**size), batch(b"x" * 20_000)]))
RECORDS = st.lists(BATCHES, max_size=4).flatmap(
    lambda batches: st.builds(
        Records,
        batches=st.just(tuple(batches)),
        cut_bytes=st.sampled_from([0, 0, 1, 40, len(batches[-1]) - 1]) if batches else st.just(0),
        in_file=st.booleans(),
    )
)
FETCH_RESPONSES = st.tuples(
    st.sampled_from(sorted(RESPONSES)), st.lists(st.lists(RECORDS | st.none(), max_size=3), max_size=3)
)
"""Fetch versions, and the records of each partition of each topic."""


def fetch_response(records: list[list[Any]]) -> FetchResponse:
    """Return a response with these records, by topic and partition."""
    topics = [[PartitionData(i, records=value) for i, value in enumerate(partitions)] for partitions in records]
    return FetchResponse(responses=[FetchableTopicResponse(partitions=partitions) for partitions in topics])


@pytest.fixture(scope="module")
def file() -> Iterator[SegmentFile]:
    with open_temporary_file(MemoryBudget(0)) as file:
        yield file


def put_into(traced: Traced, version: int, message: FetchResponse) -> None:
    """Encode a fetch response as the broker does, and record it as a recorder does."""
    exchange: Any = traced.exchange
    exchange.node.events = SimpleNamespace(wants_records_apart=True, response_built=None)
    exchange.api_key, exchange.api_version = ApiKey.FETCH, version
    exchange.codec, exchange.correlation_id = codec(ApiKey.FETCH, version), 7
    traced.out, traced.splices, _ = responses.encode(exchange, message)


def as_written(exchange: Exchange, version: int, records: list[list[Records | None]]) -> Exchange:
    """Return the exchange with the fetch response that a trace contains for these records."""
    header = start_response(7, codec(ApiKey.FETCH, version).response_header_version)[LENGTH_BYTES:]
    stored = [[field and field.stored for field in topic] for topic in records]
    heads = [[field and field.heads for field in topic] for topic in records]
    return exchange._replace(
        response=bytes(header) + RESPONSES[version].encode(fetch_response(heads)),
        response_bytes=len(header) + len(RESPONSES[version].encode(fetch_response(stored))),
        response_records=tuple(len(field) for topic in stored for field in topic if field is not None),
    )


@given(st.lists(st.tuples(EXCHANGES, FETCH_RESPONSES), min_size=1, max_size=3), st.integers(1, 3))
def test_trace_writer_and_generic_trace_encoder_encode_a_fetch_response_identically(
    file: SegmentFile, fetches: list[tuple[Exchange, tuple[int, list[list[Records | None]]]]], together: int
) -> None:
    file_end = 0

    def placed(field: Records | None) -> Any:
        """Return a field as bytes, or as the range of the file that it is written to."""
        nonlocal file_end
        if field is None or not field.in_file:
            return field and field.stored
        start, file_end = file_end, file_end + len(field.stored)
        os.pwrite(file.fileno(), field.stored, start)
        return FileRange(file, start, len(field.stored))

    def write(sink: Callable[[bytes, int], None]) -> None:
        entries = Entries(sink, together)
        for exchange, (version, records) in fetches:
            traced = as_recorded(exchange)
            put_into(traced, version, fetch_response([[placed(field) for field in topic] for topic in records]))
            if traced.splices:
                entries.keep_packed(packed_with_records(traced))
            else:
                entries.keep(traced, 0)
        entries.end()

    assert written(write) == b"".join(encoded(as_written(exchange, *fetched)) for exchange, fetched in fetches)


class Log:
    """A log of which only the offsets are known."""

    def __init__(self, offsets: tuple[int, int, int, int]) -> None:
        self.move_to(offsets)

    def move_to(self, offsets: tuple[int, int, int, int]) -> None:
        self.high_watermark, self.last_stable_offset, self.log_start_offset, self.log_end_offset = offsets


OFFSETS = st.tuples(INT64, INT64, INT64, INT64)


@given(st.text(max_size=20), INT32, INT32, INT64, st.lists(OFFSETS, min_size=1, max_size=4), st.integers(1, 3))
def test_trace_writer_and_generic_trace_encoder_encode_log_offsets_identically(
    topic: str, partition: int, broker: int, clock_ms: int, moves: list[tuple[int, int, int, int]], together: int
) -> None:
    def write(sink: Callable[[bytes, int], None]) -> None:
        recorder = Recorder(sink, together)
        log: Any = Log(moves[0])
        for offsets in moves:
            log.move_to(offsets)
            recorder.offsets_moved(broker, topic, partition, log, clock_ms)
        recorder.end()

    data = written(write)
    size = LENGTH_AND_KIND.size + STATE_FIELDS.size + POSITIONS_FIELDS.size + len(topic.encode())
    assert len(data) == size * len(moves)
    for number, offsets in enumerate(moves):
        entry = data[number * size :][:size]
        at_ns = STATE_FIELDS.unpack_from(entry, LENGTH_AND_KIND.size)[3]
        position = Positions(topic, partition, number == 0, *offsets)
        assert entry == encoded(State(number + 1, broker, clock_ms, at_ns, (position,)))
