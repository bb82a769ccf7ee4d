"""Each client library as a producer and a consumer that runs as fast as it may, one record per request.

The code is the same against this broker and Apache Kafka. It must not depend on the kind of broker or on quotas.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition

from benchmarks.rivals.jars import kafka_jars
from tests.support.clients.kafka_tools import JVM

PATIENCE_SECONDS = 30.0
DIGITS = 10
JAVA_PROGRAM = Path(__file__).with_name("PacedClient.java")


def value(number: int, size: int) -> bytes:
    """Return a record value of `size` bytes that begins with its number."""
    return (b"%0*d" % (DIGITS, number)).ljust(size, b".")


def number_in(value: bytes) -> int:
    return int(value[:DIGITS])


@dataclass(frozen=True, slots=True)
class Job:
    """The work of one client on a topic with one partition, which consumers read from the beginning.

    It ends `seconds` after the first record, or at `stop` (except in Java).
    """

    bootstrap: str
    client_id: str
    topic: str
    value_bytes: int
    seconds: float
    stop: threading.Event = field(default_factory=threading.Event)

    def value(self, number: int) -> bytes:
        return value(number, self.value_bytes)


@dataclass(slots=True)
class Run:
    """The results of one client: the numbers of the records acknowledged or read, and when, in seconds since the first.

    throttles_ms: throttle times, if the library reports them. metrics: the client's own metrics, by name.
    """

    numbers: list[int] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)
    throttles_ms: list[int] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    _zero_s: float | None = None

    def record(self, number: int) -> None:
        now_s = time.monotonic()
        if self._zero_s is None:
            self._zero_s = now_s
        self.numbers.append(number)
        self.at_s.append(now_s - self._zero_s)

    def lasts(self, job: Job) -> bool:
        """Return whether the job continues: its first record is less than `seconds` old and it has not been stopped."""
        return not job.stop.is_set() and (self._zero_s is None or time.monotonic() - self._zero_s < job.seconds)

    def within(self, seconds: float) -> int:
        """Return the number of records within the first `seconds`."""
        return sum(at_s < seconds for at_s in self.at_s)


Client = Callable[[Job], Run]


def run_together(jobs: Iterable[tuple[Client, Job]]) -> list[Run]:
    """Run all jobs at the same time and raise the first exception of any of them."""
    pairs = list(jobs)
    with ThreadPoolExecutor(len(pairs)) as pool:
        return [future.result() for future in [pool.submit(client, job) for client, job in pairs]]


def confluent_producer(job: Job) -> Run:
    run = Run()
    settings = {"linger.ms": 0, **_confluent(job, run)}
    producer = Producer(settings)
    producer.list_topics(job.topic, timeout=PATIENCE_SECONDS)
    number = 0
    while run.lasts(job):
        producer.produce(job.topic, job.value(number), partition=0)
        assert producer.flush(PATIENCE_SECONDS) == 0
        run.record(number)
        number += 1
    producer.poll(0)
    return run


def confluent_consumer(job: Job) -> Run:
    run = Run()
    consumer = Consumer(
        {"group.id": job.client_id, "max.partition.fetch.bytes": job.value_bytes // 2, **_confluent(job, run)}
    )
    try:
        consumer.assign([TopicPartition(job.topic, 0, OFFSET_BEGINNING)])
        while run.lasts(job):
            message = consumer.poll(0.1)
            if message is not None:
                assert message.error() is None
                run.record(number_in(message.value() or b""))
    finally:
        consumer.close()
    return run


def _confluent(job: Job, run: Run) -> dict[str, Any]:
    def record_event(event: Any) -> None:
        if event.throttle_time > 0:
            run.throttles_ms.append(round(event.throttle_time * 1000))

    def statistics(text: str) -> None:
        """Record the throttle times of one statistics report, which covers the time since the previous report."""
        for broker in json.loads(text)["brokers"].values():
            highest = max(run.metrics.get("throttle-max", 0), broker["throttle"]["max"])
            run.metrics["throttle-max"] = highest

    return {
        "bootstrap.servers": job.bootstrap,
        "client.id": job.client_id,
        "throttle_cb": record_event,
        "stats_cb": statistics,
        "statistics.interval.ms": 200,
    }


def python_producer(job: Job) -> Run:
    run = Run()
    producer = KafkaProducer(
        bootstrap_servers=job.bootstrap.split(","), client_id=job.client_id, linger_ms=0, request_timeout_ms=30_000
    )
    try:
        producer.partitions_for(job.topic)
        number = 0
        while run.lasts(job):
            producer.send(job.topic, job.value(number), partition=0).get(PATIENCE_SECONDS)
            run.record(number)
            number += 1
        run.metrics = _throttle_metrics(producer.metrics())
    finally:
        producer.close()
    return run


def python_consumer(job: Job) -> Run:
    run = Run()
    consumer = KafkaConsumer(
        bootstrap_servers=job.bootstrap.split(","),
        client_id=job.client_id,
        max_partition_fetch_bytes=job.value_bytes // 2,
        enable_auto_commit=False,
        group_id=None,
    )
    try:
        consumer.assign([PythonPartition(job.topic, 0)])
        consumer.seek_to_beginning()
        while run.lasts(job):
            for records in consumer.poll(100).values():
                for record in records:
                    run.record(number_in(record.value))
        run.metrics = _throttle_metrics(consumer.metrics())
    finally:
        consumer.close()
    return run


def _throttle_metrics(groups: dict[str, dict[str, float]]) -> dict[str, float]:
    return {name: value for group in groups.values() for name, value in group.items() if "throttle" in name}


def aio_producer(job: Job) -> Run:
    return asyncio.run(_aio_producer(job))


async def _aio_producer(job: Job) -> Run:
    run = Run()
    producer = AIOKafkaProducer(bootstrap_servers=job.bootstrap, client_id=job.client_id, linger_ms=0)
    await producer.start()
    try:
        await producer.partitions_for(job.topic)
        number = 0
        while run.lasts(job):
            await producer.send_and_wait(job.topic, job.value(number), partition=0)
            run.record(number)
            number += 1
    finally:
        await producer.stop()
    return run


def aio_consumer(job: Job) -> Run:
    return asyncio.run(_aio_consumer(job))


async def _aio_consumer(job: Job) -> Run:
    run = Run()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=job.bootstrap, client_id=job.client_id, max_partition_fetch_bytes=job.value_bytes // 2
    )
    await consumer.start()
    try:
        consumer.assign([AioPartition(job.topic, 0)])
        await consumer.seek_to_beginning()
        while run.lasts(job):
            for records in (await consumer.getmany(timeout_ms=100)).values():
                for record in records:
                    run.record(number_in(record.value))
    finally:
        await consumer.stop()
    return run


def java_producer(job: Job) -> Run:
    return _java("produce", job)


def java_consumer(job: Job) -> Run:
    return _java("consume", job)


def _java(role: str, job: Job) -> Run:
    """Run `PacedClient.java`, which prints "record NUMBER SECONDS" for each record and "metric NAME VALUE" at the end."""
    command = ["java", *JVM, "-cp", f"{kafka_jars()}/*", str(JAVA_PROGRAM), role, job.bootstrap, job.client_id]
    limit = job.seconds + 2 * PATIENCE_SECONDS
    completed = subprocess.run(
        [*command, job.topic, str(job.value_bytes), str(job.seconds)],
        capture_output=True,
        text=True,
        check=False,
        timeout=limit,
    )
    assert completed.returncode == 0, f"{role}: {completed.stdout[-1000:]}\n{completed.stderr[-3000:]}"
    run = Run()
    for line in completed.stdout.splitlines():
        kind, name, value = line.split()
        if kind == "record":
            run.numbers.append(int(name))
            run.at_s.append(float(value))
        else:
            run.metrics[name] = float(value)
    return run


PRODUCERS: dict[str, Client] = {
    "confluent-kafka": confluent_producer,
    "kafka-python": python_producer,
    "aiokafka": aio_producer,
    "java": java_producer,
}
CONSUMERS: dict[str, Client] = {
    "confluent-kafka": confluent_consumer,
    "kafka-python": python_consumer,
    "aiokafka": aio_consumer,
    "java": java_consumer,
}
