"""A group member with aiokafka; see `lines.py`."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError

from tests.support.groups.programs.lines import MOST_RECORDS, Lines

ASSIGNORS = {"range": RangePartitionAssignor}


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Reports the rebalance callbacks.

    aiokafka joins again in a task of its own. The callback waits for a running commit, so that the offsets are committed, and reported, while
    the member still owns the partitions.
    """

    def __init__(self, lines: Lines, commits: asyncio.Lock) -> None:
        self.lines = lines
        self.commits = commits

    async def on_partitions_assigned(self, assigned: Any) -> None:
        self.lines.assigned((p.topic, p.partition) for p in assigned)

    async def on_partitions_revoked(self, revoked: Any) -> None:
        async with self.commits:
            self.lines.revoked((p.topic, p.partition) for p in revoked)


async def commit(consumer: AIOKafkaConsumer, lines: Lines) -> None:
    positions = dict(lines.positions)
    try:
        if positions:
            await consumer.commit({TopicPartition(*p): offset for p, offset in positions.items()})
        lines.committed(positions)
    except (KafkaError, ValueError) as error:
        lines.emit("commit failed", error=repr(error))


async def main() -> None:
    lines = Lines()
    commits = asyncio.Lock()
    start = lines.start
    consumer = AIOKafkaConsumer(
        bootstrap_servers=start["bootstrap"],
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
    consumer.subscribe(start["topics"], listener=Listener(lines, commits))
    await consumer.start()
    while True:
        for records in (await consumer.getmany(timeout_ms=100, max_records=MOST_RECORDS)).values():
            lines.records((record.topic, record.partition, record.offset) for record in records)
        match lines.next_command():
            case {"command": "subscribe", "topics": topics}:
                consumer.subscribe(topics, listener=Listener(lines, commits))
            case {"command": "commit"}:
                async with commits:
                    await commit(consumer, lines)
            case {"command": "stop"}:
                break
    await consumer.stop()
    lines.emit("stopped")


asyncio.run(main())
