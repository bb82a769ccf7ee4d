"""A group member with confluent-kafka (librdkafka); see `lines.py`."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.clients.groups.programs.lines import MOST_RECORDS, Lines


def main() -> None:
    lines = Lines()
    start = lines.start
    settings: dict[str, Any] = {
        "bootstrap.servers": start["bootstrap"],
        "client.id": start["member"],
        "group.id": start["group"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "group.protocol": start["protocol"],
    }
    if start["protocol"] == "classic":
        settings |= {
            "partition.assignment.strategy": start["assignor"],
            "session.timeout.ms": start["session_timeout_ms"],
            "heartbeat.interval.ms": 500,
        }
    else:
        settings["group.remote.assignor"] = start["assignor"]
    if start["instance_id"] is not None:
        settings["group.instance.id"] = start["instance_id"]
    consumer = Consumer(settings)

    def subscribe(topics: list[str]) -> None:
        consumer.subscribe(
            topics,
            on_assign=lambda _, partitions: lines.assigned((p.topic, p.partition) for p in partitions),
            on_revoke=lambda _, partitions: lines.revoked((p.topic, p.partition) for p in partitions),
            on_lost=lambda _, partitions: lines.revoked(((p.topic, p.partition) for p in partitions), "lost"),
        )

    subscribe(start["topics"])
    while True:
        for _ in range(MOST_RECORDS):
            message = consumer.poll(0.05)
            if message is None:
                break
            if message.error() is None:
                lines.records([(message.topic(), message.partition(), message.offset())])
        match lines.next_command():
            case {"command": "subscribe", "topics": topics}:
                subscribe(topics)
            case {"command": "commit"}:
                positions = dict(lines.positions)
                offsets = [TopicPartition(*partition, offset) for partition, offset in positions.items()]
                try:
                    if offsets:
                        for place in consumer.commit(offsets=offsets, asynchronous=False) or ():
                            if place.error is not None:
                                raise KafkaException(place.error)
                    lines.committed(positions)
                except KafkaException as error:
                    lines.emit("commit failed", error=str(error))
            case {"command": "stop"}:
                break
    consumer.close()
    lines.emit("stopped")


main()
