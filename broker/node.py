"""One broker of the cluster: its replicas, quotas, fetch sessions and connections under one id. It holds state and starts nothing itself.

Request handlers access the state of the broker through the class `Node`. This module does not depend on wire messages or sockets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from kafkaproto.api import APIS
from kafkaproto.broker.config.cluster_config import BrokerConfig, ClusterConfig, ConfigOwner
from kafkaproto.broker.config.java_text import java_items
from kafkaproto.broker.config.release import is_release_4
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.fetch.read import Reader
from kafkaproto.broker.fetch.session import SessionCache
from kafkaproto.broker.group.all_groups import AllGroups
from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.metadata.image import Image
from kafkaproto.broker.network.acceptor import Acceptor
from kafkaproto.broker.quota.client_quotas import ClientQuotas, new_client_quotas
from kafkaproto.broker.quota.connection_quotas import ConnectionQuotas
from kafkaproto.broker.quota.forced import ForcedThrottles
from kafkaproto.broker.quota.mutations import MutationQuotas
from kafkaproto.broker.quota.precedence import Semantics
from kafkaproto.broker.quota.store import ClientQuotaStore
from kafkaproto.broker.replication.replica_manager import ReplicaManager
from kafkaproto.broker.requests.outcomes import Throttling
from kafkaproto.broker.requests.registry import Registration
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.clock import Clock
from kafkaproto.broker.runtime.events import Events
from kafkaproto.broker.runtime.timers import Timers

if TYPE_CHECKING:
    from kafkaproto.broker.group.coordinator import GroupCoordinator
    from kafkaproto.broker.metadata.broker_sessions import BrokerSessions
    from kafkaproto.broker.replication.transaction_markers import TransactionMarkers
    from kafkaproto.broker.telemetry.instances import TelemetryInstances
    from kafkaproto.broker.transaction.coordinator import TransactionCoordinator
    from kafkaproto.broker.transaction.producer_ids import ProducerIds
    from kafkaproto.broker.transaction.verification import Verifier

logger = logging.getLogger("kafkaproto.node")

COMPLAIN_EVERY_MS = 60_000


class OpenConnection(Protocol):
    """An open connection of a broker.

    active_ms: when bytes were last received or a response was last sent, in ms of the broker's clock.
    """

    @property
    def connection_id(self) -> int: ...

    @property
    def listener_name(self) -> str: ...

    @property
    def client_address(self) -> str: ...

    @property
    def principal(self) -> str: ...

    @property
    def active_ms(self) -> int: ...

    def close(self, why: str) -> None: ...


class SharedState(Protocol):
    """Interface of the state that all brokers of a cluster share: the attributes and methods that a broker uses."""

    @property
    def clock(self) -> Clock: ...

    @property
    def timers(self) -> Timers: ...

    @property
    def actions(self) -> ActionQueue: ...

    @property
    def events(self) -> Events: ...

    @property
    def config(self) -> ClusterConfig: ...

    @property
    def profile(self) -> str: ...

    @property
    def release_name(self) -> str: ...

    @property
    def semantics(self) -> Semantics: ...

    @property
    def strict_kip(self) -> bool: ...

    @property
    def throttling(self) -> Throttling: ...

    @property
    def apis(self) -> Mapping[int, Registration]: ...

    @property
    def connection_ids(self) -> Iterator[int]: ...

    @property
    def request_cost_ms(self) -> Mapping[str, float]: ...

    @property
    def forced_throttles(self) -> ForcedThrottles: ...

    @property
    def quota_store(self) -> ClientQuotaStore: ...

    @property
    def mutations(self) -> MutationQuotas: ...

    @property
    def groups(self) -> AllGroups: ...

    @property
    def controller(self) -> Controller: ...

    @property
    def sessions(self) -> BrokerSessions: ...

    def coordinator_of(self, group_id: str, partition_count: int = 0) -> int:
        """Return the id of the broker that coordinates a group.

        partition_count: how many partitions of `__consumer_offsets` store groups, from partition 0 on; 0 for all. Raises KafkaError
        COORDINATOR_NOT_AVAILABLE (15) without a coordinator.
        """

    def new_producer_id_block(self) -> int:
        """Reserve 1,000 producer ids and return the first. Raises KafkaError KAFKA_STORAGE_ERROR (56) if they cannot be persisted."""

    def remember_config(self, owner: ConfigOwner, layer: Mapping[str, str]) -> None:
        """Persist the settings of `owner` before changed settings take effect. Raises KafkaError KAFKA_STORAGE_ERROR (56) if that fails.

        owner: a broker id, -1 for all brokers, a group id, or the name of a client metrics subscription. layer: all settings, as text, that are set
        on the owner itself after the change.
        """

    def setting_changed(self) -> None:
        """Notify the components that keep a copy of a broker setting, because a setting has changed."""


class Transactions(Protocol):
    """Interface of the transaction components of a broker. Each component is created on first use, because most clusters have no transactions."""

    @property
    def coordinator(self) -> TransactionCoordinator: ...

    @property
    def markers(self) -> TransactionMarkers: ...

    @property
    def verifier(self) -> Verifier: ...

    @property
    def producer_ids(self) -> ProducerIds: ...

    def coordinator_id(self, transactional_id: str) -> int:
        """Return the id of the broker that coordinates a transactional id. Creates the transaction topic if it is missing.

        Raises KafkaError COORDINATOR_NOT_AVAILABLE (15) while there is no coordinator.
        """
        ...

    def find_coordinator(self, transactional_id: str) -> TransactionCoordinator:
        """Return this broker's transaction coordinator, which itself rejects transactional ids that another broker coordinates.

        With the profile `test` (settings for tests), a missing transaction topic is created first. Raises KafkaError COORDINATOR_NOT_AVAILABLE (15)
        if that fails. With the profile `kafka` (Kafka's own defaults), the topic is not created.
        """
        ...

    def coordinate(self) -> None:
        """Make this broker the coordinator of exactly the transactional ids whose partition of the transaction topic it leads."""

    def stop_coordinating(self) -> None:
        """Drop all transactional ids and the block of producer ids from memory."""


class Node:
    """One broker. cluster: the state that all brokers share. config: the settings of this broker. rng: generates fetch session ids.

    new_groups: creates the group coordinator on first use, because most clusters have no groups and start faster without it. transactions: the
    transaction coordinator and its components.
    """

    def __init__(
        self,
        broker_id: int,
        cluster: SharedState,
        config: BrokerConfig,
        replicas: ReplicaManager,
        new_groups: Callable[[], GroupCoordinator],
        transactions: Transactions,
        rng: Random,
    ) -> None:
        self.broker_id = broker_id
        self.cluster = cluster
        self.config = config
        self.replicas = replicas
        self._new_groups = new_groups
        self.transactions = transactions
        self.timers: Timers = cluster.timers
        self.actions: ActionQueue = cluster.actions
        self.events: Events = cluster.events
        self.forced: ForcedThrottles = cluster.forced_throttles
        self.throttling: Throttling = cluster.throttling
        self.is_release_4 = is_release_4(cluster.release_name)
        self.clock: Clock = cluster.clock
        self.running = True
        self.connections: dict[int, OpenConnection] = {}
        self._silent_until_ms: dict[str, int] = {}
        self.counted_ms = 0.0
        """The total measured time in ms of all calls that handle a request, or that build the response to a request from purgatory.

        While a handler runs, it can complete requests from purgatory. The time to build their responses is charged to the clients of these requests.
        That time is subtracted from the handler's own time: it is the amount by which this total grows while the handler runs.
        """
        self.reader = Reader(replicas, cluster.strict_kip)
        self.quotas = self._new_quotas()
        self.connection_quotas = ConnectionQuotas(config, cluster.quota_store)
        self.acceptors: dict[str, Acceptor] = {}
        self._rng = rng
        self.sessions = self._new_sessions()
        self.group_removals_at_start = config.cluster.group_removals
        """How often all settings of a group had been removed (`ClusterConfig.group_removals`) when this broker started (AD-18)."""
        self.fetch_max_bytes: int = config["fetch.max.bytes"]
        self.socket_request_max_bytes: int = config["socket.request.max.bytes"]
        self.connections_max_idle_ms: int = config["connections.max.idle.ms"]

    @cached_property
    def groups(self) -> GroupCoordinator:
        """Return the group coordinator of this broker, created on first use."""
        return self._new_groups()

    @property
    def has_groups(self) -> bool:
        """Return whether the group coordinator of this broker exists; it is created on first use."""
        return "groups" in self.__dict__

    @cached_property
    def telemetry(self) -> TelemetryInstances:
        """Return the clients that send metrics to this broker."""
        from kafkaproto.broker.telemetry.instances import TelemetryInstances

        return TelemetryInstances(self.config, self._rng)

    @property
    def image(self) -> Image:
        return self.cluster.controller.image

    @property
    def log_dir(self) -> str:
        """Return the path that this broker reports as its log directory.

        It is the first folder in `log.dirs`, else in `log.dir`, else the data directory. If none of them is set, the path does not exist on the disk.
        """
        setting = next((self.config[name] for name in ("log.dirs", "log.dir") if self.config.is_given(name)), "")
        path = next(filter(None, java_items(str(setting))), "")
        return path or self.replicas.stores.path or f"/kafkaproto/broker-{self.broker_id}"

    @cached_property
    def apis(self) -> Mapping[int, Registration]:
        """Return the APIs that this broker offers, by API key."""
        return self.cluster.apis

    def _new_quotas(self) -> ClientQuotas:
        return new_client_quotas(self.config, self.cluster.quota_store, self.cluster.semantics, self.timers)

    def _new_sessions(self) -> SessionCache:
        return SessionCache(self._rng, self.config["max.incremental.fetch.session.cache.slots"])

    def coordinate_groups(self) -> None:
        """Make this broker the coordinator of exactly the groups whose partition of the offsets topic it leads (GO-12)."""
        topic = self.image.topics.get(OFFSETS_TOPIC)
        partitions = () if topic is None else topic.partitions
        led = [state.index for state in partitions if state.leader == self.broker_id]
        self.groups.ownership.change(led, len(partitions), self.actions.now_ms)

    def stop_coordinating(self) -> None:
        """Drop all groups and transactional ids from memory, because this broker stops."""
        if self.has_groups:
            self.groups.stop(self.actions.now_ms)
        self.transactions.stop_coordinating()

    def refuses_group(self, group_id: str) -> int:
        """Return 0 if this broker coordinates a group, otherwise an error code: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS (GC-7).

        If the offsets topic is missing, the profile `test` (settings for tests) first creates it; if the creation fails, the result is the error of
        the creation. With the profile `kafka` (Kafka's defaults), the topic is not created, and the error is NOT_COORDINATOR.
        """
        if OFFSETS_TOPIC not in self.image.topics and self.cluster.profile == "test":
            try:
                self.cluster.coordinator_of(group_id)
            except KafkaError as error:
                return error.error_code
        return self.groups.ownership.refusal(group_id)

    def forget_sessions(self) -> None:
        """Drop the state that does not survive a restart of the broker.

        This is: all fetch sessions, the clients that send metrics to the broker, and the names of groups whose settings were all removed.
        """
        self.sessions = self._new_sessions()
        self.group_removals_at_start = self.config.cluster.group_removals
        self.__dict__.pop("telemetry", None)

    def reset_quotas(self) -> None:
        """Reset all measured client, connection and replication rates of this broker, because the broker restarts."""
        self.quotas.close()
        self.quotas = self._new_quotas()
        self.connection_quotas.forget_rates()
        self.replicas.limit_replication()

    def scripted_cost_ms(self, api_key: int) -> float:
        """Return the handler time in ms that a test has set for each request of this API, for a cluster with a manual clock; 0 by default."""
        return self.cluster.request_cost_ms.get(APIS[api_key].name, 0.0)

    def complain(self, about: str, message: object, now_ms: int) -> None:
        """Log `message` at ERROR, at most once a minute for each problem. about: the name of the problem; equal names are one problem."""
        if now_ms >= self._silent_until_ms.get(about, now_ms):
            self._silent_until_ms[about] = now_ms + COMPLAIN_EVERY_MS
            logger.error("broker %d: %s: %s", self.broker_id, about, message)

    # ---- connections ---------------------------------------------------------------------------------------------------------

    def acceptor(self, listener: str) -> Acceptor:
        """Return the acceptor of the listener named `listener`, created on first use."""
        acceptor = self.acceptors.get(listener)
        if acceptor is None:
            acceptor = Acceptor(listener, self.connection_quotas, self.timers, self._note_caller)
            self.acceptors[listener] = acceptor
        return acceptor

    def _note_caller(self, kind: str, now_ms: int, facts: dict[str, Any]) -> None:
        if self.events.noted is not None:
            self.events.noted(now_ms, self.broker_id, kind, facts)

    def connection_opened(self, connection: OpenConnection) -> None:
        self.connections[connection.connection_id] = connection
        self.connection_quotas.connection_opened(connection.listener_name, connection.client_address)
        self._drop_surplus()
        if self.events.connection_opened is not None:
            self.events.connection_opened(self.broker_id, connection, self.actions.now_ms)

    def connection_closed(self, connection: OpenConnection, why: str) -> None:
        del self.connections[connection.connection_id]
        if "telemetry" in self.__dict__:
            self.telemetry.connection_closed(connection.connection_id)
        self.connection_quotas.connection_closed(connection.listener_name, connection.client_address)
        self._let_in_soon()
        if self.events.connection_closed is not None:
            self.events.connection_closed(self.broker_id, connection, why, self.actions.now_ms)

    def settings_changed(self) -> None:
        self.connection_quotas.settings_changed()
        self._drop_surplus()
        self._let_in_soon()

    def _drop_surplus(self) -> None:
        """Close the least recently used client connections, even busy ones, until the broker is within max.connections (W-12).

        Connections to an inter-broker listener stay open if the broker has other listeners.
        """
        quotas = self.connection_quotas
        while quotas.surplus:
            clients = [c for c in self.connections.values() if not quotas.is_protected(c.listener_name)]
            if not clients:
                return
            min(clients, key=lambda c: c.active_ms).close("more than max.connections are open")

    def _let_in_soon(self) -> None:
        if any(acceptor.has_waiting for acceptor in self.acceptors.values()):
            self.actions.soon(self._let_in)

    def _let_in(self, now_ms: int) -> None:
        for acceptor in self.acceptors.values():
            acceptor.proceed(now_ms)

    def close_connections(self) -> None:
        for acceptor in self.acceptors.values():
            acceptor.close()
        for connection in list(self.connections.values()):
            connection.close("the broker stops")
