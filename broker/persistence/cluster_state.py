"""The persistence of a cluster: restores it from its data directory, and persists its changes.

Imported only for a cluster with a data directory; other clusters start without the package `kafkaproto.broker.persistence`. This module
does not depend on asyncio, wire messages or the format of files.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from kafkaproto.broker.config.cluster_config import ClusterConfig, ConfigOwner, SubscriptionName
from kafkaproto.broker.config.features import ELIGIBLE_LEADER_REPLICAS, changed_levels, restored_features
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.all_groups import AllGroups
from kafkaproto.broker.log.file_deletion import DelayedDeletion
from kafkaproto.broker.log.manager import LogManager
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.log.store import MemoryBudget
from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.metadata.image import Image, PartitionState, Topic
from kafkaproto.broker.nodes import Nodes
from kafkaproto.broker.persistence import records as records
from kafkaproto.broker.persistence.directory import DataDirectory
from kafkaproto.broker.persistence.metadata_log import MetadataLog, SnapshotLimits
from kafkaproto.broker.persistence.wal import MetadataRecord
from kafkaproto.broker.quota.entities import QuotaEntity, parse_entity
from kafkaproto.broker.quota.store import ClientQuotaStore
from kafkaproto.broker.replication.stores import Stores
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.events import Events
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.error_codes import ErrorCode

logger = logging.getLogger("kafkaproto.persistence")


class PersistedState(Protocol):
    """Interface of the cluster that is persisted and restored.

    The constructor of `ClusterPersistence` uses only `budget`, `actions`, `timers` and `config`, because it runs while the cluster is being built.
    All other attributes must exist when `ClusterPersistence.go_on` is called.
    """

    @property
    def budget(self) -> MemoryBudget: ...

    @property
    def actions(self) -> ActionQueue: ...

    @property
    def timers(self) -> Timers: ...

    @property
    def events(self) -> Events: ...

    @property
    def config(self) -> ClusterConfig: ...

    @property
    def nodes(self) -> Nodes: ...

    @property
    def controller(self) -> Controller: ...

    def coordinator_of(self, group_id: str) -> int: ...

    @property
    def groups(self) -> AllGroups: ...

    @property
    def quota_store(self) -> ClientQuotaStore: ...

    @property
    def stores(self) -> Stores: ...

    @property
    def log_manager(self) -> LogManager: ...


class ClusterPersistence:
    """Persists a cluster in a data directory, and restores it.

    `cluster_id`, `process_number` (the number of this process among those that have used the directory) and `next_producer_id` are available at once,
    so that the cluster can be built; `go_on` later restores everything else. path: the data directory. new_cluster_id: the cluster id if the
    directory is empty. Raises ConfigError for a directory that cannot be used.

    Before the cluster makes a change, it passes the change to one of the `remember...` methods. If the change cannot be written, the method raises
    KafkaError KAFKA_STORAGE_ERROR (56), and the cluster must not make the change. Only `remember_if_possible` never raises.
    """

    def __init__(self, cluster: PersistedState, path: str | os.PathLike[str], new_cluster_id: str) -> None:
        directory = DataDirectory(path, new_cluster_id)
        self._deletion = DelayedDeletion(
            cluster.timers,
            lambda: cluster.actions.now_ms,
            lambda: int(cluster.config.get(-1, "log.segment.delete.delay.ms")),
        )
        limits = SnapshotLimits(
            cluster.config.get(-1, "metadata.log.max.record.bytes.between.snapshots"),
            cluster.config.get(-1, "metadata.log.max.snapshot.interval.ms"),
        )
        try:
            self.metadata_log = MetadataLog(
                directory, cluster.budget, self._all_facts, lambda: cluster.actions.now_ms, self._deletion, limits
            )
        except BaseException:
            directory.close()
            raise
        self._cluster = cluster
        self.cluster_id = directory.cluster_id
        self.process_number = self.metadata_log.process_number
        previous_state = self.metadata_log.recovered_state
        self.is_new = previous_state.process_number == 0
        """Whether this is the first process that uses the data directory."""
        self.was_closed = previous_state.was_closed
        """Whether the previous process stopped properly."""
        self.recovered_quotas = sum(value is not None for value in previous_state.quotas.values())
        self.topics_left = frozenset(previous_state.topics)
        self.next_producer_id = previous_state.next_producer_id
        self._groups_to_move = dict(previous_state.groups)
        """Committed offsets that an earlier version of this broker stored in the metadata log; they move to `__consumer_offsets`.

        Maps group ids to (protocol type, offsets), where offsets maps (topic, partition index) to the committed offset.
        """
        self._quotas_at_start: dict[tuple[QuotaEntity, str], float] = {}
        self._quotas_restored = False

    # ---- beginning and end ---------------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Restore the state that the previous process persisted, so that the cluster continues from this state.

        All parts of the cluster must exist when this method is called. Brokers that were stopped in the previous process are running afterwards.
        """
        cluster, metadata_log = self._cluster, self.metadata_log
        previous_state = metadata_log.recovered_state
        self._check_brokers(previous_state.topics.values())
        features = restored_features(cluster.config.release, previous_state.features)
        cluster.config.restore_eligible_leader_replicas(ELIGIBLE_LEADER_REPLICAS in features)
        self._quotas_at_start = cluster.quota_store.all()
        for owner, layer in previous_state.configs.items():
            if isinstance(owner, SubscriptionName):
                cluster.config.set_client_metrics(owner.name, layer)
            elif isinstance(owner, str):
                cluster.config.set_group(owner, layer)
            else:
                cluster.config.set_dynamic(owner, {**cluster.config.dynamic_texts(owner), **layer})
        for node in cluster.nodes:
            node.replicas.limit_replication()
        for (components, key), value in previous_state.quotas.items():
            cluster.quota_store.set(parse_entity(components), key, value)
        self._quotas_restored = True
        offset = previous_state.offset + previous_state.no_op_records
        cluster.controller.restore(previous_state.topics, previous_state.scram, features, offset)
        cluster.stores.began()
        metadata_log.begin()
        cluster.controller.give_leaders()
        self._move_offsets()
        self._forget_deleted_topics()
        for cut in metadata_log.cuts:
            if cluster.events.noted is not None:
                cluster.events.noted(cluster.actions.now_ms, -1, "recovery", {"cut": cut})
        if previous_state.topics:
            cluster.log_manager.wake(cluster.actions.now_ms)

    def _move_offsets(self) -> None:
        """Move committed offsets from the metadata log, where an earlier version of this broker stored them, to `__consumer_offsets`.

        Call it before any client can commit. A group is removed from the metadata log only after its offsets are in the topic. If the process is
        killed before the removal, or the move of a group fails, the next process repeats it.
        """
        cluster, groups = self._cluster, self._groups_to_move
        for group_id, (protocol_type, offsets) in list(groups.items()):
            try:
                groups_of_broker = cluster.nodes[cluster.coordinator_of(group_id)].groups.groups
            except KafkaError as error:
                logger.warning(
                    "group %s: its committed offsets stay in the metadata log, because they cannot be written to __consumer_offsets: %s; the next "
                    "start tries again",
                    group_id,
                    error,
                )
                continue
            error_code = groups_of_broker.adopt(group_id, protocol_type, offsets, cluster.actions.now_ms)
            if error_code:
                error_name = ErrorCode(error_code).name
                logger.warning(
                    "group %s: its committed offsets stay in the metadata log, because they cannot be written to __consumer_offsets: %s; the next "
                    "start tries again",
                    group_id,
                    error_name,
                )
                continue
            del groups[group_id]
            self.metadata_log.note_if_possible(records.group_gone(group_id))

    def _forget_deleted_topics(self) -> None:
        """Delete committed offsets of topics that no longer exist. Such offsets exist if a process was killed while deleting the topic (GO-25)."""
        cluster = self._cluster
        cluster.groups.forget_missing_topics(cluster.controller.image.topics, cluster.actions.now_ms)

    def reset(self) -> None:
        """Persist the state of a test cluster after a reset, and delete the files of deleted topics at once: a reset may set the clock back."""
        self._deletion.delete_all_now()
        self.metadata_log.refresh()

    def close(self) -> None:
        """Persist that this process has stopped properly, and release the lock of the data directory."""
        self._deletion.close()
        self.metadata_log.close()

    def abandon(self) -> None:
        """Release the lock of the data directory, but do not record a proper stop.

        The cluster calls this if it cannot start; tests call it to simulate a crash.
        """
        self._deletion.close()
        self.metadata_log.directory.close()

    def _check_brokers(self, topics: Iterable[Topic]) -> None:
        ids = self._cluster.nodes.ids
        topic_of = {r: topic.name for topic in topics for p in topic.partitions for r in p.replicas}
        missing_ids = sorted(topic_of.keys() - ids)
        if missing_ids:
            missing_id, first_id = missing_ids[0], min(topic_of)
            brokers = max(topic_of) - first_id + 1
            first = f" and the setting node.id={first_id}" if first_id != ids[0] else ""
            raise ConfigError(
                f"topic {topic_of[missing_id]} of the data directory has a replica on broker {missing_id}, but the ids of the brokers are "
                f"{ids[0]} to {ids[-1]}; start all brokers that have replicas, for example with --brokers {brokers}{first}"
            )

    # ---- what holds now ------------------------------------------------------------------------------------------------------

    def _all_facts(self) -> Iterator[MetadataRecord]:
        """Yield metadata records that describe the current cluster completely. They replace the whole metadata log when it is rewritten."""
        cluster = self._cluster
        yield records.process_started(self.process_number)
        image = cluster.controller.image
        yield records.offset(image.offset, cluster.controller.no_op_records.reserved)
        for topic in image.topics.values():
            yield records.image([(None, topic)], ())
        if levels := changed_levels(cluster.config.release, image.features):
            yield records.features(levels)
        if image.scram:
            yield records.scram({}, image.scram)
        for broker_id in (records.ALL_BROKERS, *cluster.config.dynamic_broker):
            layer = cluster.config.dynamic_texts(broker_id)
            if layer:
                yield records.config(broker_id, layer)
        for group_id, settings in cluster.config.groups.items():
            yield records.config(group_id, settings)
        for name, settings in cluster.config.client_metrics.items():
            yield records.config(SubscriptionName(name), settings)
        values = {**dict.fromkeys(self._quotas_at_start), **cluster.quota_store.all()}
        yield records.quotas([(tuple(entity.components()), key, value) for (entity, key), value in values.items()])
        for group_id, (protocol_type, offsets) in self._groups_to_move.items():
            yield records.commit(group_id, protocol_type, offsets)
        yield records.producer_id(self.next_producer_id)
        for topic in image.topics.values():
            for state in topic.partitions:
                log = self._log_of(topic, state)
                if log is not None and (log.log_end_offset > 0 or log.epochs.latest > 0 or log.store.end_position > 0):
                    yield records.log(topic.topic_id, state.index, log.state())

    def _log_of(self, topic: Topic, state: PartitionState) -> ReplicaLog | None:
        """Return the log of a partition's leader; if there is no leader, the log of another replica; None if no broker has a replica.

        Of the other replicas, those in sync are preferred, then the eligible leader replicas. Among these, the last leader comes first: it may have
        records that the others do not have.
        """
        eligible = sorted(state.eligible, key=lambda broker_id: broker_id not in state.last_known)
        for broker_id in (state.leader, *state.isr, *eligible, *state.replicas):
            node = self._cluster.nodes[broker_id] if broker_id >= 0 else None
            partition = None if node is None else node.replicas.find(topic.name, state.index)
            if partition is not None:
                return partition.log
        return None

    # ---- what changes --------------------------------------------------------------------------------------------------------

    def remember(self, old: Image, new: Image, changed: Sequence[str]) -> None:
        for record in self._changes(old, new, changed):
            self.metadata_log.note_or_refuse(record)

    def remember_if_possible(self, old: Image, new: Image, changed: Sequence[str]) -> None:
        """Persist a change of metadata that cannot be rejected. A failed write is logged and raises no exception.

        old, new: the metadata of the cluster before and after the change. changed: the names of the topics that differ.
        """
        for record in self._changes(old, new, changed):
            self.metadata_log.note_if_possible(record)

    def remember_quotas(self, changed: Sequence[tuple[QuotaEntity, str, float | None]]) -> None:
        """Persist changed quotas. Does nothing before the quotas that the previous process persisted have been restored.

        Quotas from settings such as `quota.producer.default` are set before that time, so they are not persisted. changed: (entity, key of the quota,
        new value) for each quota; the value is None if the quota was removed.
        """
        if not self._quotas_restored:
            return
        quota_entries = [(tuple(entity.components()), key, value) for entity, key, value in changed]
        self.metadata_log.note_or_refuse(records.quotas(quota_entries))

    def remember_config(self, owner: ConfigOwner, layer: Mapping[str, str]) -> None:
        self.metadata_log.note_or_refuse(records.config(owner, layer))

    def reserve_no_op_records(self, count: int) -> None:
        """Persist that the process may count `count` no-op records, so that the next process begins above them."""
        self.metadata_log.note_if_possible(records.offset(self._cluster.controller.image.offset, count))

    def remember_producer_ids(self, end: int) -> None:
        """Persist that producer ids below `end` may have been given to producers, so that the next process does not use them again."""
        self.metadata_log.note_or_refuse(records.producer_id(end))
        self.next_producer_id = end

    def _changes(self, old: Image, new: Image, changed: Sequence[str]) -> Iterator[MetadataRecord]:
        """Yield metadata records for those differences between two metadata images that must survive a restart.

        Each record contains the offset of the new image, one above that of the old image. old, new: the metadata of the cluster before and after a
        change. changed: the names of the topics that differ.
        """
        offset = old.offset + 1
        differences = list(self._differences(old, new, changed))
        if not differences:
            yield records.offset(offset)
        for record in differences:
            yield records.at_offset(record, offset)

    def _differences(self, old: Image, new: Image, changed: Sequence[str]) -> Iterator[MetadataRecord]:
        """Yield metadata records for the topics `changed`, and for SCRAM credentials and levels of features that differ in two metadata images."""
        if changed:
            topic_pairs = [(old.topics.get(name), new.topics[name]) for name in changed if name in new.topics]
            yield records.image(topic_pairs, [name for name in changed if name not in new.topics])
        if new.scram is not old.scram:
            yield records.scram(old.scram, new.scram)
        if new.features is not old.features:
            yield records.features(changed_levels(self._cluster.config.release, new.features))
