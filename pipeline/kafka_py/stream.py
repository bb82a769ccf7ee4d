"""The streaming read: where each micro-batch ends.

From Spark 4.2 on Spark says where a batch begins and how much it may take. Before, it asks for the latest offset and
nothing else, so the end of the last batch that was planned is remembered here, and the limit kept. On a restart Spark
plans an empty batch at the checkpoint's offset before it asks, which tells it. Must never know records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

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
        """Nobody asks for it there."""

    ReadAllAvailable = ReadMaxRows = None


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Offsets are those of Spark's own source: ``{"topic": {"0": 23}}``.

    With ``trigger(availableNow=True)`` Spark before 4.2 asks a Python source once and reads up to there: without
    ``maxOffsetsPerTrigger`` that is everything, with it one batch of that size in each run of the query.
    """

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._planner = Planner(settings)
        self._initial: Beginning | None = None
        self._position: Offsets | None = None
        """Where the next batch begins, as far as Spark has said so."""
        self._frozen: Offsets | None = None
        """Where a query with the trigger availableNow ends."""

    def __getstate__(self) -> dict[str, Any]:
        """Executors get the settings; sockets stay here."""
        return {"_settings": self._settings}

    def initialOffset(self) -> dict[str, Any]:
        return to_json(self._begin().offsets)

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        begin = self._position if start is None else from_json(start)
        if begin is None:
            begin = self._begin().offsets
        most = self._most(limit)
        end = dict(self._planner.latest(begin) if self._frozen is None else self._frozen)
        first = self._position is None or self._frozen is not None
        if first and self._initial is not None and begin == self._initial.offsets:
            # What begins at latest has nothing in the first batch. Spark does not keep where a Python source began, but it
            # does keep where a batch ends: a restart before anything is done goes on from here and not from a later end.
            # What was frozen may even lie before it.
            end |= {partition: begin[partition] for partition in self._initial.late if partition in end}
        if most is None:
            return to_json(end)
        new = self._planner.earliest(sorted(end.keys() - begin.keys()))
        return to_json(limited(most, {**begin, **new}, end))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        self._position = from_json(end)
        if start == end:
            return []
        begin = self._begun(from_json(start), self._position)
        return [RangePartition(one) for one in self._planner.ranges(begin, self._position)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self._settings, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to let go of: Spark's checkpoint has the offsets."""

    def stop(self) -> None:
        self._planner.close()

    # ---- Spark 4.2 and later -------------------------------------------------------------------------------------------------

    def getDefaultReadLimit(self) -> Any:
        most = self._settings.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def reportLatestOffset(self) -> dict[str, Any]:
        return to_json(self._planner.latest({}))

    def prepareForTriggerAvailableNow(self) -> None:
        self._frozen = self._planner.latest({})

    # ---- where to begin ------------------------------------------------------------------------------------------------------

    def _most(self, limit: Any) -> int | None:
        if limit is None:
            return self._settings.max_offsets_per_trigger
        return limit.max_rows if isinstance(limit, ReadMaxRows) else None

    def _begin(self) -> Beginning:
        """Where a query without a checkpoint begins, the same as long as it runs."""
        if self._initial is None:
            self._initial = self._planner.start()
        return self._initial

    def _begun(self, start: Offsets, end: Offsets) -> Offsets:
        """Where a batch begins. If it is the first one and planned again after a restart, latest is another offset by now; that
        is no loss, as nothing was in it of the partitions that begin there."""
        if self._initial is None or start != self._initial.offsets:
            return start
        return start | {p: min(start[p], end[p]) for p in self._initial.late if p in end}
