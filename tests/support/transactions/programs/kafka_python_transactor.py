"""Transactions with kafka-python; see `lines.py`."""

from __future__ import annotations

from typing import Any

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.structs import ConsumerGroupMetadata

from tests.support.transactions.programs.lines import (
    FETCH_WAIT_MS,
    PATIENCE_SECONDS,
    Command,
    Fields,
    read_values,
    serve,
)


class Transactor:
    """A producer and the group whose offsets it commits."""

    def __init__(self) -> None:
        self.producer: Any = None
        self.group: str | None = None

    def act(self, command: Command) -> Fields:
        match command["command"]:
            case "init":
                self.init(command)
            case "begin":
                self.producer.begin_transaction()
            case "send":
                value = command["value"].encode()
                self.producer.send(command["topic"], value, partition=command["partition"]).get(PATIENCE_SECONDS)
            case "offsets":
                offsets = {TopicPartition(command["topic"], 0): OffsetAndMetadata(command["offset"], "", -1)}
                self.producer.send_offsets_to_transaction(offsets, ConsumerGroupMetadata(self.group, -1, "", None))
            case "commit":
                self.producer.commit_transaction()
            case "abort":
                self.producer.abort_transaction()
            case "read":
                return {"values": read(command)}
        return {}

    def init(self, command: Command) -> None:
        self.group = command["group"]
        self.producer = KafkaProducer(
            bootstrap_servers=command["bootstrap"].split(","),
            client_id=command["transactional_id"],
            transactional_id=command["transactional_id"],
            transaction_timeout_ms=command["timeout_ms"],
            acks="all",
            max_block_ms=int(PATIENCE_SECONDS * 1000),
        )
        self.producer.init_transactions()


def read(command: Command) -> list[list[str]]:
    values: list[list[str]] = []
    consumer = KafkaConsumer(
        bootstrap_servers=command["bootstrap"].split(","),
        isolation_level=command["isolation"],
        fetch_max_wait_ms=FETCH_WAIT_MS,
    )
    for partition in range(command["partitions"]):
        place = TopicPartition(command["topic"], partition)
        consumer.assign([place])
        consumer.seek(place, 0)
        values.append(read_values(lambda seconds: poll(consumer, seconds), command))
    consumer.close()
    return values


def poll(consumer: Any, seconds: float) -> list[str]:
    """Return the values of the next records, or none after a number of seconds."""
    return [
        record.value.decode()
        for records in consumer.poll(timeout_ms=int(seconds * 1000)).values()
        for record in records
    ]


if __name__ == "__main__":
    serve(Transactor().act, lambda error: type(error).__name__)
