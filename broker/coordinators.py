"""Functions that build the group and transaction coordinators of a broker from its settings, when they are first used.

Most clusters have neither groups nor transactions. Therefore the modules of a coordinator are imported only when this coordinator is first used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING

from kafkaproto.broker.config.cluster_config import BrokerConfig
from kafkaproto.broker.config.features import GROUP_VERSION, TRANSACTION_VERSION, supported_features
from kafkaproto.broker.config.group_bounds import KAFKAS_ASSIGNORS, check_group_bounds
from kafkaproto.broker.config.java_text import java_items
from kafkaproto.broker.config.release import is_release_4, is_release_4_1, is_release_4_2
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.placement import OFFSETS_TOPIC, coordinator_of
from kafkaproto.broker.group.settings import ASSIGNOR_NAMES, ConsumerGroupSettings, GroupSettings
from kafkaproto.broker.metadata.image import TRANSACTION_TOPIC
from kafkaproto.broker.node import Node, SharedState
from kafkaproto.broker.replication.replica_manager import ALL_IN_SYNC, ReplicaManager
from kafkaproto.error_codes import ErrorCode
from kafkaproto.records.compression import Compression

if TYPE_CHECKING:
    from kafkaproto.broker.group.coordinator import GroupCoordinator
    from kafkaproto.broker.replication.transaction_markers import TransactionMarkers
    from kafkaproto.broker.transaction.coordinator import TransactionCoordinator
    from kafkaproto.broker.transaction.operations import TransactionMarker
    from kafkaproto.broker.transaction.producer_ids import ProducerIds
    from kafkaproto.broker.transaction.settings import TransactionSettings
    from kafkaproto.broker.transaction.verification import Verifier

ASSIGNORS = "group.consumer.assignors"
GROUP_LOAD_MS = "kafkaproto.group.load.ms"
TRANSACTION_LOAD_MS = "kafkaproto.transaction.load.ms"
TRANSACTION_COMPLETION_MS = "kafkaproto.transaction.completion.ms"
PRODUCER_ID_BLOCK_MS = "kafkaproto.producer.id.block.ms"
PROTOCOLS = "group.coordinator.rebalance.protocols"
COMMIT_ACKS = "offsets.commit.required.acks"
APPEND_LINGER = "group.coordinator.append.linger.ms"
REGEX_REFRESH = "group.consumer.regex.refresh.interval.ms"
DEFAULT_REGEX_REFRESH_MS = 600_000


def groups_factory(shared: SharedState, replicas: ReplicaManager, rng: Random) -> Callable[[], GroupCoordinator]:
    """Return a function that creates the group coordinator of one broker. The new coordinator has no groups yet.

    This call reads and checks the settings. The modules of the coordinator are imported when the returned function is called. shared: the state that
    all brokers of the cluster share. replicas: the broker's replicas, through which the coordinator writes to the offsets topic. rng: generates
    member ids. Raises ConfigError for an assignor that this broker does not have.
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
    codec = Compression(get["offsets.topic.compression.codec"])
    has_required_acks = COMMIT_ACKS in shared.config.definitions.broker and not consumers.has_new_coordinator
    acks = get[COMMIT_ACKS] if has_required_acks else ALL_IN_SYNC
    lingers = consumers.has_new_coordinator and APPEND_LINGER in shared.config.definitions.broker
    linger_ms = max(get[APPEND_LINGER], 0) if lingers else 0

    def new_groups() -> GroupCoordinator:
        from kafkaproto.broker.group.coordinator import GroupCoordinator
        from kafkaproto.broker.group.records import KAFKA_3_9, KAFKA_4_1
        from kafkaproto.broker.group.subscribed_topics import ClusterTopics
        from kafkaproto.broker.replication.coordinator_log import CoordinatorLog

        log = CoordinatorLog(
            OFFSETS_TOPIC,
            replicas,
            shared.timers,
            commit_timeout_ms,
            codec,
            acks=acks,
            checks_isr=not consumers.has_new_coordinator,
            linger_ms=linger_ms,
        )
        groups = GroupCoordinator(
            settings,
            shared.timers,
            rng,
            shared.events,
            log,
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

        def reload(index: int, now_ms: int) -> None:
            groups.ownership.reload(index, now_ms)
            groups.commits.deletions.forget_missing_topics(shared.controller.image.topics, now_ms)

        log.lost = reload
        return groups

    return new_groups


def new_consumer_settings(shared: SharedState, broker_id: int) -> ConsumerGroupSettings:
    """Return one broker's settings of the new group protocol (KIP-848).

    Releases before 3.7 lack these settings; the result then has their defaults. shared: the state that all brokers of the cluster share.
    """
    get, broker_definitions = shared.config.for_broker(broker_id), shared.config.definitions.broker
    if ASSIGNORS not in broker_definitions:
        return ConsumerGroupSettings()

    def of_group(name: str) -> Callable[[str], int]:
        has_own = name in shared.config.definitions.group

        def value(group_id: str) -> int:
            own = shared.config.groups.get(group_id, {}) if has_own else {}
            return int(shared.config.group_value(broker_id, own, name) if own else get[f"group.{name}"])

        return value

    is_newer = is_release_4(shared.release_name)
    check_group_bounds(get, broker_definitions.keys(), is_release_4=is_newer)
    has_group_version = GROUP_VERSION in supported_features(shared.release_name)
    policy = get["group.consumer.migration.policy"].lower()
    protocols = rebalance_protocols(get)
    is_on = "consumer" in protocols
    is_new_coordinator = "group.coordinator.new.enable" in broker_definitions and get["group.coordinator.new.enable"]
    return ConsumerGroupSettings(
        is_on=is_on,
        is_new_coordinator=is_new_coordinator,
        is_finalized=lambda: not has_group_version or GROUP_VERSION in shared.controller.image.features,
        is_release_4=is_newer,
        is_release_4_1=is_release_4_1(shared.release_name),
        is_release_4_2=is_release_4_2(shared.release_name),
        max_size=get["group.consumer.max.size"],
        assignors=consumer_assignors(get, is_release_4=is_newer, is_needed=is_on or is_new_coordinator),
        may_upgrade=policy in ("upgrade", "bidirectional"),
        may_downgrade=policy in ("downgrade", "bidirectional"),
        forgets_empty_groups=not shared.strict_kip,
        regex_refresh_ms=get[REGEX_REFRESH] if REGEX_REFRESH in broker_definitions else DEFAULT_REGEX_REFRESH_MS,
        session_timeout_ms=of_group("consumer.session.timeout.ms"),
        heartbeat_interval_ms=of_group("consumer.heartbeat.interval.ms"),
    )


def rebalance_protocols(get: BrokerConfig) -> list[str]:
    """Return the group protocols that a broker serves. Raises ConfigError if "classic" is missing, as Kafka does when it starts (GN-67).

    get: the settings of the broker.
    """
    protocols = java_items(get[PROTOCOLS])
    if "classic" not in protocols:
        raise ConfigError(f'{PROTOCOLS} must contain classic (got "{get[PROTOCOLS]}")')
    return protocols


def consumer_assignors(get: BrokerConfig, *, is_release_4: bool, is_needed: bool) -> tuple[str, ...]:
    """Return the short names, such as "range", of the assignors in the setting `group.consumer.assignors` (GN-36).

    get: the settings of the broker. is_release_4: whether the broker emulates Kafka 4.0 or later; before, only the names of Kafka's Java classes are
    valid items. is_needed: whether the coordinator uses the assignors; an empty list is then invalid, and otherwise all assignors are returned.
    Raises ConfigError for an assignor that this broker does not have.
    """
    text = get[ASSIGNORS]
    if not text and not is_needed:
        return ASSIGNOR_NAMES
    names = {f"{KAFKAS_ASSIGNORS}{name.title()}Assignor": name for name in ASSIGNOR_NAMES}
    if is_release_4:
        names |= {name: name for name in ASSIGNOR_NAMES}
    items = java_items(text)
    unknown = [item for item in items if item not in names]
    if unknown:
        allowed = ASSIGNOR_NAMES if is_release_4 else tuple(names)
        reason = (
            ""
            if is_release_4 or unknown[0] not in ASSIGNOR_NAMES
            else ": before Kafka 4.0, only names of classes are valid"
        )
        raise ConfigError(f'{ASSIGNORS} must be a list of {", ".join(allowed)} (got "{text}"){reason}')
    return tuple(names[item] for item in items)


class TransactionParts:
    """The transaction coordinator of one broker and the coordinator's components. Each object is created, and its module imported, on first use.

    running: a function that takes a broker id, and returns the broker with this id, or None while that broker is stopped.
    """

    def __init__(self, shared: SharedState, replicas: ReplicaManager, running: Callable[[int], Node | None]) -> None:
        self._shared = shared
        self._replicas = replicas
        self._running = running
        self._config = shared.config.for_broker(replicas.broker_id)
        self._start_ms = shared.actions.now_ms

    def coordinator_id(self, transactional_id: str) -> int:
        """Return the id of the broker that coordinates a transactional id. Creates the transaction topic if it is missing (TX-1).

        Raises KafkaError COORDINATOR_NOT_AVAILABLE (15) while there is no coordinator.
        """
        count = self.coordinator.store.partition_count
        return coordinator_of(transactional_id, TRANSACTION_TOPIC, self._shared.controller, count)

    def find_coordinator(self, transactional_id: str) -> TransactionCoordinator:
        """Return this broker's transaction coordinator, which itself rejects transactional ids that another broker coordinates.

        If the transaction topic is missing, it is first created for this id in a cluster with the profile `test`. With the profile `kafka`,
        only FindCoordinator creates the topic, as in Kafka. Raises KafkaError COORDINATOR_NOT_AVAILABLE (15) if the topic cannot be created.
        """
        if TRANSACTION_TOPIC not in self._shared.controller.image.topics and self._shared.profile == "test":
            self.coordinator_id(transactional_id)
        return self.coordinator

    def coordinate(self) -> None:
        """Make this broker the coordinator of exactly the transactional ids whose partition of the transaction topic it leads (TX-1)."""
        topic = self._shared.controller.image.topics.get(TRANSACTION_TOPIC)
        partitions = () if topic is None else topic.partitions
        led = {state.index: state.leader_epoch for state in partitions if state.leader == self._replicas.broker_id}
        self.coordinator.store.change(led, len(partitions), self._shared.actions.now_ms)

    def stop_coordinating(self) -> None:
        """Drop all transactional ids and the block of producer ids from memory, because this broker stops."""
        self.__dict__.pop("producer_ids", None)
        if "coordinator" in self.__dict__:
            self.coordinator.stop(self._shared.actions.now_ms)

    @cached_property
    def producer_ids(self) -> ProducerIds:
        """The ids that this broker assigns to idempotent and transactional producers."""
        from kafkaproto.broker.transaction.producer_ids import ProducerIds

        return ProducerIds(self._shared.new_producer_id_block, lambda: int(self._config[PRODUCER_ID_BLOCK_MS]))

    @cached_property
    def coordinator(self) -> TransactionCoordinator:
        from kafkaproto.broker.replication.coordinator_log import CoordinatorLog
        from kafkaproto.broker.replication.transaction_markers import MarkerSender
        from kafkaproto.broker.transaction.changes import reporter
        from kafkaproto.broker.transaction.coordinator import TransactionCoordinator

        shared, get = self._shared, self._config
        return TransactionCoordinator(
            transaction_settings(get, shared),
            shared.timers,
            CoordinatorLog(TRANSACTION_TOPIC, self._replicas, shared.timers, get["request.timeout.ms"]),
            MarkerSender(lambda: shared.controller.image.topics, self._markers_of),
            lambda now_ms: self.producer_ids.next_id(now_ms),  # not the method: a restarted broker has other ids
            self._start_ms,
            lambda: int(get[TRANSACTION_LOAD_MS]),
            reporter(shared.events, self._replicas.broker_id),
        )

    @cached_property
    def markers(self) -> TransactionMarkers:
        """The component that writes transaction markers to the partitions that this broker leads."""
        from kafkaproto.broker.replication.transaction_markers import TransactionMarkers

        timeout_ms = self._config["request.timeout.ms"]
        return TransactionMarkers(self._replicas, self._shared.timers, timeout_ms, self._ended)

    @cached_property
    def verifier(self) -> Verifier:
        """The component that asks the transaction coordinators of all brokers whether a partition belongs to a producer's transaction (KIP-890)."""
        from kafkaproto.broker.transaction.verification import Verifier

        get, broker_definitions = self._config, self._shared.config.definitions.broker

        def setting(name: str, default: int) -> Callable[[], int]:
            return lambda: int(get[name]) if name in broker_definitions else default

        return Verifier(
            self._coordinator_of,
            self._shared.timers,
            setting("add.partitions.to.txn.retry.backoff.ms", 20),
            setting("add.partitions.to.txn.retry.backoff.max.ms", 100),
        )

    def _markers_of(self, broker_id: int) -> TransactionMarkers | None:
        node = self._running(broker_id)
        return None if node is None else node.transactions.markers

    def _coordinator_of(self, transactional_id: str) -> TransactionCoordinator:
        """Return the coordinator of a transactional id, on whichever broker it runs.

        Raises KafkaError COORDINATOR_NOT_AVAILABLE (15) if the transaction topic is missing or the partition has no leader, and
        NETWORK_EXCEPTION (13) if the leader's broker has stopped without a handover (TX-28).
        """
        if TRANSACTION_TOPIC not in self._shared.controller.image.topics:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        node = self._running(self.coordinator_id(transactional_id))
        if node is None:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION)
        return node.transactions.coordinator

    def _ended(self, key: tuple[str, int], marker: TransactionMarker, now_ms: int) -> None:
        """Complete the offset commits of a transaction whose marker is replicated (TX-43).

        If the transaction was committed, its offsets become visible to OffsetFetch. If it was aborted, they are dropped. key: a partition with the
        replicated marker, as (topic, index); nothing is done unless it is a partition of the offsets topic. marker: contains the producer id and
        whether the transaction was committed.
        """
        node = self._running(self._replicas.broker_id)
        if key[0] == OFFSETS_TOPIC and node is not None and node.has_groups:
            node.groups.commits.transactional.end(key[1], marker.producer_id, committed=marker.committed, now_ms=now_ms)


def transaction_settings(get: BrokerConfig, shared: SharedState) -> TransactionSettings:
    """Return the settings of the transaction coordinator of one broker.

    get: the settings of this broker. shared: the state that all brokers of the cluster share.
    """
    from kafkaproto.broker.transaction.settings import TransactionSettings

    return TransactionSettings(
        max_timeout_ms=get["transaction.max.timeout.ms"],
        timeout_check_ms=get["transaction.abort.timed.out.transaction.cleanup.interval.ms"],
        expiration_ms=get["transactional.id.expiration.ms"],
        expiration_check_ms=get["transaction.remove.expired.transaction.cleanup.interval.ms"],
        server_version=lambda: shared.controller.image.features.get(TRANSACTION_VERSION, 0),
        is_release_4=is_release_4(shared.release_name),
        completion_ms=lambda: int(get[TRANSACTION_COMPLETION_MS]),
    )
