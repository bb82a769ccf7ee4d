"""The cluster: N brokers in one process with one clock, one random seed and one journal of their requests and events.

The cluster opens no sockets, runs no event loop and does not depend on wire messages: other code passes it the received bytes and the current time,
calls `actions.run(now_ms)` after each input, and `run_due(now_ms)` when the time `timers.next_deadline_ms()` is reached.
"""

from __future__ import annotations

import base64
import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING

from kafkaproto.broker.assembly import (
    DEFAULT_MEMORY_BYTES,
    attach_observers,
    check_options,
    enter_static_quotas,
    new_config,
    new_elections,
    new_histories,
    new_mutations,
    new_no_op_records,
    new_node,
    new_sessions,
    open_persistence,
    publish_journal,
)
from kafkaproto.broker.config import features, release
from kafkaproto.broker.config.cluster_config import ConfigOwner
from kafkaproto.broker.group.all_groups import AllGroups
from kafkaproto.broker.group.placement import OFFSETS_TOPIC, coordinator_of
from kafkaproto.broker.log.manager import LogManager
from kafkaproto.broker.log.store import MemoryBudget
from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.metadata.differences import report_topics
from kafkaproto.broker.metadata.image import TRANSACTION_TOPIC, BrokerState, Image
from kafkaproto.broker.metadata.isr_changes import IsrChanges
from kafkaproto.broker.node import Node
from kafkaproto.broker.nodes import Nodes
from kafkaproto.broker.observe.journal import DetailedJournal, Journal
from kafkaproto.broker.observe.metrics import ThrottleQueues
from kafkaproto.broker.quota.entities import QuotaEntity
from kafkaproto.broker.quota.forced import ForcedThrottles, api_key
from kafkaproto.broker.quota.precedence import Semantics
from kafkaproto.broker.quota.store import ClientQuotaStore
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.replication.stores import Stores
from kafkaproto.broker.requests import throttling
from kafkaproto.broker.requests.registry import Registration, advertised
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.clock import Clock, SystemClock
from kafkaproto.broker.runtime.events import Events
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.broker.transaction.producer_ids import BLOCK_SIZE
from kafkaproto.hash_order import java_order, uuid_hash_bits

if TYPE_CHECKING:
    from kafkaproto.broker.observe.journal_topic import JournalTopic
    from kafkaproto.broker.observe.recorder import Recorder
    from kafkaproto.broker.persistence.cluster_state import ClusterPersistence


class Cluster:
    """A Kafka cluster without sockets.

    brokers: the number of brokers; their ids are consecutive, from 0 or `node.id` on. config: maps "<setting>" (for all brokers) or "<broker
    id>.<setting>" to a value, as on the command line. semantics: "kip" to follow the KIPs where Kafka's code differs from them, "kafka" to follow the
    code. profile: "test" for small internal topics and short group delays, "kafka" for Kafka's defaults. memory_bytes: how many bytes of records may
    be in memory; further records go to temporary files. clock: the source of time; None for the system clock. data_dir: the folder that stores the
    cluster and from which it is restored; None stores nothing. journal_topic: the topic in which to publish events such as throttles and leader
    changes; None publishes none. detailed_journal: whether `journal`, the list of requests and events, also keeps topics, partitions, errors and
    offsets of requests.

    Raises ConfigError or ValueError for an invalid argument, with the allowed values in the message.
    """

    def __init__(
        self,
        brokers: int = 1,
        config: Mapping[str, object] | None = None,
        *,
        semantics: Semantics = "kip",
        release_name: str = release.DEFAULT_RELEASE,
        profile: str = "test",
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        seed: int = 0,
        clock: Clock | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        journal_topic: str | None = None,
        detailed_journal: bool = False,
    ) -> None:
        check_options(brokers, memory_bytes, semantics)
        self.semantics: Semantics = semantics
        self.strict_kip = semantics == "kip"
        self.release_name = release_name
        self.profile = profile
        self.clock: Clock = clock or SystemClock()
        self.rng = Random(seed)
        self.timers = Timers()
        self.actions = ActionQueue(self.clock.now_ms())
        self.events = Events()
        self.journal = (DetailedJournal if detailed_journal else Journal)(self.clock.now_ms())
        self.journal_topic: JournalTopic | None = None
        self._recorder: Recorder | None = None
        self.throttle_queues = ThrottleQueues()
        histories = new_histories(self.clock.now_ms())
        self.rebalances, self.transaction_history, self.telemetry_history = histories
        attach_observers(self.events, self.journal, (*histories, self.throttle_queues), release_name, self.timers)
        self.forced_throttles = ForcedThrottles()
        self.connection_ids = itertools.count(1)
        self.throttling = throttling.strategy(release.delays_responses(release_name))
        self.config = new_config(brokers, config, profile, self.strict_kip, release_name)
        self.budget = MemoryBudget(memory_bytes)
        cluster_id = base64.urlsafe_b64encode(self.rng.randbytes(16)).decode().rstrip("=")
        self.persistence: ClusterPersistence | None = None
        """The object that persists the cluster in its data directory; None if the cluster has no data directory."""
        if data_dir is None:
            self._begin(brokers, cluster_id, self.rng, journal_topic)
            return
        self.persistence = open_persistence(self, data_dir, cluster_id)
        try:
            # A process that continues with a data directory must not generate the same ids as the previous process.
            rng = Random(f"{seed} {self.persistence.process_number}")
            self._begin(brokers, self.persistence.cluster_id, rng, journal_topic)
        except BaseException:
            self.persistence.abandon()
            raise

    def _begin(self, brokers: int, cluster_id: str, rng: Random, journal_topic: str | None) -> None:
        """Build all parts of a cluster with `brokers` brokers, and restore persisted data. journal_topic: the topic for events; None for no topic."""
        self.rng = rng
        disk = self.persistence
        self.quota_store = ClientQuotaStore(self._quota_changed, None if disk is None else disk.remember_quotas)
        self.mutations = new_mutations(self.config, self.quota_store, self.semantics, self.timers)
        persist = (None, None) if disk is None else (disk.remember, disk.remember_if_possible)
        self.controller = Controller(cluster_id, self.config, self.rng, self._image_changed, *persist)
        self._elections = new_elections(self.controller, self.config, self.timers, self.actions)
        reserve = None if disk is None else disk.reserve_no_op_records
        self.controller.no_op_records = new_no_op_records(self.config, self.actions, reserve)
        self.sessions = new_sessions(self.controller, self.config, self.timers, self.actions)
        group_seed = self.rng.getrandbits(64)
        self.groups = AllGroups(lambda: (node.groups for node in self.nodes if node.has_groups))
        self.stores = Stores(self.budget, self.rng.random, self.events, None if disk is None else disk.metadata_log)
        self.log_manager = LogManager(
            self.config.for_broker(-1), self.timers, self._running_partitions, self.actions.now_ms
        )
        self._next_producer_id_block = 0 if disk is None else disk.next_producer_id
        self.isr_changes = IsrChanges(self.controller, self.actions.soon)
        self.request_cost_ms: dict[str, float] = {}
        """Maps an API such as "Metadata" to the handler time in ms that a test has set for its requests. Used with a manual clock only."""
        self._ranges = release.ranges_of(self.release_name)
        first_id = self.config.first_broker_id
        self.nodes = Nodes(
            new_node(
                broker_id,
                self,
                self.stores,
                self.log_manager,
                self.rng,
                group_seed,
                change_isr=self.isr_changes.propose,
                running=lambda broker_id: self.nodes.running(broker_id),
            )
            for broker_id in range(first_id, first_id + brokers)
        )
        enter_static_quotas(self.config, self.quota_store)
        for node in self.nodes:
            rack = node.config["broker.rack"]
            self.controller.set_broker(BrokerState(node.broker_id, rack, {}, alive=True))
        if disk is not None:
            disk.go_on()
        if journal_topic is not None:
            self.journal_topic = publish_journal(self, self.events, journal_topic)

    @cached_property
    def apis(self) -> Mapping[int, Registration]:
        """Return the APIs that every broker offers, by API key."""
        return advertised(self._ranges, release.accepted_ranges_of(self.release_name))

    # ---- time ----------------------------------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        return self.clock.now_ms()

    def run_due(self, now_ms: int) -> None:
        """Fire all timers that are due at `now_ms` and run the actions that they cause, until no timer is due."""
        while True:
            deadline = self.timers.next_deadline_ms()
            if deadline is None or deadline > now_ms:
                return
            self.actions.now_ms = now_ms
            self.timers.run_due(now_ms)
            self.actions.run(now_ms)

    # ---- brokers -------------------------------------------------------------------------------------------------------------

    def _running_partitions(self) -> Iterator[Partition]:
        return (partition for node in self.nodes if node.running for partition in node.replicas.partitions.values())

    def set_listeners(self, broker_id: int, listeners: Mapping[str, tuple[str, int]]) -> None:
        """Set the addresses that Metadata reports for a broker. listeners: maps listener names to the advertised (host, port)."""
        node = self.nodes[broker_id]
        self.controller.set_broker(BrokerState(broker_id, node.config["broker.rack"], dict(listeners), node.running))

    def stop_broker(self, broker_id: int) -> None:
        """Stop a broker, as if its process ended: its connections close, other replicas become leaders (M-14), its replicas keep their data."""
        node = self.nodes[broker_id]
        if not node.running:
            return
        node.running = False
        node.stop_coordinating()  # first, because parked requests of groups still get a response, as in Kafka (M-14)
        node.close_connections()
        node.replicas.stop_following()
        if not self.sessions.stopped(broker_id):
            self._follow_everywhere(tuple(self.controller.image.topics))  # no follower fetches from it any more
        self._broker_changed(node, "stopped")

    def start_broker(self, broker_id: int) -> None:
        """Start a stopped broker with its logs. Its replicas follow the current leaders. Its fetch sessions and quota measurements are empty."""
        node = self.nodes[broker_id]
        if node.running:
            return
        self.sessions.end(broker_id)
        node.running = True
        node.forget_sessions()
        node.reset_quotas()
        self.controller.broker_started(broker_id)
        names = tuple({**self.controller.image.topics, **dict.fromkeys(node.replicas.topics)})  # also deleted topics
        node.replicas.apply_roles(self.controller.image, names)
        self._follow_everywhere(names)
        if any(len(partition.log.runs) for partition in node.replicas.partitions.values()):
            self.log_manager.wake(self.actions.now_ms)
        self._broker_changed(node, "started")

    def _broker_changed(self, node: Node, state: str) -> None:
        if self.events.noted is not None:
            self.events.noted(self.actions.now_ms, node.broker_id, "broker", {"state": state})
        if self.events.broker_changed is not None:
            self.events.broker_changed(node.broker_id, node.running, self.actions.now_ms)

    # ---- the controller's decisions ------------------------------------------------------------------------------------------

    def _image_changed(self, old: Image, new: Image, changed: Sequence[str]) -> None:
        if not changed:
            return
        for node in self.nodes:
            if node.running:
                node.replicas.apply_roles(new, changed)
        self._follow_everywhere(changed)
        report_topics(self.events, old, new, changed, self.actions.now_ms)
        deleted_topics = [old.topics[name] for name in changed if name not in new.topics]
        if deleted_topics:
            names = {topic.topic_id: topic.name for topic in deleted_topics}
            self.groups.forget_topics([names[each] for each in java_order(names, uuid_hash_bits)], self.actions.now_ms)
            for topic in deleted_topics:
                for state in topic.partitions:
                    self.stores.forget(topic.topic_id, state.index)
        for elections in self._elections:
            elections.image_changed(new, changed)

    def _follow_everywhere(self, topics: Sequence[str]) -> None:
        for node in self.nodes:
            if node.running:
                node.replicas.apply_following(topics)
                if OFFSETS_TOPIC in topics:
                    node.coordinate_groups()
                if TRANSACTION_TOPIC in topics:
                    node.transactions.coordinate()

    def _quota_changed(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        self.mutations.quota_changed(entity, key, value)
        for node in self.nodes:
            node.quotas.quota_changed(entity, key, value)
            node.connection_quotas.quota_changed(entity, key, value)
        if self.events.quota_changed is not None:
            self.events.quota_changed(entity, key, value, self.actions.now_ms)

    # ---- what all brokers share ----------------------------------------------------------------------------------------------

    def new_producer_id_block(self) -> int:
        """Reserve 1,000 unused producer ids, and return the first (TX-11). Raises KafkaError KAFKA_STORAGE_ERROR (56) if this cannot be persisted."""
        first_id = self._next_producer_id_block
        if self.persistence is not None:
            self.persistence.remember_producer_ids(first_id + BLOCK_SIZE)
        self._next_producer_id_block = first_id + BLOCK_SIZE
        return first_id

    def coordinator_of(self, group_id: str, partition_count: int = 0) -> int:
        """Return the id of the broker that coordinates a group: the leader of the group's partition of __consumer_offsets (M-8).

        Creates the topic on first use. Raises KafkaError COORDINATOR_NOT_AVAILABLE (15) if that fails, or while the partition has no leader.
        partition_count: how many partitions of the topic store groups, from partition 0 on; 0 for all partitions.
        """
        return coordinator_of(group_id, OFFSETS_TOPIC, self.controller, partition_count)

    def remember_config(self, owner: ConfigOwner, layer: Mapping[str, str]) -> None:
        """Persist an owner's settings before a change of them takes effect. Raises KafkaError KAFKA_STORAGE_ERROR (56) if that fails.

        owner: a broker id, -1 for all brokers, a group id, or the name of a client metrics subscription. layer: all settings that are set on the
        owner itself after the change.
        """
        if self.persistence is not None:
            self.persistence.remember_config(owner, layer)

    def record(self, recorder: Recorder | None) -> None:
        """Record all traffic with `recorder`, or stop recording if it is None. Ends the previous recorder.

        Raises ValueError if `recorder` has already ended.
        """
        if recorder is not None and recorder.ended:
            raise ValueError("this recorder was stopped, which ended its trace; create a new recorder")
        previous_recorder, self._recorder = self._recorder, recorder
        if previous_recorder is not None:
            self.events.detach(previous_recorder)
        if recorder is not None:
            self.events.attach(recorder)
            recorder.begin([list(node.replicas.partitions.values()) for node in self.nodes], self.actions.now_ms)
        if previous_recorder is not None and previous_recorder is not recorder:
            previous_recorder.end()

    def set_request_cost(self, api: str, cost_ms: float) -> None:
        """Set `cost_ms`, the handler time of each request of `api`, such as "Metadata". Used with a manual clock, which does not advance by itself.

        Raises ValueError for an unknown API and for a time that is negative or infinite.
        """
        api_key(api)
        if not isinstance(cost_ms, int | float) or not 0 <= cost_ms < math.inf:
            raise ValueError(f"cost_ms must be at least 0 milliseconds (got {cost_ms!r}); for example 4")
        self.request_cost_ms[api] = cost_ms

    def setting_changed(self) -> None:
        """Notify the components that keep a copy of a broker setting, because a setting has changed."""
        for node in self.nodes:
            node.replicas.refresh_limits(self.controller.image)
            node.settings_changed()
        for elections in self._elections:
            elections.image_changed(self.controller.image, tuple(self.controller.image.topics))
        self.log_manager.wake(self.actions.now_ms)

    def close(self) -> None:
        """Close the data directory, and free the memory of the records at once. `journal`, the list of requests and events, stays readable."""
        if self.persistence is not None:
            if self.journal_topic is not None:
                self.journal_topic.flush(self.now_ms())
            self.persistence.close()
        self.stores.close()

    def reset(self) -> None:
        """Bring the cluster back to its initial state.

        Deletes topics, groups, quotas and changed settings, clears the list of requests and events (`journal`), starts stopped brokers and closes
        connections. Ports and observers stay. The cluster still uses its data directory, from which the topics are deleted.
        """
        _reset(self)


def topics_left(cluster: Cluster) -> frozenset[str]:
    """Return the names of the topics that the data directory contained when this process opened it, even if they have been deleted since."""
    return frozenset() if cluster.persistence is None else cluster.persistence.topics_left


def _reset(cluster: Cluster) -> None:
    for node in cluster.nodes:
        node.close_connections()
        node.forget_sessions()
    for broker_id in cluster.nodes.ids:
        cluster.start_broker(broker_id)
    for name in list(cluster.controller.image.topics):
        cluster.controller.delete_topic(name)
    levels = features.initial_features(cluster.release_name)
    cluster.controller.publish(replace(cluster.controller.image, scram={}, features=levels), ())
    for node in cluster.nodes:
        node.replicas.stop_following()
        node.replicas.following.clear_overrides()
        if node.has_groups:
            node.groups.stop(cluster.actions.now_ms)
    cluster.request_cost_ms.clear()
    cluster.forced_throttles.clear()
    cluster.quota_store.clear()
    cluster.config.reset()
    for node in cluster.nodes:
        node.reset_quotas()
    cluster.mutations.close()
    cluster.mutations = new_mutations(cluster.config, cluster.quota_store, cluster.semantics, cluster.timers)
    enter_static_quotas(cluster.config, cluster.quota_store)
    cluster.actions.run(cluster.actions.now_ms)
    cluster.log_manager.cancel_check()
    if cluster.events.cleared is not None:
        cluster.events.cleared(cluster.actions.now_ms)
    if cluster.persistence is not None:
        cluster.persistence.reset()
