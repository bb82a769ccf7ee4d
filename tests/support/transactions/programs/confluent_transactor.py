"""Transactions with confluent-kafka (librdkafka); see `lines.py`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.support.transactions.programs.lines import (
    FETCH_WAIT_MS,
    PATIENCE_SECONDS,
    Command,
    Fields,
    read_values,
    serve,
)


class Transactor:
    """A producer, and a consumer without a subscription that knows the metadata of its group."""

    def __init__(self) -> None:
        self.producer: Producer | None = None
        self.consumer: Consumer | None = None

    def act(self, command: Command) -> Fields:
        if command["command"] == "init":
            self.init(command)
            return {}
        if command["command"] == "read":
            return {"values": read(command)}
        assert self.producer is not None
        match command["command"]:
            case "begin":
                self.producer.begin_transaction()
            case "send":
                send(self.producer, command)
            case "offsets":
                assert self.consumer is not None
                offsets = [TopicPartition(command["topic"], 0, command["offset"])]
                self.producer.send_offsets_to_transaction(offsets, self.consumer.consumer_group_metadata())
            case "commit":
                self.producer.commit_transaction(PATIENCE_SECONDS)
            case "abort":
                self.producer.abort_transaction(PATIENCE_SECONDS)
        return {}

    def init(self, command: Command) -> None:
        if command["group"] is not None:
            self.consumer = Consumer({"bootstrap.servers": command["bootstrap"], "group.id": command["group"]})
        self.producer = Producer(
            {
                "bootstrap.servers": command["bootstrap"],
                "client.id": command["transactional_id"],
                "transactional.id": command["transactional_id"],
                "transaction.timeout.ms": command["timeout_ms"],
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        self.producer.init_transactions(PATIENCE_SECONDS)


def send(producer: Producer, command: Command) -> None:
    errors: list[Any] = []
    producer.produce(
        command["topic"], command["value"], partition=command["partition"], on_delivery=lambda e, _: errors.append(e)
    )
    # confluent-kafka 2.16 sets the exception of a fatal error while it calls the delivery callback, which CPython reports as SystemError.
    with suppress(SystemError):
        producer.flush(PATIENCE_SECONDS)
    [error] = errors
    if error is not None:
        raise KafkaException(error)


def read(command: Command) -> list[list[str]]:
    consumer = Consumer(
        {
            "bootstrap.servers": command["bootstrap"],
            "group.id": "reads without a group",
            "isolation.level": command["isolation"],
            "enable.auto.commit": False,
            "fetch.wait.max.ms": FETCH_WAIT_MS,
        }
    )
    values: list[list[str]] = []
    for partition in range(command["partitions"]):
        consumer.assign([TopicPartition(command["topic"], partition, 0)])
        values.append(read_values(lambda seconds: poll(consumer, seconds), command))
    consumer.close()
    return values


def poll(consumer: Consumer, seconds: float) -> list[str]:
    """Return the value of the next record, or none after a number of seconds."""
    message = consumer.poll(seconds)
    if message is None:
        return []
    if (error := message.error()) is not None:
        raise KafkaException(error)
    content = message.value()
    assert content is not None
    return [content.decode()]


def name_of(error: Exception) -> str:
    return str(error.args[0].name()) if isinstance(error, KafkaException) else type(error).__name__


if __name__ == "__main__":
    serve(Transactor().act, name_of)
