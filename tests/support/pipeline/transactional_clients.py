"""Transactions of client libraries on any cluster, for checking rules. Independent of the recorder and of the rules.

Each client commits and aborts transactions with records and offsets; a second producer with the same transactional id fences it in the middle of a
transaction, and commits. Two consumers then read everything, one of them only what is committed.
"""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.rivals.jars import NEWER_VERSION, kafka_jars
from tests.support.clients.kafka_tools import JVM

PARTITIONS = 2
COMMITTED, ABORTED = 6, 4
"""The numbers of committed and of aborted records of one client.

They are in two transactions that the first producer ends, in its fenced one, and in two of the second producer.
"""
PATIENCE_SECONDS = 60.0
JAVA_PROGRAM = Path(__file__).with_name("TransactionalClient.java")


def confluent(bootstrap: str, topic: str, group: str) -> None:
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

    common = {"bootstrap.servers": bootstrap, "client.id": group, "linger.ms": 0}
    offsets_consumer = Consumer({**common, "group.id": group})

    def started() -> Any:
        producer = Producer({**common, "transactional.id": group})
        producer.init_transactions(PATIENCE_SECONDS)
        return producer

    def begin(producer: Any) -> None:
        producer.begin_transaction()
        for index in range(PARTITIONS):
            producer.produce(topic, b"v", partition=index)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def end(producer: Any, commit: bool) -> None:
        begin(producer)
        offsets = [TopicPartition(topic, 0, 1)]
        producer.send_offsets_to_transaction(offsets, offsets_consumer.consumer_group_metadata(), PATIENCE_SECONDS)
        (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE_SECONDS)

    first = started()
    end(first, commit=True)
    end(first, commit=False)
    begin(first)
    second = started()
    end(second, commit=True)
    end(second, commit=True)
    try:
        first.commit_transaction(PATIENCE_SECONDS)
        raise AssertionError("the fenced producer committed")
    except KafkaException:
        pass
    offsets_consumer.close()
    read(bootstrap, topic, group)


def read(bootstrap: str, topic: str, client_id: str) -> None:
    """Read all records, and all committed records, with confluent-kafka."""
    from confluent_kafka import Consumer, TopicPartition

    for isolation, expected in (("read_uncommitted", COMMITTED + ABORTED), ("read_committed", COMMITTED)):
        options = {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "group.id": "readers",
            "isolation.level": isolation,
        }
        consumer = Consumer({**options, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
        messages = [consumer.poll(PATIENCE_SECONDS) for _ in range(expected)]
        assert all(message is not None and message.error() is None for message in messages), (isolation, messages)
        assert consumer.poll(0.5) is None
        consumer.close()


def kafka_python(bootstrap: str, topic: str, group: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
    from kafka.errors import KafkaError

    def started() -> Any:
        producer = KafkaProducer(bootstrap_servers=bootstrap, client_id=group, transactional_id=group)
        producer.init_transactions()
        return producer

    def begin(producer: Any) -> None:
        producer.begin_transaction()
        for index in range(PARTITIONS):
            producer.send(topic, b"v", partition=index).get(PATIENCE_SECONDS)

    def end(producer: Any, commit: bool) -> None:
        begin(producer)
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): OffsetAndMetadata(1, "", -1)}, group)
        (producer.commit_transaction if commit else producer.abort_transaction)()

    first = started()
    end(first, commit=True)
    end(first, commit=False)
    begin(first)
    second = started()
    end(second, commit=True)
    end(second, commit=True)
    try:
        first.commit_transaction()
        raise AssertionError("the fenced producer committed")
    except KafkaError:
        pass
    first.close(timeout=1)
    second.close()
    for isolation, expected in (("read_uncommitted", COMMITTED + ABORTED), ("read_committed", COMMITTED)):
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, client_id=group, isolation_level=isolation)
        partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        read_count = 0
        while read_count < expected:
            read_count += sum(map(len, consumer.poll(500).values()))
        assert read_count == expected and not consumer.poll(500)
        consumer.close()


def aiokafka(bootstrap: str, topic: str, group: str) -> None:
    asyncio.run(_aiokafka(bootstrap, topic, group))


async def _aiokafka(bootstrap: str, topic: str, group: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.errors import KafkaError

    async def started() -> Any:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, client_id=group, transactional_id=group)
        await producer.start()
        return producer

    async def begin(producer: Any) -> None:
        await producer.begin_transaction()
        for index in range(PARTITIONS):
            await producer.send_and_wait(topic, b"v", partition=index)

    async def end(producer: Any, commit: bool) -> None:
        await begin(producer)
        await producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, group)
        await (producer.commit_transaction() if commit else producer.abort_transaction())

    first = await started()
    await end(first, commit=True)
    await end(first, commit=False)
    await begin(first)
    second = await started()
    await end(second, commit=True)
    await end(second, commit=True)
    try:
        await first.commit_transaction()
        raise AssertionError("the fenced producer committed")
    except KafkaError:
        pass
    await first.stop()
    await second.stop()
    for isolation, expected in (("read_uncommitted", COMMITTED + ABORTED), ("read_committed", COMMITTED)):
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, client_id=group, isolation_level=isolation)
        await consumer.start()
        try:
            partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
            consumer.assign(partitions)
            await consumer.seek_to_beginning(*partitions)
            read_count = 0
            while read_count < expected:
                read_count += sum(map(len, (await consumer.getmany(timeout_ms=500)).values()))
            assert read_count == expected and not await consumer.getmany(timeout_ms=500)
        finally:
            await consumer.stop()


def java(bootstrap: str, topic: str, group: str) -> None:
    numbers = map(str, (PARTITIONS, COMMITTED, ABORTED))
    command = [
        "java",
        *JVM,
        "-cp",
        f"{kafka_jars(NEWER_VERSION)}/*",
        str(JAVA_PROGRAM),
        bootstrap,
        topic,
        group,
        *numbers,
    ]
    completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * PATIENCE_SECONDS)
    assert completed.returncode == 0, f"{completed.stdout[-1000:]}\n{completed.stderr[-3000:]}"


CLIENTS = {"confluent": confluent, "kafka-python": kafka_python, "aiokafka": aiokafka, "java": java}
"""The clients by name, which is their client id, group id and transactional id."""
