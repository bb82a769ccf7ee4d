"""The tasks of reads, and the batch read. Must never know how offsets of streams are kept."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kafkaproto.pipeline.kafka_py.client import Client
from kafkaproto.pipeline.kafka_py.columns import Rows
from kafkaproto.pipeline.kafka_py.errors import OptionError
from kafkaproto.pipeline.kafka_py.fetching import fetch
from kafkaproto.pipeline.kafka_py.offsets import Range
from kafkaproto.pipeline.kafka_py.options import SourceSettings
from kafkaproto.pipeline.kafka_py.planning import Planner


class RangePartition(InputPartition):
    """What one task reads."""

    def __init__(self, wanted: Range) -> None:
        super().__init__(wanted)


def read_range(settings: SourceSettings, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
    """The rows of one task, on an executor. partition: None where a read has nothing to do, as Spark wants one task at least."""
    if partition is None:
        return
    wanted: Range = partition.value
    rows = Rows(wanted, settings.include_headers)
    with Client(settings.client) as client:
        full = True
        for entry, start in fetch(client, settings, wanted):
            full = rows.add(entry, start)
            if full:
                yield rows.take()
        if not full:
            yield rows.take()


class KafkaReader(DataSourceReader):
    """A batch read: offsets are looked up when it is planned, so all tasks agree."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings

    def partitions(self) -> list[InputPartition]:
        planner = Planner(self._settings)
        try:
            start, end = planner.start().offsets, planner.end()
            for partition, offset in sorted(start.items()):
                if partition in end and offset > end[partition]:
                    topic, index = partition
                    reason = f"{topic}-{index} would begin at {offset}, behind its end {end[partition]}"
                    raise OptionError(self._settings.start.name, reason)
            ranges = planner.ranges(start, end)
        finally:
            planner.close()
        return [RangePartition(one) for one in ranges]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        return read_range(self._settings, partition)
