"""The data source that is registered with Spark: ``spark.dataSource.register(KafkaPy)``, then ``format("kafka_py")``.

The short name ``kafka`` belongs to Spark. This module does not depend on Kafka requests.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from kafkaproto.pipeline.kafka_py.client import check_reachable
from kafkaproto.pipeline.kafka_py.columns import DDL, HEADERS_DDL
from kafkaproto.pipeline.kafka_py.errors import OptionError, without_our_frames
from kafkaproto.pipeline.kafka_py.options import SinkSettings, sink_settings, source_settings, wants_headers
from kafkaproto.pipeline.kafka_py.reader import KafkaReader
from kafkaproto.pipeline.kafka_py.stream import KafkaStreamReader
from kafkaproto.pipeline.kafka_py.writer import KafkaStreamWriter, KafkaWriter, check_schema


class KafkaPy(DataSource):
    """The Spark data source `kafka_py`.

    Options and columns are described in `kafkaproto.pipeline.kafka_py.options` and `kafkaproto.pipeline.kafka_py.columns`.
    """

    @classmethod
    def name(cls) -> str:
        return "kafka_py"

    def schema(self) -> str:
        return f"{DDL}, {HEADERS_DDL}" if wants_headers(self.options) else DDL

    @without_our_frames
    def reader(self, schema: StructType) -> KafkaReader:
        return KafkaReader(source_settings(self.options, streaming=False))

    @without_our_frames
    def streamReader(self, schema: StructType) -> KafkaStreamReader:
        return KafkaStreamReader(source_settings(self.options, streaming=True))

    @without_our_frames
    def writer(self, schema: StructType, overwrite: bool) -> KafkaWriter:
        return KafkaWriter(self._sink(schema, overwrite))

    @without_our_frames
    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaStreamWriter:
        return KafkaStreamWriter(self._sink(schema, overwrite=False))

    def _sink(self, schema: StructType, overwrite: bool) -> SinkSettings:
        if overwrite:
            raise OptionError("mode", 'a topic can only be appended to; use .mode("append")')
        settings = sink_settings(self.options)
        check_schema(schema, settings)
        check_reachable(settings.client)
        return settings
