"""N brokers in one process with one clock, one seed and one journal: a state machine that bytes and times go into.

No socket and no loop: whoever drives it calls `actions.run(now_ms)` after each thing that came in, and `run_due(now_ms)` when
`timers.next_deadline_ms()` is there. Must never know asyncio or wire messages.
"""

from __future__ import annotations

import base64
import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING

from kafkaproto.broker.assembly import (
    DEFAULT_MEMORY_BYTES,
    check_options,
    enter_static_quotas,
    new_balance,
    new_config,
    new_groups,
    new_mutations,
    new_node,
    open_persistence,
    publish_journal,
)
from kafkaproto.broker.config import release
from kafkaproto.broker.group.placement import coordinator_of
from kafkaproto.broker.log.manager import LogManager
from kafkaproto.broker.log.store import MemoryBudget
from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.metadata.differences import report_topics
from kafkaproto.broker.metadata.image import BrokerState, Image
from kafkaproto.broker.metadata.isr_changes import IsrChanges
from kafkaproto.broker.node import Node
from kafkaproto.broker.observe.journal import Journal
from kafkaproto.broker.observe.metrics import ThrottleQueues
from kafkaproto.broker.observe.throttle_log import ThrottleLog
from kafkaproto.broker.quota.entities import QuotaEntity
from kafkaproto.broker.quota.forced import ForcedThrottles, api_key
from kafkaproto.broker.quota.mutations import MutationCharge
from kafkaproto.broker.quota.precedence import Semantics
from kafkaproto.broker.quota.store import ClientQuotaStore
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.replication.replica_manager import ReplicaManager
from kafkaproto.broker.replication.stores import Stores
from kafkaproto.broker.requests import throttling
from kafkaproto.broker.requests.registry import Registration, advertised
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.clock import Clock, SystemClock
from kafkaproto.broker.runtime.events import Events
from kafkaproto.broker.runtime.timers import Timers

if TYPE_CHECKING:
    from kafkaproto.broker.observe.journal_topic import JournalTopic
    from kafkaproto.broker.observe.recorder import Recorder
    from kafkaproto.broker.persistence.cluster_state import ClusterPersistence


class Cluster:
    """brokers: ids are 0 to brokers-1. config: "name" or "<id>.name" to text, as on the command line.

    data_dir: a folder from which the cluster goes on where the last process with it ended; None keeps nothing. journal_topic: the
    name of a topic that tells what the journal notes; None: there is none.

    Raises ConfigError or ValueError for what cannot be, in one line that says what can.
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
        self.journal = Journal()
        self.journal_topic: JournalTopic | None = None
        self._recorder: Recorder | None = None
        self.throttle_queues = ThrottleQueues()
        for observer in (self.journal, ThrottleLog(), self.throttle_queues):
            self.events.attach(observer)
        self.forced_throttles = ForcedThrottles()
        self.connection_ids = itertools.count(1)
        self.throttling = throttling.strategy(release.delays_responses(release_name))
        self.config = new_config(brokers, config, profile, self.strict_kip)
        self.budget = MemoryBudget(memory_bytes)
        cluster_id = base64.urlsafe_b64encode(self.rng.randbytes(16)).decode().rstrip("=")
        self.persistence: ClusterPersistence | None = None
        """What outlives the process; None: nothing does."""
        if data_dir is None:
            self._begin(brokers, cluster_id, self.rng, journal_topic)
            return
        self.persistence = open_persistence(self, data_dir, cluster_id)
        try:
            # A process that goes on with a folder draws other ids than the one before.
            rng = Random(f"{seed} {self.persistence.life}")
            self._begin(brokers, self.persistence.cluster_id, rng, journal_topic)
        except BaseException:
            self.persistence.abandon()
            raise

    def _begin(self, brokers: int, cluster_id: str, rng: Random, journal_topic: str | None) -> None:
        """Build all parts, as at the first start, and restore what the process before has left."""
        self.rng = rng
        kept = self.persistence
        self.quota_store = ClientQuotaStore(self._quota_changed, None if kept is None else kept.remember_quotas)
        self.mutations = new_mutations(self.config, self.quota_store, self.semantics, self.timers)
        self.controller = Controller(
            cluster_id,
            self.config,
            self.rng,
            self._image_changed,
            None if kept is None else kept.remember,
            None if kept is None else kept.remember_if_possible,
        )
        self._balance = new_balance(self.controller, self.config, self.timers, self.actions)
        self.groups = new_groups(self.config, self.timers, self.rng, kept, self.events)
        self.stores = Stores(self.budget, self.rng.random, self.events, None if kept is None else kept.metadata_log)
        self.log_manager = LogManager(self.config.for_broker(-1), self.timers, self._running_partitions)
        self._next_producer_id = 0 if kept is None else kept.next_producer_id
        self.isr_changes = IsrChanges(self.controller, self.actions.soon)
        self.request_cost_ms: dict[str, float] = {}
        """What handling one request of an API costs, by name ("Metadata"), where time is not real."""
        self._ranges = release.ranges_of(self.release_name)
        self.nodes = [
            new_node(
                broker_id,
                self,
                self.stores,
                self.log_manager,
                self.rng,
                change_isr=self.isr_changes.propose,
                peers=self._running_replicas,
            )
            for broker_id in range(brokers)
        ]
        enter_static_quotas(self.config, self.quota_store)
        for node in self.nodes:
            rack = node.config["broker.rack"]
            self.controller.set_broker(BrokerState(node.broker_id, rack, {}, alive=True))
        if kept is not None:
            kept.go_on()
        if journal_topic is not None:
            self.journal_topic = publish_journal(self, self.events, journal_topic)

    @cached_property
    def apis(self) -> Mapping[int, Registration]:
        """What every broker offers, by api key."""
        return advertised(self._ranges)

    # ---- time ----------------------------------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        return self.clock.now_ms()

    def run_due(self, now_ms: int) -> None:
        """Fire what is due, each consequence in its own turn."""
        while True:
            deadline = self.timers.next_deadline_ms()
            if deadline is None or deadline > now_ms:
                return
            self.actions.now_ms = now_ms
            self.timers.run_due(now_ms)
            self.actions.run(now_ms)

    # ---- brokers -------------------------------------------------------------------------------------------------------------

    def _running_replicas(self, broker_id: int) -> ReplicaManager | None:
        if not 0 <= broker_id < len(self.nodes) or not self.nodes[broker_id].running:
            return None
        return self.nodes[broker_id].replicas

    def _running_partitions(self) -> Iterator[Partition]:
        for node in self.nodes:
            if node.running:
                yield from node.replicas.partitions.values()

    def set_listeners(self, broker_id: int, listeners: Mapping[str, tuple[str, int]]) -> None:
        """Where clients of each listener reach this broker."""
        node = self.nodes[broker_id]
        self.controller.set_broker(BrokerState(broker_id, node.config["broker.rack"], dict(listeners), node.running))

    def stop_broker(self, broker_id: int) -> None:
        """Like a process that ends: connections closed, leaderships handed on, its replicas keep what they have."""
        node = self.nodes[broker_id]
        if not node.running:
            return
        node.running = False
        node.close_connections()
        node.replicas.stop_following()
        self.controller.broker_stopped(broker_id)
        self._broker_changed(node, "stopped")

    def start_broker(self, broker_id: int) -> None:
        """It comes back with its logs and follows whoever leads now. What clients have used of their quotas was in its memory."""
        node = self.nodes[broker_id]
        if node.running:
            return
        node.running = True
        node.forget_sessions()
        node.reset_quotas()
        self.controller.broker_started(broker_id)
        image = self.controller.image
        names = tuple({**image.topics, **dict.fromkeys(node.replicas.topics)})  # with those that were deleted meanwhile
        node.replicas.apply_roles(image, names)
        self._follow_everywhere(names)
        if any(len(partition.log.runs) for partition in node.replicas.partitions.values()):
            self.log_manager.wake(self.actions.now_ms)
        self._broker_changed(node, "started")

    def _broker_changed(self, node: Node, what: str) -> None:
        if self.events.noted is not None:
            self.events.noted(self.actions.now_ms, node.broker_id, "broker", {"state": what})
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
        for name in changed:
            if name not in new.topics:
                self.groups.commits.forget_topic(name)
                for state in old.topics[name].partitions:
                    self.stores.forget(old.topics[name].topic_id, state.index)
        self._balance.image_changed(new, changed)

    def _follow_everywhere(self, topics: Sequence[str]) -> None:
        for node in self.nodes:
            if node.running:
                node.replicas.apply_following(topics)

    def _quota_changed(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        self.mutations.quota_changed(entity, key, value)
        for node in self.nodes:
            node.quotas.quota_changed(entity, key, value)
            node.connection_quotas.quota_changed(entity, key, value)
        if self.events.quota_changed is not None:
            self.events.quota_changed(entity, key, value, self.actions.now_ms)

    # ---- what all brokers share ----------------------------------------------------------------------------------------------

    def next_producer_id(self) -> int:
        """A producer id that nobody has had in this cluster (P-22). Raises KafkaError 56."""
        producer_id = self._next_producer_id
        if self.persistence is not None:
            self.persistence.remember_producer_id(producer_id)
        self._next_producer_id += 1
        return producer_id

    def coordinator_of(self, group_id: str) -> int:
        """The broker that coordinates a group: the leader of its partition of __consumer_offsets (M-8).

        Raises KafkaError 15 while there is none; the internal topic is created on first use.
        """
        return coordinator_of(group_id, self.controller)

    def topics_left(self) -> frozenset[str]:
        """The topics that another process has left in the data directory."""
        return frozenset() if self.persistence is None else self.persistence.topics_left

    def remember_config(self, broker_id: int, layer: Mapping[str, str]) -> None:
        """The settings of a broker (-1: of all) are about to be changed to these. Raises KafkaError 56."""
        if self.persistence is not None:
            self.persistence.remember_config(broker_id, layer)

    def auto_create(self, name: str, mutations: MutationCharge | None = None) -> None:
        """A client asked for a topic that is not there, and may have it (M-3). Raises KafkaError 17, 38, 89, …

        mutations: the client's, which it is paid from.
        """
        topic = self.controller.plan_topic(name)
        if mutations is not None:
            mutations.take(len(topic.partitions))
        self.controller.create_topic(topic)

    def record(self, recorder: Recorder | None) -> None:
        """Record all traffic with `recorder`, or stop recording if it is None. Ends the previous recorder.

        Raises ValueError if `recorder` has already ended.
        """
        if recorder is not None and recorder.ended:
            raise ValueError("this recorder has ended with its trace: make another")
        before, self._recorder = self._recorder, recorder
        if before is not None:
            self.events.detach(before)
        if recorder is not None:
            self.events.attach(recorder)
            recorder.begin([list(node.replicas.partitions.values()) for node in self.nodes], self.actions.now_ms)
        if before is not None and before is not recorder:
            before.end()

    def set_request_cost(self, api: str, cost_ms: float) -> None:
        """What handling one request of `api` ("Metadata") costs where time is not real. Raises ValueError."""
        api_key(api)
        if not isinstance(cost_ms, int | float) or not 0 <= cost_ms < math.inf:
            raise ValueError(f"cost_ms={cost_ms!r}: allowed is 0 or more milliseconds, for example 4")
        self.request_cost_ms[api] = cost_ms

    def setting_changed(self) -> None:
        """A broker setting was changed while running: whoever keeps a copy takes the new value."""
        for node in self.nodes:
            node.replicas.refresh_limits(self.controller.image)
            node.settings_changed()
        self.log_manager.wake(self.actions.now_ms)

    def close(self) -> None:
        """The end: what records lie in is given back now, not when the collector comes. What is asked afterwards finds nothing."""
        if self.persistence is not None:
            if self.journal_topic is not None:
                self.journal_topic.flush(self.now_ms())
            self.persistence.close()
        self.stores.close()

    def reset(self) -> None:
        """Back to how it began: topics, groups, quotas, settings and journal gone, stopped brokers up, connections closed.

        Ports, the data directory and attached observers stay.
        """
        _reset(self)


def _reset(cluster: Cluster) -> None:
    for node in cluster.nodes:
        node.close_connections()
        node.forget_sessions()
    for broker_id in range(len(cluster.nodes)):
        cluster.start_broker(broker_id)
    for name in list(cluster.controller.image.topics):
        cluster.controller.delete_topic(name)
    for node in cluster.nodes:
        node.replicas.stop_following()
        node.replicas.following.clear_overrides()
    cluster.request_cost_ms.clear()
    cluster.forced_throttles.clear()
    now_ms = cluster.actions.now_ms
    cluster.groups.close(now_ms)
    cluster.groups = new_groups(cluster.config, cluster.timers, cluster.rng, cluster.persistence, cluster.events)
    cluster.quota_store.clear()
    cluster.config.reset()
    for node in cluster.nodes:
        node.reset_quotas()
    cluster.mutations.close()
    cluster.mutations = new_mutations(cluster.config, cluster.quota_store, cluster.semantics, cluster.timers)
    enter_static_quotas(cluster.config, cluster.quota_store)
    cluster.actions.run(now_ms)
    cluster.log_manager.rest()
    if cluster.events.cleared is not None:
        cluster.events.cleared(now_ms)
    if cluster.persistence is not None:
        cluster.persistence.metadata_log.refresh()
