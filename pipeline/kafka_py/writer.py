"""Writes, batch and streaming: rows with key, value, topic, partition and headers become records.

At least once, as with Spark's own sink: a task that is tried again writes its rows again. Must never know batches of records.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kafkaproto.pipeline.kafka_py.errors import OptionError
from kafkaproto.pipeline.kafka_py.options import SinkSettings
from kafkaproto.pipeline.kafka_py.producing import Producer
from kafkaproto.records.record import NewRecord

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter  # type: ignore[attr-defined]
except ImportError:  # before 4.1, where Spark looks for the batch writer's class in streams, too

    class DataSourceStreamArrowWriter(DataSourceStreamWriter, DataSourceArrowWriter):  # type: ignore[no-redef,misc]
        """A stream's writer that is given Arrow batches."""


BYTES = ("binary", "string")
TYPES = {
    "key": BYTES,
    "value": BYTES,
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
"""What columns may be. Others are passed over."""


class NoSuchColumn(ValueError):
    """A frame lacks a column that records need, or has one of a wrong type."""


def check_schema(schema: StructType, settings: SinkSettings) -> None:
    """NoSuchColumn and OptionError unless rows of this schema can be written."""
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    if "value" not in types:
        raise NoSuchColumn(f"column value is missing, there are {', '.join(types) or 'none'}")
    if settings.topic is None and "topic" not in types:
        raise OptionError("topic", "must be given, as there is no column topic")
    for name, wanted in TYPES.items():
        if name in types and types[name] not in wanted:
            raise NoSuchColumn(f"column {name} is {types[name]}, it must be {' or '.join(wanted)}")


class KafkaWriter(DataSourceArrowWriter):
    """A batch write. Tasks write as they go; there is nothing to commit and nothing that could be taken back."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_rows(self._settings, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None: ...

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None: ...


class KafkaStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """The same for each micro-batch."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_rows(self._settings, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int = -1) -> None: ...

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int = -1) -> None: ...


def write_rows(settings: SinkSettings, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
    """Write all rows of a task, on an executor; when it returns they are written. ValueError for a row without a topic."""
    producer: Producer | None = None
    try:
        for batch in batches:
            producer = producer or Producer(settings)
            _write_batch(producer, settings.topic, batch)
        if producer is not None:
            producer.flush()
    finally:
        if producer is not None:
            producer.close()
    return WriterCommitMessage()


def _write_batch(producer: Producer, topic: str | None, batch: pa.RecordBatch) -> None:
    def column(name: str, kind: pa.DataType | None = None) -> list[Any]:
        if name not in batch.schema.names:
            return [None] * batch.num_rows
        found = batch.column(name)
        listed: list[Any] = (found if kind is None else found.cast(kind)).to_pylist()
        return listed

    topics = column("topic") if topic is None else [topic] * batch.num_rows
    now_ms = int(time.time() * 1000)
    for key, value, name, partition, headers in zip(
        column("key", pa.large_binary()),
        column("value", pa.large_binary()),
        topics,
        column("partition"),
        column("headers"),
        strict=True,
    ):
        if name is None:
            raise ValueError("a row has no topic; option topic gives one to all rows")
        pairs = tuple((header["key"], header["value"]) for header in headers or ())
        producer.send(name, partition, NewRecord(value, key, now_ms, pairs))
