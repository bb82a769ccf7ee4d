"""Arithmetic of offsets: what a batch takes, how it is split among tasks, what of it is lost.

The rules are those of Spark's Kafka source (``KafkaMicroBatchStream.rateLimit``, ``KafkaOffsetRangeCalculator``), so that
the same options make the same batches. Must never know options, brokers or Spark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

Partition: TypeAlias = tuple[str, int]
"""Topic and number."""
Offsets: TypeAlias = dict[Partition, int]

EARLIEST, LATEST = -2, -1
"""What stands for an offset in options and in ListOffsets requests."""


class Range(NamedTuple):
    """Offsets from ``start`` on, ``end`` left out, of one partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def from_json(parsed: Any) -> Offsets:
    """From ``{"topic": {"0": 23}}``. ValueError, TypeError or AttributeError for anything else."""
    found = {
        (topic, int(index)): offset for topic, partitions in parsed.items() for index, offset in partitions.items()
    }
    if not all(type(offset) is int for offset in found.values()) or any(index < 0 for _, index in found):
        raise ValueError(parsed)
    return found


def to_json(offsets: Mapping[Partition, int]) -> dict[str, dict[str, int]]:
    """``{"topic": {"0": 23}}``, in one order, so that equal offsets have equal texts."""
    made: dict[str, dict[str, int]] = {}
    for (topic, index), offset in sorted(offsets.items()):
        made.setdefault(topic, {})[str(index)] = offset
    return made


def limited(limit: int, start: Mapping[Partition, int], end: Mapping[Partition, int]) -> Offsets:
    """The end of a batch of about ``limit`` offsets: each partition gets its share of what lies between start and end.

    ``start`` has all partitions of ``end``. A share below one is one, so that small partitions go on, too.
    """
    sizes = {partition: max(0, offset - start[partition]) for partition, offset in end.items()}
    total = sum(sizes.values())
    if not total:
        return dict(end)
    made = {}
    for partition, offset in end.items():
        # a quotient first, as floats: the same rounding as Spark's
        share = limit * (sizes[partition] / float(total))
        taken = math.ceil(share) if share < 1 else math.floor(share)
        made[partition] = min(offset, start[partition] + taken) if sizes[partition] else offset
    return made


def split(ranges: Iterable[Range], min_partitions: int | None, max_records: int | None) -> list[Range]:
    """The ranges of the tasks: none empty, none of more than ``max_records`` offsets, about ``min_partitions`` of them."""
    kept = [one for one in ranges if one.size > 0]
    if max_records is not None:
        kept = [piece for one in kept for piece in _pieces(one, math.ceil(one.size / max_records))]
    if min_partitions is None or len(kept) > min_partitions:
        return kept
    total = sum(one.size for one in kept)
    whole = {one for one in kept if _parts(one.size, total, min_partitions) == 1}
    left = total - sum(one.size for one in whole)
    wanted = max(min_partitions - len(whole), 1)
    return [piece for one in kept for piece in _pieces(one, 1 if one in whole else _parts(one.size, left, wanted))]


def _parts(size: int, total: int, wanted: int) -> int:
    return max(1, math.floor(size / total * wanted + 0.5))  # Java's rounding: halves go up


def _pieces(one: Range, parts: int) -> Iterable[Range]:
    start, left = one.start, one.size
    for number in range(parts):
        taken = left // (parts - number)
        if taken:  # fewer offsets than parts
            yield one._replace(start=start, end=start + taken)
        start, left = start + taken, left - taken


def lost(start: Mapping[Partition, int], end: Mapping[Partition, int], new: Mapping[Partition, int]) -> list[str]:
    """What a batch from start to end cannot have, in words. new: the earliest offsets of partitions that start does not have."""
    found = [f"{_name(p)} is gone, it was to be read from {start[p]}" for p in start if p not in end]
    found += [f"{_name(p)} is new and begins at {offset}, not at 0" for p, offset in new.items() if offset]
    found += [
        f"{_name(p)} went back from {start[p]} to {offset}" for p, offset in end.items() if offset < start.get(p, 0)
    ]
    return sorted(found)


def _name(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"
