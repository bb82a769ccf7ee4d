"""All replicas of one broker: takes over what the controller decides, appends, and lets followers follow (`ReplicaManager`).

Must never know wire messages, connections, client quotas or sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kafkaproto.broker.config.values import BrokerConfig
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.manager import LogManager
from kafkaproto.broker.log.validation import TopicLimits, Valid, judge
from kafkaproto.broker.metadata.image import Image, Topic
from kafkaproto.broker.quota.replication_quotas import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ReplicationQuota,
    partitions_on,
)
from kafkaproto.broker.replication.delayed_partitions import AwaitedAppend
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
from kafkaproto.broker.replication.topic_settings import TopicSettings, settings_of
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.timers import Timer, Timers
from kafkaproto.error_codes import ErrorCode

IsrChange = Callable[[str, int, Sequence[int]], None]
LogMoved = Callable[[int, str, int, str, int, int], None]
"""(broker, topic, index, what moved, from, to) as `ReplicaLog.moved` tells it."""
Watch = Callable[[Sequence[Partition]], None]
"""Sees to it that somebody is called when the positions of these replicas have moved (`ReplicaLog.advanced`)."""


Validation = Callable[[memoryview, TopicLimits, int], Valid | None]
"""(produced bytes, limits of the topic, now_ms) to the batch to append, None if the bytes hold no message. Raises InvalidBatch."""


class AppendResult(NamedTuple):
    """The result of an append. Offsets are -1, and nothing was appended, if the client sent an empty set of messages.

    end_offset: the offset after the last record. is_new: False for a duplicate, whose offsets are those of the original (P-18).
    awaited: the replication that a producer with acks=all waits for, None if the high watermark has reached `end_offset`.
    """

    base_offset: int
    end_offset: int
    log_append_time_ms: int
    log_start_offset: int
    is_new: bool
    awaited: AwaitedAppend | None


NOTHING_APPENDED = AppendResult(-1, -1, -1, -1, False, None)


class ReplicaManager:
    """The replicas of broker `broker_id`. `peers` finds another broker's replica manager, or None while it is down."""

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
        log_moved: LogMoved | None = None,
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
        self._stores = stores
        self._actions = actions
        self._timers = timers
        self._log_manager = log_manager
        self._change_isr = change_isr
        self._peers = peers
        self._log_moved = log_moved
        self._watch: Watch | None = None
        self._shrink_timer: Timer | None = None
        selector = load_selector(config["replica.selector.class"], {})
        self.selector = None if selector is None else GuardedSelector(selector)

    # ---- what the controller decided -----------------------------------------------------------------------------------------

    def apply_roles(self, image: Image, changed: Sequence[str]) -> None:
        """First half of a change, for every broker: partitions come, go, lead or not."""
        for name in changed:
            topic = image.topics.get(name)
            held = self._by_topic.get(name, {})
            if held and (topic is None or any(p.topic_id != topic.topic_id for p in held.values())):
                self._drop(name)
            self._list_throttled(name, {} if topic is None else topic.configs)
            if topic is not None:
                self._apply_topic(topic)

    def _list_throttled(self, name: str, configs: Mapping[str, str]) -> None:
        """R-1. What a topic's settings list for this broker; parked fetches find it when they are looked at again (R-12)."""
        before = self.leader_quota.active
        self.leader_quota.list_topic(name, partitions_on(configs.get(LEADER_REPLICAS, ""), self.broker_id))
        self.follower_quota.list_topic(name, partitions_on(configs.get(FOLLOWER_REPLICAS, ""), self.broker_id))
        self._leader_quota_changed(before)

    def limit_replication(self) -> None:
        """R-2. The rates that hold now, for what was counted before, too."""
        before = self.leader_quota.active
        self.leader_quota.limit(self._config[LEADER_RATE])
        self.follower_quota.limit(self._config[FOLLOWER_RATE])
        self._leader_quota_changed(before)

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
                    # Who never fetches from a new leader lags, too; who follows at once has fetched two steps from now.
                    self._actions.soon(lambda _: self._actions.soon(self._watch_all))

    def apply_following(self, changed: Sequence[str]) -> None:
        """Second half, once every broker knows its roles: follow the new leaders."""
        for name in changed:
            for partition in self._by_topic.get(name, {}).values():
                self.following.follow(partition)

    def _configure(self, partition: Partition, settings: TopicSettings) -> None:
        if settings.apply_to(partition):
            self._log_manager.wake(self._actions.now_ms)

    def _make(self, topic: Topic, index: int) -> Partition:
        log = self._stores.new_log(topic.topic_id, index, self._config.topic(topic.configs, "segment.bytes"))
        if self._log_moved is not None:
            log.moved = partial(self._log_moved, self.broker_id, topic.name, index)
        partition = Partition(
            topic,
            index,
            self.broker_id,
            log,
            lag_max_ms=self._config["replica.lag.time.max.ms"],
            soon=self._actions.soon,
            on_isr=self._isr_moved,
            is_alive=lambda broker_id: self._peers(broker_id) is not None,
        )
        if self._watch is not None:
            self._watch([partition])
        partition.held_from = self._actions.now_ms, log.store.end_position
        self.partitions[(topic.name, index)] = partition
        self._by_topic.setdefault(topic.name, {})[index] = partition
        return partition

    def watch(self, watch: Watch | None) -> None:
        """Have somebody told how the positions of all replicas move, those that are here and those that come; None: nobody any more."""
        self._watch = watch
        for partition in self.partitions.values():
            partition.log.advanced = None
        if watch is not None:
            watch(list(self.partitions.values()))

    @property
    def topics(self) -> tuple[str, ...]:
        """Of which it holds something; not all need be there any more while its broker is stopped."""
        return tuple(self._by_topic)

    def refresh_limits(self, image: Image) -> None:
        """A broker setting changed: topics that inherit it take the new value, and so does replication."""
        self.limit_replication()
        for name, held in self._by_topic.items():
            if name not in image.topics:
                continue  # deleted while this broker was stopped; it drops it when it starts
            settings = settings_of(image.topics[name], self._config)
            for partition in held.values():
                self._configure(partition, settings)

    def _drop(self, name: str) -> None:
        """The topic is gone, and its bytes."""
        for index, partition in list(self._by_topic.get(name, {}).items()):
            self._drop_replica(name, index)
            self._stores.forget(partition.topic_id, index)
        self.following.forget_topic(name)

    def _drop_replica(self, name: str, index: int) -> None:
        """This broker holds the partition no longer; what other brokers hold of it stays."""
        partition = self.partitions.pop((name, index), None)
        if partition is None:
            return
        held = self._by_topic[name]
        del held[index]
        if not held:
            del self._by_topic[name]
        self.following.unfollow(name, index)
        partition.gone = True
        partition.is_leader = False
        partition.changed()
        partition.log.close()

    # ---- following -----------------------------------------------------------------------------------------------------------

    def release(self, topic: str, index: int) -> None:
        """End what a test holds or slows of this broker's replica, also while it does not follow."""
        self.following.release(topic, index)

    def cut_link(self, leader_id: int, cut: bool, now_ms: int) -> None:
        """Fetch nothing from a broker, whatever it leads, until the link is restored (`cut` False)."""
        self.following.cut_link(leader_id, cut, now_ms)

    def stop_following(self) -> None:
        """Stop fetching and watching followers, as a broker that stops does, and forget the samples of both quotas."""
        if self._shrink_timer is not None:
            self._shrink_timer.cancel()
        self.following.stop()
        self.leader_quota.forget_samples()
        self.follower_quota.forget_samples()

    # ---- appending -----------------------------------------------------------------------------------------------------------

    def append(
        self,
        partition: Partition,
        produced: memoryview,
        now_ms: int,
        *,
        acks_all: bool = False,
        validate: Validation = judge,
    ) -> AppendResult:
        """Validate a batch, append it to `partition`, which this broker leads, and wake the requests that wait for records.

        The checks, in Kafka's order: A. enough replicas are in sync, if `acks_all` (P-7); B. `validate` accepts the batch (P-8 to
        P-12); C. the batch continues its producer's sequence (P-18 to P-20); D. the store takes the bytes.

        Raises KafkaError 19 (A), InvalidBatch (B, C) or StorageError (D). Nothing is appended then.
        """
        if acks_all:
            partition.check_in_sync()
        valid = validate(produced, partition.limits, now_ms)
        if valid is None:
            return NOTHING_APPENDED
        log = partition.log
        base_offset, last_offset, log_append_time_ms, is_duplicate = log.append(*valid, partition.leader_epoch, now_ms)
        if not is_duplicate:
            partition.appended(now_ms)
            self._log_manager.wake(now_ms)
            if partition.followers:
                self.watch_lag(partition)
        end_offset = last_offset + 1
        waits = acks_all and log.high_watermark < end_offset
        return AppendResult(
            base_offset,
            end_offset,
            log_append_time_ms,
            log.log_start_offset,
            not is_duplicate,
            AwaitedAppend(partition, end_offset) if waits else None,
        )

    # ---- in-sync replicas ----------------------------------------------------------------------------------------------------

    def _isr_moved(self, partition: Partition, isr: frozenset[int]) -> None:
        self._change_isr(partition.topic, partition.index, sorted(isr))

    def watch_lag(self, partition: Partition) -> None:
        """A follower is behind: look again when it will have been for too long."""
        due = partition.first_lag_expiry_ms()
        if due is None:
            return
        timer = self._shrink_timer
        if timer is None or timer.callback is None or timer.at_ms > due:
            if timer is not None:
                timer.cancel()
            self._shrink_timer = self._timers.at(max(due, self._actions.now_ms + 1), self._shrink)

    def _shrink(self, now_ms: int) -> None:
        for partition in list(self.partitions.values()):
            if partition.is_leader and partition.followers:
                partition.shrink_isr(now_ms)
        # Once the new in-sync replicas are published: whoever was put out is not waited for again.
        self._actions.soon(self._watch_all)

    def _watch_all(self, now_ms: int) -> None:
        for partition in self.partitions.values():
            if partition.is_leader and partition.followers:
                self.watch_lag(partition)

    # ---- reading -------------------------------------------------------------------------------------------------------------

    def find(self, topic: str, index: int) -> Partition | None:
        return self.partitions.get((topic, index))

    def leader_or_error(self, image: Image, topic: str, index: int) -> Partition:
        """The partition, led here. Raises KafkaError 3 when the cluster has none, 6 when it is led elsewhere (P-3, L-3, E-2)."""
        partition = self.partitions.get((topic, index))
        if partition is not None and partition.is_leader:
            return partition
        if image.partition(topic, index) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def preferred_read_replica(
        self, partition: Partition, image: Image, fetch_offset: int, client: ClientMetadata, now_ms: int
    ) -> int:
        """The broker that a consumer of the leader `partition` should read from, -1 for right here (N-2 to N-5)."""
        if self.selector is None:
            return -1
        for fetcher in partition.fetchers.values():
            fetcher.note_idle_fetches(now_ms)
        views = self._replica_views(partition, image, fetch_offset, client.listener_name, now_ms)
        chosen = self.selector.select((partition.topic, partition.index), client, PartitionView(views, views[0]))
        if chosen.broker_id == self.broker_id or not chosen.host:
            return -1
        return chosen.broker_id

    def _replica_views(
        self, partition: Partition, image: Image, fetch_offset: int, listener: str, now_ms: int
    ) -> list[ReplicaView]:
        """The leader, then every in-sync follower that has the offset as far as the leader knows (N-3)."""
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
