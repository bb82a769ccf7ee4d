"""The data source that is registered with Spark: ``spark.dataSource.register(KafkaPy)``, then ``format("kafka_py")``.

The short name ``kafka`` belongs to Spark. Must never know brokers.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from kafkaproto.pipeline.kafka_py.columns import DDL, HEADERS_DDL
from kafkaproto.pipeline.kafka_py.errors import OptionError
from kafkaproto.pipeline.kafka_py.options import SinkSettings, sink_settings, source_settings, wants_headers
from kafkaproto.pipeline.kafka_py.reader import KafkaReader
from kafkaproto.pipeline.kafka_py.stream import KafkaStreamReader
from kafkaproto.pipeline.kafka_py.writer import KafkaStreamWriter, KafkaWriter, check_schema


class KafkaPy(DataSource):
    """Kafka, on our own codec. Options and columns: `kafkaproto.pipeline.kafka_py.options` and `kafkaproto.pipeline.kafka_py.columns`."""

    @classmethod
    def name(cls) -> str:
        return "kafka_py"

    def schema(self) -> str:
        return f"{DDL}, {HEADERS_DDL}" if wants_headers(self.options) else DDL

    def reader(self, schema: StructType) -> KafkaReader:
        return KafkaReader(source_settings(self.options, streaming=False))

    def streamReader(self, schema: StructType) -> KafkaStreamReader:
        return KafkaStreamReader(source_settings(self.options, streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> KafkaWriter:
        return KafkaWriter(self._sink(schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaStreamWriter:
        return KafkaStreamWriter(self._sink(schema, overwrite=False))

    def _sink(self, schema: StructType, overwrite: bool) -> SinkSettings:
        if overwrite:
            raise OptionError("mode", "a topic can only be appended to")
        settings = sink_settings(self.options)
        check_schema(schema, settings)
        return settings
