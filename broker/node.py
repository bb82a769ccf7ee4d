"""One broker of the cluster: its replicas, quotas, sessions and connections, under one id. State and nothing that acts by itself.

Handlers find everything here. Must never know wire messages or sockets.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import cached_property
from random import Random
from typing import Any, Protocol

from kafkaproto.api import APIS
from kafkaproto.broker.config.values import BrokerConfig, ClusterConfig
from kafkaproto.broker.fetch.read import Reader
from kafkaproto.broker.fetch.session import SessionCache
from kafkaproto.broker.group.coordinator import GroupCoordinator
from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.metadata.image import Image
from kafkaproto.broker.network.acceptor import Acceptor
from kafkaproto.broker.quota.client_quotas import ClientQuotas
from kafkaproto.broker.quota.connection_quotas import ConnectionQuotas
from kafkaproto.broker.quota.forced import ForcedThrottles
from kafkaproto.broker.quota.mutations import MutationCharge, MutationQuotas
from kafkaproto.broker.quota.precedence import Semantics
from kafkaproto.broker.quota.store import ClientQuotaStore
from kafkaproto.broker.replication.replica_manager import ReplicaManager
from kafkaproto.broker.requests.outcomes import Throttling
from kafkaproto.broker.requests.registry import Registration
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.clock import Clock
from kafkaproto.broker.runtime.events import Events
from kafkaproto.broker.runtime.timers import Timers

logger = logging.getLogger("kafkaproto.node")

COMPLAIN_EVERY_MS = 60_000


class OpenConnection(Protocol):
    """A connection as its broker knows it. active_ms: when it last read or wrote."""

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
    """What the brokers of a cluster share."""

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
    def groups(self) -> GroupCoordinator: ...

    @property
    def controller(self) -> Controller: ...

    def coordinator_of(self, group_id: str) -> int:
        """Return the broker that coordinates a group. Raises KafkaError 15 while there is none."""

    def next_producer_id(self) -> int:
        """Return a producer id that no producer of this cluster has. Raises KafkaError 56."""

    def auto_create(self, name: str, mutations: MutationCharge | None = None) -> None:
        """Create a topic that a client asked for, and charge the client for it. Raises KafkaError."""

    def remember_config(self, broker_id: int, layer: Mapping[str, str]) -> None:
        """Persist the settings of a broker (-1: of all) before they change. Raises KafkaError 56."""

    def setting_changed(self) -> None:
        """Have everything that keeps a copy of a broker setting take over the new value."""


class Node:
    """One broker. cluster: the state that it shares with the others."""

    def __init__(
        self,
        broker_id: int,
        cluster: SharedState,
        config: BrokerConfig,
        replicas: ReplicaManager,
        rng: Random,
    ) -> None:
        self.broker_id = broker_id
        self.cluster = cluster
        self.config = config
        self.replicas = replicas
        self.timers: Timers = cluster.timers
        self.actions: ActionQueue = cluster.actions
        self.events: Events = cluster.events
        self.forced: ForcedThrottles = cluster.forced_throttles
        self.throttling: Throttling = cluster.throttling
        self.clock: Clock = cluster.clock
        self.running = True
        self.connections: dict[int, OpenConnection] = {}
        self._silent_until_ms: dict[str, int] = {}
        self.counted_ms = 0.0
        """Handler time that was counted for anybody, so that none of it is counted twice."""
        self.reader = Reader(replicas, cluster.strict_kip)
        self.quotas = self._new_quotas()
        self.connection_quotas = ConnectionQuotas(config, cluster.quota_store)
        self.acceptors: dict[str, Acceptor] = {}
        self._rng = rng
        self.sessions = self._new_sessions()
        self.fetch_max_bytes: int = config["fetch.max.bytes"]
        self.socket_request_max_bytes: int = config["socket.request.max.bytes"]
        self.connections_max_idle_ms: int = config["connections.max.idle.ms"]

    @property
    def image(self) -> Image:
        return self.cluster.controller.image

    @property
    def log_dir(self) -> str:
        """The one directory that this broker tells of, be there one or not."""
        given = self.config["log.dirs"] or self.config["log.dir"]
        return str(given).split(",")[0].strip() or f"/kafkaproto/broker-{self.broker_id}"

    @cached_property
    def apis(self) -> Mapping[int, Registration]:
        """What this broker offers, by api key."""
        return self.cluster.apis

    def _new_quotas(self) -> ClientQuotas:
        return ClientQuotas(
            self.cluster.quota_store,
            self.cluster.semantics,
            self.config["quota.window.num"],
            self.config["quota.window.size.seconds"] * 1000,
            self.timers,
        )

    def _new_sessions(self) -> SessionCache:
        return SessionCache(self._rng, self.config["max.incremental.fetch.session.cache.slots"])

    def forget_sessions(self) -> None:
        """No fetch session is known any more, as after a restart."""
        self.sessions = self._new_sessions()

    def reset_quotas(self) -> None:
        """Fresh sensors, as after a start."""
        self.quotas.close()
        self.quotas = self._new_quotas()
        self.connection_quotas.forget_rates()
        self.replicas.limit_replication()

    def scripted_cost_ms(self, api_key: int) -> float:
        """What a test said that handling a request of this API costs, where time is not real."""
        return self.cluster.request_cost_ms.get(APIS[api_key].name, 0.0)

    def complain(self, about: str, message: object, now_ms: int) -> None:
        """Say at ERROR what hinders this broker, once a minute for each thing it is about: not once per request."""
        if now_ms >= self._silent_until_ms.get(about, now_ms):
            self._silent_until_ms[about] = now_ms + COMPLAIN_EVERY_MS
            logger.error("broker %d: %s: %s", self.broker_id, about, message)

    # ---- connections ---------------------------------------------------------------------------------------------------------

    def acceptor(self, listener: str) -> Acceptor:
        """Who lets connections in through a listener."""
        found = self.acceptors.get(listener)
        if found is None:
            found = Acceptor(listener, self.connection_quotas, self.timers, self._note_caller)
            self.acceptors[listener] = found
        return found

    def _note_caller(self, kind: str, now_ms: int, facts: dict[str, Any]) -> None:
        if self.events.noted is not None:
            self.events.noted(now_ms, self.broker_id, kind, facts)

    def joined(self, connection: OpenConnection) -> None:
        self.connections[connection.connection_id] = connection
        self.connection_quotas.entered(connection.listener_name, connection.client_address)
        self._drop_surplus()
        if self.events.connection_opened is not None:
            self.events.connection_opened(self.broker_id, connection, self.actions.now_ms)

    def left(self, connection: OpenConnection, why: str) -> None:
        del self.connections[connection.connection_id]
        self.connection_quotas.left(connection.listener_name, connection.client_address)
        self._let_in_soon()
        if self.events.connection_closed is not None:
            self.events.connection_closed(self.broker_id, connection, why, self.actions.now_ms)

    def settings_changed(self) -> None:
        self.connection_quotas.settings_changed()
        self._drop_surplus()
        self._let_in_soon()

    def _drop_surplus(self) -> None:
        """Close the least recently used connections beyond max.connections, whatever they wait for; no broker's (W-12)."""
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
