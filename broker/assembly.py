"""The assembly of a cluster: builds its parts from its settings, and gives each part what it needs. Knows no `Cluster`.

Must never decide anything while a cluster runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING

from kafkaproto.broker.config.values import ClusterConfig, ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.commits import GroupKeeper
from kafkaproto.broker.group.coordinator import GroupCoordinator
from kafkaproto.broker.group.settings import GroupSettings
from kafkaproto.broker.log.manager import LogManager
from kafkaproto.broker.metadata.balance import LeaderBalance
from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.node import Node, SharedState
from kafkaproto.broker.quota.mutations import MutationQuotas
from kafkaproto.broker.quota.precedence import Semantics
from kafkaproto.broker.quota.store import ClientQuotaStore, apply_static_quotas
from kafkaproto.broker.replication.replica_manager import IsrChange, ReplicaManager
from kafkaproto.broker.replication.stores import Stores
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.events import Events
from kafkaproto.broker.runtime.timers import Timers

if TYPE_CHECKING:
    from kafkaproto.broker.observe.journal_topic import JournalTopic, Publishing
    from kafkaproto.broker.persistence.cluster_state import ClusterPersistence, PersistedState

DEFAULT_MEMORY_BYTES = 256 * 1024 * 1024
SEMANTICS = ("kip", "kafka")
PROFILES = ("test", "kafka")
STATIC_QUOTAS = (
    "quota.producer.default",
    "quota.consumer.default",
    "quota.producer.override",
    "quota.consumer.override",
)


# ---- settings ----------------------------------------------------------------------------------------------------------------


def check_options(brokers: int, memory_bytes: int, semantics: str) -> None:
    """Raise ValueError for options of a cluster that are out of range, in one line that says what is allowed."""
    if not isinstance(brokers, int) or brokers < 1:
        raise ValueError(f"brokers={brokers!r}: allowed is 1 or more, for example 3")
    if not isinstance(memory_bytes, int) or memory_bytes < 0:
        raise ValueError(f"memory_bytes={memory_bytes!r}: allowed is 0 or more, for example {DEFAULT_MEMORY_BYTES}")
    if semantics not in SEMANTICS:
        raise ValueError(f"semantics {semantics!r} is not known; allowed: {', '.join(SEMANTICS)}; for example kip")


def profile_defaults(profile: str, brokers: int) -> dict[str, object]:
    """Return the defaults that differ from Kafka's: `test` keeps internal topics small and groups quick; `kafka` changes nothing."""
    if profile not in PROFILES:
        raise ValueError(
            f"profile {profile!r} is not known; allowed: {', '.join(PROFILES)}; for example --profile test"
        )
    if profile == "kafka":
        return {}
    return {
        "offsets.topic.replication.factor": min(3, brokers),
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": min(3, brokers),
        "transaction.state.log.num.partitions": 4,
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
    }


def new_config(brokers: int, config: Mapping[str, object] | None, profile: str, strict_kip: bool) -> ClusterConfig:
    """Return the settings of a cluster. Raises ConfigError, also for a setting of a broker that does not exist."""
    made = ClusterConfig(config, profile_defaults(profile, brokers), strict_kip)
    nobody = sorted(i for i in made.static_broker if i >= brokers)
    if nobody:
        name = next(iter(made.static_broker[nobody[0]]))
        raise ConfigError(
            f"{nobody[0]}.{name}: there is no broker {nobody[0]}; ids are 0 to {brokers - 1}, for example 0.{name}=..."
        )
    return made


# ---- parts that all brokers share --------------------------------------------------------------------------------------------


def new_groups(
    config: ClusterConfig, timers: Timers, rng: Random, keeper: GroupKeeper | None, events: Events
) -> GroupCoordinator:
    """Return a coordinator without groups."""
    get = config.for_broker(-1)
    settings = GroupSettings(
        group_min_session_timeout_ms=get["group.min.session.timeout.ms"],
        group_max_session_timeout_ms=get["group.max.session.timeout.ms"],
        group_initial_rebalance_delay_ms=get["group.initial.rebalance.delay.ms"],
        group_max_size=get["group.max.size"],
        offset_metadata_max_bytes=get["offset.metadata.max.bytes"],
        offsets_retention_ms=get["offsets.retention.minutes"] * 60_000,
        offsets_retention_check_interval_ms=get["offsets.retention.check.interval.ms"],
    )
    return GroupCoordinator(settings, timers, Random(rng.getrandbits(64)), keeper, events)


def new_mutations(
    config: ClusterConfig, store: ClientQuotaStore, semantics: Semantics, timers: Timers
) -> MutationQuotas:
    """Return the controller mutation quotas, of which nothing is used."""
    samples, window_s = (config.get(-1, f"controller.quota.window.{name}") for name in ("num", "size.seconds"))
    return MutationQuotas(store, semantics, timers, samples, window_s * 1000)


def enter_static_quotas(config: ClusterConfig, store: ClientQuotaStore) -> None:
    """Enter the quotas of the configuration into the store (KIP-13)."""
    apply_static_quotas(store, {name: config.get(-1, name) for name in STATIC_QUOTAS})


def new_balance(controller: Controller, config: ClusterConfig, timers: Timers, actions: ActionQueue) -> LeaderBalance:
    """Return the balance of leaders, which reads both of its settings at each look."""
    return LeaderBalance(
        controller,
        timers,
        lambda: actions.now_ms,
        lambda: bool(config.get(-1, "auto.leader.rebalance.enable")),
        lambda: 1000 * int(config.get(-1, "leader.imbalance.check.interval.seconds")),
    )


# ---- brokers -----------------------------------------------------------------------------------------------------------------


def new_node(
    broker_id: int,
    shared: SharedState,
    stores: Stores,
    log_manager: LogManager,
    rng: Random,
    *,
    change_isr: IsrChange,
    peers: Callable[[int], ReplicaManager | None],
) -> Node:
    """Return a broker with its replica manager. change_isr, peers: see `ReplicaManager`."""
    config = shared.config.for_broker(broker_id)
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
    return Node(broker_id, shared, config, replicas, Random(rng.getrandbits(64)))


# ---- what most clusters do not have, and start without importing -------------------------------------------------------------


def open_persistence(
    cluster: PersistedState, data_dir: str | os.PathLike[str], new_cluster_id: str
) -> ClusterPersistence:
    """Open the data directory of a cluster. Raises ConfigError if it cannot be used."""
    from kafkaproto.broker.persistence.cluster_state import ClusterPersistence

    return ClusterPersistence(cluster, data_dir, new_cluster_id)


def publish_journal(cluster: Publishing, events: Events, name: str) -> JournalTopic:
    """Publish the journal in topic `name`. Raises ConfigError if the topic cannot be created."""
    from kafkaproto.broker.observe.journal_topic import JournalTopic

    try:
        journal_topic = JournalTopic(cluster, name)
    except KafkaError as error:
        raise ConfigError(f"the journal cannot be topic {name!r}: {error.message}") from None
    events.attach(journal_topic)
    return journal_topic
