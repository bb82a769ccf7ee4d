"""Arrow columns equal the records of the record reader for all kinds of batches."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaproto.pipeline.kafka_py.columns import FULL_ROWS, SCHEMAS, Rows
from kafkaproto.pipeline.kafka_py.offsets import Range
from kafkaproto.records import message_set
from kafkaproto.records.batch import (
    LOG_APPEND_TIME,
    BatchHeader,
    NewRecord,
    build_batch,
    build_empty_batch,
    read_header,
)
from kafkaproto.records.compression import Compression
from kafkaproto.records.entries import Entry, batches, records

WHOLE = Range("t", 3, 0, 2**62)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
sizes = st.sampled_from([None, 0, 1, 5, 100, 100, 300])
headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3)
many_headers = st.just([]) | headers
new_records = st.builds(
    lambda value, key, time, headers: NewRecord(
        None if value is None else b"v" * value, None if key is None else b"k" * key, time, headers
    ),
    sizes,
    sizes,
    st.integers(0, 2**41),
    many_headers,
)


def rows_of(data: bytes, offset_range: Range = WHOLE, with_headers: bool = True) -> list[dict[str, Any]]:
    rows = Rows(offset_range, with_headers)
    for entry in batches(data):
        rows.add(entry, offset_range.start)
    batch = rows.take()
    batch.validate(full=True)
    assert batch.schema == SCHEMAS[with_headers]
    listed: list[dict[str, Any]] = batch.to_pylist()
    return listed


def expected(entry: Entry, offset_range: Range = WHOLE) -> list[dict[str, Any]]:
    header = entry.header
    kind = (1 if header.is_log_append_time else 0) if header.magic else -1
    return [
        {
            "key": r.key,
            "value": r.value,
            "topic": offset_range.topic,
            "partition": offset_range.partition,
            "offset": r.offset,
            "timestamp": EPOCH + timedelta(milliseconds=r.timestamp),
            "timestampType": kind,
            "headers": [{"key": key, "value": value} for key, value in r.headers] or None,
        }
        for r in records(entry.view)
        if offset_range.start <= r.offset < offset_range.end
    ]


@settings(deadline=None)  # the first call is slow because of imports
@given(
    st.lists(
        st.tuples(st.lists(new_records, min_size=1, max_size=6), st.integers(1, 40), st.sampled_from(Compression)),
        min_size=1,
        max_size=4,
    )
)
def test_records_read_as_arrow_columns_equal_records_decoded_one_by_one(
    parts: list[tuple[list[NewRecord], int, Compression]],
) -> None:
    data, offset = b"", 0
    for batch_records, times, kind in parts:
        data += build_batch(batch_records * times, base_offset=offset, compression=kind)
        offset += len(batch_records) * times + 3
    assert rows_of(data) == [row for entry in batches(data) for row in expected(entry)]


@settings(deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=5), st.integers(0, 150), st.integers(0, 150))
def test_arrow_reader_leaves_out_records_outside_the_requested_offset_range(
    counts: list[int], start: int, end: int
) -> None:
    offset_range = Range("t", 0, start, end)
    data, offset = b"", 0
    for count in counts:
        data += build_batch([NewRecord(b"v", b"k", 5, [("h", b"1")])] * count, base_offset=offset)
        offset += count
    assert rows_of(data, offset_range) == [row for entry in batches(data) for row in expected(entry, offset_range)]


def test_spark_kafka_py_rows_of_a_compacted_log_keep_their_offsets_despite_gaps() -> None:
    data = build_batch([NewRecord(b"%d" % i) for i in range(4)], base_offset=10, offset_deltas=[0, 3, 50, 51])
    assert [row["offset"] for row in rows_of(data)] == [10, 13, 60, 61]


def test_spark_kafka_py_returns_no_rows_for_a_batch_emptied_by_compaction() -> None:
    header = read_header(build_batch([NewRecord(b"v")], producer_id=1, producer_epoch=0, base_sequence=0))
    assert rows_of(build_empty_batch(header)) == []


def test_spark_kafka_py_timestamp_of_a_log_append_time_batch_is_the_append_time() -> None:
    data = build_batch([NewRecord(b"v", None, 5)] * 3, attributes=LOG_APPEND_TIME, max_timestamp=1_700_000_000_123)
    entry = next(batches(data))
    assert isinstance(entry.header, BatchHeader) and rows_of(data) == expected(entry)
    assert {row["timestampType"] for row in rows_of(data)} == {1}


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("kind", [Compression.NONE, Compression.GZIP], ids=lambda kind: kind.name)
def test_spark_kafka_py_returns_rows_for_messages_of_magic_0_and_1(magic: int, kind: Compression) -> None:
    old_records = [NewRecord(b"v%d" % i, None if i % 2 else b"k", 1000 + i) for i in range(5)] + [
        NewRecord(None, b"gone", 9)
    ]
    old = message_set.build_message_set(old_records, magic=magic, compression=kind)
    data = old + build_batch([NewRecord(b"new", None, 7)], base_offset=100)
    assert rows_of(data) == [row for entry in batches(data) for row in expected(entry)]
    assert {row["timestampType"] for row in rows_of(old)} == {-1 if magic == 0 else 0}


def test_spark_kafka_py_rows_without_the_headers_option_have_no_headers_column() -> None:
    [row] = rows_of(build_batch([NewRecord(b"v", None, 1, [("h", b"1")])]), with_headers=False)
    assert "headers" not in row and row["value"] == b"v"


def test_spark_kafka_py_combines_10_batches_of_1000_rows_into_one_arrow_batch() -> None:
    rows = Rows(WHOLE, with_headers=False)
    data = build_batch([NewRecord(b"v")] * 1000)
    entry = next(batches(data))
    assert [rows.add(entry, 0) for _ in range(FULL_ROWS // 1000)] == [False] * (FULL_ROWS // 1000 - 1) + [True]
    assert rows.take().num_rows == FULL_ROWS
    assert rows.take().num_rows == 0


def test_spark_kafka_py_arrow_batch_is_full_after_a_single_record_of_9_mib() -> None:
    rows = Rows(WHOLE, with_headers=False)
    assert rows.add(next(batches(build_batch([NewRecord(bytes(9 << 20))]))), 0)


@pytest.mark.spark
def test_spark_executors_need_neither_numpy_nor_pandas() -> None:
    code = (
        "import sys; sys.modules['numpy'] = sys.modules['pandas'] = None\n"
        "import kafkaproto.pipeline.kafka_py.source\n"
        "from kafkaproto.records.batch import NewRecord, build_batch\n"
        "from kafkaproto.records.entries import batches\n"
        "from kafkaproto.pipeline.kafka_py.columns import Rows\n"
        "from kafkaproto.pipeline.kafka_py.offsets import Range\n"
        "rows = Rows(Range('t', 0, 0, 99), True)\n"
        "made = [NewRecord(b'v%d' % i, None if i % 2 else b'k', i, [('h', b'1')]) for i in range(99)]\n"
        "rows.add(next(batches(build_batch(made))), 0)\n"
        "assert rows.take().column('value').to_pylist() == [r.value for r in made]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
