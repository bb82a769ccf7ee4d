"""`kafka_py`: Kafka as a Spark data source in Python, batch and streaming, read and write, without the jars of Spark's Kafka connector.

    from kafkaproto.pipeline.kafka_py.source import KafkaPy
    spark.dataSource.register(KafkaPy)
    spark.read.format("kafka_py").option("kafka.bootstrap.servers", ...).option("subscribe", "t").load()

Columns and option names are those of Spark's own Kafka source. The data source needs pyspark, pyarrow and this project's codec.
"""
