"""Reads Kafka topics for Spark: plans a batch read, and has the code that the Spark tasks of batch and streaming reads run.

This module does not depend on how a streaming read stores its offsets.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kafkaproto.pipeline.kafka_py.client import Client
from kafkaproto.pipeline.kafka_py.columns import Rows
from kafkaproto.pipeline.kafka_py.errors import OptionError, without_our_frames
from kafkaproto.pipeline.kafka_py.fetching import fetch
from kafkaproto.pipeline.kafka_py.offsets import Range
from kafkaproto.pipeline.kafka_py.options import SourceSettings
from kafkaproto.pipeline.kafka_py.planning import Planner


class RangePartition(InputPartition):
    """The range of offsets of one Kafka partition that one Spark task reads."""

    def __init__(self, range_: Range) -> None:
        super().__init__(range_)


def read_range(settings: SourceSettings, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
    """Yield the rows that one Spark task reads from Kafka. Runs on an executor.

    partition: the range to read. Spark requires at least one task, also for a read without records: its only task gets None or, from Spark 4.1 on, a
    partition without a range, and yields nothing.
    """
    if partition is None or partition.value is None:
        return
    range_: Range = partition.value
    rows = Rows(range_, settings.include_headers)
    with Client(settings.client) as client:
        full = True
        for entry, start in fetch(client, settings, range_):
            full = rows.add(entry, start)
            if full:
                yield rows.take()
        if not full:
            yield rows.take()


class KafkaReader(DataSourceReader):
    """The reader of a batch query. It looks up the offsets when Spark plans the read, so that all tasks use the same offsets."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings

    @without_our_frames
    def partitions(self) -> list[InputPartition]:
        planner = Planner(self._settings)
        try:
            start, end = planner.start().offsets, planner.end()
            for partition, offset in sorted(start.items()):
                if partition in end and offset > end[partition]:
                    topic, index = partition
                    reason = (
                        f"{topic}-{index} would start at offset {offset}, but the query ends at offset {end[partition]}; choose an "
                        "earlier start or a later end"
                    )
                    raise OptionError(self._settings.start.name, reason)
            ranges = planner.ranges(start, end)
        finally:
            planner.close()
        return [RangePartition(range_) for range_ in ranges]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        return read_range(self._settings, partition)
