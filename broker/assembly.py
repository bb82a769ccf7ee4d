"""Functions that build and connect the parts of a cluster from its settings. Knows no `Cluster`, and decides nothing while it runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import TYPE_CHECKING

from kafkaproto.broker.config.cluster_config import BrokerConfig, ClusterConfig
from kafkaproto.broker.config.release import is_release_4, is_release_4_1, is_release_4_2
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.broker.group.settings import ASSIGNOR_NAMES, ConsumerGroupSettings, GroupSettings
from kafkaproto.broker.log.manager import LogManager
from kafkaproto.broker.metadata.balance import LeaderBalance
from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.node import Node, SharedState
from kafkaproto.broker.observe.diagnostics import Diagnostics
from kafkaproto.broker.observe.journal import DetailedJournal, Journal
from kafkaproto.broker.observe.request_log import RequestLog
from kafkaproto.broker.observe.sasl_attempts import SaslAttempts
from kafkaproto.broker.observe.throttle_log import ThrottleLog
from kafkaproto.broker.observe.undeliverable_log import UndeliverableLog
from kafkaproto.broker.quota.mutations import MutationQuotas
from kafkaproto.broker.quota.precedence import Semantics
from kafkaproto.broker.quota.store import ClientQuotaStore, apply_static_quotas
from kafkaproto.broker.replication.replica_manager import IsrChange, ReplicaManager
from kafkaproto.broker.replication.stores import Stores
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.events import Events, Observer
from kafkaproto.broker.runtime.timers import Timers

if TYPE_CHECKING:
    from kafkaproto.broker.group.coordinator import GroupCoordinator
    from kafkaproto.broker.observe.journal_topic import JournalTopic, Publishing
    from kafkaproto.broker.persistence.cluster_state import ClusterPersistence, PersistedState

DEFAULT_MEMORY_BYTES = 256 * 1024 * 1024
KAFKAS_ASSIGNORS = "org.apache.kafka.coordinator.group.assignor."
GROUP_LOAD_MS = "kafkaproto.group.load.ms"
REGEX_REFRESH = "group.consumer.regex.refresh.interval.ms"
DEFAULT_REGEX_REFRESH_MS = 600_000
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
    """Raise ValueError for cluster options that are out of range, with the allowed values in the message."""
    if not isinstance(brokers, int) or brokers < 1:
        raise ValueError(f"brokers must be at least 1 (got {brokers!r}); for example 3")
    if not isinstance(memory_bytes, int) or memory_bytes < 0:
        raise ValueError(f"memory_bytes must be at least 0 (got {memory_bytes!r}); for example {DEFAULT_MEMORY_BYTES}")
    if semantics not in SEMANTICS:
        raise ValueError(f'unknown semantics "{semantics}"; known are {", ".join(SEMANTICS)}')


def profile_defaults(profile: str, brokers: int) -> dict[str, object]:
    """Return the defaults that differ from Kafka's: the profile `test` has small internal topics and short group delays, `kafka` changes nothing."""
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
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
    }


def new_config(
    brokers: int, config: Mapping[str, object] | None, profile: str, strict_kip: bool, release: str
) -> ClusterConfig:
    """Return the settings of a cluster. Raises ConfigError if a setting is invalid or names a broker that does not exist."""
    made = ClusterConfig(config, profile_defaults(profile, brokers), strict_kip, release)
    unknown_ids = sorted(i for i in made.static_broker if i >= brokers)
    if unknown_ids:
        name = next(iter(made.static_broker[unknown_ids[0]]))
        raise ConfigError(
            f"{unknown_ids[0]}.{name}: there is no broker {unknown_ids[0]}; ids are 0 to {brokers - 1}, for example 0.{name}=..."
        )
    return made


# ---- parts that all brokers share --------------------------------------------------------------------------------------------


def groups_factory(shared: SharedState, replicas: ReplicaManager, rng: Random) -> Callable[[], GroupCoordinator]:
    """Return a function that makes the group coordinator of one broker, without groups. It writes to the offsets topic through `replicas`.

    The settings are read and checked now, and the modules of the coordinator are imported when the function is called.
    Raises ConfigError for an assignor that this broker does not have.
    """
    get = shared.config.for_broker(replicas.broker_id)
    settings = GroupSettings(
        group_min_session_timeout_ms=get["group.min.session.timeout.ms"],
        group_max_session_timeout_ms=get["group.max.session.timeout.ms"],
        group_initial_rebalance_delay_ms=get["group.initial.rebalance.delay.ms"],
        group_max_size=get["group.max.size"],
        offset_metadata_max_bytes=get["offset.metadata.max.bytes"],
        offsets_retention_ms=get["offsets.retention.minutes"] * 60_000,
        offsets_retention_check_interval_ms=get["offsets.retention.check.interval.ms"],
    )
    consumers, commit_timeout_ms = new_consumer_settings(shared, replicas.broker_id), get["offsets.commit.timeout.ms"]

    def new_groups() -> GroupCoordinator:
        from kafkaproto.broker.group.coordinator import GroupCoordinator
        from kafkaproto.broker.group.records import KAFKA_3_9, KAFKA_4_1
        from kafkaproto.broker.group.subscribed_topics import ClusterTopics
        from kafkaproto.broker.replication.coordinator_log import CoordinatorLog

        return GroupCoordinator(
            settings,
            shared.timers,
            rng,
            shared.events,
            CoordinatorLog(OFFSETS_TOPIC, replicas, shared.timers, commit_timeout_ms),
            KAFKA_4_1 if is_release_4_1(shared.release_name) else KAFKA_3_9,
            lambda: int(get[GROUP_LOAD_MS]),
            consumers,
            ClusterTopics(
                lambda: shared.controller.image.topics,
                lambda broker_id: shared.controller.image.brokers[broker_id].rack,
                consumers,
            ),
            replicas.broker_id,
        )

    return new_groups


def new_consumer_settings(shared: SharedState, broker_id: int) -> ConsumerGroupSettings:
    """Return the settings of the new group protocol (KIP-848). Before 3.7 no release has it."""
    get, known = shared.config.for_broker(broker_id), shared.config.definitions.broker
    if "group.consumer.assignors" not in known:
        return ConsumerGroupSettings()

    def of_group(name: str) -> Callable[[str], int]:
        has_own = name in shared.config.definitions.group

        def value(group_id: str) -> int:
            own = shared.config.groups.get(group_id, {}) if has_own else {}
            return int(shared.config.group_value(broker_id, own, name) if own else get[f"group.{name}"])

        return value

    check_bounds(get)
    policy = get["group.consumer.migration.policy"].lower()
    return ConsumerGroupSettings(
        is_on="consumer" in items(get["group.coordinator.rebalance.protocols"]),
        is_release_4=is_release_4(shared.release_name),
        is_release_4_1=is_release_4_1(shared.release_name),
        is_release_4_2=is_release_4_2(shared.release_name),
        max_size=get["group.consumer.max.size"],
        assignors=tuple(assignor_name(given) for given in items(get["group.consumer.assignors"])),
        may_upgrade=policy in ("upgrade", "bidirectional"),
        may_downgrade=policy in ("downgrade", "bidirectional"),
        regex_refresh_ms=get[REGEX_REFRESH] if REGEX_REFRESH in known else DEFAULT_REGEX_REFRESH_MS,
        session_timeout_ms=of_group("consumer.session.timeout.ms"),
        heartbeat_interval_ms=of_group("consumer.heartbeat.interval.ms"),
    )


def check_bounds(get: BrokerConfig) -> None:
    """Check that the timeouts of consumer groups are within their own bounds, as Kafka does at start (GN-67). Raises ConfigError."""
    for name in ("heartbeat.interval.ms", "session.timeout.ms"):
        value, least, most = (get[f"group.consumer.{bound}{name}"] for bound in ("", "min.", "max."))
        if not least <= value <= most:
            raise ConfigError(
                f"group.consumer.{name} must be from group.consumer.min.{name} ({least}) to group.consumer.max.{name} ({most}) (got {value})"
            )
    interval_ms, timeout_ms = (
        get[f"group.consumer.{name}"] for name in ("heartbeat.interval.ms", "session.timeout.ms")
    )
    if interval_ms >= timeout_ms:
        raise ConfigError(
            f"group.consumer.heartbeat.interval.ms must be below group.consumer.session.timeout.ms ({timeout_ms}) (got {interval_ms})"
        )


def items(text: str) -> list[str]:
    """Return the items of a list setting, without blanks around them."""
    return [item.strip() for item in text.split(",")]


def assignor_name(given: str) -> str:
    """Return the name of an assignor that `group.consumer.assignors` gives by name or by Kafka's class (GN-36).

    Raises ConfigError for an assignor that this broker does not have.
    """
    name = given.removeprefix(KAFKAS_ASSIGNORS).removesuffix("Assignor").lower()
    if name not in ASSIGNOR_NAMES:
        raise ConfigError(f"group.consumer.assignors must be a list of {', '.join(ASSIGNOR_NAMES)} (got {given})")
    return name


def new_mutations(
    config: ClusterConfig, store: ClientQuotaStore, semantics: Semantics, timers: Timers
) -> MutationQuotas:
    """Return the controller mutation quotas of a new cluster, with nothing charged yet (KIP-599)."""
    samples, window_s = (config.get(-1, f"controller.quota.window.{name}") for name in ("num", "size.seconds"))
    return MutationQuotas(store, semantics, timers, samples, window_s * 1000)


def enter_static_quotas(config: ClusterConfig, store: ClientQuotaStore) -> None:
    """Enter the quotas of the configuration into the store (KIP-13)."""
    apply_static_quotas(store, {name: config.get(-1, name) for name in STATIC_QUOTAS})


def new_balance(controller: Controller, config: ClusterConfig, timers: Timers, actions: ActionQueue) -> LeaderBalance:
    """Return the component that moves leaderships back to preferred replicas. It reads both of its settings each time it runs."""
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
    group_seed: int,
    *,
    change_isr: IsrChange,
    peers: Callable[[int], ReplicaManager | None],
) -> Node:
    """Return a broker with its replica manager and its group coordinator, which generates member ids with `group_seed`.

    `change_isr` and `peers` are passed to `ReplicaManager`.
    """
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
    node_rng = Random(rng.getrandbits(64))
    new_groups = groups_factory(shared, replicas, Random(group_seed + broker_id))
    return Node(broker_id, shared, config, replicas, new_groups, node_rng)


# ---- optional parts, imported only for clusters that use them ----------------------------------------------------------------


def open_persistence(
    cluster: PersistedState, data_dir: str | os.PathLike[str], new_cluster_id: str
) -> ClusterPersistence:
    """Open the data directory of a cluster. Raises ConfigError if it cannot be used. new_cluster_id: the cluster id if it is new."""
    from kafkaproto.broker.persistence.cluster_state import ClusterPersistence

    return ClusterPersistence(cluster, data_dir, new_cluster_id)


def attach_observers(
    events: Events, journal: Journal, others: Iterable[Observer], release_name: str, timers: Timers
) -> None:
    """Attach the observers that every cluster has: its journal, `others`, and the logs; with a detailed journal also the log of requests."""
    logs = ThrottleLog(), UndeliverableLog(), Diagnostics(release_name, timers, journal), SaslAttempts(timers, journal)
    for observer in (journal, *others, *logs):
        events.attach(observer)
    if isinstance(journal, DetailedJournal):
        events.attach(RequestLog(journal))


def publish_journal(cluster: Publishing, events: Events, name: str) -> JournalTopic:
    """Publish the journal in topic `name`. Raises ConfigError if the topic cannot be created."""
    from kafkaproto.broker.observe.journal_topic import JournalTopic

    try:
        journal_topic = JournalTopic(cluster, name)
    except KafkaError as error:
        raise ConfigError(f"topic {name!r} cannot hold the journal: {error.message}") from None
    events.attach(journal_topic)
    return journal_topic
