"""Who shares a sensor, and how long it lives: identities, their bounds and their sensors, for one kind of quota (Q-8, Q-10).

What a sensor measures is its own affair: a rate (`client_quotas`) or tokens (`mutations`). Kafka's `ClientQuotaManager`
without the arithmetic. Knows clients by user name and client-id; knows no request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from kafkaproto.broker.quota.entities import QuotaEntity
from kafkaproto.broker.quota.precedence import Binding, Levels, Semantics, level_of, of_tags, resolve
from kafkaproto.broker.quota.store import ClientQuotaStore
from kafkaproto.broker.quota.windows import SampledRate
from kafkaproto.broker.runtime.timers import Timer, Timers

IDLE_SENSOR_EXPIRY_MS = 3_600_000
EXPIRY_ROUNDS_MS = 30_000
"""How long lies between two rounds that look for idle sensors at least, as in Kafka's `Metrics`."""
LONGEST_THROTTLE_MS = 2**31 - 1
"""Throttle times travel as int32."""
PLAIN_SAMPLES, PLAIN_WINDOW_MS = 2, 30_000
"""How metrics are measured that have no quota (metrics.num.samples, metrics.sample.window.ms)."""
MOST_KNOWN_CLIENTS = 65_536
"""How many clients' bindings are remembered: each can be found again, and is when it has been forgotten."""


@dataclass(slots=True)
class ThrottleReason:
    """Why a client must wait, for the journal: `rate` over `window_ms` was above `bound`, the quota of `entity`.

    quota: "Produce", "Fetch", "Request" or "ControllerMutation". user, client_id: who shares the sensor ("" does not
    matter). value: what was just recorded. Bytes and bytes a second, or percent of one thread for "Request". For
    "ControllerMutation" partitions, `rate` is the tokens left, below zero, and `window_ms` what a full bucket is worth.
    samples: what a rate is made of, as (start of the sample, sum), oldest first.
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
    samples: tuple[tuple[int, float], ...] = ()


@dataclass(slots=True)
class SensorMetrics:
    """One identity's metrics (Q-17). rate: bytes, percent or mutations a second; throttles are None until the first one, and their mean
    again when the last one is forgotten.

    tokens: of controller mutations, None for others.
    """

    quota: str
    user: str
    client_id: str
    rate: float
    bound: float | None
    last_throttle_ms: int | None
    mean_throttle_ms: float | None
    tokens: float | None = None


class Sensor:
    """What all clients with the same tags share: what they did, when that was, and how they were throttled.

    rate: of bytes, percent or mutations. tokens: None where a rate is all that there is.
    """

    __slots__ = ("_throttle_times_ms", "_throttles", "last_throttle_ms", "last_used_ms", "rate")

    def __init__(self, rate: SampledRate) -> None:
        self.rate = rate
        self.last_used_ms = 0
        self.last_throttle_ms: int | None = None
        self._throttle_times_ms: SampledRate | None = None
        self._throttles: SampledRate | None = None

    @property
    def tokens(self) -> float | None:
        return None

    def throttled(self, wait_ms: int, now_ms: int) -> None:
        if self._throttle_times_ms is None or self._throttles is None:
            self._throttle_times_ms = SampledRate(PLAIN_SAMPLES, PLAIN_WINDOW_MS)
            self._throttles = SampledRate(PLAIN_SAMPLES, PLAIN_WINDOW_MS)
        self.last_throttle_ms = wait_ms
        self._throttle_times_ms.record(wait_ms, now_ms)
        self._throttles.record(1, now_ms)

    def mean_throttle_ms(self, now_ms: int) -> float | None:
        """Of the throttles that are not forgotten yet; None without any."""
        if self._throttle_times_ms is None or self._throttles is None:
            return None
        count = self._throttles.total(now_ms)
        return self._throttle_times_ms.total(now_ms) / count if count else None


S = TypeVar("S", bound=Sensor)


class BoundClient(Generic[S]):
    """A binding with its sensor, kept per (user, client-id) so that a request looks it up once."""

    __slots__ = ("binding", "limit", "sensor")

    def __init__(self, binding: Binding, sensor: S, limit: float) -> None:
        self.binding = binding
        self.sensor = sensor
        self.limit = limit


class ClientSensors(Generic[S]):
    """The sensors of one kind of quota. While none was ever configured `enabled` is false: nothing is recorded (Q-1).

    A client is (user, client-id); client-id None counts as "". Times are milliseconds. unlimited: the bound of clients
    that have none. Begins with the quotas that the store has; its owner reports each later change to `quota_changed`.
    """

    __slots__ = (
        "_clients",
        "_expiry",
        "_levels",
        "_new_sensor",
        "_semantics",
        "_sensors",
        "_store",
        "_timers",
        "_unlimited",
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
        timers: Timers,
        new_sensor: Callable[[], S],
        unlimited: float,
    ) -> None:
        self.name = name
        self.key = key
        self.enabled = False
        self._store = store
        self._semantics = semantics
        self._timers = timers
        self._new_sensor = new_sensor
        self._unlimited = unlimited
        self._levels = Levels.NONE
        self._clients: dict[tuple[str, str | None], BoundClient[S]] = {}
        self._sensors: dict[tuple[str, str], S] = {}
        self._expiry: Timer | None = None
        for (entity, quota_key), value in store.all().items():
            self.quota_changed(entity, quota_key, value)

    def close(self) -> None:
        """Stop looking for idle sensors."""
        if self._expiry is not None:
            self._expiry.cancel()

    def bound(self, user: str, client_id: str | None) -> float | None:
        """The quota of a client per second; None if it has none."""
        return self._resolve(user, client_id).bound if self.enabled else None

    def metrics(self, now_ms: int) -> Iterator[SensorMetrics]:
        """One entry per identity seen in the last hour. Reading changes nothing; tokens are as of the last request."""
        for (user, client_id), sensor in self._sensors.items():
            if now_ms - sensor.last_used_ms <= IDLE_SENSOR_EXPIRY_MS:
                yield SensorMetrics(
                    self.name,
                    user,
                    client_id,
                    sensor.rate.peek(now_ms),
                    self._bound_of(user, client_id),
                    sensor.last_throttle_ms,
                    sensor.mean_throttle_ms(now_ms),
                    sensor.tokens,
                )

    def quota_changed(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        """Take over a changed value. It holds from the next request on, for what was recorded before too (Q-10)."""
        if key != self.key:
            return
        self._levels |= level_of(entity)
        self.enabled = self._levels != Levels.NONE
        self._clients.clear()

    def _bind(self, user: str, client_id: str | None, now_ms: int) -> BoundClient[S]:
        binding = self._resolve(user, client_id)
        tags = (binding.user, binding.client_id)
        sensor = self._sensors.get(tags)
        if sensor is None:
            sensor = self._sensors[tags] = self._new_sensor()
            sensor.last_used_ms = now_ms
            if self._expiry is None:
                self._expiry = self._timers.at(now_ms + IDLE_SENSOR_EXPIRY_MS + 1, self._drop_idle)
        if len(self._clients) >= MOST_KNOWN_CLIENTS:
            self._clients.clear()
        limit = self._unlimited if binding.bound is None else binding.bound
        client = self._clients[(user, client_id)] = BoundClient(binding, sensor, limit)
        return client

    def _resolve(self, user: str, client_id: str | None) -> Binding:
        return resolve(self._lookup, self._levels, user, client_id or "", self._semantics)

    def _bound_of(self, user_tag: str, client_tag: str) -> float | None:
        """The bound that holds for a sensor, by its tags."""
        return of_tags(self._lookup, user_tag, client_tag).bound

    def _lookup(self, entity: QuotaEntity) -> float | None:
        return self._store.get(entity, self.key)

    def _throttled(
        self,
        client: BoundClient[S],
        value: float,
        rate: float,
        window_ms: int,
        wait_ms: int,
        now_ms: int,
        samples: tuple[tuple[int, float], ...] = (),
    ) -> ThrottleReason:
        """Note that it is this quota that throttles the client; and tell why."""
        binding = client.binding
        if binding.entity is None or binding.bound is None:
            raise ValueError(
                f"{self.name}: {binding.user!r}, {binding.client_id!r} has no quota and cannot be throttled"
            )
        client.sensor.throttled(wait_ms, now_ms)
        return ThrottleReason(
            self.name,
            binding.user,
            binding.client_id,
            binding.entity,
            binding.bound,
            value,
            rate,
            window_ms,
            wait_ms,
            samples,
        )

    def _drop_idle(self, now_ms: int) -> None:
        """Forget the sensors that nobody used for an hour: who comes back begins anew.

        Requests do not look how old their sensor is; this does, now and then, and nothing while there are no sensors.
        """
        sensors = self._sensors
        self._sensors = {tags: s for tags, s in sensors.items() if now_ms - s.last_used_ms <= IDLE_SENSOR_EXPIRY_MS}
        self._clients.clear()
        self._expiry = None
        if self._sensors:
            oldest_ms = min(s.last_used_ms for s in self._sensors.values())
            due_ms = max(oldest_ms + IDLE_SENSOR_EXPIRY_MS + 1, now_ms + EXPIRY_ROUNDS_MS)
            self._expiry = self._timers.at(due_ms, self._drop_idle)
