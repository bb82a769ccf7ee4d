"""Functions that build and connect the parts of a cluster from its settings.

This module does not depend on `Cluster`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import TYPE_CHECKING

from kafkaproto.broker.config.broker_ids import HIGHEST_ID, ID_SETTINGS
from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.config.features import supported_features
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.coordinators import TransactionParts, groups_factory
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.manager import LogManager
from kafkaproto.broker.metadata.balance import LeaderBalance
from kafkaproto.broker.metadata.broker_sessions import BrokerSessions
from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.metadata.no_op_records import NoOpRecords
from kafkaproto.broker.metadata.unclean import UncleanElection
from kafkaproto.broker.node import Node, SharedState
from kafkaproto.broker.observe.diagnostics import Diagnostics
from kafkaproto.broker.observe.journal import DetailedJournal, Journal
from kafkaproto.broker.observe.rebalances import RebalanceHistory
from kafkaproto.broker.observe.request_log import RequestLog
from kafkaproto.broker.observe.telemetry_history import TelemetryHistory
from kafkaproto.broker.observe.throttle_log import ThrottleLog
from kafkaproto.broker.observe.transaction_history import TransactionHistory
from kafkaproto.broker.observe.undeliverable_log import UndeliverableLog
from kafkaproto.broker.quota.mutations import MutationQuotas
from kafkaproto.broker.quota.precedence import Semantics
from kafkaproto.broker.quota.store import ClientQuotaStore, apply_static_quotas
from kafkaproto.broker.quota.windows import MetricWindows
from kafkaproto.broker.replication.replica_manager import IsrChange, ReplicaManager
from kafkaproto.broker.replication.stores import Stores
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.events import Events, Observer
from kafkaproto.broker.runtime.timers import Timers

if TYPE_CHECKING:
    from kafkaproto.broker.observe.journal_topic import JournalTopic, Publishing
    from kafkaproto.broker.persistence.cluster_state import ClusterPersistence, PersistedState

DEFAULT_MEMORY_BYTES = 256 * 1024 * 1024
SEMANTICS = ("kip", "kafka")
NO_OP_INTERVAL = "metadata.max.idle.interval.ms"
PROFILES = ("test", "kafka")
STATIC_QUOTAS = (
    "quota.producer.default",
    "quota.consumer.default",
    "quota.producer.override",
    "quota.consumer.override",
)


# ---- settings ----------------------------------------------------------------------------------------------------------------


def check_options(brokers: int, memory_bytes: int, semantics: str) -> None:
    """Raise ValueError for cluster options that are out of range, with the allowed values in the message.

    brokers: the number of brokers. memory_bytes: how many bytes of records may be in memory. semantics: "kip" to follow the KIPs where Kafka's code
    differs from them, "kafka" to follow the code.
    """
    if not isinstance(brokers, int) or brokers < 1:
        raise ValueError(f"brokers must be at least 1 (got {brokers!r}); for example 3")
    if not isinstance(memory_bytes, int) or memory_bytes < 0:
        raise ValueError(f"memory_bytes must be at least 0 (got {memory_bytes!r}); for example {DEFAULT_MEMORY_BYTES}")
    if semantics not in SEMANTICS:
        raise ValueError(
            f'the cluster option semantics must be {" or ".join(SEMANTICS)} (got "{semantics}"): it says whether to follow the KIPs or '
            "Kafka's code where they differ"
        )


def profile_defaults(profile: str, brokers: int) -> dict[str, object]:
    """Return the settings whose values in a profile differ from Kafka's defaults.

    The profile `test` has small internal topics and short group delays. The profile `kafka` has Kafka's defaults, so the result is empty. brokers:
    the number of brokers of the cluster, which limits the number of replicas. Raises ValueError for an unknown profile.
    """
    if profile not in PROFILES:
        raise ValueError(f'unknown profile "{profile}"; known are {", ".join(PROFILES)}')
    if profile == "kafka":
        return {}
    return {
        "offsets.topic.replication.factor": min(3, brokers),
        "offsets.topic.num.partitions": 4,
        "offsets.topic.segment.bytes": 1024 * 1024,
        "transaction.state.log.replication.factor": min(3, brokers),
        "transaction.state.log.num.partitions": 4,
        "transaction.state.log.segment.bytes": 1024 * 1024,
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "group.coordinator.append.linger.ms": 0,
        "log.initial.task.delay.ms": 0,
        NO_OP_INTERVAL: 0,
    }


def new_config(
    brokers: int, config: Mapping[str, object] | None, profile: str, strict_kip: bool, release: str
) -> ClusterConfig:
    """Return the settings of a cluster with `brokers` brokers.

    config: the values given at start, by "<setting>" (for all brokers) or "<broker id>.<setting>" (for one broker); None for no values. profile:
    "test" for small internal topics and short group delays, "kafka" for Kafka's defaults. strict_kip: whether to follow the KIPs and documentation
    where they differ from Kafka's code. release: the emulated release of Kafka. Raises ConfigError if a setting is invalid or names a broker that
    does not exist.
    """
    cluster_config = ClusterConfig(config, profile_defaults(profile, brokers), strict_kip, release)
    ids = range(cluster_config.first_broker_id, cluster_config.first_broker_id + brokers)
    if ids[-1] > HIGHEST_ID:
        raise ConfigError(
            f"the ids of {brokers} brokers from {ids[0]} on must be at most {HIGHEST_ID}; for example node.id=1"
        )
    for broker_id, settings in sorted(cluster_config.static_broker.items()):
        name = next(iter(settings))
        if broker_id not in ids:
            raise ConfigError(
                f"{broker_id}.{name}: there is no broker {broker_id}; ids are {ids[0]} to {ids[-1]}, for example {ids[0]}.{name}=..."
            )
        if own_id := next((name for name in ID_SETTINGS if name in settings), None):
            raise ConfigError(
                f"{broker_id}.{own_id}: the brokers have consecutive ids, so that {own_id} cannot be set for one broker; for example node.id=1"
            )
    return cluster_config


# ---- parts that all brokers share --------------------------------------------------------------------------------------------


def new_mutations(
    config: ClusterConfig, store: ClientQuotaStore, semantics: Semantics, timers: Timers
) -> MutationQuotas:
    """Return the object that enforces the controller mutation quotas of a new cluster (KIP-599).

    store: has the configured quotas. semantics: how quotas apply to clients with an empty client id, "kip" for the rules of KIP-55, "kafka" for those
    of Kafka's code. timers: used to remove the measurements of idle clients.
    """
    samples, window_s = (config.get(-1, f"controller.quota.window.{name}") for name in ("num", "size.seconds"))
    metric_windows = MetricWindows(config.get(-1, "metrics.num.samples"), config.get(-1, "metrics.sample.window.ms"))
    return MutationQuotas(store, semantics, timers, samples, window_s * 1000, metric_windows)


def enter_static_quotas(config: ClusterConfig, store: ClientQuotaStore) -> None:
    """Add the client-id quotas that the broker's settings define to the quota store (KIP-13)."""
    apply_static_quotas(store, {name: config.get(-1, name) for name in STATIC_QUOTAS})


def new_elections(
    controller: Controller, config: ClusterConfig, timers: Timers, actions: ActionQueue
) -> tuple[LeaderBalance, UncleanElection]:
    """Return the components that elect leaders at intervals: one moves leadership back to preferred replicas, one performs unclean elections.

    Both components read their settings again at each check. timers: start the checks. actions: used for its `now_ms`, the current time.
    """
    balance = LeaderBalance(
        controller,
        timers,
        lambda: actions.now_ms,
        lambda: bool(config.get(-1, "auto.leader.rebalance.enable")),
        lambda: 1000 * int(config.get(-1, "leader.imbalance.check.interval.seconds")),
    )
    unclean = UncleanElection(
        controller,
        timers,
        lambda: actions.now_ms,
        lambda topic: bool(config.topic_value(-1, topic.configs, "unclean.leader.election.enable")),
        lambda: int(config.get(-1, "unclean.leader.election.interval.ms")),
    )
    return balance, unclean


def new_no_op_records(
    config: ClusterConfig, actions: ActionQueue, reserve: Callable[[int], None] | None
) -> NoOpRecords:
    """Return the counter of no-op records in the metadata log, which Kafka 3.3 introduced.

    actions: used for its `now_ms`, the current time. reserve: persists a number of records; None without a data directory.
    """
    interval_ms = config.get(-1, NO_OP_INTERVAL) if supported_features(config.release) else 0
    return NoOpRecords(interval_ms, lambda: actions.now_ms, reserve)


def new_sessions(controller: Controller, config: ClusterConfig, timers: Timers, actions: ActionQueue) -> BrokerSessions:
    """Return the component that fences brokers after they have stopped.

    After a controlled shutdown, a broker is fenced at once. Otherwise it is fenced `broker.session.timeout.ms` after its last heartbeat.
    timers: used to schedule the fencing. actions: used for its `now_ms`, the current time.
    """
    return BrokerSessions(
        controller,
        timers,
        lambda: actions.now_ms,
        lambda broker_id: bool(config.get(broker_id, "controlled.shutdown.enable")),
        lambda broker_id: int(config.get(broker_id, "broker.heartbeat.interval.ms")),
        lambda: int(config.get(-1, "broker.session.timeout.ms")),
    )


# ---- brokers -----------------------------------------------------------------------------------------------------------------


def new_node(
    broker_id: int,
    shared: SharedState,
    stores: Stores,
    log_manager: LogManager,
    rng: Random,
    group_seed: int,
    *,
    change_isr: IsrChange,
    running: Callable[[int], Node | None],
) -> Node:
    """Return a broker with its replica manager and the functions that create its group and transaction coordinators on first use.

    stores: the memory and files for records. rng: seeds the random numbers of this broker. group_seed: seeds the random member ids of its group
    coordinator. change_isr: proposes new in-sync replicas to the controller. running: returns the broker with a given id, or None if that broker is
    stopped. shared: the state that all brokers of the cluster share. log_manager: runs the log maintenance tasks of the cluster.
    """
    config = shared.config.for_broker(broker_id)

    def peers(other_id: int) -> ReplicaManager | None:
        node = running(other_id)
        return None if node is None else node.replicas

    replicas = ReplicaManager(
        broker_id,
        config,
        stores,
        shared.actions,
        shared.timers,
        log_manager,
        strict_kip=shared.strict_kip,
        change_isr=change_isr,
        peers=peers,
    )
    node_rng = Random(rng.getrandbits(64))
    new_groups = groups_factory(shared, replicas, Random(group_seed + broker_id))
    transactions = TransactionParts(shared, replicas, running)
    return Node(broker_id, shared, config, replicas, new_groups, transactions, node_rng)


# ---- optional parts, imported only for clusters that use them ----------------------------------------------------------------


def open_persistence(
    cluster: PersistedState, data_dir: str | os.PathLike[str], new_cluster_id: str
) -> ClusterPersistence:
    """Open the data directory of a cluster, and return the object that persists the cluster in it.

    cluster: the cluster to persist. new_cluster_id: the cluster id to store if the directory does not contain a cluster yet. Raises ConfigError if
    the directory cannot be used.
    """
    from kafkaproto.broker.persistence.cluster_state import ClusterPersistence

    return ClusterPersistence(cluster, data_dir, new_cluster_id)


def attach_observers(
    events: Events, journal: Journal, others: Iterable[Observer], release_name: str, timers: Timers
) -> None:
    """Attach observers to `events`: the journal, the observers that write log messages, and `others`.

    journal: the list of the cluster's requests and events, which tests read. If the journal keeps details of requests (`DetailedJournal`), the
    observer that logs each connection and request (`RequestLog`) is attached, too. release_name: the emulated Kafka release, for log messages about
    refused clients. timers: schedule delayed checks of clients. For example, if a client searches several times for the coordinator of a group that
    does not exist, a check two seconds later may log the client, if the group still does not exist.
    """
    logs = ThrottleLog(), UndeliverableLog(), Diagnostics(release_name, timers, journal)
    for observer in (journal, *others, *logs):
        events.attach(observer)
    if isinstance(journal, DetailedJournal):
        events.attach(RequestLog(journal))


def new_histories(started_ms: int) -> tuple[RebalanceHistory, TransactionHistory, TelemetryHistory]:
    """Return the empty histories of rebalances, transactions and client telemetry for a cluster that starts at `started_ms`."""
    return RebalanceHistory(started_ms), TransactionHistory(started_ms), TelemetryHistory()


def publish_journal(cluster: Publishing, events: Events, name: str) -> JournalTopic:
    """Publish events of the cluster, such as throttles and leader changes, as records in its topic `name`, the journal topic.

    Raises ConfigError if the topic cannot be created. events: the source of these events.
    """
    from kafkaproto.broker.observe.journal_topic import JournalTopic

    try:
        journal_topic = JournalTopic(cluster, name)
    except KafkaError as error:
        raise ConfigError(
            f"cannot create the topic {name!r}, to which the journal is written: {error.message}"
        ) from None
    events.attach(journal_topic)
    return journal_topic
