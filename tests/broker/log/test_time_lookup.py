"""Offset lookup by timestamp (L-6, L-7), with the numbers of Kafka's ListOffsetsIntegrationTest and LogOffsetTest."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.log.store import MemoryBudget, Store
from kafkaproto.records.batch import Compression, NewRecord, build_batch, read_header
from tests.support.broker.batches import NOW_MS, batch

ALL = 1 << 60
LOG_APPEND_TIME = 0x08


def log_of(*batches: bytearray, segment_bytes: int = 1 << 30) -> ReplicaLog:
    log = ReplicaLog(Store(MemoryBudget(1 << 30), segment_bytes))
    for epoch, data in enumerate(batches):
        log.append(memoryview(data), read_header(data), epoch, NOW_MS)
    return log


def singles(*timestamps: int) -> list[bytearray]:
    return [batch(timestamps=[t]) for t in timestamps]


@pytest.mark.rule("L-6")
def test_offset_lookup_by_timestamp_returns_the_first_record_at_or_after_that_time() -> None:
    log = log_of(batch(timestamps=[100, 999, 200]), batch(timestamps=[150]), batch(timestamps=[1000, 2000]))
    assert log.offset_for_timestamp(0, ALL) == (100, 0, 0)
    assert log.offset_for_timestamp(101, ALL) == (999, 1, 0)
    assert log.offset_for_timestamp(1000, ALL) == (1000, 4, 2)
    assert log.offset_for_timestamp(1001, ALL) == (2000, 5, 2)
    assert log.offset_for_timestamp(2001, ALL) is None


@pytest.mark.rule("L-6")
def test_timestamp_lookup_ignores_records_below_log_start_or_from_the_end_offset_on() -> None:
    log = log_of(batch(timestamps=[100, 999, 200]), batch(timestamps=[150]))
    assert log.offset_for_timestamp(500, 1) is None
    assert log.offset_for_timestamp(500, 2) == (999, 1, 0)
    log.raise_log_start(2)
    assert log.offset_for_timestamp(500, ALL) is None
    assert log.offset_for_timestamp(0, ALL) == (200, 2, 0)


@pytest.mark.rule("L-7")
@pytest.mark.parametrize(
    ("batches", "offset"),
    [
        ([batch(timestamps=[100, 999, 200])], 1),
        (singles(100, 999, 200), 1),
        ([batch(timestamps=[1, 2, 3], attributes=LOG_APPEND_TIME, max_timestamp=50)], 0),
        ([batch(timestamps=[1], attributes=LOG_APPEND_TIME, max_timestamp=t) for t in (50, 51, 52)], 2),
        (singles(0, 1, 2, 3, 4, 6, 5), 5),
        (singles(7, 9, 9, 8), 1),
    ],
)
def test_max_timestamp_lookup_returns_the_record_with_the_largest_timestamp(
    batches: list[bytearray], offset: int
) -> None:
    newest = log_of(*(b.copy() for b in batches)).offset_of_max_timestamp(ALL)
    assert newest is not None and newest.offset == offset


@pytest.mark.rule("L-7")
def test_max_timestamp_lookup_without_records_in_range_returns_none() -> None:
    assert log_of().offset_of_max_timestamp(ALL) is None
    log = log_of(*singles(1, 5, 3))
    assert log.offset_of_max_timestamp(1) is None
    assert log.offset_of_max_timestamp(2) == (5, 1, 1)
    log.raise_log_start(3)
    assert log.offset_of_max_timestamp(ALL) is None


@pytest.mark.rule("L-6", "L-7")
@pytest.mark.parametrize("codec", list(Compression))
def test_timestamp_lookups_decompress_batches_to_find_the_record(codec: Compression) -> None:
    built = build_batch([NewRecord(b"v", timestamp=t) for t in (10, 30, 20)], compression=codec)
    log = log_of(bytearray(built))
    assert log.offset_for_timestamp(11, ALL) == (30, 1, 0)
    assert log.offset_of_max_timestamp(ALL) == (30, 1, 0)


@pytest.mark.rule("L-6", "L-7")
@given(
    timestamps=st.lists(st.integers(0, 50), min_size=1, max_size=120),
    size=st.sampled_from([10, 900, 5000]),
    segment_bytes=st.sampled_from([4000, 20_000, 1 << 30]),
    start=st.integers(0, 119),
    timestamp=st.integers(0, 51),
)
@settings(max_examples=60, deadline=None)
def test_timestamp_lookups_return_the_same_offsets_as_a_linear_search(
    timestamps: list[int], size: int, segment_bytes: int, start: int, timestamp: int
) -> None:
    log = log_of(*(batch(1, size, timestamps=[t]) for t in timestamps), segment_bytes=segment_bytes)
    log.raise_log_start(min(start, len(timestamps)))
    remaining = [(t, offset) for offset, t in enumerate(timestamps) if offset >= log.log_start_offset]
    first_record = log.offset_for_timestamp(timestamp, ALL)
    assert (first_record[:2] if first_record else None) == next(((t, o) for t, o in remaining if t >= timestamp), None)
    latest = log.offset_of_max_timestamp(ALL)
    assert (latest[:2] if latest else None) == max(
        remaining, key=lambda candidate: (candidate[0], -candidate[1]), default=None
    )


@pytest.mark.rule("L-6")
def test_four_timestamp_lookups_read_less_than_100_kb_of_a_log_of_10000_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = log_of(*(batch(1, 500, timestamps=[t]) for t in range(10_000)))
    bytes_read = []
    real_pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, at: bytes_read.append(n) or real_pread(fd, n, at))
    for timestamp in (7, 4_999, 9_990):
        assert log.offset_for_timestamp(timestamp, ALL) == (timestamp, timestamp, timestamp)
    assert log.offset_of_max_timestamp(ALL) == (9_999, 9_999, 9_999)
    assert sum(bytes_read) < 100_000
