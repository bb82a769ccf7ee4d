"""Limits the number of connections to a broker and the rate at which they come (W-12, W-13; KIP-308, KIP-402, KIP-612).

Connections are counted per address, per listener and in total, and rates are measured over sampled windows, as for client quotas (Q-2 to Q-6). The
`acceptor` decides which connection waits and for how long. This module does not depend on sockets. It corresponds to Kafka's `ConnectionQuotas`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from kafkaproto.broker.config.cluster_config import BrokerConfig
from kafkaproto.broker.config.values import connection_overrides
from kafkaproto.broker.quota.addresses import canonical
from kafkaproto.broker.quota.entities import CONNECTION_CREATION_RATE, DEFAULT, QuotaEntity
from kafkaproto.broker.quota.sensors import IDLE_SENSOR_EXPIRY_MS
from kafkaproto.broker.quota.store import ClientQuotaStore
from kafkaproto.broker.quota.windows import SampledRate

UNLIMITED = 2**31 - 1
"""Kafka's value for no limit, in settings and as a quota of an IP address."""
_DEFAULT_INTER_BROKER_LISTENER = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class _Limits:
    """The connection limits in the settings of a broker. of_listener: maps listeners to (max.connections, max.connection.creation.rate)."""

    connections: int
    creation_rate: int
    of_listener: dict[str, tuple[int, int]]
    per_address: int
    overrides: dict[str, int]
    inter_broker_listener: str


class ConnectionQuotas:
    """The connection counts and rates of one broker. Times are in milliseconds, rates in connections a second.

    store: the configured client quotas of the cluster. The quotas of IP addresses are read from it when this object is created. Each later change
    must be passed to `quota_changed`.
    """

    def __init__(self, config: BrokerConfig, store: ClientQuotaStore) -> None:
        self._config = config
        self._limits: _Limits | None = None
        self._window_ms: int = config["quota.window.size.seconds"] * 1000
        self._by_address: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self.total = 0
        self._ip_limits: dict[str, int] = {}
        self._default_ip_limit = UNLIMITED
        self.forget_rates()
        for (entity, key), value in store.all().items():
            self.quota_changed(entity, key, value)

    def forget_rates(self) -> None:
        """Restart all rate measurements at 0, like a restart of the broker. Open connections stay counted."""
        self._limits = None
        self._broker_rate = self._new_rate()
        self._listener_rates = {listener: self._new_rate() for listener in self._by_listener}
        self._ip_rates: dict[str, tuple[SampledRate, int]] = {}
        self._sweep_due_ms = 0

    def add_listener(self, listener: str) -> None:
        if listener not in self._by_listener:
            self._limits = None
            self._by_listener[listener] = 0
            self._listener_rates[listener] = self._new_rate()

    def settings_changed(self) -> None:
        """Read the connection limits from the settings again; the new limits apply from the next connection on."""
        self._limits = None

    def _current(self) -> _Limits:
        if self._limits is None:
            config = self._config
            overrides = connection_overrides(config["max.connections.per.ip.overrides"])
            self._limits = _Limits(
                config["max.connections"],
                config["max.connection.creation.rate"],
                {
                    name: (
                        config.of_listener(name, "max.connections"),
                        config.of_listener(name, "max.connection.creation.rate"),
                    )
                    for name in self._by_listener
                },
                config["max.connections.per.ip"],
                {canonical(host): limit for host, limit in overrides.items()},
                (config["inter.broker.listener.name"] or _DEFAULT_INTER_BROKER_LISTENER).upper(),
            )
        return self._limits

    # ---- how fast ------------------------------------------------------------------------------------------------------------

    def arrived(self, listener: str, now_ms: int) -> int:
        """Count a new connection in the rates of its listener and of the broker. Returns how many ms it must wait before it is admitted.

        0 means that both rates are within their limits. A connection to an inter-broker listener does not count in the rate of the broker if there
        are other listeners.
        """
        limits = self._current()
        wait_ms = self._record(self._listener_rates[listener], limits.of_listener[listener][1], now_ms)
        if not self.is_protected(listener):
            wait_ms = max(wait_ms, self._record(self._broker_rate, limits.creation_rate, now_ms))
        return wait_ms

    def address_throttle_ms(self, listener: str, address: str, now_ms: int) -> int:
        """Count a new connection in the rate of its IP address. Returns 0 if the address has no limit or the rate is within it.

        If the rate exceeds the limit, the connection is rejected: the result is the time in ms after which the caller must close it. A rejected
        connection is subtracted again from the rate of its address, and from the rates of `listener` and the broker, in which `arrived` counted it.
        """
        address = canonical(address)
        limit = self._ip_limits.get(address, self._default_ip_limit)
        if limit == UNLIMITED:
            return 0
        rate = self._ip_rate(address, now_ms)
        wait_ms = self._record(rate, limit, now_ms)
        if wait_ms:
            rate.record(-1, now_ms)
            self._listener_rates[listener].record(-1, now_ms)
            if not self.is_protected(listener):
                self._broker_rate.record(-1, now_ms)
        return wait_ms

    def _record(self, rate: SampledRate, limit: int, now_ms: int) -> int:
        if limit == 0:
            rate.record(1, now_ms)
            return self._window_ms
        return min(rate.record_and_throttle(1, now_ms, limit), self._window_ms)

    def _ip_rate(self, address: str, now_ms: int) -> SampledRate:
        if now_ms >= self._sweep_due_ms:
            self._sweep_due_ms = now_ms + IDLE_SENSOR_EXPIRY_MS
            rates = self._ip_rates.items()
            self._ip_rates = {ip: entry for ip, entry in rates if now_ms - entry[1] <= IDLE_SENSOR_EXPIRY_MS}
        entry = self._ip_rates.get(address)
        rate = self._new_rate() if entry is None else entry[0]
        self._ip_rates[address] = (rate, now_ms)
        return rate

    def _new_rate(self) -> SampledRate:
        return SampledRate(self._config["quota.window.num"], self._window_ms)

    def quota_changed(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        """Apply a changed quota if it limits the connection rate of an IP address, or of all addresses without their own quota; else ignore it.

        entity: the entity whose quota changed. key: the key of the quota; only "connection_creation_rate" limits the connection rate. value:
        connections per second, None if the quota was removed.
        """
        if entity.ip is None or key != CONNECTION_CREATION_RATE:
            return
        limit = UNLIMITED if value is None else 0 if math.isnan(value) else int(value)  # Java converts NaN to the int 0
        if entity.ip == DEFAULT:
            self._default_ip_limit = limit
        elif value is None:
            self._ip_limits.pop(canonical(entity.ip), None)
        else:
            self._ip_limits[canonical(entity.ip)] = limit

    # ---- how many ------------------------------------------------------------------------------------------------------------

    def slot_available(self, listener: str) -> bool:
        """Return whether the listener may admit one more connection under its own max.connections and that of the broker.

        The limit of the broker does not apply to its inter-broker listener if the broker has other listeners, too.
        """
        limits = self._current()
        if self._by_listener[listener] >= limits.of_listener[listener][0]:
            return False
        return self.total < limits.connections or self.is_protected(listener)

    def address_has_room(self, address: str) -> bool:
        """Return whether max.connections.per.ip and max.connections.per.ip.overrides allow one more connection from an IP address."""
        address, limits = canonical(address), self._current()
        return self._by_address[address] < limits.overrides.get(address, limits.per_address)

    @property
    def surplus(self) -> int:
        """Return by how many connections the broker exceeds max.connections, usually 0. The broker closes this number of connections."""
        return max(0, self.total - self._current().connections)

    def is_protected(self, listener: str) -> bool:
        """Return whether the broker-wide limits do not apply to a listener: it is the inter-broker listener, and the broker has other listeners."""
        return len(self._by_listener) > 1 and listener == self._current().inter_broker_listener

    def connection_opened(self, listener: str, address: str) -> None:
        self.add_listener(listener)
        self._by_address[canonical(address)] += 1
        self._by_listener[listener] += 1
        self.total += 1

    def connection_closed(self, listener: str, address: str) -> None:
        address = canonical(address)
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
        self._by_listener[listener] -= 1
        self.total -= 1

    def metrics(self, now_ms: int) -> Iterator[tuple[str, dict[str, str], float]]:
        """Yield (name, tags, connections per second) for the metrics of the group socket-server-metrics. Reading changes nothing."""
        yield "broker-connection-accept-rate", {}, self._broker_rate.peek(now_ms)
        for listener, rate in self._listener_rates.items():
            yield "connection-accept-rate", {"listener": listener}, rate.peek(now_ms)
        for address, (rate, _) in self._ip_rates.items():
            yield "connection-accept-rate", {"ip": address}, rate.peek(now_ms)
