"""The sensors of one type of quota: which clients share a sensor, which quota applies to it, and when it expires (Q-8, Q-10).

A sensor measures a rate (`client_quotas`) or tokens (`mutations`). A client is identified by user name and client id. This module does not depend on
requests. It corresponds to Kafka's `ClientQuotaManager` without the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from kafkaproto.broker.quota.entities import QuotaEntity
from kafkaproto.broker.quota.precedence import Binding, Levels, Semantics, level_of, of_tags, resolve
from kafkaproto.broker.quota.store import ClientQuotaStore
from kafkaproto.broker.quota.windows import MetricWindows, SampledRate
from kafkaproto.broker.runtime.timers import Timer, Timers

IDLE_SENSOR_EXPIRY_MS = 3_600_000
EXPIRY_ROUNDS_MS = 30_000
"""The minimum time in ms between two searches for the sensors (measurements) of idle clients, as in Kafka's `Metrics`."""
LONGEST_THROTTLE_MS = 2**31 - 1
"""The longest throttle time in ms that a response can report: the field is an int32."""
MOST_KNOWN_CLIENTS = 65_536
"""The maximum number of clients whose quotas and sensors (measurements) are cached.

If the cache is full and a client that is not in it sends a request, the whole cache is emptied. No measurements are lost: the next request of
each client looks up its quota and sensor again.
"""


@dataclass(slots=True)
class ThrottleReason:
    """Why a client is throttled, for the journal that tests read: `rate` over `window_ms` exceeded `bound`, the quota of `entity`.

    - quota: "Produce", "Fetch", "Request" or "ControllerMutation".
    - user, client_id: the clients that are measured together; "" stands for any user or client id.
    - value: the last recorded value, in bytes, in percent of one thread for "Request", or in partitions for "ControllerMutation".
    - samples: the samples of the rate as (start in ms, sum), oldest first.

    "ControllerMutation" uses a token bucket instead of a rate: `rate` is then the number of tokens left, which is below zero, and `window_ms` is the
    time in which an empty bucket fills.
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
    """The throttle time in ms that this quota alone requires; another quota may require a longer one."""
    samples: tuple[tuple[int, float], ...] = ()

    def __str__(self) -> str:
        bound = f"{self.bound:,.12g}"
        if self.quota == "ControllerMutation":
            return f"{self.value:,.0f} partitions: {self.rate:,.0f} tokens are left of the {self.quota} quota of {bound} a second ({self.entity})"
        over = f"over {self.window_ms / 1000:g} s exceeds the {self.quota} quota of {bound}"
        if self.quota == "Request":
            return f"{self.value:.3g} %: {self.rate:.4g} % of one thread {over} % ({self.entity})"
        return f"{self.value:,.0f} bytes: {self.rate:,.0f} bytes/s {over} ({self.entity})"


@dataclass(slots=True)
class SensorMetrics:
    """The metrics of one quota for the clients with the same user, the same client id or both (Q-17).

    - rate: per second, in the unit of the quota: bytes, percent of one thread, or created and deleted partitions.
    - bound: the quota per second in the same unit; None if the clients have no quota.
    - last_throttle_ms: the last throttle time; None if the clients were never throttled.
    - mean_throttle_ms: the mean of the recent throttle times; None if there are none.
    - tokens: the tokens left in the bucket of the quota "ControllerMutation", None for other quotas.
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
    """The measurements that all clients with the same (user, client-id) tags share: a rate, the time of the last event, and throttle times.

    rate: the measured rate per second; depending on the type of quota in bytes, in percent of one thread or in created and deleted partitions.
    tokens: the tokens left in the bucket of a controller mutation quota; None for other types of quota. metric_windows: the windows over which the
    mean throttle time is taken.
    """

    __slots__ = ("_metric_windows", "_throttle_times_ms", "_throttles", "last_throttle_ms", "last_used_ms", "rate")

    def __init__(self, rate: SampledRate, metric_windows: MetricWindows) -> None:
        self.rate = rate
        self._metric_windows = metric_windows
        self.last_used_ms = 0
        self.last_throttle_ms: int | None = None
        self._throttle_times_ms: SampledRate | None = None
        self._throttles: SampledRate | None = None

    @property
    def tokens(self) -> float | None:
        return None

    def throttled(self, wait_ms: int, now_ms: int) -> None:
        if self._throttle_times_ms is None or self._throttles is None:
            self._throttle_times_ms = SampledRate(*self._metric_windows)
            self._throttles = SampledRate(*self._metric_windows)
        self.last_throttle_ms = wait_ms
        self._throttle_times_ms.record(wait_ms, now_ms)
        self._throttles.record(1, now_ms)

    def mean_throttle_ms(self, now_ms: int) -> float | None:
        """Return the mean in ms of the recent throttle times; None if the client was not throttled recently."""
        if self._throttle_times_ms is None or self._throttles is None:
            return None
        count = self._throttles.total(now_ms)
        return self._throttle_times_ms.total(now_ms) / count if count else None


S = TypeVar("S", bound=Sensor)


class BoundClient(Generic[S]):
    """A client's quota and sensor (measurements), cached per (user, client id) so that a request looks them up once.

    binding: the quota, and the tags of the clients that share the sensor. limit: the quota per second; infinity, or a very large number, for a client
    without a quota.
    """

    __slots__ = ("binding", "limit", "sensor")

    def __init__(self, binding: Binding, sensor: S, limit: float) -> None:
        self.binding = binding
        self.sensor = sensor
        self.limit = limit


class ClientSensors(Generic[S]):
    """The sensors of one type of quota: the measurements of each client identity (user, client id or both).

    - name: the type of quota, such as "Produce".
    - key: the key of the quotas of this type, such as "producer_byte_rate".
    - store: the cluster's configured quotas. The constructor reads them; pass each later change to `quota_changed`.
    - semantics: for clients with an empty client id, "kip" applies the quotas of the default client id, "kafka" no quota for client ids (D9).
    - new_sensor: a function that returns an empty sensor, for a client identity that has none.
    - unlimited: the limit for clients without a quota.
    - enabled: False until a quota of this type is configured. Until then, nothing is recorded (Q-1).

    A client is (user, client id); the client id None counts as "". Times are in ms.
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
        """Cancel the timer that removes the sensors (measurements) of idle clients."""
        if self._expiry is not None:
            self._expiry.cancel()

    def bound(self, user: str, client_id: str | None) -> float | None:
        """Return the quota of a client in bytes, percent or partitions per second; None if it has none."""
        return self._resolve(user, client_id).bound if self.enabled else None

    def metrics(self, now_ms: int) -> Iterator[SensorMetrics]:
        """Yield the metrics of each (user, client id) with requests in the last hour.

        Reading changes nothing. In particular, token buckets are not refilled: their tokens are those left after the last request.
        """
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
        """Apply a changed quota from the next request on. Values that were recorded before count against the new quota, too (Q-10).

        entity: whose quota changed. key: the key of the quota, such as "producer_byte_rate"; quotas of another type are ignored. value: the new quota
        per second, None if it was removed.
        """
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
        """Return the quota per second of all clients whose measurements have these user and client-id tags; None if there is none."""
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
        """Record that a client exceeded the quota that this object measures, and is throttled for `wait_ms`. Returns the reason to report.

        value: the amount that the client's last request used, such as its bytes. rate: the rate measured over `window_ms`. samples: the windows in
        this rate as (start in ms, sum of the values).
        """
        binding = client.binding
        if binding.entity is None or binding.bound is None:
            raise ValueError(
                f"user {binding.user!r} with client-id {binding.client_id!r} has no {self.name} quota, so it cannot be throttled; set a quota first"
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
        """Drop the sensors (measurements) that no client has used for an hour.

        A timer calls this, so that requests need not check the age of their sensor. While there are no sensors, no timer is set.
        """
        sensors = self._sensors
        self._sensors = {tags: s for tags, s in sensors.items() if now_ms - s.last_used_ms <= IDLE_SENSOR_EXPIRY_MS}
        self._clients.clear()
        self._expiry = None
        if self._sensors:
            oldest_ms = min(s.last_used_ms for s in self._sensors.values())
            due_ms = max(oldest_ms + IDLE_SENSOR_EXPIRY_MS + 1, now_ms + EXPIRY_ROUNDS_MS)
            self._expiry = self._timers.at(due_ms, self._drop_idle)
