"""The race as an application sees it: confluent-kafka writes values of one size to a topic and reads them back. Used by all racers alike."""

from __future__ import annotations

import time
import uuid
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

PARTITIONS = 2
PATIENCE_S = 60.0

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
    """MB/s of `count` values with acks=1 to a topic that is there. Raises RuntimeError unless each of them was acknowledged."""
    producer = Producer({"bootstrap.servers": address, **_PRODUCER})
    acknowledged, failed = 0, ""

    def told(error: KafkaError | None, _: Any) -> None:
        nonlocal acknowledged, failed
        if error is None:
            acknowledged += 1
        else:
            failed = error.str()

    value = b"x" * value_bytes
    begun = time.perf_counter()
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS, on_delivery=told)
                break
            except BufferError:
                producer.poll(0.01)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush(PATIENCE_S)
    seconds = time.perf_counter() - begun
    if acknowledged != count:
        raise RuntimeError(f"{acknowledged} of {count} values were acknowledged: {failed or 'the time is over'}")
    return count * value_bytes / seconds / 1e6


def consume(address: str, topic: str, value_bytes: int, count: int) -> float:
    """MB/s of reading `count` values from the beginning. Raises RuntimeError when they do not all come."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": uuid.uuid4().hex, **_CONSUMER})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    got, begun = 0, time.perf_counter()
    while got < count and time.perf_counter() - begun < PATIENCE_S:
        got += sum(1 for message in consumer.consume(min(10_000, count - got), 1.0) if message.error() is None)
    seconds = time.perf_counter() - begun
    consumer.close()
    if got < count:
        raise RuntimeError(f"{got} of {count} values came in {seconds:.0f} s")
    return count * value_bytes / seconds / 1e6
