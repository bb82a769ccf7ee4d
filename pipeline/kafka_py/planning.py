"""From settings to offsets and ranges, by asking the brokers: what is there, where a read begins, where it ends.

Done on the driver, for batch and streaming alike. Must never know records or Spark.
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
    """Where a query begins. late: the partitions that begin at what was the latest offset, and would begin later if asked later."""

    offsets: Offsets
    late: frozenset[Partition]


class Planner:
    """Asks through one client, which is made when it is needed and again after `close`."""

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
            self._open = Client(self._settings.client)
        return self._open

    # ---- what is there -------------------------------------------------------------------------------------------------------

    def partitions(self) -> list[Partition]:
        """What the query reads. A topic that is not there is looked for a few times, as it may be on its way."""
        settings = self._settings
        if settings.assigned:
            return list(settings.assigned)
        if settings.pattern:
            return self._client.partitions_like(settings.pattern)
        for left in range(settings.num_retries, -1, -1):
            try:
                return self._client.partitions_of(settings.topics)
            except KafkaError as error:
                if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not left:
                    raise
            time.sleep(settings.retry_interval_ms / 1000)
        raise AssertionError("the last turn returns or raises")

    def earliest(self, partitions: Iterable[Partition]) -> Offsets:
        return self._ask(dict.fromkeys(partitions, EARLIEST))

    def latest(self, known: Mapping[Partition, int]) -> Offsets:
        """The end of each partition now. An end that lies before the known offset is looked at again: it may be that of a new
        leader that does not know yet."""
        for left in range(self._settings.num_retries, -1, -1):
            found = self._ask(dict.fromkeys(self.partitions(), LATEST))
            if not left or all(offset >= known.get(partition, 0) for partition, offset in found.items()):
                break
            time.sleep(self._settings.retry_interval_ms / 1000)
        return found

    # ---- where a read begins and ends ----------------------------------------------------------------------------------------

    def start(self) -> Beginning:
        """Where the query begins. OptionError if offsets are given and not for all partitions, or a time has no record."""
        settings, bound = self._settings, self._settings.start
        found = self._resolve(bound)
        unmatched = sorted(p for p, offset in found.items() if offset == NO_OFFSET)
        if unmatched and not settings.no_match_is_latest:
            topic, index = unmatched[0]
            reason = f"{topic}-{index} has no record at or after that time"
            raise OptionError(bound.name, f"{reason} (startingOffsetsByTimestampStrategy may be latest)")
        found |= self._ask(dict.fromkeys(unmatched, LATEST))
        late = {p for p in found if bound.everywhere == LATEST or (bound.offsets or {}).get(p) == LATEST}
        return Beginning(found, frozenset(late.union(unmatched)))

    def end(self) -> Offsets:
        """Where a batch query ends. A time that no record reaches stands for the end of the partition."""
        found = self._resolve(self._settings.end)
        return found | self._ask({p: LATEST for p, offset in found.items() if offset == NO_OFFSET})

    def _resolve(self, bound: Bound) -> Offsets:
        partitions = self.partitions()
        if bound.everywhere is not None:
            return self._ask(dict.fromkeys(partitions, bound.everywhere))
        if bound.timestamp is not None:
            return self._ask(dict.fromkeys(partitions, bound.timestamp))
        given = bound.offsets if bound.timestamps is None else bound.timestamps
        assert given is not None
        if given.keys() != set(partitions):
            text = f"names {_names(given)}, the query reads {_names(partitions)}; -2 stands for earliest, -1 for latest"
            raise OptionError(bound.name, text)
        if bound.timestamps is not None:
            return self._ask(given)
        return given | self._ask({p: offset for p, offset in given.items() if offset in _SYMBOLS})

    def _ask(self, asked: Mapping[Partition, int]) -> Offsets:
        return self._client.offsets(asked, self._settings.read_committed) if asked else {}

    # ---- tasks ---------------------------------------------------------------------------------------------------------------

    def ranges(self, start: Mapping[Partition, int], end: Mapping[Partition, int]) -> list[Range]:
        """What the tasks of a batch read. Partitions that start does not have are new and read from their beginning.

        DataLoss if something between start and end cannot be had and that is to fail.
        """
        settings = self._settings
        new = self.earliest(sorted(end.keys() - start.keys()))
        if settings.fail_on_data_loss and (losses := lost(start, end, new)):
            raise DataLoss("; ".join(losses))
        begin = {**start, **new}
        ranges = [Range(*partition, begin[partition], offset) for partition, offset in sorted(end.items())]
        return split(ranges, settings.min_partitions, settings.max_records_per_partition)


def _names(partitions: Iterable[Partition]) -> str:
    return ", ".join(f"{topic}-{index}" for topic, index in sorted(partitions)) or "none"
