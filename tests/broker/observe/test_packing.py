"""A recorder's writer of entries gives the bytes of `kafkaproto.trace.format.encoded`."""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.broker.observe.packing import Entries, Traced
from kafkaproto.broker.observe.recorder import Recorder
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
).map(lambda one: one._replace(response_bytes=len(one.response)))


def written(write: Callable[[Callable[[bytes, int], None]], None]) -> bytes:
    """Return what reaches a sink."""
    pieces: list[bytes] = []
    write(lambda piece, count: pieces.append(piece))
    return b"".join(pieces)


def as_recorded(one: Exchange) -> Traced:
    """Return what a recorder has kept of an exchange when its response is out."""
    traced = Traced()
    exchange: Any = SimpleNamespace(
        node=SimpleNamespace(broker_id=one.broker),
        peer=SimpleNamespace(connection_id=one.connection),
        now_ms=one.clock_ms,
        size_bytes=one.request_bytes,
    )
    traced.exchange = exchange
    for name in ("seq", "received_ns", "handled_ns", "handled_ms", "ready_ns", "sent_ns", "wait_ns", "throttle_ms"):
        setattr(traced, name, getattr(one, name))
    traced.kept = bytearray(one.request), one.request_records
    traced.flags = ANSWERED * one.answered | HELD * one.held | CLOSES * one.closes
    traced.out = struct.pack(">i", len(one.response)) + one.response
    traced.splices = ()
    return traced


@given(st.lists(EXCHANGES, min_size=1, max_size=3), st.integers(1, 3))
def test_both_writers_give_an_exchange_the_same_bytes(exchanges: list[Exchange], together: int) -> None:
    def write(sink: Callable[[bytes, int], None]) -> None:
        entries = Entries(sink, together)
        for one in exchanges:
            entries.keep(as_recorded(one), 0)
        entries.end()

    assert written(write) == b"".join(map(encoded, exchanges))


class Log:
    """A log of which only the offsets are known."""

    def __init__(self, offsets: tuple[int, int, int, int]) -> None:
        self.move_to(offsets)

    def move_to(self, offsets: tuple[int, int, int, int]) -> None:
        self.high_watermark, self.last_stable_offset, self.log_start_offset, self.log_end_offset = offsets


OFFSETS = st.tuples(INT64, INT64, INT64, INT64)


@given(st.text(max_size=20), INT32, INT32, INT64, st.lists(OFFSETS, min_size=1, max_size=4), st.integers(1, 3))
def test_both_writers_give_the_move_of_a_log_the_same_bytes(
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
