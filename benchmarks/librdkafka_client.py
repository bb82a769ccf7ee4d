"""A benchmark with a real client: confluent-kafka writes values of one size to a topic, or reads them. Each measured broker gets the same load."""

from __future__ import annotations

import time
import uuid
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

PARTITIONS = 2
TIMEOUT_S = 60.0

_PRODUCER = {
    "enable.metrics.push": False,
    "acks": 1,
    "linger.ms": 5,
    "batch.size": 1_000_000,
    "message.max.bytes": 2_000_000,
    "queue.buffering.max.kbytes": 200_000,
    "queue.buffering.max.messages": 2_000_000,
}
_CONSUMER = {
    "enable.metrics.push": False,
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 100,
    "queued.min.messages": 1_000_000,
    "fetch.message.max.bytes": 4_000_000,
}


def produce(address: str, topic: str, value_bytes: int, count: int) -> float:
    """Write `count` values with acks=1 to an existing topic, and return MB/s. Raises RuntimeError if a value is not acknowledged.

    address: host:port of the broker. value_bytes: the size of each value.
    """
    producer = Producer({"bootstrap.servers": address, **_PRODUCER})
    acknowledged, failed = 0, ""

    def on_delivery(error: KafkaError | None, _: Any) -> None:
        nonlocal acknowledged, failed
        if error is None:
            acknowledged += 1
        else:
            failed = error.str()

    value = b"x" * value_bytes
    start = time.perf_counter()
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS, on_delivery=on_delivery)
                break
            except BufferError:
                producer.poll(0.01)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush(TIMEOUT_S)
    seconds = time.perf_counter() - start
    if acknowledged != count:
        raise RuntimeError(
            f"only {acknowledged} of {count} values sent to topic {topic} were acknowledged; the reason: {failed or 'timeout'}"
        )
    return count * value_bytes / seconds / 1e6


def consume(address: str, topic: str, value_bytes: int, count: int) -> float:
    """Read `count` values of a topic from the beginning, and return MB/s. Raises RuntimeError if a value does not arrive.

    address: host:port of the broker. value_bytes: the size of each value.
    """
    consumer = Consumer({"bootstrap.servers": address, "group.id": uuid.uuid4().hex, **_CONSUMER})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    received, start = 0, time.perf_counter()
    while received < count and time.perf_counter() - start < TIMEOUT_S:
        received += sum(
            1 for message in consumer.consume(min(10_000, count - received), 1.0) if message.error() is None
        )
    seconds = time.perf_counter() - start
    consumer.close()
    if received < count:
        raise RuntimeError(f"only {received} of {count} values of topic {topic} arrived within {seconds:.0f} s")
    return count * value_bytes / seconds / 1e6
