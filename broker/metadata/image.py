"""The cluster's metadata: one immutable image per change (`MetadataImage` in Kafka).

An image holds brokers, racks, listeners, topics, ids, leaders and in-sync replicas. This module does not depend on logs, connections or wire
messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkaproto.broker.metadata.scram import Credentials

NO_LEADER = -1
NO_TOPIC_ID = bytes(16)
TRANSACTION_TOPIC = "__transaction_state"
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
"""The name of the metadata log of the controllers. The metadata image of the cluster does not list it as a topic."""
SHARE_GROUP_TOPIC = "__share_group_state"
COORDINATOR_TOPICS = frozenset({"__consumer_offsets", TRANSACTION_TOPIC})
INTERNAL_TOPICS = COORDINATOR_TOPICS | {SHARE_GROUP_TOPIC}
"""Topics that clients cannot write. A client can create `SHARE_GROUP_TOPIC`, but nothing uses it here, because share groups are not served."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition in the metadata: its replicas in order of preference, its in-sync replicas and its leader, -1 for none. All are broker ids.

    leader_epoch grows with every change of leader (M-6), partition_epoch with every change. During a reassignment, `replicas` contains both the
    replicas that are being added (`adding`) and those that will be removed (`removing`). `eligible`: the eligible leader replicas. `last_known`:
    the last leader if `isr` is empty, otherwise an empty tuple. Both are empty in Kafka releases without eligible leader replicas (AD-7).
    """

    index: int
    """The number of the partition in its topic, from 0."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    eligible: tuple[int, ...] = ()
    last_known: tuple[int, ...] = ()

    @property
    def is_reassigned(self) -> bool:
        """Return whether a reassignment of the partition is in progress."""
        return bool(self.adding or self.removing)


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    topic_id: bytes
    partitions: tuple[PartitionState, ...]
    configs: Mapping[str, str] = field(default_factory=dict)

    @property
    def internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)


@dataclass(frozen=True, slots=True)
class BrokerState:
    """One broker in the metadata. listeners: maps listener names to the advertised (host, port).

    alive: False while the broker is fenced. registered: False after the broker was unregistered, until it starts again. Such a broker is not alive.
    """

    broker_id: int
    rack: str | None
    listeners: Mapping[str, tuple[str, int]]
    alive: bool = True
    registered: bool = True


@dataclass(frozen=True, slots=True)
class Image:
    """The metadata of a cluster at one time.

    topic_names: maps topic ids to names. scram: maps (user, mechanism) to credentials. features: maps features to their finalized levels, without
    levels of 0 (KIP-584). offset: the number of changes before this image, which stands for the offset in Kafka's metadata log.
    """

    cluster_id: str
    brokers: Mapping[int, BrokerState]
    topics: Mapping[str, Topic]
    topic_names: Mapping[bytes, str]
    features: Mapping[str, int]
    offset: int = 0
    scram: Credentials = field(default_factory=lambda: MappingProxyType({}))

    @staticmethod
    def empty(cluster_id: str, features: Mapping[str, int]) -> Image:
        none: Mapping[str, Topic] = MappingProxyType({})
        return Image(cluster_id, MappingProxyType({}), none, MappingProxyType({}), features)

    def partition(self, topic: str, index: int) -> PartitionState | None:
        topic_state = self.topics.get(topic)
        if topic_state is None or not 0 <= index < len(topic_state.partitions):
            return None
        return topic_state.partitions[index]

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def missing(self, names: Iterable[str]) -> set[str]:
        """Return the items of `names` that are not names of existing topics."""
        return {name for name in names if name not in self.topics}

    def is_alive(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.alive

    def alive_on(self, listener: str) -> list[BrokerState]:
        """Return the running brokers that have an address on `listener` (M-5)."""
        return [b for b in self.brokers.values() if b.alive and listener in b.listeners]

    def leader_of(self, topic: str, index: int) -> tuple[int, int]:
        """Return (broker id, leader epoch) of a partition's leader; (-1, -1) if the partition is unknown."""
        state = self.partition(topic, index)
        return (NO_LEADER, -1) if state is None else (state.leader, state.leader_epoch)

    def endpoint(self, broker_id: int, listener: str) -> tuple[int, str, int, str | None] | None:
        """Return (id, host, port, rack) of a broker for clients of `listener`; None if the broker does not run or lacks this listener."""
        broker = self.brokers.get(broker_id)
        if broker is None or not broker.alive or listener not in broker.listeners:
            return None
        host, port = broker.listeners[listener]
        return broker_id, host, port, broker.rack

    def with_brokers(self, brokers: Mapping[int, BrokerState]) -> Image:
        return replace(self, brokers=MappingProxyType(dict(sorted(brokers.items()))))

    def with_topics(self, changed: Mapping[str, Topic], deleted: tuple[str, ...] = ()) -> Image:
        topics = {**self.topics, **changed}
        names = {**self.topic_names, **{t.topic_id: t.name for t in changed.values()}}
        for name in deleted:
            deleted_topic = topics.pop(name, None)
            if deleted_topic is not None:
                names.pop(deleted_topic.topic_id, None)
        return replace(self, topics=MappingProxyType(topics), topic_names=MappingProxyType(names))
