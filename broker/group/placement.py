"""Decides which broker coordinates a group or transactional id: the leader of its partition of an internal topic (M-8, TX-1).

This module does not depend on groups: the result depends on the id and on the leaders of the internal topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import grouped_order, partition_hash_bits
from kafkaproto.partitioner import java_hash

OFFSETS_TOPIC = "__consumer_offsets"


class Placed(Protocol):
    """Interface of a partition of an internal topic, such as `__consumer_offsets`: gives the id of the broker that leads it."""

    @property
    def leader(self) -> int: ...


class InternalTopic(Protocol):
    """Interface of an internal topic, such as `__consumer_offsets`: gives its partitions by index."""

    @property
    def partitions(self) -> Sequence[Placed]: ...


class InternalTopics(Protocol):
    """Interface of the controller: returns an internal topic, and creates it if it is missing."""

    def ensure_internal(self, name: str) -> InternalTopic:
        """Return the internal topic `name`, creating it if it does not exist. Raises KafkaError if it cannot be created."""


def coordinator_of(key: str, topic: str, topics: InternalTopics, partition_count: int = 0) -> int:
    """Return the id of the broker that coordinates the group or transactional id `key`: the leader of its partition of `topic`.

    Creates the topic if it does not exist. Raises KafkaError COORDINATOR_NOT_AVAILABLE (15) if that fails, or while the partition has no leader.
    partition_count: how many partitions of the topic are used, from partition 0 on; 0 for all. As in Kafka, a broker does not use partitions that
    were added to the topic after the broker had started (M-8).
    """
    try:
        placed = topics.ensure_internal(topic)
    except KafkaError:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) from None
    leader = placed.partitions[java_hash(key) % (partition_count or len(placed.partitions))].leader
    if leader < 0:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return leader


def by_partition(group_ids: Iterable[str], partition_of: Callable[[str], int]) -> list[list[str]]:
    """Return lists of group ids, one list for each partition of `__consumer_offsets`, in the order of Kafka's group coordinator in Java (GO-36).

    Kafka collects the ids in a hash table whose keys are the partitions; its order is the order of the lists. The ids of one partition keep their
    order, and repeated ids stay. partition_of: a function that returns the partition of a group.
    """
    indexes = []
    ids_of: dict[int, list[str]] = {}
    for group_id in group_ids:
        indexes.append(partition_of(group_id))
        ids_of.setdefault(indexes[-1], []).append(group_id)
    keys = [(OFFSETS_TOPIC, index) for index in indexes]
    return [ids_of[index] for _, index in grouped_order(keys, partition_hash_bits)]
