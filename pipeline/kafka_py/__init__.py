"""`kafka_py`: Kafka as a Spark Python Data Source, batch and streaming, read and write, for those who cannot have the connector's jars.

    from kafkaproto.pipeline.kafka_py.source import KafkaPy
    spark.dataSource.register(KafkaPy)
    spark.read.format("kafka_py").option("kafka.bootstrap.servers", ...).option("subscribe", "t").load()

Columns and names of options are those of Spark's own Kafka source. Needs pyspark, pyarrow and this project's codec.
"""
