"""What the clients of one broker have used of their quotas: produce bytes, fetch bytes, request time (KIP-13).

Quotas are per broker: each has its own sensors for the cluster's configured values (Q-0). Knows clients by user name
and client-id; knows no request and no connection. What is charged for which request stands in
`requests.charges`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from kafkaproto.broker.quota.entities import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    QuotaEntity,
)
from kafkaproto.broker.quota.precedence import Semantics
from kafkaproto.broker.quota.sensors import (
    LONGEST_THROTTLE_MS,
    ClientSensors,
    Sensor,
    SensorMetrics,
    ThrottleReason,
)
from kafkaproto.broker.quota.store import ClientQuotaStore
from kafkaproto.broker.quota.windows import DEFAULT_SAMPLES, DEFAULT_WINDOW_MS, SampledRate
from kafkaproto.broker.runtime.timers import Timers

INT32_MAX = 2**31 - 1


class QuotaManager(ClientSensors[Sensor]):
    """One kind of quota on one broker. Values are bytes or percent."""

    __slots__ = ("_cap_ms", "_samples", "_window_ms")

    def __init__(
        self,
        name: str,
        key: str,
        store: ClientQuotaStore,
        semantics: Semantics,
        timers: Timers,
        samples: int = DEFAULT_SAMPLES,
        window_ms: int = DEFAULT_WINDOW_MS,
        cap_ms: int = LONGEST_THROTTLE_MS,
    ) -> None:
        self._samples = samples
        self._window_ms = window_ms
        self._cap_ms = cap_ms
        # Kafka measures unlimited clients too, and measuring forgets obsolete samples: so no short cut for them.
        super().__init__(name, key, store, semantics, timers, lambda: Sensor(SampledRate(samples, window_ms)), math.inf)

    def record(self, user: str, client_id: str | None, value: float, now_ms: int) -> int:
        """Record `value`; milliseconds to throttle, 0 if within the quota. The value stays recorded (Q-6)."""
        if not self.enabled:
            return 0
        client = self._clients.get((user, client_id)) or self._bind(user, client_id, now_ms)
        sensor = client.sensor
        sensor.last_used_ms = now_ms
        wait_ms = sensor.rate.record_and_throttle(value, now_ms, client.limit)
        # Byte quotas have no other limit than that of the field.
        return wait_ms if wait_ms <= self._cap_ms else self._cap_ms

    def unrecord(self, user: str, client_id: str | None, value: float, now_ms: int) -> None:
        """Take `value` back. It still counts as an event (Q-13), and nothing is measured."""
        if not self.enabled:
            return
        client = self._clients.get((user, client_id)) or self._bind(user, client_id, now_ms)
        client.sensor.last_used_ms = now_ms
        client.sensor.rate.record(-value, now_ms)

    def max_bytes_in_window(self, user: str, client_id: str | None) -> int:
        """The most that one response should have, so that it is not throttled for ever (F-4, Q-14); int32."""
        bound = self.bound(user, client_id)
        if bound is None:
            return INT32_MAX
        return int(min(bound * (self._samples - 1) * (self._window_ms // 1000), INT32_MAX))

    def throttled(self, user: str, client_id: str | None, value: float, wait_ms: int, now_ms: int) -> ThrottleReason:
        """Note that it is this quota that throttles the client, for the `wait_ms` of `record`; and tell why."""
        client = self._clients.get((user, client_id)) or self._bind(user, client_id, now_ms)
        rate = client.sensor.rate
        return self._throttled(
            client, value, rate.measure(now_ms), rate.measured_window_ms(now_ms), wait_ms, now_ms, rate.samples()
        )


class ClientQuotas:
    """The quota managers of one broker, from its start to its stop.

    samples, window_ms: quota.window.num and quota.window.size.seconds. semantics: D9. timers: for idle sensors to go;
    without them they stay.
    """

    __slots__ = ("exempt_request_time", "fetch", "produce", "request")

    def __init__(
        self,
        store: ClientQuotaStore,
        semantics: Semantics = "kip",
        samples: int = DEFAULT_SAMPLES,
        window_ms: int = DEFAULT_WINDOW_MS,
        timers: Timers | None = None,
    ) -> None:
        timers = Timers() if timers is None else timers
        self.produce = QuotaManager("Produce", PRODUCER_BYTE_RATE, store, semantics, timers, samples, window_ms)
        self.fetch = QuotaManager("Fetch", CONSUMER_BYTE_RATE, store, semantics, timers, samples, window_ms)
        # Request time is never throttled for longer than one window.
        self.request = QuotaManager(
            "Request", REQUEST_PERCENTAGE, store, semantics, timers, samples, window_ms, cap_ms=window_ms
        )
        self.exempt_request_time = SampledRate(samples, window_ms)

    def close(self) -> None:
        """Stop looking for idle sensors."""
        for manager in (self.produce, self.fetch, self.request):
            manager.close()

    def quota_changed(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        """Take over a changed value (Q-10)."""
        for manager in (self.produce, self.fetch, self.request):
            manager.quota_changed(entity, key, value)

    def metrics(self, now_ms: int) -> Iterator[SensorMetrics]:
        for manager in (self.produce, self.fetch, self.request):
            yield from manager.metrics(now_ms)
