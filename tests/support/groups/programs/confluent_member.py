"""A group member with confluent-kafka (librdkafka); see `lines.py`."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.support.groups.programs.lines import MOST_RECORDS, Lines


def settings(start: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a consumer for the fields of the command `start`."""
    common: dict[str, Any] = {
        "bootstrap.servers": start["bootstrap"],
        "client.id": start["member"],
        "group.id": start["group"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "group.protocol": start["protocol"],
    }
    if start["instance_id"] is not None:
        common["group.instance.id"] = start["instance_id"]
    if start["protocol"] == "consumer":
        return {**common, "group.remote.assignor": start["assignor"]}
    return {
        **common,
        "partition.assignment.strategy": start["assignor"],
        "session.timeout.ms": start["session_timeout_ms"],
        "heartbeat.interval.ms": 300,
    }


def commit(consumer: Consumer, lines: Lines) -> None:
    positions = dict(lines.positions)
    offsets = [TopicPartition(*partition, offset) for partition, offset in positions.items()]
    try:
        places = consumer.commit(offsets=offsets, asynchronous=False) if offsets else []
    except KafkaException as error:
        lines.emit("commit failed", error=str(error))
        return
    errors = [str(place.error) for place in places or () if place.error is not None]
    if errors:
        lines.emit("commit failed", error=errors[0])
    else:
        lines.committed(positions)


def main() -> None:
    lines = Lines()
    consumer = Consumer(settings(lines.start))

    def subscribe(topics: list[str]) -> None:
        consumer.subscribe(
            topics,
            on_assign=lambda _, partitions: lines.assigned((p.topic, p.partition) for p in partitions),
            on_revoke=lambda _, partitions: lines.revoked((p.topic, p.partition) for p in partitions),
            on_lost=lambda _, partitions: lines.revoked(((p.topic, p.partition) for p in partitions), "lost"),
        )

    subscribe(lines.start["topics"])
    while True:
        for _ in range(MOST_RECORDS):
            message = consumer.poll(0.05)
            if message is None:
                break
            if message.error() is None:
                topic, partition, offset = message.topic(), message.partition(), message.offset()
                assert topic is not None and partition is not None and offset is not None
                lines.records([(topic, partition, offset)])
        match lines.next_command():
            case {"command": "subscribe", "topics": topics}:
                subscribe(topics)
            case {"command": "commit"}:
                commit(consumer, lines)
            case {"command": "stop"}:
                break
    consumer.close()
    lines.emit("stopped")


main()
