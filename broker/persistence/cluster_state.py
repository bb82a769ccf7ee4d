"""How a cluster goes on where the last process with its data directory ended, and what it notes down for the next one.

Imported only for a cluster that is given a folder: one without it starts without this and all of `kafkaproto.broker.persistence`. Must never know
asyncio or wire messages, nor how facts are written (`kafkaproto.broker.persistence`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from kafkaproto.broker.config.values import ClusterConfig, ConfigError, as_text, broker_setting, parse
from kafkaproto.broker.group.coordinator import GroupCoordinator
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.log.manager import LogManager
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.log.store import MemoryBudget
from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.metadata.image import Image, PartitionState, Topic
from kafkaproto.broker.node import Node
from kafkaproto.broker.persistence import records as records
from kafkaproto.broker.persistence.directory import DataDirectory
from kafkaproto.broker.persistence.metadata_log import MetadataLog
from kafkaproto.broker.persistence.wal import MetadataRecord
from kafkaproto.broker.quota.entities import QuotaEntity, parse_entity
from kafkaproto.broker.quota.store import ClientQuotaStore
from kafkaproto.broker.replication.stores import Stores
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.events import Events

PRODUCER_ID_BLOCK = 1000
"""How many producer ids are remembered as given at a time, as Kafka's brokers take them from the controller."""


class PersistedState(Protocol):
    """What is remembered of a cluster, and restored. Before `go_on` only the budget and the actions are there."""

    @property
    def budget(self) -> MemoryBudget: ...

    @property
    def actions(self) -> ActionQueue: ...

    @property
    def events(self) -> Events: ...

    @property
    def config(self) -> ClusterConfig: ...

    @property
    def nodes(self) -> Sequence[Node]: ...

    @property
    def controller(self) -> Controller: ...

    @property
    def quota_store(self) -> ClientQuotaStore: ...

    @property
    def groups(self) -> GroupCoordinator: ...

    @property
    def stores(self) -> Stores: ...

    @property
    def log_manager(self) -> LogManager: ...


class ClusterPersistence:
    """`cluster_id`, `life` and `next_producer_id` are there at once, for the cluster to begin with; then comes `go_on`.

    path: the folder. new_cluster_id: who the cluster is if the folder is empty. Raises ConfigError for a folder that cannot be used.

    What is about to change is told to the `remember...` methods first. They raise KafkaError 56 when it cannot be written, and then
    nothing may change. `committed` and `gone` are `kafkaproto.broker.group.commits.GroupKeeper`.
    """

    def __init__(self, cluster: PersistedState, path: str | os.PathLike[str], new_cluster_id: str) -> None:
        directory = DataDirectory(path, new_cluster_id)
        try:
            self.metadata_log = MetadataLog(directory, cluster.budget, self._all_facts, lambda: cluster.actions.now_ms)
        except BaseException:
            directory.close()
            raise
        self._cluster = cluster
        self.cluster_id = directory.cluster_id
        self.life = self.metadata_log.life
        self.topics_left = frozenset(self.metadata_log.left.topics)
        self.next_producer_id = self._producer_ids_end = self.metadata_log.left.next_producer_id
        self._quotas_at_start: dict[tuple[QuotaEntity, str], float] = {}
        self._quotas_restored = False

    # ---- beginning and end ---------------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Make the cluster, which is as at a first start, what it was when the last process ended. All brokers are up again."""
        cluster, metadata_log = self._cluster, self.metadata_log
        left = metadata_log.left
        self._check_brokers(left.topics.values())
        self._quotas_at_start = cluster.quota_store.all()
        for broker_id, layer in left.configs.items():
            known = {name: parse(broker_setting(name), text) for name, text in layer.items()}
            of_all = broker_id == records.ALL_BROKERS
            (cluster.config.dynamic_all if of_all else cluster.config.dynamic_broker.setdefault(broker_id, {})).update(
                known
            )
        for node in cluster.nodes:
            node.replicas.limit_replication()
        for (components, key), value in left.quotas.items():
            cluster.quota_store.set(parse_entity(components), key, value)
        self._quotas_restored = True
        cluster.groups.restore(left.groups, cluster.actions.now_ms)
        cluster.controller.restore(left.topics)
        cluster.stores.began()
        metadata_log.begin()
        cluster.controller.give_leaders()
        for what in metadata_log.cuts:
            if cluster.events.noted is not None:
                cluster.events.noted(cluster.actions.now_ms, -1, "recovery", {"cut": what})
        if left.topics:
            cluster.log_manager.wake(cluster.actions.now_ms)

    def close(self) -> None:
        """The process ends by itself."""
        self.metadata_log.close()

    def abandon(self) -> None:
        """Let go of the folder and leave it as it is: the cluster cannot begin, or a test plays its crash."""
        self.metadata_log.directory.close()

    def _check_brokers(self, topics: Iterable[Topic]) -> None:
        brokers = len(self._cluster.nodes)
        for topic in topics:
            highest = max(r for p in topic.partitions for r in p.replicas)
            if highest >= brokers:
                raise ConfigError(
                    f"topic {topic.name} of the data directory has a replica on broker {highest}, but there are only "
                    f"{brokers} brokers; for example --brokers {highest + 1}"
                )

    # ---- what holds now ------------------------------------------------------------------------------------------------------

    def _all_facts(self) -> Iterator[MetadataRecord]:
        """Everything that must survive, as it is now."""
        cluster = self._cluster
        yield records.life(self.life)
        image = cluster.controller.image
        for topic in image.topics.values():
            yield records.image([(None, topic)], ())
        for broker_id, layer in (
            (records.ALL_BROKERS, cluster.config.dynamic_all),
            *cluster.config.dynamic_broker.items(),
        ):
            if layer:
                yield records.config(broker_id, {name: as_text(value) or "" for name, value in layer.items()})
        values = {**dict.fromkeys(self._quotas_at_start), **cluster.quota_store.all()}
        yield records.quotas([(tuple(entity.components()), key, value) for (entity, key), value in values.items()])
        for group_id, protocol_type, offsets in cluster.groups.offsets():
            yield records.commit(group_id, protocol_type, offsets)
        yield records.producer_id(self._producer_ids_end)
        for topic in image.topics.values():
            for state in topic.partitions:
                log = self._log_of(topic, state)
                if log is not None and (log.log_end_offset > 0 or log.epochs.latest > 0 or log.store.end_position > 0):
                    yield records.log(topic.topic_id, state.index, log.state())

    def _log_of(self, topic: Topic, state: PartitionState) -> ReplicaLog | None:
        """The log of the leader, or of who was in sync last."""
        for broker_id in (state.leader, *state.isr, *state.replicas):
            node = self._cluster.nodes[broker_id] if broker_id >= 0 else None
            partition = None if node is None else node.replicas.find(topic.name, state.index)
            if partition is not None:
                return partition.log
        return None

    # ---- what changes --------------------------------------------------------------------------------------------------------

    def remember(self, old: Image, new: Image, changed: Sequence[str]) -> None:
        if changed:
            self.metadata_log.note_or_refuse(_image_fact(old, new, changed))

    def remember_if_possible(self, old: Image, new: Image, changed: Sequence[str]) -> None:
        """The same for what must happen even if it is forgotten."""
        if changed:
            self.metadata_log.note_if_possible(_image_fact(old, new, changed))

    def remember_quotas(self, changed: Sequence[tuple[QuotaEntity, str, float | None]]) -> None:
        """Quotas of the command line, and those that the process before left, are known already."""
        if not self._quotas_restored:
            return
        listed = [(tuple(entity.components()), key, value) for entity, key, value in changed]
        self.metadata_log.note_or_refuse(records.quotas(listed))

    def remember_config(self, broker_id: int, layer: Mapping[str, str]) -> None:
        self.metadata_log.note_or_refuse(records.config(broker_id, layer))

    def remember_producer_id(self, producer_id: int) -> None:
        if producer_id >= self._producer_ids_end:
            self.metadata_log.note_or_refuse(records.producer_id(producer_id + PRODUCER_ID_BLOCK))
            self._producer_ids_end = producer_id + PRODUCER_ID_BLOCK

    def committed(
        self, group_id: str, protocol_type: str | None, offsets: Mapping[PartitionKey, CommittedOffset]
    ) -> None:
        self.metadata_log.note_or_refuse(records.commit(group_id, protocol_type, offsets))

    def gone(self, group_id: str) -> None:
        self.metadata_log.note_if_possible(records.group_gone(group_id))


def _image_fact(old: Image, new: Image, changed: Sequence[str]) -> MetadataRecord:
    there = [(old.topics.get(name), new.topics[name]) for name in changed if name in new.topics]
    return records.image(there, [name for name in changed if name not in new.topics])
