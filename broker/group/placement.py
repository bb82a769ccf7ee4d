"""Which broker speaks for a group, and whether this one may. Kafka's `validateGroupStatus`.

Knows no group: the answer depends on the name and on who leads the internal topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode


class Cluster(Protocol):
    """As much of a cluster as is needed here."""

    def coordinator_of(self, group_id: str) -> int:
        """The broker that coordinates the group; raises KafkaError COORDINATOR_NOT_AVAILABLE while there is none (M-8)."""
        ...


class Placed(Protocol):
    """A partition, as far as its leader."""

    @property
    def leader(self) -> int: ...


class InternalTopic(Protocol):
    """An internal topic, as far as its partitions."""

    @property
    def partitions(self) -> Sequence[Placed]: ...


class InternalTopics(Protocol):
    """As much of a controller as is needed here."""

    def ensure_internal(self, name: str) -> InternalTopic:
        """The internal topic `name`, created on first use; raises KafkaError if it cannot be."""


def coordinator_of(group_id: str, topics: InternalTopics) -> int:
    """Return the broker that coordinates a group: the leader of its partition of __consumer_offsets (M-8).

    Raises KafkaError 15 while there is none.
    """
    try:
        partitions = topics.ensure_internal("__consumer_offsets").partitions
    except KafkaError:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) from None
    leader = partitions[java_hash(group_id) % len(partitions)].leader
    if leader < 0:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return leader


def java_hash(text: str) -> int:
    """Return `String.hashCode()` of Java, made non-negative as Kafka's `Utils.abs` does; over UTF-16 units."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(units), 2):
        value = (value * 31 + int.from_bytes(units[i : i + 2], "big")) & 0xFFFFFFFF
    return value & 0x7FFFFFFF


def refusal(cluster: Cluster, broker_id: int, group_id: str) -> int:
    """0 if broker `broker_id` speaks for the group; else COORDINATOR_NOT_AVAILABLE or NOT_COORDINATOR.

    That a group id must not be empty is each request's own matter: offsets may be kept for the empty one.
    """
    try:
        coordinator = cluster.coordinator_of(group_id)
    except KafkaError as error:
        return error.error_code
    return ErrorCode.NONE if coordinator == broker_id else ErrorCode.NOT_COORDINATOR
