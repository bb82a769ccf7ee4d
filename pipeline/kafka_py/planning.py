"""Computes offsets and ranges from the responses of the brokers: existing partitions, and the start and end of a read.

It runs on the driver, for batch and streaming. This module does not depend on records or Spark.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafkaproto.error_codes import ErrorCode
from kafkaproto.pipeline.kafka_py.client import NO_OFFSET, Client
from kafkaproto.pipeline.kafka_py.errors import DataLoss, KafkaError, OptionError
from kafkaproto.pipeline.kafka_py.offsets import EARLIEST, LATEST, Offsets, Partition, Range, lost, split
from kafkaproto.pipeline.kafka_py.options import Bound, SourceSettings

_SYMBOLS = (EARLIEST, LATEST)


class Beginning(NamedTuple):
    """The offsets at which a query starts.

    offsets: maps each partition to its offset. late: the partitions that start at their latest offset. If their offsets are looked up again, as after
    a restart, they may be larger, because new records have arrived.
    """

    offsets: Offsets
    late: frozenset[Partition]


class Planner:
    """Looks up the partitions and offsets of a query. It connects to the brokers on first use, and again on the first use after `close`."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._open: Client | None = None

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    @property
    def _client(self) -> Client:
        if self._open is None:
            self._open = Client(self._settings.client, fail_fast=True)
        return self._open

    # ---- what is there -------------------------------------------------------------------------------------------------------

    def partitions(self) -> list[Partition]:
        """Return the partitions of the query. A missing topic is looked up a few times, because it may be new."""
        settings = self._settings
        if settings.assigned:
            return list(settings.assigned)
        if settings.pattern:
            return self._client.partitions_like(settings.pattern)
        for retries_left in range(settings.num_retries, -1, -1):
            try:
                return self._client.partitions_of(settings.topics)
            except KafkaError as error:
                if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not retries_left:
                    raise
            time.sleep(settings.retry_interval_ms / 1000)
        raise AssertionError(
            "looking up the topics neither returned partitions nor raised an error; this is a bug, please report it"
        )

    def earliest(self, partitions: Iterable[Partition]) -> Offsets:
        return self._ask(dict.fromkeys(partitions, EARLIEST))

    def latest(self, earlier_ends: Mapping[Partition, int]) -> Offsets:
        """Return the current end offset of each partition. earlier_ends: end offsets returned by earlier calls.

        If an offset is below the one in `earlier_ends`, it may come from a new leader that does not know the end of the partition yet. All offsets
        are then looked up again, at most `num_retries` times.
        """
        for retries_left in range(self._settings.num_retries, -1, -1):
            offsets = self._ask(dict.fromkeys(self.partitions(), LATEST))
            if not retries_left or all(
                offset >= earlier_ends.get(partition, 0) for partition, offset in offsets.items()
            ):
                break
            time.sleep(self._settings.retry_interval_ms / 1000)
        return offsets

    # ---- where a read begins and ends ----------------------------------------------------------------------------------------

    def start(self) -> Beginning:
        """Return the offsets at which the query starts. Raises OptionError if an option gives no start offset for a partition."""
        settings, bound = self._settings, self._settings.start
        offsets = self._resolve(bound)
        unmatched = sorted(p for p, offset in offsets.items() if offset == NO_OFFSET)
        if unmatched and not settings.no_match_is_latest:
            topic, index = unmatched[0]
            reason = (
                f"{topic}-{index} has no record at or after the time that this option gives; choose an earlier time, or "
                "set startingOffsetsByTimestampStrategy=latest to start at the log end"
            )
            raise OptionError(bound.name, reason)
        offsets |= self._ask(dict.fromkeys(unmatched, LATEST))
        late = {p for p in offsets if bound.everywhere == LATEST or (bound.offsets or {}).get(p) == LATEST}
        return Beginning(offsets, frozenset(late.union(unmatched)))

    def end(self) -> Offsets:
        """Return the offsets at which a batch query ends.

        If the end is given as a time after all records of a partition, the query reads to the end of the partition.
        """
        offsets = self._resolve(self._settings.end)
        return offsets | self._ask({p: LATEST for p, offset in offsets.items() if offset == NO_OFFSET})

    def _resolve(self, bound: Bound) -> Offsets:
        partitions = self.partitions()
        if bound.everywhere is not None:
            return self._ask(dict.fromkeys(partitions, bound.everywhere))
        if bound.timestamp is not None:
            return self._ask(dict.fromkeys(partitions, bound.timestamp))
        positions = bound.offsets if bound.timestamps is None else bound.timestamps
        assert positions is not None
        if positions.keys() != set(partitions):
            text = (
                f"names {_names(positions)}, but must name exactly the partitions that the query reads: {_names(partitions)}; "
                "in offsets, -2 means the earliest and -1 the latest"
            )
            raise OptionError(bound.name, text)
        if bound.timestamps is not None:
            return self._ask(positions)
        return positions | self._ask({p: offset for p, offset in positions.items() if offset in _SYMBOLS})

    def _ask(self, timestamps: Mapping[Partition, int]) -> Offsets:
        return self._client.offsets(timestamps, self._settings.read_committed) if timestamps else {}

    # ---- tasks ---------------------------------------------------------------------------------------------------------------

    def ranges(self, start: Mapping[Partition, int], end: Mapping[Partition, int]) -> list[Range]:
        """Return the ranges of a batch's tasks. Partitions missing in `start` are new, and are read from their first offset.

        Raises DataLoss if offsets between start and end no longer exist and ``failOnDataLoss`` is true.
        """
        settings = self._settings
        new = self.earliest(sorted(end.keys() - start.keys()))
        if settings.fail_on_data_loss and (losses := lost(start, end, new)):
            raise DataLoss("; ".join(losses))
        start_offsets = {**start, **new}
        ranges = [Range(*partition, start_offsets[partition], offset) for partition, offset in sorted(end.items())]
        return split(ranges, settings.min_partitions, settings.max_records_per_partition)


def _names(partitions: Iterable[Partition]) -> str:
    return ", ".join(f"{topic}-{index}" for topic, index in sorted(partitions)) or "none"
