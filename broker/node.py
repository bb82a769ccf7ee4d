"""One broker of the cluster: its replicas, quotas, sessions and connections, under one id. State and nothing that acts by itself.

Handlers find everything here. Must never know wire messages or sockets.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Protocol

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.faults.journal import Journal
from broker.faults.rules import ForcedThrottles
from broker.fetch.read import Reader
from broker.fetch.session import SessionCache
from broker.metadata.image import Image
from broker.quota.client_quotas import ClientQuotas
from broker.registry import Registration
from broker.replication.replica_manager import ReplicaManager
from broker.timers import Timers
from broker.turn import Turn
from kafkaproto.api import APIS

if TYPE_CHECKING:
    from broker.cluster import Cluster

logger = logging.getLogger("kafkaproto.node")

COMPLAIN_EVERY_MS = 60_000


class OpenConnection(Protocol):
    """A connection as its broker knows it."""

    def close(self) -> None: ...


class Node:
    """`cluster` is what all brokers share: controller, groups, quotas' values, producer ids, journal, clock."""

    def __init__(
        self,
        broker_id: int,
        cluster: Cluster,
        config: BrokerConfig,
        replicas: ReplicaManager,
        rng: Random,
    ) -> None:
        self.broker_id = broker_id
        self.cluster = cluster
        self.config = config
        self.replicas = replicas
        self.timers: Timers = cluster.timers
        self.turn: Turn = cluster.turn
        self.journal: Journal = cluster.journal
        self.forced: ForcedThrottles = cluster.forced_throttles
        self.holds_back = cluster.holds_back
        self.clock: Clock = cluster.clock
        self.running = True
        self.connections: dict[int, OpenConnection] = {}
        self._silent_until_ms: dict[str, int] = {}
        self.reader = Reader(replicas, cluster.strict_kip)
        self.quotas = self._new_quotas()
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
        self.replicas.limit_replication()

    def scripted_cost_ms(self, api_key: int) -> float:
        """What a test said that handling a request of this API costs, where time is not real."""
        return self.cluster.request_cost_ms.get(APIS[api_key].name, 0.0)

    def complain(self, about: str, message: object, now_ms: int) -> None:
        """Say at ERROR what hinders this broker, once a minute for each thing it is about: not once per request."""
        if now_ms >= self._silent_until_ms.get(about, now_ms):
            self._silent_until_ms[about] = now_ms + COMPLAIN_EVERY_MS
            logger.error("broker %d: %s: %s", self.broker_id, about, message)

    def close_connections(self) -> None:
        for connection in list(self.connections.values()):
            connection.close()
