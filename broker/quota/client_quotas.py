"""What the clients of one broker have used of their quotas: produce bytes, fetch bytes, request time (KIP-13).

Quotas are per broker: each has its own sensors for the cluster's configured values (Q-0). Knows clients by user name
and client-id; knows no request and no connection. What is charged for which request stands in `charges` and
`throttled_fetch`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from broker.quota.entities import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE, QuotaEntity
from broker.quota.precedence import Binding, Levels, Semantics, level_of, resolve
from broker.quota.store import ClientQuotaStore
from broker.quota.windows import DEFAULT_SAMPLES, DEFAULT_WINDOW_MS, SampledRate

INT32_MAX = 2**31 - 1
IDLE_SENSOR_EXPIRY_MS = 3_600_000


@dataclass(slots=True)
class ThrottleReason:
    """Why a client must wait, for the journal: `rate` over `window_ms` was above `bound`, the quota of `entity`.

    quota: "Produce", "Fetch" or "Request". user, client_id: who shares the sensor ("" does not matter). value: what was
    just recorded. Bytes and bytes a second, or percent of one thread for "Request". samples: what the rate is made of, as
    (start of the sample, sum), oldest first.
    """

    quota: str
    user: str
    client_id: str
    entity: QuotaEntity
    bound: float
    value: float
    rate: float
    window_ms: int
    throttle_ms: int
    samples: tuple[tuple[int, float], ...]


@dataclass(slots=True)
class SensorMetrics:
    """One identity's metrics (Q-17). rate: bytes a second, or percent; throttles are None until the first one."""

    quota: str
    user: str
    client_id: str
    rate: float
    bound: float | None
    last_throttle_ms: int | None
    mean_throttle_ms: float | None


class _Sensor:
    """What all clients with the same tags share."""

    __slots__ = ("last_throttle_ms", "last_used_ms", "rate", "throttle_count", "throttle_total_ms")

    def __init__(self, samples: int, window_ms: int) -> None:
        self.rate = SampledRate(samples, window_ms)
        self.last_used_ms = 0
        self.last_throttle_ms: int | None = None
        self.throttle_total_ms = 0
        self.throttle_count = 0


class _Bound:
    """A binding with its sensor, kept per (user, client-id) so that a request looks it up once."""

    __slots__ = ("binding", "limit", "sensor")

    def __init__(self, binding: Binding, sensor: _Sensor) -> None:
        self.binding = binding
        self.sensor = sensor
        # Kafka measures unlimited clients too, and measuring forgets obsolete samples: so no short cut for them.
        self.limit = math.inf if binding.bound is None else binding.bound


class QuotaManager:
    """One kind of quota on one broker. While none was ever configured `enabled` is false: nothing is recorded (Q-1).

    A client is (user, client-id); client-id None counts as "". Times are milliseconds; values are bytes or percent.
    """

    __slots__ = (
        "_cap_ms",
        "_clients",
        "_levels",
        "_samples",
        "_semantics",
        "_sensors",
        "_store",
        "_sweep_due_ms",
        "_window_ms",
        "enabled",
        "key",
        "name",
    )

    def __init__(
        self,
        name: str,
        key: str,
        store: ClientQuotaStore,
        semantics: Semantics,
        samples: int = DEFAULT_SAMPLES,
        window_ms: int = DEFAULT_WINDOW_MS,
        cap_ms: int = INT32_MAX,
    ) -> None:
        self.name = name
        self.key = key
        self.enabled = False
        self._store = store
        self._semantics = semantics
        self._samples = samples
        self._window_ms = window_ms
        self._cap_ms = cap_ms
        self._levels = Levels.NONE
        self._clients: dict[tuple[str, str | None], _Bound] = {}
        self._sensors: dict[tuple[str, str], _Sensor] = {}
        self._sweep_due_ms = 0

    def quota_changed(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        """A configured value changed. It holds from the next request on, for what was recorded before too (Q-10)."""
        if key != self.key:
            return
        self._levels |= level_of(entity)
        self.enabled = self._levels != Levels.NONE
        self._clients.clear()

    def record(self, user: str, client_id: str | None, value: float, now_ms: int) -> int:
        """Record `value`; milliseconds to throttle, 0 if within the quota. The value stays recorded (Q-6)."""
        if not self.enabled:
            return 0
        client = self._clients.get((user, client_id)) or self._bind(user, client_id, now_ms)
        sensor = client.sensor
        sensor.last_used_ms = now_ms
        wait_ms = sensor.rate.record_and_throttle(value, now_ms, client.limit)
        # Throttle times travel as int32: byte quotas have no other limit.
        return wait_ms if wait_ms <= self._cap_ms else self._cap_ms

    def unrecord(self, user: str, client_id: str | None, value: float, now_ms: int) -> None:
        """Take `value` back. It still counts as an event (Q-13), and nothing is measured."""
        if not self.enabled:
            return
        client = self._clients.get((user, client_id)) or self._bind(user, client_id, now_ms)
        client.sensor.last_used_ms = now_ms
        client.sensor.rate.record(-value, now_ms)

    def bound(self, user: str, client_id: str | None) -> float | None:
        """The quota of a client per second; None if it has none."""
        return self._resolve(user, client_id).bound if self.enabled else None

    def max_bytes_in_window(self, user: str, client_id: str | None) -> int:
        """The most that one response should have, so that it is not throttled for ever (F-4, Q-14); int32."""
        bound = self.bound(user, client_id)
        if bound is None:
            return INT32_MAX
        return int(min(bound * (self._samples - 1) * (self._window_ms // 1000), INT32_MAX))

    def throttled(self, user: str, client_id: str | None, value: float, wait_ms: int, now_ms: int) -> ThrottleReason:
        """Note that it is this quota that throttles the client, for the `wait_ms` of `record`; and tell why."""
        client = self._clients.get((user, client_id)) or self._bind(user, client_id, now_ms)
        binding, sensor = client.binding, client.sensor
        if binding.entity is None or binding.bound is None:
            raise ValueError(f"{self.name}: {user!r}, {client_id!r} has no quota and cannot be throttled")
        sensor.last_throttle_ms = wait_ms
        sensor.throttle_total_ms += wait_ms
        sensor.throttle_count += 1
        return ThrottleReason(
            self.name,
            binding.user,
            binding.client_id,
            binding.entity,
            binding.bound,
            value,
            sensor.rate.measure(now_ms),
            sensor.rate.measured_window_ms(now_ms),
            wait_ms,
            sensor.rate.samples(),
        )

    def metrics(self, now_ms: int) -> Iterator[SensorMetrics]:
        """One entry per identity seen in the last hour. Reading changes nothing."""
        bounds = {client.binding[:2]: client.binding.bound for client in self._clients.values()}
        for (user, client_id), sensor in self._sensors.items():
            if now_ms - sensor.last_used_ms > IDLE_SENSOR_EXPIRY_MS:
                continue
            count = sensor.throttle_count
            yield SensorMetrics(
                self.name,
                user,
                client_id,
                sensor.rate.peek(now_ms),
                bounds.get((user, client_id)),
                sensor.last_throttle_ms,
                sensor.throttle_total_ms / count if count else None,
            )

    def _bind(self, user: str, client_id: str | None, now_ms: int) -> _Bound:
        if now_ms >= self._sweep_due_ms:
            self._drop_idle_sensors(now_ms)
        binding = self._resolve(user, client_id)
        tags = (binding.user, binding.client_id)
        sensor = self._sensors.get(tags)
        if sensor is None:
            sensor = self._sensors[tags] = _Sensor(self._samples, self._window_ms)
            sensor.last_used_ms = now_ms
        client = self._clients[(user, client_id)] = _Bound(binding, sensor)
        return client

    def _resolve(self, user: str, client_id: str | None) -> Binding:
        return resolve(self._lookup, self._levels, user, client_id or "", self._semantics)

    def _lookup(self, entity: QuotaEntity) -> float | None:
        return self._store.get(entity, self.key)

    def _drop_idle_sensors(self, now_ms: int) -> None:
        # Kafka drops a sensor an hour after its last use. Its samples are long gone by then: only memory is at stake,
        # so it is enough to look now and then. Throttle metrics go with it.
        self._sweep_due_ms = now_ms + IDLE_SENSOR_EXPIRY_MS
        idle = [tags for tags, s in self._sensors.items() if now_ms - s.last_used_ms > IDLE_SENSOR_EXPIRY_MS]
        for tags in idle:
            del self._sensors[tags]
        self._clients.clear()


class ClientQuotas:
    """The quota managers of one broker, from its start to its stop: `close()` lets go of the cluster's store.

    samples, window_ms: quota.window.num and quota.window.size.seconds. semantics: D9.
    """

    __slots__ = ("_store", "exempt_request_time", "fetch", "produce", "request")

    def __init__(
        self,
        store: ClientQuotaStore,
        semantics: Semantics = "kip",
        samples: int = DEFAULT_SAMPLES,
        window_ms: int = DEFAULT_WINDOW_MS,
    ) -> None:
        self._store = store
        self.produce = QuotaManager("Produce", PRODUCER_BYTE_RATE, store, semantics, samples, window_ms)
        self.fetch = QuotaManager("Fetch", CONSUMER_BYTE_RATE, store, semantics, samples, window_ms)
        # Request time is never throttled for longer than one window.
        self.request = QuotaManager("Request", REQUEST_PERCENTAGE, store, semantics, samples, window_ms, window_ms)
        self.exempt_request_time = SampledRate(samples, window_ms)
        for manager in (self.produce, self.fetch, self.request):
            store.subscribe(manager.quota_changed)

    def close(self) -> None:
        for manager in (self.produce, self.fetch, self.request):
            self._store.unsubscribe(manager.quota_changed)

    def metrics(self, now_ms: int) -> Iterator[SensorMetrics]:
        for manager in (self.produce, self.fetch, self.request):
            yield from manager.metrics(now_ms)
