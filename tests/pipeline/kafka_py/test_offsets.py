"""Limiting, splitting and loss of offsets with the arithmetic and rounding of Spark's source."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.pipeline.kafka_py.offsets import Range, from_json, limited, lost, split, to_json

A, B, C = ("a", 0), ("a", 1), ("b", 0)
spans = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(0, 3)),
    st.tuples(st.integers(0, 1000), st.integers(0, 1000)),
    min_size=1,
)


def ranges(*sizes: int) -> list[Range]:
    return [Range("t", i, 10, 10 + size) for i, size in enumerate(sizes)]


def test_spark_kafka_py_writes_offsets_as_json_in_the_format_of_the_spark_connector() -> None:
    assert to_json({C: 7, B: 2, A: 1}) == {"a": {"0": 1, "1": 2}, "b": {"0": 7}}
    assert list(to_json({C: 7, A: 1})) == ["a", "b"]


@given(st.dictionaries(st.tuples(st.text(), st.integers(0, 9)), st.integers(-2, 2**62)))
def test_spark_kafka_py_offsets_written_as_json_are_read_back_unchanged(offsets: dict[tuple[str, int], int]) -> None:
    assert from_json(json.loads(json.dumps(to_json(offsets)))) == offsets


@pytest.mark.parametrize("wrong", [[], 1, {"t": 1}, {"t": {"x": 1}}, {"t": {"-1": 1}}, {"t": {"0": True}}])
def test_spark_offsets_in_json_of_a_wrong_structure_are_rejected(wrong: object) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError)):
        from_json(wrong)


def test_partitions_share_max_offsets_per_trigger_in_proportion_to_new_records() -> None:
    start = {A: 0, B: 100, C: 7}
    assert limited(100, start, {A: 300, B: 200, C: 7}) == {A: 75, B: 125, C: 7}


def test_partition_share_of_max_offsets_per_trigger_is_rounded_down_but_at_least_1() -> None:
    assert limited(10, {A: 0, B: 0}, {A: 9999, B: 1}) == {A: 9, B: 1}
    assert limited(2, {A: 0, B: 0, C: 0}, {A: 5, B: 5, C: 5}) == {A: 1, B: 1, C: 1}


def test_max_offsets_per_trigger_above_the_number_of_new_records_excludes_no_record() -> None:
    assert limited(1000, {A: 0, B: 5}, {A: 3, B: 6}) == {A: 3, B: 6}


def test_partition_with_a_decreased_end_offset_uses_none_of_max_offsets_per_trigger() -> None:
    assert limited(10, {A: 0, B: 50}, {A: 100, B: 20}) == {A: 10, B: 20}


@given(spans, st.integers(1, 2000))
def test_limited_micro_batch_takes_at_least_1_offset_of_each_partition_with_records(
    span: dict[tuple[str, int], tuple[int, int]], limit: int
) -> None:
    start = {p: min(pair) for p, pair in span.items()}
    end = {p: max(pair) for p, pair in span.items()}
    limited_ends = limited(limit, start, end)
    for p in end:
        assert start[p] <= limited_ends[p] <= end[p]
        assert limited_ends[p] > start[p] or start[p] == end[p]
    assert sum(limited_ends[p] - start[p] for p in end) <= limit + len(end)


def test_each_partition_with_new_records_gets_one_offset_range_in_a_micro_batch() -> None:
    assert split(ranges(5, 0, 3, -2), None, None) == [Range("t", 0, 10, 15), Range("t", 2, 10, 13)]


def test_large_offset_ranges_are_split_until_their_number_reaches_min_partitions() -> None:
    """The cases of Spark's KafkaOffsetRangeCalculator."""
    assert [r.size for r in split(ranges(100), 4, None)] == [25, 25, 25, 25]
    assert [r.size for r in split(ranges(5), 3, None)] == [1, 2, 2]
    assert [r.size for r in split(ranges(100, 10, 10), 6, None)] == [25] * 4 + [10, 10]
    assert [r.size for r in split(ranges(5, 5), 1, None)] == [5, 5]
    assert [r.size for r in split(ranges(1, 1000), 2, None)] == [1, 1000]


def test_offset_ranges_are_split_into_parts_of_at_most_max_records_per_partition() -> None:
    assert [r.size for r in split(ranges(10, 3), None, 4)] == [3, 3, 4, 3]
    assert [r.size for r in split(ranges(10), 5, 4)] == [1, 2, 1, 2, 2, 2]


@given(st.lists(st.integers(0, 500), max_size=6), st.integers(1, 20) | st.none(), st.integers(1, 100) | st.none())
def test_splitting_offset_ranges_neither_loses_nor_duplicates_an_offset(
    sizes: list[int], least: int | None, most: int | None
) -> None:
    pieces = split(ranges(*sizes), least, most)
    assert all(piece.size > 0 and (most is None or piece.size <= most) for piece in pieces)
    for offsets in ranges(*sizes):
        mine = [piece for piece in pieces if piece.partition == offsets.partition]
        covered = [offset for piece in mine for offset in range(piece.start, piece.end)]
        assert covered == list(range(offsets.start, offsets.end))


def test_data_loss_check_reports_deleted_partitions_and_decreased_end_offsets() -> None:
    assert lost({A: 5}, {A: 5, B: 9}, {B: 0}) == []
    assert lost({A: 5, B: 7}, {A: 3}, {}) == [
        "a-0 went back from offset 5 to offset 3",
        "a-1 no longer exists, but the query reads it from offset 7",
    ]
    assert lost({}, {C: 9}, {C: 4}) == ["b-0 is new and begins at 4, not at 0"]
