"""The order of the tombstones of offsets in a batch of `__consumer_offsets` (GO-9): that of the hash tables of Kafka's group coordinators.

This module does not depend on wire messages. Corresponds to `OffsetMetadataManager` and to `GroupMetadata.removeOffsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from typing import Any

from kafkaproto.broker.group.migration import AnyGroup
from kafkaproto.broker.group.offsets import PartitionKey
from kafkaproto.broker.group.partition_table import PartitionTable
from kafkaproto.broker.group.pending_offsets import PendingGroups, PendingOffsets
from kafkaproto.hash_order import (
    long_hash_bits,
    partition_hash_bits,
    scala_map_order,
    scala_table_order,
    timeline_order,
)
from kafkaproto.partitioner import java_hash_bits


def order_of_all(
    offsets: PartitionTable[Any], pending: PendingOffsets, *, is_java: bool, is_release_4: bool
) -> list[PartitionKey]:
    """Return the partitions of a group that is deleted, in the order of their tombstones.

    Kafka's group coordinator in Scala writes no tombstones for partitions that have only pending offsets. The one in Java writes them last:
    from Kafka 4.0 on, one for each such partition; before, one for each producer that has a pending offset of the partition.

    offsets: the committed offsets. pending: the pending offsets, which are in open transactions. is_java: whether the broker emulates the coordinator
    in Java, otherwise the one in Scala. is_release_4: whether it emulates Kafka 4.0 or later.
    """
    if not is_java:
        return _in_scala_map(offsets.in_scala_order())
    keys = [*offsets.in_table_order()]
    if is_release_4:
        keys += [key for key in PartitionTable(pending.partitions()).in_table_order() if key not in offsets]
    else:
        for producer_id in timeline_order(pending, long_hash_bits):
            keys += [key for key in pending.in_table_order(producer_id) if key not in offsets]
    return keys


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
    committed: Container[PartitionKey],
    pending: Container[PartitionKey],
    *,
    is_java: bool,
) -> list[PartitionKey]:
    """Return those partitions in `keys` that have offsets to delete, in the order of their tombstones.

    With Kafka's group coordinator in Java, this is the order of `keys`, with a partition as often as `keys` has it. With the one in Scala, it is the
    order of an immutable `Map` of Scala, and partitions that have offsets only in open transactions are left out: that coordinator writes no
    tombstones for them.

    committed: the partitions with committed offsets. pending: the partitions with offsets in open transactions. is_java: whether the broker emulates
    the coordinator in Java, otherwise the one in Scala.
    """
    if is_java:
        return [key for key in keys if key in committed or key in pending]
    return _in_scala_map(key for key in keys if key in committed)


def order_of_topics(topics: Collection[str], offsets: PartitionTable[Any], *, is_java: bool) -> list[PartitionKey]:
    """Return the partitions of deleted topics for which a group has committed offsets, in the order of their tombstones.

    topics: the names of the topics, in the order in which Kafka's brokers process them. is_java: whether the broker emulates Kafka's group
    coordinator in Java, otherwise the one in Scala. With the one in Java, the topics have the order of its table of topics.
    """
    keys = [key for key in offsets if key[0] in topics]
    if len(keys) < 2:
        return keys
    if is_java:
        return _by_topic(key for key in offsets.in_table_order() if key[0] in topics)
    places = {topic: place for place, topic in enumerate(topics)}
    return _in_scala_map(sorted(keys, key=lambda key: (places[key[0]], key[1])))


def pending_of_topics(
    topics: Collection[str],
    pending_groups: PendingGroups,
    group_of: Callable[[str], AnyGroup | None],
    partition_of: Callable[[str], int],
) -> list[tuple[AnyGroup, list[PartitionKey]]]:
    """Return the pending offsets of deleted topics as (group, partitions), in the order of the tombstones of Kafka's group coordinator in Java.

    This coordinator has a table of producers for each partition of `__consumer_offsets` and, for each producer, a table of groups. topics: the names
    of the topics. pending_groups: the groups with pending offsets, by producer. group_of: a function that returns the group with an id, None if there
    is none. partition_of: a function that returns the partition of `__consumer_offsets` that stores the group with an id.
    """
    tables: dict[int, dict[int, list[str]]] = {}
    for producer_id in pending_groups:
        for group_id in pending_groups.of(producer_id):
            tables.setdefault(partition_of(group_id), {}).setdefault(producer_id, []).append(group_id)
    pending = []
    for table in tables.values():
        for producer_id in timeline_order(table, long_hash_bits):
            for group_id in timeline_order(table[producer_id], java_hash_bits):
                group = group_of(group_id)
                if group is not None:
                    keys = group.pending_offsets.in_table_order(producer_id)
                    pending.append((group, _by_topic(key for key in keys if key[0] in topics)))
    return pending


def _by_topic(keys: Iterable[PartitionKey]) -> list[PartitionKey]:
    """Return partitions topic by topic, in the order of the topics in `keys`, and the partitions of each topic by index."""
    indexes: dict[str, list[int]] = {}
    for topic, index in keys:
        indexes.setdefault(topic, []).append(index)
    return [(topic, index) for topic in indexes for index in sorted(indexes[topic])]


def _in_scala_map(keys: Iterable[PartitionKey]) -> list[PartitionKey]:
    return scala_map_order(keys, partition_hash_bits)
