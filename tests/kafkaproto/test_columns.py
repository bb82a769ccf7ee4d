"""Columns and keys of record batches: equal results with numpy, without numpy and record by record."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkaproto.errors import DecodeError
from kafkaproto.records import gather
from kafkaproto.records.batch import HEADER_BYTES, LOG_APPEND_TIME, NewRecord, build_batch, payload, records
from kafkaproto.records.columns import Columns, columns, header_columns, keys, walked_columns, walked_keys
from kafkaproto.records.compression import Compression
from kafkaproto.records.walk import Stretch, walk


def assert_all_say_the_same(
    data: bytes, new_records: list[NewRecord], base_offset: int, *, gathered: bool = True
) -> None:
    header, b = payload(data)
    read = list(records(data))
    assert [(r.key, r.value, r.headers) for r in read] == [(r.key, r.value, tuple(r.headers)) for r in new_records]
    assert [r.offset for r in read] == list(range(base_offset, base_offset + len(new_records)))
    append_time = header.max_timestamp if header.is_log_append_time else None
    with_numpy = gather.columns(b, header.record_count, header.base_offset, header.base_timestamp, append_time)
    assert (with_numpy is not None) == gathered
    for column_set in (columns(data), walked_columns(b, header)):
        assert list(column_set.offsets) == [r.offset for r in read]
        assert list(column_set.timestamps) == [r.timestamp for r in read]
        places = zip(
            column_set.key_starts, column_set.key_ends, column_set.value_starts, column_set.value_ends, strict=True
        )
        assert [(cut(column_set, ks, ke), cut(column_set, vs, ve)) for ks, ke, vs, ve in places] == [
            (r.key, r.value) for r in read
        ]
        assert [column.typecode for column in column_set[1:]] == ["q"] * 6
    assert keys(data) == walked_keys(b, header) == [r.key for r in read]
    counts, names, values = header_columns(b, header.record_count)
    assert counts.tolist() == [len(r.headers) for r in read]
    assert list(zip(names, values, strict=True)) == [header for r in read for header in r.headers]


def cut(column_set: Columns, start: int, end: int) -> bytes | None:
    assert (start == -1) == (end == -1)
    return None if start < 0 else bytes(column_set.payload[start:end])


sizes = st.sampled_from([None, 0, 1, 3, 3, 3, 63, 64, 200])
rows = st.tuples(sizes, sizes, st.sampled_from([0, 1, 63, 64, 5000, 10**6, -1, 2**40]), st.integers(0, 12))
some_headers = st.sampled_from([(), (), (), (("h", b"v"), ("n", None))])


@given(st.lists(st.tuples(rows, some_headers, st.integers(1, 80)), min_size=1, max_size=12), st.integers(0, 2**40))
@example([((3, 3, 0, 0), (), 80)] * 3, 0)
def test_record_columns_contain_the_same_values_as_records_decoded_one_by_one(
    parts: list[tuple[tuple[int | None, int | None, int, int], tuple[tuple[str, bytes | None], ...], int]], base: int
) -> None:
    chance = random.Random(str(parts))
    new_records = []
    for (key_size, value_size, time, step), headers, count in parts:
        for i in range(count):
            key = None if key_size is None else chance.randbytes(key_size)
            value = None if value_size is None else chance.randbytes(value_size)
            new_records.append(NewRecord(value, key, 1000 + time + i * step, headers))
    assert_all_say_the_same(build_batch(new_records, base_offset=base), new_records, base)


@pytest.mark.parametrize("kind", Compression, ids=lambda kind: kind.name)
def test_records_of_each_compression_type_can_be_read_as_columns(kind: Compression) -> None:
    new_records = [NewRecord(b"x" * (90 + i % 3), b"key%d" % i, 10**12 + i * 7) for i in range(9000)]
    assert_all_say_the_same(build_batch(new_records, base_offset=7, compression=kind), new_records, 7)


def test_timestamp_column_of_a_log_append_time_batch_has_the_append_time_in_each_row() -> None:
    new_records = [NewRecord(b"v", b"k", i) for i in range(100)]
    data = build_batch(new_records, attributes=LOG_APPEND_TIME, max_timestamp=77)
    assert_all_say_the_same(data, new_records, 0)
    assert set(columns(data).timestamps) == {77}


def test_record_columns_keep_exact_offsets_and_timestamps_near_2_to_the_62() -> None:
    new_records = [NewRecord(b"v", None, 2**62 - 1), NewRecord(b"v", None, -(2**62)), NewRecord(b"v", None, 0)]
    assert_all_say_the_same(build_batch(new_records), new_records, 0, gathered=False)
    far = build_batch(new_records[2:], base_offset=2**62)
    assert_all_say_the_same(far, new_records[2:], 2**62, gathered=False)


def test_timestamps_beyond_64_bits_are_rejected_in_record_columns() -> None:
    new_records = [NewRecord(b"v", None, 2**63 - 1), NewRecord(b"v", None, 2**63 + 1)]
    with pytest.raises(DecodeError, match="64 bits"):
        columns(build_batch(new_records, max_timestamp=0))


def test_column_reader_splits_9200_similar_records_into_fewer_than_200_parts() -> None:
    """The shape changes where the varints of offsets get wider (64 and 8192) and where sizes and nulls change."""
    new_records = (
        [NewRecord(b"v" * 50, b"k", 0)] * 9000 + [NewRecord(None, b"k", 0)] * 100 + [NewRecord(b"v", None, 0)] * 100
    )
    _, b = payload(build_batch(new_records))
    parts = list(walk(b, len(new_records)))
    singles = sum(not isinstance(part, Stretch) for part in parts)
    assert singles <= 3 * 6 and len(parts) < 200
    assert all(part.count <= 1100 for part in parts if isinstance(part, Stretch))


def test_column_reader_needs_linear_time_for_records_of_alternating_sizes() -> None:
    """Two records of equal size, then another size: looking ahead must not be repeated for every record."""
    looked = []
    for count in (3000, 6000):
        _, b = payload(build_batch([NewRecord(b"v" * (10 + i // 3 % 2), None, 0) for i in range(count)]))
        counted = Counted(b)
        assert sum(part.count if isinstance(part, Stretch) else 1 for part in walk(counted, count)) == count
        looked.append(counted.sliced)
    assert looked[1] < 2.5 * looked[0]


class Counted(bytes):
    """Bytes that count how many bytes are copied out of them."""

    sliced = 0

    def __getitem__(self, at: object) -> object:  # type: ignore[override]
        cell = super().__getitem__(at)  # type: ignore[call-overload]
        if isinstance(cell, bytes):
            self.sliced += len(cell)
        return cell


@pytest.mark.parametrize("count", [-1, 3, 5, 2**31 - 1])
def test_every_record_reading_function_rejects_a_batch_with_a_wrong_record_count(count: int) -> None:
    data = bytearray(build_batch([NewRecord(b"v", b"k")] * 4))
    data[HEADER_BYTES - 4 : HEADER_BYTES] = count.to_bytes(4, "big", signed=True)
    for read in (columns, keys, lambda data: list(records(data))):
        with pytest.raises(DecodeError):
            read(bytes(data))


def test_empty_batch_has_empty_record_columns() -> None:
    data = bytearray(build_batch([NewRecord(b"")])[:HEADER_BYTES])
    data[8:12] = (HEADER_BYTES - 12).to_bytes(4, "big")
    data[HEADER_BYTES - 4 :] = bytes(4)
    assert list(records(data)) == keys(data) == list(columns(data).offsets) == []


def test_keys_and_timestamps_of_records_are_decoded_if_numpy_cannot_be_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    new_records = [NewRecord(b"x" * (i % 5), b"k" * (i % 3), i) for i in range(200)]
    data = build_batch(new_records)
    assert keys(data) == [r.key for r in new_records] and list(columns(data).timestamps) == list(range(200))


def test_numpy_is_imported_for_columns_of_40_records_but_not_for_5_records() -> None:
    code = (
        "import sys; from kafkaproto.records.batch import *; from kafkaproto.records.columns import columns;"
        "b = build_batch([NewRecord(b'v')] * 40); few = build_batch([NewRecord(b'v')] * 5);"
        "list(records(b)); columns(few); assert 'numpy' not in sys.modules;"
        "columns(b); assert 'numpy' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
