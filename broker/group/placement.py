"""Decides which broker coordinates a group: the leader of the group's partition of `__consumer_offsets` (M-8).

This module does not depend on groups: the result depends on the group id and on the leaders of the internal topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode
from kafkaproto.partitioner import java_hash

OFFSETS_TOPIC = "__consumer_offsets"


class Placed(Protocol):
    """Interface of a partition: its leader, which is all that this module uses."""

    @property
    def leader(self) -> int: ...


class InternalTopic(Protocol):
    """Interface of an internal topic: its partitions, which are all that this module uses."""

    @property
    def partitions(self) -> Sequence[Placed]: ...


class InternalTopics(Protocol):
    """Interface of a controller: the part that this module uses."""

    def ensure_internal(self, name: str) -> InternalTopic:
        """Return the internal topic `name`, creating it if it does not exist. Raises KafkaError if it cannot be created."""


def coordinator_of(group_id: str, topics: InternalTopics) -> int:
    """Return the broker that coordinates a group: the leader of the group's partition of __consumer_offsets (M-8).

    Creates the topic if it does not exist. Raises KafkaError 15 (COORDINATOR_NOT_AVAILABLE) if that fails, or while the partition has no
    leader.
    """
    try:
        partitions = topics.ensure_internal(OFFSETS_TOPIC).partitions
    except KafkaError:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) from None
    leader = partitions[java_hash(group_id) % len(partitions)].leader
    if leader < 0:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return leader
