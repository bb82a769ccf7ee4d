"""Records into and out of a cluster without a client or a socket, for the preparation and the checks of tests.

Records go through `ReplicaManager.append`, as those of a Produce request do: same checks, offsets, epochs and wake-ups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.error_codes import ErrorCode
from kafkaproto.partitioner import partition_of_key
from kafkaproto.records.batch import NewRecord, build_batch, records
from kafkaproto.records.compression import Compression

Value = str | bytes | None
Given = Value | tuple[Value, Value] | NewRecord


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record as it lies in a log. timestamp_ms: of the record, or of the append for LogAppendTime topics."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = field(default=())


def as_bytes(value: Value) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def as_record(given: Given, now_ms: int) -> NewRecord:
    """A value, a (key, value) pair or a NewRecord; text is encoded as UTF-8."""
    if isinstance(given, NewRecord):
        return given
    if isinstance(given, tuple) and len(given) != 2:
        raise TypeError(
            f"{given!r} is no record; allowed are a value, a (key, value) pair, or a NewRecord that has headers"
        )
    key, value = given if isinstance(given, tuple) else (None, given)
    return NewRecord(as_bytes(value), as_bytes(key), now_ms)


def leader_of(cluster: Cluster, topic: str, index: int) -> Partition:
    """Return the leader of a partition. Raises KafkaError if the partition does not exist or has no leader."""
    state = cluster.controller.image.partition(topic, index)
    if state is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
    if state.leader < 0:
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{index} has no leader.")
    return cluster.nodes[state.leader].replicas.partitions[(topic, index)]


def produce(
    cluster: Cluster, topic: str, given: Sequence[Given], partition: int | None, compression: Compression
) -> list[tuple[int, int]]:
    """Append as acks=1, one batch per partition. Returns (partition, offset) of each record, in the order given.

    partition None: by key as Kafka's clients do, and in turn for records without a key. The topic is created when it is not there.
    """
    if isinstance(given, str | bytes):
        raise TypeError(f"{given!r} is one value; give a list of records, for example [{given!r}]")
    if topic not in cluster.controller.image.topics:
        cluster.auto_create(topic)
    count = len(cluster.controller.image.topics[topic].partitions)
    now_ms = cluster.actions.now_ms
    chosen: dict[int, list[int]] = {}
    made = [as_record(one, now_ms) for one in given]
    for i, record in enumerate(made):
        index = partition
        if index is None:
            index = i % count if record.key is None else partition_of_key(record.key, count)
        chosen.setdefault(index, []).append(i)
    places: list[tuple[int, int]] = [(0, 0)] * len(made)
    for index, numbers in chosen.items():
        base = _append(cluster, leader_of(cluster, topic, index), [made[i] for i in numbers], compression)
        for delta, i in enumerate(numbers):
            places[i] = (index, base + delta)
    return places


def _append(cluster: Cluster, leader: Partition, batch: Iterable[NewRecord], compression: Compression) -> int:
    data = memoryview(bytearray(build_batch(batch, compression=compression)))
    return cluster.nodes[leader.broker_id].replicas.append(leader, data, cluster.actions.now_ms).base_offset


def stored(cluster: Cluster, topic: str, partition: int | None) -> list[StoredRecord]:
    """All records of a topic, or of one partition, as its leader holds them, in order of partition and offset."""
    known = cluster.controller.image.topics.get(topic)
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic}.")
    wanted = range(len(known.partitions)) if partition is None else [partition]
    return [record for index in wanted for record in _stored_in(leader_of(cluster, topic, index))]


def _stored_in(leader: Partition) -> list[StoredRecord]:
    log = leader.log
    found = []
    for position, header in log.batches(log.log_start_offset):
        if header.is_control:
            continue
        batch = log.store.read(position, header.size)
        found += [
            StoredRecord(leader.topic, leader.index, r.offset, r.timestamp, r.key, r.value, r.headers)
            for r in records(batch)
            if r.offset >= log.log_start_offset
        ]
    return found
