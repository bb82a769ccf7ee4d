"""The topics that a consumer group subscribes to: ids, partitions and racks, and the hash that Kafka 4.1 and later store instead of the topics.

Corresponds to `TopicMetadata` and `computeSubscriptionMetadata` (3.9), and to `Utils.computeTopicHash` and `computeGroupHash` (KIP-1101).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from kafkaproto.broker.group.settings import ConsumerGroupSettings
from kafkaproto.hash_order import SMALLEST_TABLE, copy_order, java_order, timeline_order
from kafkaproto.hash_table import JavaTable, map_copy_table, table_for
from kafkaproto.partitioner import java_hash_bits
from kafkaproto.xxh3 import xxh3_64

_TOPIC_HASH_VERSION = b"\x00"
_INT, _LONG = struct.Struct("<i"), struct.Struct("<Q")
_CACHED_HASHES = 1024


class Partition(Protocol):
    """Interface of a partition: gives the ids of the brokers that have a replica of it."""

    @property
    def replicas(self) -> Sequence[int]: ...


class Topic(Protocol):
    """Interface of a topic of the cluster: gives its id and its partitions."""

    @property
    def topic_id(self) -> bytes: ...

    @property
    def partitions(self) -> Sequence[Partition]: ...


class SubscribedTopic(NamedTuple):
    """A topic to which a consumer group subscribes, as it was when the group's epoch started.

    racks: for each partition the sorted racks of its replicas; empty if the brokers have no racks, or if the emulated release of Kafka ignores them.
    """

    topic_id: bytes
    partition_count: int
    racks: tuple[tuple[str, ...], ...] = ()


class ClusterTopics:
    """The topics of the cluster, as the groups of one broker see them.

    image: a function that returns the topics by name; after each change of a topic, it returns a new mapping. rack_of: a function that returns the
    rack of a broker.
    """

    def __init__(
        self,
        image: Callable[[], Mapping[str, Topic]] = dict,
        rack_of: Callable[[int], str | None] = lambda broker_id: None,
        settings: ConsumerGroupSettings | None = None,
    ) -> None:
        settings = settings or ConsumerGroupSettings()
        self.image = image
        self._rack_of = rack_of
        self.stores_hash = settings.is_release_4_1
        """Whether brokers of the emulated Kafka release store a hash of a group's topics instead of the topics (GO-8)."""
        self._has_racks = settings.is_release_4_1 or not settings.is_release_4
        self._repeats_racks = settings.is_release_4_1

    def subscribed(self, names: Iterable[str]) -> dict[str, SubscribedTopic]:
        """Return the existing topics among `names`, by name."""
        image = self.image()
        return {
            name: SubscribedTopic(image[name].topic_id, len(image[name].partitions), self._racks(image[name]))
            for name in names
            if name in image
        }

    def hash_of(self, topics: Mapping[str, SubscribedTopic]) -> int:
        """Return the hash of a group's topics as a signed 64-bit number; 0 if the emulated Kafka release stores no hash."""
        return _group_hash(topics) if self.stores_hash else 0

    def _racks(self, topic: Topic) -> tuple[tuple[str, ...], ...]:
        if not self._has_racks:
            return ()
        racks = tuple(self._racks_of(partition.replicas) for partition in topic.partitions)
        return racks if any(racks) else ()

    def _racks_of(self, replicas: Sequence[int]) -> tuple[str, ...]:
        racks = [rack for rack in map(self._rack_of, replicas) if rack is not None]
        return tuple(sorted(racks if self._repeats_racks else set(racks), key=_java_order))


def _group_hash(topics: Mapping[str, SubscribedTopic]) -> int:
    if not topics:
        return 0
    hashes = b"".join(_LONG.pack(_topic_hash(name, topics[name])) for name in sorted(topics))
    unsigned = xxh3_64(hashes)
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


@lru_cache(_CACHED_HASHES)
def _topic_hash(name: str, topic: SubscribedTopic) -> int:
    """Return the hash of a topic (KIP-1101). The halves of the topic id are hashed as little-endian numbers."""
    parts = [_TOPIC_HASH_VERSION, topic.topic_id[7::-1], topic.topic_id[:7:-1], _text(name)]
    parts.append(_INT.pack(topic.partition_count))
    for index in range(topic.partition_count):
        parts.append(_INT.pack(index))
        for rack in topic.racks[index] if topic.racks else ():
            parts += [_INT.pack(_java_length(rack)), _text(rack)]
    return xxh3_64(b"".join(parts))


def _text(text: str) -> bytes:
    """Encode a text as the topic hash needs it (hash4j's `putString`): its UTF-16 code units, then their number."""
    return text.encode("utf-16-le") + _INT.pack(_java_length(text))


def _java_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _java_order(text: str) -> bytes:
    return text.encode("utf-16-be")


def in_record_order(
    topics: Mapping[str, SubscribedTopic], names: Collection[str], *, are_new: bool
) -> dict[str, SubscribedTopic]:
    """Return subscribed topics, by name, in the order in which Kafka before 4.1 stores them (GO-8).

    Kafka copies the names from a `TimelineHashMap` to a `HashMap`, adds new names to this, and adds the existing topics to another `HashMap`. topics:
    the existing topics. names: all names that members subscribe to. are_new: whether all names are new, because the group has only one member.
    """
    table = JavaTable(java_hash_bits, SMALLEST_TABLE if are_new else map_copy_table(len(names)))
    for name in copy_order(sorted(names)) if are_new else timeline_order(names, java_hash_bits):
        if are_new:
            table.add_first(name)
        else:
            table.add(name)
    existing = (name for name in table if name in topics)
    return {name: topics[name] for name in java_order(existing, java_hash_bits, table_for(len(names)))}
