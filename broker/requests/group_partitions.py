"""The partitions of `__consumer_offsets` to which the groups of a request belong, for requests that name several groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafkaproto.broker.group.placement import by_partition

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node


def partition_of(node: Node, group_id: str) -> int:
    """Return the partition of `__consumer_offsets` that stores a group, or that will store it once the topic exists."""
    return node.groups.ownership.partition_of(group_id, node.config["offsets.topic.num.partitions"])


def ids_by_partition(node: Node, group_ids: Iterable[str]) -> list[list[str]]:
    """Return `group_ids` as one list for each partition of `__consumer_offsets` that stores any of the groups.

    The lists have the order in which Kafka's group coordinator in Java returns their results (GO-36).
    """
    return by_partition(group_ids, lambda group_id: partition_of(node, group_id))


def in_partition_order(node: Node, group_ids: Iterable[str]) -> list[str]:
    """Return group ids in the order in which Kafka's group coordinator in Java returns their results (GO-36). Repeated ids stay."""
    return [group_id for ids in ids_by_partition(node, group_ids) for group_id in ids]
