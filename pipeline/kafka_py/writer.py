"""Batch and streaming writes: rows with key, value, topic, partition and headers become records.

Delivery is at least once, as with Spark's own sink: a task that is retried writes its rows again. This module does not depend on the
format of record batches.
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
except ImportError:  # before 4.1, Spark requires the batch writer's class in streams, too

    class DataSourceStreamArrowWriter(DataSourceStreamWriter, DataSourceArrowWriter):  # type: ignore[no-redef,misc]
        """Substitute for the class of this name, which Spark lacks before version 4.1: the base of stream writers that receive Arrow batches."""


BYTES = ("binary", "string")
TYPES = {
    "key": BYTES,
    "value": BYTES,
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
"""Maps each column that is written to the types that it may have. A DataFrame may have other columns, which are ignored."""


class NoSuchColumn(ValueError):
    """Raised if a DataFrame lacks a required column, or has a column with an unsupported type."""


def check_schema(schema: StructType, settings: SinkSettings) -> None:
    """Check that rows of this schema can be written.

    Raises NoSuchColumn if there is no column named `value`, and also if a column has a type that is not supported. Raises OptionError if neither the
    option `topic` nor a column names the topic.
    """
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    if "value" not in types:
        raise NoSuchColumn(f"a column named value is required, but the columns are {', '.join(types) or 'none'}")
    if settings.topic is None and "topic" not in types:
        raise OptionError("topic", "must be given, because the rows have no column named topic")
    for name, allowed in TYPES.items():
        if name in types and types[name] not in allowed:
            raise NoSuchColumn(f"column {name} has the type {types[name]}, but the type must be {' or '.join(allowed)}")


class KafkaWriter(DataSourceArrowWriter):
    """The writer of a batch query. Tasks write to the brokers while they run: a commit has nothing left to do, and an abort undoes nothing."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_rows(self._settings, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None: ...

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None: ...


class KafkaStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """The writer of a streaming query. It writes each micro-batch in the same way as `KafkaWriter` writes a batch."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return write_rows(self._settings, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int = -1) -> None: ...

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int = -1) -> None: ...


def write_rows(settings: SinkSettings, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
    """Write all rows of a Spark task to Kafka. Runs on an executor. Returns an empty message, because nothing remains to be committed.

    batches: the rows. Raises ValueError for a row without a topic.
    """
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
        values = batch.column(name)
        listed: list[Any] = (values if kind is None else values.cast(kind)).to_pylist()
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
            raise ValueError("a row has no topic; set the option topic, or fill the column topic in every row")
        pairs = tuple((header["key"], header["value"]) for header in headers or ())
        producer.send(name, partition, NewRecord(value, key, now_ms, pairs))
