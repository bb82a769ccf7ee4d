"""Which broker speaks for a group, and whether this one may. Kafka's `validateGroupStatus`.

Knows no group: the answer depends on the name and on who leads the internal topic.
"""

from __future__ import annotations

from typing import Protocol

from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode


class Cluster(Protocol):
    """As much of a cluster as is needed here."""

    def coordinator_of(self, group_id: str) -> int:
        """The broker that coordinates the group; raises KafkaError COORDINATOR_NOT_AVAILABLE while there is none (M-8)."""
        ...


def refusal(cluster: Cluster, broker_id: int, group_id: str) -> int:
    """0 if broker `broker_id` speaks for the group; else COORDINATOR_NOT_AVAILABLE or NOT_COORDINATOR.

    That a group id must not be empty is each request's own matter: offsets may be kept for the empty one.
    """
    try:
        coordinator = cluster.coordinator_of(group_id)
    except KafkaError as error:
        return error.error_code
    return ErrorCode.NONE if coordinator == broker_id else ErrorCode.NOT_COORDINATOR
