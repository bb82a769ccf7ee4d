"""Traffic of four real clients on any cluster of three brokers in racks, for checking rules.

Each client writes, with and without acknowledgements, and reads everything in a rack without the topic's leader. It waits at the end of the
log and requests an invalid offset. Spark only writes and reads. One client also writes in transactions. Independent of the recorder and of
the rules.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rivals.jars import kafka_jars
from tests.support.clients.kafka_tools import JVM

PARTITIONS, RECORDS, VALUE_BYTES = 2, 60, 1000
PARTITION_FETCH_BYTES = 9_000
"""The size of a few batches of 4 records, so that reading everything takes several responses."""
NOT_THERE = 1_000_000_000
WAITS_SECONDS = 0.5
PATIENCE_SECONDS = 60.0
JAVA_PROGRAM = Path(__file__).with_name("AuditedClient.java")
PYTHON, CONFLUENT, TRANSACTIONS, JAVA, SPARK = "kafka-python", "confluent", "transactions", "java", "spark"
"""Client ids, or their prefixes."""


class Place(NamedTuple):
    """Where a client works. rack: of the reader. topic: it has `PARTITIONS` partitions and no other writer."""

    bootstrap: str
    topic: str
    rack: str


def kafka_python(at: Place) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    for acks in ("all", 0):
        producer = KafkaProducer(
            bootstrap_servers=at.bootstrap,
            client_id=PYTHON,
            acks=acks,
            enable_idempotence=acks == "all",
            batch_size=4 * VALUE_BYTES,
        )
        for number in range(RECORDS):
            producer.send(at.topic, bytes(VALUE_BYTES), partition=number % PARTITIONS)
        producer.flush()
        producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=at.bootstrap,
        client_id=PYTHON,
        client_rack=at.rack,
        max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
        fetch_max_wait_ms=100,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    partitions = [TopicPartition(at.topic, index) for index in range(PARTITIONS)]

    def read() -> None:
        ends = consumer.end_offsets(partitions)
        until(lambda: consumer.poll(200) is not None and all(consumer.position(p) == ends[p] for p in partitions))

    consumer.assign(partitions)
    consumer.offsets_for_times(dict.fromkeys(partitions, 0))
    consumer.seek_to_beginning(*partitions)
    read()
    deadline = time.monotonic() + WAITS_SECONDS
    while time.monotonic() < deadline:
        consumer.poll(100)
    for partition in partitions:
        consumer.seek(partition, NOT_THERE)
    read()
    consumer.close()


def confluent(at: Place) -> None:
    from confluent_kafka import OFFSET_BEGINNING, Producer

    for acks in ("all", "0"):
        producer = Producer(
            {
                "bootstrap.servers": at.bootstrap,
                "client.id": CONFLUENT,
                "acks": acks,
                "enable.idempotence": acks == "all",
                "batch.num.messages": 4,
            }
        )
        for number in range(RECORDS):
            producer.produce(at.topic, bytes(VALUE_BYTES), partition=number % PARTITIONS)
        assert producer.flush(PATIENCE_SECONDS) == 0
    _read(at, CONFLUENT, OFFSET_BEGINNING, NOT_THERE)


def transactions(at: Place) -> None:
    """Commit and abort transactions of several batches in turn, and read committed records with the same library."""
    from confluent_kafka import OFFSET_BEGINNING, Producer

    producer = Producer(
        {
            "bootstrap.servers": at.bootstrap,
            "client.id": TRANSACTIONS,
            "transactional.id": TRANSACTIONS,
            "batch.num.messages": 4,
        }
    )
    producer.init_transactions(PATIENCE_SECONDS)
    for finish in (producer.commit_transaction, producer.abort_transaction) * 2:
        producer.begin_transaction()
        for number in range(RECORDS // 2):
            producer.produce(at.topic, bytes(VALUE_BYTES), partition=number % PARTITIONS)
        assert producer.flush(PATIENCE_SECONDS) == 0
        finish(PATIENCE_SECONDS)
    _read(at, TRANSACTIONS, OFFSET_BEGINNING)


def _read(at: Place, client_id: str, *offsets: int) -> None:
    """Read all committed records from each of these offsets, and wait at the end."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": at.bootstrap,
            "client.id": client_id,
            "client.rack": at.rack,
            "group.id": client_id,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            "max.partition.fetch.bytes": PARTITION_FETCH_BYTES,
        }
    )
    for offset in offsets:
        consumer.assign([TopicPartition(at.topic, index, offset) for index in range(PARTITIONS)])
        finished_partitions: set[int] = set()
        until(partial(_to_the_end, consumer, finished_partitions))
        consumer.poll(WAITS_SECONDS)
    consumer.close()


def _to_the_end(consumer: Any, ended: set[int]) -> bool:
    from confluent_kafka import KafkaError

    message = consumer.poll(1.0)
    if message is not None and message.error() is not None:
        assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
        ended.add(message.partition())
    return len(ended) == PARTITIONS


def java(at: Place) -> None:
    numbers = map(str, (PARTITIONS, RECORDS, VALUE_BYTES))
    command = ["java", *JVM, "-cp", f"{kafka_jars()}/*", str(JAVA_PROGRAM), at.bootstrap, at.topic, *numbers]
    completed = subprocess.run(
        [*command, at.rack, str(PARTITION_FETCH_BYTES)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert completed.returncode == 0, f"{completed.stdout[-1000:]}\n{completed.stderr[-3000:]}"


def spark(session: Any, at: Place) -> None:
    """Write and read with Spark, whose client ids come from the consumer group and the number of producers."""
    common = {"kafka.bootstrap.servers": at.bootstrap}
    values = session.range(RECORDS).selectExpr(
        f"repeat('x', {VALUE_BYTES}) AS value", f"CAST(id % {PARTITIONS} AS int) AS partition"
    )
    values.write.format("kafka").options(
        **common, topic=at.topic, **{"kafka.client.id": SPARK, "kafka.batch.size": str(4 * VALUE_BYTES)}
    ).save()
    reader = session.read.format("kafka").options(
        **common,
        subscribe=at.topic,
        groupIdPrefix=SPARK,
        **{
            "kafka.client.rack": at.rack,
            "kafka.client.id": SPARK,
            "kafka.max.partition.fetch.bytes": str(PARTITION_FETCH_BYTES),
        },
    )
    assert reader.load().count() >= RECORDS


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not reached():
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS} s"
