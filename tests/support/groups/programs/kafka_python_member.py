"""A group member with kafka-python; see `lines.py`."""

from __future__ import annotations

from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaConnectionError, KafkaError

from tests.support.groups.programs.lines import MOST_RECORDS, Lines, Partition

ASSIGNORS = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}

POLL_MS = 700
"""The timeout of a poll in ms: longer than a rebalance of these tests, to avoid a bug of kafka-python 3.0.12.

If a poll times out while a consumer joins again after its subscription has changed, the consumer sometimes sends no more heartbeats. When its
session has ended, it does not notice that other members get its partitions.
"""


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Reports the rebalance callbacks.

    kafka-python keeps the position of a partition that is revoked and assigned again in the same rebalance.
    """

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.positions: dict[Partition, int] = {}

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.lines.assigned(((p.topic, p.partition) for p in assigned), self.positions)
        self.positions = {}

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.positions = dict(self.lines.positions)
        self.lines.revoked((p.topic, p.partition) for p in revoked)

    def on_partitions_lost(self, lost: Any) -> None:
        self.lines.revoked(((p.topic, p.partition) for p in lost), "lost")


def poll(consumer: KafkaConsumer) -> dict[TopicPartition, list[Any]]:
    """Return the next records, or nothing if kafka-python 3.0.12 raises an error because no broker accepts connections."""
    try:
        fetched: dict[TopicPartition, list[Any]] = consumer.poll(timeout_ms=POLL_MS, max_records=MOST_RECORDS)
    except KafkaConnectionError:
        return {}
    return fetched


def main() -> None:
    lines = Lines()
    start = lines.start
    consumer = KafkaConsumer(
        bootstrap_servers=start["bootstrap"].split(","),
        client_id=start["member"],
        group_id=start["group"],
        group_instance_id=start["instance_id"],
        partition_assignment_strategy=[ASSIGNORS[start["assignor"]]],
        session_timeout_ms=start["session_timeout_ms"],
        heartbeat_interval_ms=300,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        metadata_max_age_ms=2_000,
    )
    consumer.subscribe(start["topics"], listener=Listener(lines))
    while True:
        for records in poll(consumer).values():
            lines.records((record.topic, record.partition, record.offset) for record in records)
        match lines.next_command():
            case {"command": "subscribe", "topics": topics}:
                consumer.subscribe(topics, listener=Listener(lines))
            case {"command": "commit"}:
                positions = dict(lines.positions)
                offsets = {
                    TopicPartition(*partition): OffsetAndMetadata(offset, "", -1)
                    for partition, offset in positions.items()
                }
                try:
                    if offsets:
                        consumer.commit(offsets, timeout_ms=5_000)
                    lines.committed(positions)
                except KafkaError as error:
                    lines.emit("commit failed", error=repr(error))
            case {"command": "stop"}:
                break
    consumer.close()
    lines.emit("stopped")


main()
