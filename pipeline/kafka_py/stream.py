"""The streaming read of the data source `kafka_py`: chooses the offsets at which each micro-batch ends.

From version 4.2 on, Spark passes the start of a batch and the limit on its size. Earlier versions request only the latest offset, so this module
remembers the end of the last planned batch and applies the limit. After a restart, Spark first plans an empty batch at the checkpoint's offset, which
shows where to continue. This module does not depend on records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kafkaproto.pipeline.kafka_py.errors import without_our_frames
from kafkaproto.pipeline.kafka_py.offsets import Offsets, from_json, limited, to_json
from kafkaproto.pipeline.kafka_py.options import SourceSettings
from kafkaproto.pipeline.kafka_py.planning import Beginning, Planner
from kafkaproto.pipeline.kafka_py.reader import RangePartition, read_range

try:
    from pyspark.sql.streaming.datasource import (  # type: ignore[import-not-found]
        ReadAllAvailable,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before 4.2

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """An empty substitute for the class of this name, which Spark has from version 4.2 on. Earlier versions do not need the class."""

    ReadAllAvailable = ReadMaxRows = None


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """The reader of a streaming query. Offsets have the form of Spark's own source: ``{"topic": {"0": 23}}``.

    With ``trigger(availableNow=True)``, Spark before 4.2 requests the end of a batch only once, and the query stops at this end. The query then has
    read all available records or, if ``maxOffsetsPerTrigger`` is set, only one batch of that size.
    """

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._planner = Planner(settings)
        self._initial: Beginning | None = None
        self._position: Offsets | None = None
        """The offsets at which the next batch starts; None until Spark has planned a batch."""
        self._frozen: Offsets | None = None
        """The offsets at which a query with the trigger availableNow ends; None for other triggers."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle for executors: only the settings of the read, because open connections cannot be pickled."""
        return {"_settings": self._settings}

    @without_our_frames
    def initialOffset(self) -> dict[str, Any]:
        return to_json(self._begin().offsets)

    @without_our_frames
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        start_offsets = self._position if start is None else from_json(start)
        if start_offsets is None:
            start_offsets = self._begin().offsets
        max_offsets = self._limit(limit)
        end = dict(self._planner.latest(start_offsets) if self._frozen is None else self._frozen)
        first = self._position is None or self._frozen is not None
        if first and self._initial is not None and start_offsets == self._initial.offsets:
            # A partition that starts at latest has no records in the first batch. Spark does not keep the start of a Python source, but
            # the end of a batch: a restart before the first batch is done continues from here and not from a later end.
            # The frozen end may even be before it.
            end |= {partition: start_offsets[partition] for partition in self._initial.late if partition in end}
        if max_offsets is None:
            return to_json(end)
        new = self._planner.earliest(sorted(end.keys() - start_offsets.keys()))
        return to_json(limited(max_offsets, {**start_offsets, **new}, end))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        self._position = from_json(end)
        if start == end:
            return []
        start_offsets = self._start_offsets(from_json(start), self._position)
        return [RangePartition(range_) for range_ in self._planner.ranges(start_offsets, self._position)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self._settings, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: Spark stores the offsets of finished batches in its checkpoint. end: the offsets at which a finished batch ended."""

    def stop(self) -> None:
        self._planner.close()

    # ---- Spark 4.2 and later -------------------------------------------------------------------------------------------------

    def getDefaultReadLimit(self) -> Any:
        max_offsets = self._settings.max_offsets_per_trigger
        return ReadAllAvailable() if max_offsets is None else ReadMaxRows(max_offsets)

    def reportLatestOffset(self) -> dict[str, Any]:
        return to_json(self._planner.latest({}))

    def prepareForTriggerAvailableNow(self) -> None:
        self._frozen = self._planner.latest({})

    # ---- where to begin ------------------------------------------------------------------------------------------------------

    def _limit(self, limit: Any) -> int | None:
        if limit is None:
            return self._settings.max_offsets_per_trigger
        return limit.max_rows if isinstance(limit, ReadMaxRows) else None

    def _begin(self) -> Beginning:
        """Return the offsets at which a query without a checkpoint starts. They are looked up only by the first call."""
        if self._initial is None:
            self._initial = self._planner.start()
        return self._initial

    def _start_offsets(self, start: Offsets, end: Offsets) -> Offsets:
        """Return the offset at which a batch starts in each partition: the smaller of the partition's offsets in `start` and `end`.

        start, end: the offsets between which Spark plans the batch. An offset in `start` can be above the one in `end` only in the first batch of a
        query, after a restart, and only for a partition that is read from its latest offset. Spark then plans the first batch again, with the stored
        end, but with start offsets that are looked up again. If records have arrived since, the new start offset is larger than the stored end. No
        record is lost, because the first batch has no records of such a partition.
        """
        if self._initial is None or start != self._initial.offsets:
            return start
        return start | {p: min(start[p], end[p]) for p in self._initial.late if p in end}
