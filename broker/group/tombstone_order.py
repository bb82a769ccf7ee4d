"""The order of the tombstones of offsets in a batch of `__consumer_offsets` (GO-9): that of the hash tables of Kafka's group coordinators.

This module does not depend on groups or wire messages. Corresponds to `OffsetMetadataManager` and to `GroupMetadata.removeOffsets`.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from typing import Any

from kafkaproto.broker.group.offsets import PartitionKey
from kafkaproto.broker.group.partition_table import PartitionTable
from kafkaproto.broker.group.pending_offsets import PendingOffsets
from kafkaproto.hash_order import partition_hash_bits, scala_map_order, scala_table_order


def order_of_all(offsets: PartitionTable[Any], pending: PendingOffsets, *, is_java: bool) -> list[PartitionKey]:
    """Return the partitions of a group that is deleted, in the order of their tombstones.

    pending: the offsets in open transactions. is_java: whether the broker emulates Kafka's group coordinator in Java, otherwise the one in Scala.
    With the one in Java, partitions that have only a pending offset come last. The one in Scala writes no tombstones for them.
    """
    if not is_java:
        return _in_scala_map(offsets.in_scala_order())
    return [*offsets.in_table_order(), *(key for key in pending.partitions() if key not in offsets)]


def order_of_expired(
    keys: Collection[PartitionKey], offsets: PartitionTable[Any], *, is_java: bool
) -> list[PartitionKey]:
    """Return the partitions whose offsets have expired, in the order of their tombstones. keys: these partitions, in any order.

    offsets: all offsets of the group. is_java: whether the broker emulates Kafka's group coordinator in Java, otherwise the one in Scala.
    """
    if len(keys) < 2:
        return list(keys)
    if is_java:
        expired = set(keys)
        return [key for key in offsets.in_table_order() if key in expired]
    return _in_scala_map(scala_table_order(keys, partition_hash_bits))


def order_of(
    keys: Iterable[PartitionKey],
    committed: Collection[PartitionKey],
    pending: Container[PartitionKey],
    *,
    is_java: bool,
) -> list[PartitionKey]:
    """Return those partitions in `keys` that have offsets to delete, in the order of their tombstones.

    With Kafka's group coordinator in Java, this is the order of `keys`. With the one in Scala, it is the order of an immutable `Map` of Scala, and
    partitions that have offsets only in open transactions are left out: that coordinator writes no tombstones for them.

    committed: the partitions with committed offsets to delete, in the order of `keys`. pending: the partitions with offsets in open transactions.
    is_java: whether the broker emulates the coordinator in Java, otherwise the one in Scala.
    """
    if is_java:
        return [key for key in keys if key in committed or key in pending]
    return _in_scala_map(committed)


def _in_scala_map(keys: Iterable[PartitionKey]) -> list[PartitionKey]:
    return scala_map_order(keys, partition_hash_bits)
