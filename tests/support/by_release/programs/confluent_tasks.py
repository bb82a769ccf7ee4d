"""The tasks with confluent-kafka (librdkafka); see `tasks.py`."""

from __future__ import annotations

import os
import sys
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from tests.support.by_release.programs.tasks import (
    BROKERS,
    GIVEN,
    OFFSET_IN_TRANSACTION,
    PATIENCE_SECONDS,
    RESUME_AT,
    VALUES,
    Waits,
    arguments,
    carry_out,
    check,
    text_of,
)

BOOTSTRAP, NAME = arguments()
TIMEOUT_MS = int(PATIENCE_SECONDS * 1000)


KEPT: list[object] = []
"""All clients, kept here so that none is destroyed: destroying a client can wait for its requests."""


class Client:
    """The settings of a client, and the last error that librdkafka reported to it."""

    def __init__(self, **settings: object) -> None:
        self.said: Any = None
        self.settings: dict[str, Any] = {
            "bootstrap.servers": BOOTSTRAP,
            "client.id": NAME,
            "error_cb": self._remember,
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }

    def _remember(self, error: Any) -> None:
        self.said = error

    def failed(self) -> Exception:
        """Return the error that librdkafka reported, or `Waits`."""
        return Waits() if self.said is None else KafkaException(self.said)

    def made(self, kind: Any) -> Any:
        """Create a client, such as a Consumer, with these settings."""
        KEPT.append(client := kind(self.settings))
        return client


def admin() -> Any:
    return Client().made(AdminClient)


def connect() -> None:
    assert len(admin().list_topics(GIVEN, PATIENCE_SECONDS).topics[GIVEN].partitions) == 1


def send(producer: Producer, topic: str) -> None:
    errors: list[Any] = []
    producer.produce(topic, b"value", partition=0, on_delivery=lambda error, _: errors.append(error))
    producer.flush(2 * PATIENCE_SECONDS)
    [error] = errors
    if error is not None:
        raise KafkaException(error)


def produce() -> None:
    client = Client(acks="all", enable_idempotence=False, message_timeout_ms=TIMEOUT_MS)
    send(client.made(Producer), f"{NAME}-produce")


def idempotent_produce() -> None:
    client = Client(enable_idempotence=True, message_timeout_ms=TIMEOUT_MS)
    send(client.made(Producer), f"{NAME}-idempotent")


def read(client: Client, consumer: Consumer, count: int) -> list[str]:
    values: list[str] = []
    while len(values) < count:
        message = consumer.poll(PATIENCE_SECONDS)
        if message is None:
            raise client.failed()
        if (error := message.error()) is not None:
            raise KafkaException(error)
        content = message.value()
        assert content is not None
        values.append(content.decode())
    return values


def consume() -> None:
    client = Client(group_id="none", enable_auto_commit=False)
    consumer = client.made(Consumer)
    consumer.assign([TopicPartition(GIVEN, 0, 0)])
    check(read(client, consumer, len(VALUES)), VALUES)


def group(protocol: str) -> None:
    common = {"group_id": f"{NAME}-{protocol}", "group_protocol": protocol, "auto_offset_reset": "earliest"}
    for expected in (VALUES, VALUES[RESUME_AT:]):
        client = Client(**common, enable_auto_commit=False)
        consumer = client.made(Consumer)
        consumer.subscribe([GIVEN])
        check(read(client, consumer, len(expected)), expected)
        if expected is VALUES:
            consumer.commit(offsets=[TopicPartition(GIVEN, 0, RESUME_AT)], asynchronous=False)
        consumer.close()


def describe_cluster() -> None:
    assert len(admin().describe_cluster(request_timeout=PATIENCE_SECONDS).result().nodes) == BROKERS


def create_topic() -> None:
    futures = admin().create_topics([NewTopic(f"{NAME}-created", 2, 1)], request_timeout=PATIENCE_SECONDS)
    futures[f"{NAME}-created"].result()


def add_partitions() -> None:
    futures = admin().create_partitions([NewPartitions(f"{NAME}-partitions", 2)], request_timeout=PATIENCE_SECONDS)
    futures[f"{NAME}-partitions"].result()


def describe_configs() -> None:
    resource = ConfigResource(ResourceType.TOPIC, GIVEN)
    described = admin().describe_configs([resource], request_timeout=PATIENCE_SECONDS)
    assert "retention.ms" in described[resource].result()


def list_topics() -> None:
    assert GIVEN in admin().list_topics(timeout=PATIENCE_SECONDS).topics


def transaction(topic: str, *, with_offsets: bool) -> None:
    client = Client(transactional_id=topic, message_timeout_ms=TIMEOUT_MS)
    producer = client.made(Producer)
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    send(producer, topic)
    if with_offsets:
        member = Client(group_id=topic).made(Consumer)
        offsets = [TopicPartition(GIVEN, 0, OFFSET_IN_TRANSACTION)]
        producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), PATIENCE_SECONDS)
    producer.commit_transaction(PATIENCE_SECONDS)
    reader = Client(group_id="none", isolation_level="read_committed", enable_auto_commit=False)
    consumer = reader.made(Consumer)
    consumer.assign([TopicPartition(topic, 0, 0)])
    check(read(reader, consumer, 1), ["value"])


def text(error: Exception) -> str:
    if not isinstance(error, KafkaException):
        return text_of(error)
    return f"{error.args[0].name()}: {error.args[0].str()}"


if __name__ == "__main__":
    carry_out(
        {
            "connect": connect,
            "produce": produce,
            "idempotent produce": idempotent_produce,
            "consume": consume,
            "group": lambda: group("classic"),
            "new group": lambda: group("consumer"),
            "describe cluster": describe_cluster,
            "create topic": create_topic,
            "add partitions": add_partitions,
            "describe configs": describe_configs,
            "list topics": list_topics,
            "transaction": lambda: transaction(f"{NAME}-transaction", with_offsets=False),
            "offsets in a transaction": lambda: transaction(f"{NAME}-offsets", with_offsets=True),
        },
        text,
    )
    sys.stdout.flush()
    os._exit(0)  # the clients are not closed
