"""Reading the records of a cluster without a client or a socket, for assertions in tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import Topic
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.testing.arguments import counted
from kafkaproto.broker.testing.tracebacks import is_hidden
from kafkaproto.error_codes import ErrorCode
from kafkaproto.records.batch import records

__tracebackhide__ = is_hidden


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record in a log. timestamp_ms: when the record was created, or appended if the topic uses LogAppendTime."""

    topic: str
    """The name of the topic."""
    partition: int
    """The number of the partition."""
    offset: int
    """The record's offset in its partition."""
    timestamp_ms: int
    key: bytes | None
    """The key of the record; None if it has none."""
    value: bytes | None
    """The value of the record; None for a tombstone."""
    headers: tuple[tuple[str, bytes | None], ...] = field(default=())
    """The record's headers as (name, value), in order."""


def unknown_topic(cluster: Cluster, topic: str) -> KafkaError:
    """Return the error for an unknown topic. The error lists the existing topics."""
    existing = ", ".join(sorted(cluster.controller.image.topics)) or "none"
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic}. Existing topics: {existing}.")


def unknown_partition(topic: Topic, index: int) -> KafkaError:
    """Return the error for a topic that has no partition `index`; it names the number of partitions."""
    count = counted(len(topic.partitions), "partition")
    return KafkaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {topic.name} has no partition {index}: it has {count}."
    )


def leader_of(cluster: Cluster, topic: str, index: int) -> Partition:
    """Return the leader's replica of a partition. Raises KafkaError if the partition does not exist or has no leader."""
    state = cluster.controller.image.partition(topic, index)
    if state is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"There is no partition {topic}-{index}: the topic does not exist or has fewer partitions.",
        )
    if state.leader < 0:
        raise KafkaError(
            ErrorCode.LEADER_NOT_AVAILABLE,
            f"{topic}-{index} has no leader, because no in-sync replica is running; start a broker that has one.",
        )
    return cluster.nodes[state.leader].replicas.partitions[(topic, index)]


def stored(cluster: Cluster, topic: str, partition: int | None) -> list[StoredRecord]:
    """Return all records of a topic, or of one partition, as its leader holds them, in order of partition and offset.

    partition: None for all partitions. Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) if there is no such topic or partition, and
    LEADER_NOT_AVAILABLE (5) if a partition has no leader.
    """
    topic_state = cluster.controller.image.topics.get(topic)
    if topic_state is None:
        raise unknown_topic(cluster, topic)
    if partition is not None and not 0 <= partition < len(topic_state.partitions):
        raise unknown_partition(topic_state, partition)
    indexes = range(len(topic_state.partitions)) if partition is None else [partition]
    return [record for index in indexes for record in _stored_in(leader_of(cluster, topic, index))]


def _stored_in(leader: Partition) -> list[StoredRecord]:
    log = leader.log
    records_read = []
    for position, header in log.batches(log.log_start_offset):
        if header.is_control:
            continue
        batch = log.store.read(position, header.size)
        records_read += [
            StoredRecord(leader.topic, leader.index, r.offset, r.timestamp, r.key, r.value, r.headers)
            for r in records(batch)
            if r.offset >= log.log_start_offset
        ]
    return records_read
