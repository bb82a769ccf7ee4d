"""All replicas of one broker: their roles, appends to leaders, in-sync replicas and the choice of a replica to read from.

Corresponds to `ReplicaManager` in Kafka. This module does not depend on wire messages, connections, client quotas or sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kafkaproto.broker.config.cluster_config import BrokerConfig
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.manager import LogManager
from kafkaproto.broker.log.replica_log import Origin
from kafkaproto.broker.log.validation import TopicLimits, Valid, validate_batch
from kafkaproto.broker.metadata.image import Image, Topic
from kafkaproto.broker.quota.replication_quotas import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ReplicationQuota,
    partitions_on,
)
from kafkaproto.broker.replication.awaited_partitions import AwaitedAppend
from kafkaproto.broker.replication.following import Following
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.replication.selector import (
    ClientMetadata,
    GuardedSelector,
    PartitionView,
    ReplicaView,
    load_selector,
)
from kafkaproto.broker.replication.stores import Stores
from kafkaproto.broker.replication.topic_settings import TopicSettings, segment_limits, settings_of
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.timers import Timer, Timers
from kafkaproto.error_codes import ErrorCode

IsrChange = Callable[[str, int, Sequence[int]], None]
Validation = Callable[[memoryview, TopicLimits, int], Valid | None]
"""A function of (produced bytes, limits of the topic, now_ms) that returns the batch to append, or None for an empty set of messages.

It raises InvalidBatch if the bytes must not be appended.
"""


class AppendResult(NamedTuple):
    """The result of an append. Offsets are -1, and nothing was appended, if the client sent an empty set of messages.

    - end_offset: the offset after the last record.
    - log_append_time_ms: the time of the append if the topic uses LogAppendTime, -1 if it uses CreateTime.
    - is_new: False for a duplicate batch; the offsets are then those of the original batch (P-18).
    - awaited: the replication that a producer with acks=all waits for; None if there is no need to wait.
    """

    base_offset: int
    end_offset: int
    log_append_time_ms: int
    log_start_offset: int
    is_new: bool
    awaited: AwaitedAppend | None


ALL_IN_SYNC = -1
"""The value of acks with which a write waits for all in-sync replicas."""
KNOWN_ACKS = (ALL_IN_SYNC, 0, 1)
NOTHING_APPENDED = AppendResult(-1, -1, -1, -1, False, None)


class ReplicaManager:
    """The replicas of broker `broker_id`.

    peers: a function that returns the replica manager of another broker, or None while that broker is down. change_isr: a function that proposes new
    in-sync replicas to the controller.
    """

    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        stores: Stores,
        actions: ActionQueue,
        timers: Timers,
        log_manager: LogManager,
        *,
        strict_kip: bool,
        change_isr: IsrChange,
        peers: Callable[[int], ReplicaManager | None],
    ) -> None:
        self.broker_id = broker_id
        self.partitions: dict[tuple[str, int], Partition] = {}
        self._by_topic: dict[str, dict[int, Partition]] = {}
        samples = config["replication.quota.window.num"]
        window_ms = 1000 * config["replication.quota.window.size.seconds"]
        self.leader_quota = ReplicationQuota("LeaderReplication", samples, window_ms)
        self.follower_quota = ReplicationQuota("FollowerReplication", samples, window_ms)
        self.following = Following(
            broker_id, config, actions, timers, self.follower_quota, peers=peers, strict_kip=strict_kip
        )
        self.fetchers = self.following.fetchers
        self._config = config
        self.stores = stores
        self._actions = actions
        self._timers = timers
        self._log_manager = log_manager
        self._change_isr = change_isr
        self._peers = peers
        self._shrink_timer: Timer | None = None
        selector = load_selector(config["replica.selector.class"], {})
        self.selector = None if selector is None else GuardedSelector(selector)

    # ---- roles and settings --------------------------------------------------------------------------------------------------

    def apply_roles(self, image: Image, changed: Sequence[str]) -> None:
        """Apply the roles in a new metadata image: create and drop replicas, lead or stop leading. Call `apply_following` afterwards.

        changed: the names of the topics that differ from the previous image.
        """
        for name in changed:
            topic = image.topics.get(name)
            replicas = self._by_topic.get(name, {})
            if replicas and (topic is None or any(p.topic_id != topic.topic_id for p in replicas.values())):
                self._drop(name)
            self._list_throttled(name, {} if topic is None else topic.configs)
            if topic is not None:
                self._apply_topic(topic)

    def _list_throttled(self, name: str, configs: Mapping[str, str]) -> None:
        """Set which of this broker's replicas of a topic are throttled by the replication quotas (R-1). configs: the settings of the topic.

        Fetches that already wait in purgatory keep waiting (R-12).
        """
        was_active = self.leader_quota.active
        self.leader_quota.list_topic(name, partitions_on(configs.get(LEADER_REPLICAS, ""), self.broker_id))
        self.follower_quota.list_topic(name, partitions_on(configs.get(FOLLOWER_REPLICAS, ""), self.broker_id))
        self._leader_quota_changed(was_active)

    def limit_replication(self) -> None:
        """Set the rates of both replication quotas from the broker's settings. Bytes measured earlier count against the new rates, too (R-2)."""
        was_active = self.leader_quota.active
        self.leader_quota.limit(self._config[LEADER_RATE])
        self.follower_quota.limit(self._config[FOLLOWER_RATE])
        self._leader_quota_changed(was_active)

    def _leader_quota_changed(self, was_active: bool) -> None:
        if self.leader_quota.active and not was_active:
            fetchers = {
                fetcher: None for partition in self.partitions.values() for fetcher in partition.fetchers.values()
            }
            for fetcher in fetchers:
                fetcher.count_idle_fetches(self._actions.now_ms)

    def _apply_topic(self, topic: Topic) -> None:
        settings = settings_of(topic, self._config)
        for state in topic.partitions:
            if self.broker_id not in state.replicas:
                self._drop_replica(topic.name, state.index)
                continue
            partition = self.partitions.get((topic.name, state.index)) or self._make(topic, state.index)
            self._configure(partition, settings)
            if partition.partition_epoch != state.partition_epoch:
                partition.apply(state, self._actions.now_ms)
                if partition.followers:
                    # A follower that never fetches from a new leader lags, too. One that follows at once has fetched two steps later.
                    self._actions.soon(lambda _: self._actions.soon(self._watch_all))

    def apply_following(self, changed: Sequence[str]) -> None:
        """Make this broker's replicas of the topics `changed` follow their new leaders. Call it after every broker has done `apply_roles`."""
        for name in changed:
            for partition in self._by_topic.get(name, {}).values():
                self.following.follow(partition)

    def _configure(self, partition: Partition, settings: TopicSettings) -> None:
        if settings.apply_to(partition):
            self._log_manager.wake(self._actions.now_ms)

    def _make(self, topic: Topic, index: int) -> Partition:
        origin = Origin(self.broker_id, topic.name, index, self._actions)
        log = self.stores.new_log(topic.topic_id, origin, *segment_limits(topic, self._config))
        partition = Partition(
            topic,
            index,
            self.broker_id,
            log,
            lag_max_ms=self._config["replica.lag.time.max.ms"],
            soon=self._actions.soon,
            change_isr=lambda changed, isr: self._change_isr(changed.topic, changed.index, sorted(isr)),
            is_alive=lambda broker_id: self._peers(broker_id) is not None,
        )
        partition.held_from = self._actions.now_ms, log.store.end_position
        self.partitions[(topic.name, index)] = partition
        self._by_topic.setdefault(topic.name, {})[index] = partition
        return partition

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the names of topics of which this broker has replicas. While the broker is stopped, some of these topics may have been deleted."""
        return tuple(self._by_topic)

    def refresh_limits(self, image: Image) -> None:
        """Apply changed broker settings to replication and to the topics that inherit them."""
        self.limit_replication()
        for name, replicas in self._by_topic.items():
            if name not in image.topics:
                continue  # deleted while this broker was stopped; the broker drops it when it starts
            settings = settings_of(image.topics[name], self._config)
            for partition in replicas.values():
                self._configure(partition, settings)

    def _drop(self, name: str) -> None:
        """Drop this broker's replicas of a deleted topic. The cluster deletes the records, because the replicas of all brokers share them."""
        for index in list(self._by_topic.get(name, {})):
            self._drop_replica(name, index)
        self.following.forget_topic(name)

    def _drop_replica(self, name: str, index: int) -> None:
        """Drop this broker's replica of one partition. Replicas on other brokers are kept."""
        partition = self.partitions.pop((name, index), None)
        if partition is None:
            return
        replicas = self._by_topic[name]
        del replicas[index]
        if not replicas:
            del self._by_topic[name]
        self.following.unfollow(name, index)
        partition.gone = True
        partition.is_leader = False
        partition.changed()
        partition.log.close()

    # ---- following -----------------------------------------------------------------------------------------------------------

    def release(self, topic: str, index: int) -> None:
        """Remove the delay (`slow`) and the stop (`hold`) of this broker's fetches of a partition, even if it does not follow the partition now."""
        self.following.release(topic, index)

    def cut_link(self, leader_id: int, cut: bool, now_ms: int) -> None:
        """Stop fetching any partition from broker `leader_id`, or start again if `cut` is False."""
        self.following.cut_link(leader_id, cut, now_ms)

    def stop_following(self) -> None:
        """Stop fetching, and stop watching followers for lag, because the broker stops.

        The measured rates of both replication quotas restart at 0. All verifications of transactions are forgotten, as in Kafka (TX-33).
        """
        if self._shrink_timer is not None:
            self._shrink_timer.cancel()
        self.following.stop()
        self.leader_quota.forget_samples()
        self.follower_quota.forget_samples()
        for partition in self.partitions.values():
            partition.log.producers.verifications.clear()

    # ---- appending -----------------------------------------------------------------------------------------------------------

    def append(
        self,
        partition: Partition,
        produced: memoryview,
        now_ms: int,
        *,
        acks_all: bool = False,
        validate: Validation = validate_batch,
        from_client: bool = True,
    ) -> AppendResult:
        """Validate a batch, append it to `partition`, which this broker leads, and schedule a check of the requests that wait for records.

        Records that a coordinator has collected for the partition are appended first.

        produced: the bytes of the batch. The checks, in Kafka's order: A. enough replicas are in sync, if `acks_all` (P-7); B. `validate` accepts the
        batch (P-8 to P-12); C. the batch continues its producer's sequence, if it comes from a client (P-18 to P-20); D. the store can write it.

        Raises KafkaError NOT_ENOUGH_REPLICAS (19) in case A, InvalidBatch in cases B and C, StorageError in case D. Nothing is appended then.
        """
        while partition.collected is not None:
            partition.collected.flush(now_ms)
        if acks_all:
            partition.check_in_sync()
        valid = validate(produced, partition.limits, now_ms)
        if valid is None:
            return NOTHING_APPENDED
        log = partition.log
        base_offset, last_offset, log_append_time_ms, is_duplicate = log.append(
            *valid, partition.leader_epoch, now_ms, from_client
        )
        if not is_duplicate:
            partition.appended(now_ms)
            self._log_manager.wake(now_ms)
            if partition.followers:
                self._watch_lag(partition)
        end_offset = last_offset + 1
        awaited = AwaitedAppend(partition, end_offset) if acks_all and log.high_watermark < end_offset else None
        is_new = not is_duplicate
        return AppendResult(base_offset, end_offset, log_append_time_ms, log.log_start_offset, is_new, awaited)

    # ---- in-sync replicas ----------------------------------------------------------------------------------------------------

    def _watch_lag(self, partition: Partition) -> None:
        """Set the timer for the time at which the first lagging follower of `partition` must leave the ISR."""
        due_ms = partition.first_lag_expiry_ms()
        if due_ms is None:
            return
        timer = self._shrink_timer
        if timer is None or timer.callback is None or timer.at_ms > due_ms:
            if timer is not None:
                timer.cancel()
            self._shrink_timer = self._timers.at(max(due_ms, self._actions.now_ms + 1), self._shrink)

    def _shrink(self, now_ms: int) -> None:
        for partition in list(self.partitions.values()):
            if partition.is_leader and partition.followers:
                partition.shrink_isr(now_ms)
        # Deferred until the new in-sync replicas are published, so that no timer is set for a removed one.
        self._actions.soon(self._watch_all)

    def _watch_all(self, now_ms: int) -> None:
        for partition in self.partitions.values():
            if partition.is_leader and partition.followers:
                self._watch_lag(partition)

    # ---- reading -------------------------------------------------------------------------------------------------------------

    def find(self, topic: str, index: int) -> Partition | None:
        """Return this broker's replica of a partition, None if it has none."""
        return self.partitions.get((topic, index))

    def leader_or_error(self, image: Image, topic: str, index: int) -> Partition:
        """Return a partition that this broker leads.

        Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) if the cluster has no such partition, NOT_LEADER_OR_FOLLOWER (6) if this broker does not lead
        it (P-3, L-3, E-2).
        """
        partition = self.partitions.get((topic, index))
        if partition is not None and partition.is_leader:
            return partition
        if image.partition(topic, index) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def preferred_read_replica(
        self, partition: Partition, image: Image, fetch_offset: int, client: ClientMetadata, now_ms: int
    ) -> int:
        """Return the id of the broker to read `fetch_offset` from (N-2 to N-5); -1 for this broker, or if the selected one has no known address."""
        if self.selector is None:
            return -1
        for fetcher in partition.fetchers.values():
            fetcher.note_idle_fetches(now_ms)
        views = self._replica_views(partition, image, fetch_offset, client.listener_name, now_ms)
        view = self.selector.select((partition.topic, partition.index), client, PartitionView(views, views[0]))
        if view.broker_id == self.broker_id or not view.host:
            return -1
        return view.broker_id

    def _replica_views(
        self, partition: Partition, image: Image, fetch_offset: int, listener: str, now_ms: int
    ) -> list[ReplicaView]:
        """Return a view, with the address on `listener`, of each replica that has `fetch_offset`: the leader, then the in-sync followers (N-3)."""
        log = partition.log
        views = [_view(image, self.broker_id, listener, log.log_end_offset, log.log_start_offset, 0)]
        for broker_id, follower in partition.followers.items():
            has_it = follower.log_start_offset <= fetch_offset <= follower.log_end_offset
            if broker_id in partition.isr and has_it and follower.log_end_offset >= 0:
                age_ms = now_ms - follower.caught_up_ms
                views.append(
                    _view(image, broker_id, listener, follower.log_end_offset, follower.log_start_offset, age_ms)
                )
        return views


def _view(image: Image, broker_id: int, listener: str, end: int, start: int, age_ms: int) -> ReplicaView:
    broker = image.brokers.get(broker_id)
    host, port = broker.listeners.get(listener, ("", -1)) if broker is not None and broker.alive else ("", -1)
    return ReplicaView(broker_id, None if broker is None else broker.rack, host, port, end, start, age_ms)
