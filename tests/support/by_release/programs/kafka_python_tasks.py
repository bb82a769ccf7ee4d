"""The tasks with kafka-python; see `tasks.py`."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
    from kafka.admin import ConfigFilterType, ConfigResource, ConfigResourceType
    from kafka.structs import ConsumerGroupMetadata

from tests.support.by_release.programs.tasks import (
    BROKERS,
    GIVEN,
    OFFSET_IN_TRANSACTION,
    PATIENCE_SECONDS,
    RESUME_AT,
    VALUES,
    Missing,
    Waits,
    arguments,
    carry_out,
    check,
)

BOOTSTRAP, NAME = arguments()
TIMEOUT_MS = int(PATIENCE_SECONDS * 1000)
PARTITION = TopicPartition(GIVEN, 0)
COMMON: dict[str, Any] = {
    "bootstrap_servers": BOOTSTRAP.split(","),
    "client_id": NAME,
    "bootstrap_timeout_ms": TIMEOUT_MS,
}


def producer(**settings: Any) -> Any:
    return KafkaProducer(**COMMON, max_block_ms=TIMEOUT_MS, **settings)


def consumer(**settings: Any) -> Any:
    return KafkaConsumer(**COMMON, consumer_timeout_ms=TIMEOUT_MS, auto_offset_reset="earliest", **settings)


def read(reader: Any, count: int) -> list[str]:
    values: list[str] = []
    for record in reader:
        values.append(record.value.decode())
        if len(values) == count:
            return values
    raise Waits


class Guesses(logging.Handler):
    """Keeps what kafka-python logs about the version of the brokers."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.versions: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if "Broker version identified as" in record.msg:
            self.versions.add(record.getMessage().partition(": ")[2])


def connect() -> str:
    guesses = Guesses()
    logger = logging.getLogger("kafka")
    logger.setLevel(logging.INFO)
    logger.addHandler(guesses)
    assert consumer().partitions_for_topic(GIVEN) == {0}
    [guess] = guesses.versions
    return guess


def produce() -> None:
    producer(acks="all", enable_idempotence=False).send(f"{NAME}-produce", b"value", partition=0).get(PATIENCE_SECONDS)


def idempotent_produce() -> None:
    writer = producer(enable_idempotence=True)
    writer.send(f"{NAME}-idempotent", b"value", partition=0).get(PATIENCE_SECONDS)


def consume() -> None:
    reader = consumer()
    reader.assign([PARTITION])
    reader.seek_to_beginning()
    check(read(reader, len(VALUES)), VALUES)


def group() -> None:
    for expected in (VALUES, VALUES[RESUME_AT:]):
        reader = consumer(group_id=f"{NAME}-classic", enable_auto_commit=False)
        reader.subscribe([GIVEN])
        check(read(reader, len(expected)), expected)
        if expected is VALUES:
            reader.commit({PARTITION: OffsetAndMetadata(RESUME_AT, "", -1)})
        reader.close()


def new_group() -> None:
    if "group_protocol" not in KafkaConsumer.DEFAULT_CONFIG:
        raise Missing
    raise NotImplementedError("kafka-python has a new group protocol now: let this task use it")


def describe_cluster() -> None:
    assert len(KafkaAdminClient(**COMMON).describe_cluster()["brokers"]) == BROKERS


def create_topic() -> None:
    name = f"{NAME}-created"
    KafkaAdminClient(**COMMON).create_topics({name: {"num_partitions": 2, "replication_factor": 1}})


def add_partitions() -> None:
    KafkaAdminClient(**COMMON).create_partitions({f"{NAME}-partitions": 2})


def describe_configs() -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, GIVEN, None)
    described = KafkaAdminClient(**COMMON).describe_configs([resource], config_filter=ConfigFilterType.ALL)
    assert "retention.ms" in str(described)


def list_topics() -> None:
    assert GIVEN in KafkaAdminClient(**COMMON).list_topics()


def transaction(topic: str, *, with_offsets: bool) -> None:
    writer = producer(acks="all", transactional_id=topic)
    writer.init_transactions()
    writer.begin_transaction()
    writer.send(topic, b"value", partition=0).get(PATIENCE_SECONDS)
    if with_offsets:
        offsets = {PARTITION: OffsetAndMetadata(OFFSET_IN_TRANSACTION, "", -1)}
        writer.send_offsets_to_transaction(offsets, ConsumerGroupMetadata(topic, -1, "", None))
    writer.commit_transaction()
    reader = consumer(isolation_level="read_committed")
    reader.assign([TopicPartition(topic, 0)])
    reader.seek_to_beginning()
    check(read(reader, 1), ["value"])


if __name__ == "__main__":
    carry_out(
        {
            "connect": connect,
            "produce": produce,
            "idempotent produce": idempotent_produce,
            "consume": consume,
            "group": group,
            "new group": new_group,
            "describe cluster": describe_cluster,
            "create topic": create_topic,
            "add partitions": add_partitions,
            "describe configs": describe_configs,
            "list topics": list_topics,
            "transaction": lambda: transaction(f"{NAME}-transaction", with_offsets=False),
            "offsets in a transaction": lambda: transaction(f"{NAME}-offsets", with_offsets=True),
        }
    )
    sys.stdout.flush()
    os._exit(0)  # the clients are not closed
