"""Arithmetic of offsets: where a micro-batch ends, how its offsets are divided among tasks, and which offsets are lost.

The rules are those of Spark's Kafka source (``KafkaMicroBatchStream.rateLimit``, ``KafkaOffsetRangeCalculator``), so that the same options make the
same batches. This module does not depend on options, brokers or Spark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

Partition: TypeAlias = tuple[str, int]
"""A partition as (topic, partition number)."""
Offsets: TypeAlias = dict[Partition, int]

EARLIEST, LATEST = -2, -1
"""The offsets that stand for the earliest and the latest offset in options and in ListOffsets requests."""


class Range(NamedTuple):
    """A range of offsets of one partition, from ``start`` (inclusive) to ``end`` (exclusive)."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def from_json(parsed: Any) -> Offsets:
    """Return the offsets by (topic, partition) that parsed JSON such as ``{"topic": {"0": 23}}`` describes.

    Raises ValueError, TypeError or AttributeError for another form.
    """
    offsets = {
        (topic, int(index)): offset for topic, partitions in parsed.items() for index, offset in partitions.items()
    }
    if not all(type(offset) is int for offset in offsets.values()) or any(index < 0 for _, index in offsets):
        raise ValueError(parsed)
    return offsets


def to_json(offsets: Mapping[Partition, int]) -> dict[str, dict[str, int]]:
    """Return offsets in the form ``{"topic": {"0": 23}}``, in a fixed order, so that equal offsets have equal texts."""
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, index), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, {})[str(index)] = offset
    return by_topic


def limited(limit: int, start: Mapping[Partition, int], end: Mapping[Partition, int]) -> Offsets:
    """Return the offsets at which a micro-batch of about ``limit`` records ends, by partition.

    The share of a partition is in proportion to the number of its available records, but at least one record if it has any. start, end: the first
    available offset (inclusive) and the end offset (exclusive) of each partition; ``start`` has all partitions of ``end``.
    """
    sizes = {partition: max(0, offset - start[partition]) for partition, offset in end.items()}
    total = sum(sizes.values())
    if not total:
        return dict(end)
    limited_ends = {}
    for partition, offset in end.items():
        # a quotient first, as floats: the same rounding as Spark's
        share = limit * (sizes[partition] / float(total))
        count = math.ceil(share) if share < 1 else math.floor(share)
        limited_ends[partition] = min(offset, start[partition] + count) if sizes[partition] else offset
    return limited_ends


def split(ranges: Iterable[Range], min_partitions: int | None, max_records: int | None) -> list[Range]:
    """Divide offset ranges among tasks. Returns the ranges of the tasks; none of them is empty.

    min_partitions: approximate minimum number of ranges; larger ranges are split to reach it. max_records: maximum number of offsets in one range.
    None means no limit, for both parameters.
    """
    nonempty = [range_ for range_ in ranges if range_.size > 0]
    if max_records is not None:
        nonempty = [piece for range_ in nonempty for piece in _pieces(range_, math.ceil(range_.size / max_records))]
    if min_partitions is None or len(nonempty) > min_partitions:
        return nonempty
    total = sum(range_.size for range_ in nonempty)
    whole = {range_ for range_ in nonempty if _parts(range_.size, total, min_partitions) == 1}
    remaining = total - sum(range_.size for range_ in whole)
    parts = max(min_partitions - len(whole), 1)
    return [
        piece
        for range_ in nonempty
        for piece in _pieces(range_, 1 if range_ in whole else _parts(range_.size, remaining, parts))
    ]


def _parts(size: int, total: int, parts: int) -> int:
    return max(1, math.floor(size / total * parts + 0.5))  # Java's rounding: halves go up


def _pieces(range_: Range, parts: int) -> Iterable[Range]:
    start, remaining = range_.start, range_.size
    for number in range(parts):
        size = remaining // (parts - number)
        if size:  # fewer offsets than parts
            yield range_._replace(start=start, end=start + size)
        start, remaining = start + size, remaining - size


def lost(start: Mapping[Partition, int], end: Mapping[Partition, int], new: Mapping[Partition, int]) -> list[str]:
    """Return a sentence for each partition that lacks offsets which a query must read.

    A partition lacks offsets in three cases: it was deleted, its end is below its start, or it is new and its earliest offset is above 0. start: maps
    each partition to the first offset to read. end: maps each existing partition to its end offset. new: maps each partition that ``start`` lacks to
    its earliest offset.
    """
    losses = [
        f"{_name(p)} no longer exists, but the query reads it from offset {start[p]}" for p in start if p not in end
    ]
    losses += [f"{_name(p)} is new and begins at {offset}, not at 0" for p, offset in new.items() if offset]
    losses += [
        f"{_name(p)} went back from offset {start[p]} to offset {offset}"
        for p, offset in end.items()
        if offset < start.get(p, 0)
    ]
    return sorted(losses)


def _name(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"
