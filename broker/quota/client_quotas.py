"""Measures how much of their quotas the clients of one broker use: produce bytes, fetch bytes, request time (KIP-13).

Each broker measures independently, and compares with the values configured for the whole cluster (Q-0). A client is identified by user name and
client id. This module does not depend on Kafka requests or connections: `requests.charges` decides what is charged for which request.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from kafkaproto.broker.config.cluster_config import BrokerConfig
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
from kafkaproto.broker.quota.windows import (
    DEFAULT_METRIC_WINDOWS,
    DEFAULT_SAMPLES,
    DEFAULT_WINDOW_MS,
    MetricWindows,
    SampledRate,
    longest_window_ms,
)
from kafkaproto.broker.runtime.timers import Timers

INT32_MAX = 2**31 - 1


class QuotaManager(ClientSensors[Sensor]):
    """Measures one type of client quota on one broker. The measured values are bytes, or percent of one thread for request time.

    name: "Produce", "Fetch" or "Request". key: the key of the quota, such as "producer_byte_rate". cap_ms: the maximum throttle time in ms; a longer
    throttle time is reduced to this value. samples, window_ms: the number of the windows over which a client's rate is measured, and their length in
    ms. metric_windows: the windows over which the metric throttle-time is measured.
    """

    __slots__ = ("_cap_ms", "_samples", "_window_ms", "longest_window_ms", "undeliverable")

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
        metric_windows: MetricWindows = DEFAULT_METRIC_WINDOWS,
    ) -> None:
        self._samples = samples
        self._window_ms = window_ms
        self._cap_ms = cap_ms
        self.longest_window_ms = longest_window_ms(samples, window_ms)
        """The longest time in ms over which the rate of a client is measured (`windows.longest_window_ms`)."""
        self.undeliverable: dict[tuple[str | None, str, int], Any] = {}
        """Maps (client id, topic, partition) to a batch that is too large for the client's quota, so that the client can never fetch it (Q-14).

        The value is an `UndeliverableBatch`. It becomes None when the client receives records of the partition, for example because it has skipped
        the batch. No further warning is logged for a key that is in this dict. The dict is emptied when a quota of this object's type (`key`)
        changes.
        """
        # Kafka measures unlimited clients too, and measuring drops obsolete samples: so no shortcut for them.
        super().__init__(
            name,
            key,
            store,
            semantics,
            timers,
            lambda: Sensor(SampledRate(samples, window_ms), metric_windows),
            math.inf,
        )

    def quota_changed(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        if key == self.key:
            self.undeliverable.clear()
        super().quota_changed(entity, key, value)

    def record(self, user: str, client_id: str | None, value: float, now_ms: int) -> int:
        """Add `value` (bytes or percent) to the client's measured use. Returns the throttle time in ms, 0 if the client is within its quota (Q-6).

        user: the name of the connection's user. client_id: the client id in the request, None for none, which counts as "".
        """
        if not self.enabled:
            return 0
        client = self._clients.get((user, client_id)) or self._bind(user, client_id, now_ms)
        sensor = client.sensor
        sensor.last_used_ms = now_ms
        wait_ms = sensor.rate.record_and_throttle(value, now_ms, client.limit)
        # A byte throttle is limited only by its int32 field.
        return wait_ms if wait_ms <= self._cap_ms else self._cap_ms

    def unrecord(self, user: str, client_id: str | None, value: float, now_ms: int) -> None:
        """Subtract `value` from the client's measured use: the bytes of a fetch response that is sent without its data (T-4).

        As in Kafka, the subtraction is one more event of the measured rate, with a negative value (Q-13).
        """
        if not self.enabled:
            return
        client = self._clients.get((user, client_id)) or self._bind(user, client_id, now_ms)
        client.sensor.last_used_ms = now_ms
        client.sensor.rate.record(-value, now_ms)

    def max_bytes_in_window(self, user: str, client_id: str | None) -> int:
        """Return the largest number of bytes that the client's quota allows in one fetch response (F-4, Q-14).

        The result is the quota in bytes per second times the duration of all sample windows except one, but at most the largest int32. For a client
        without a quota, the result is the largest int32.
        """
        bound = self.bound(user, client_id)
        if bound is None:
            return INT32_MAX
        allowed = bound * (self._samples - 1) * (self._window_ms // 1000)
        return 0 if math.isnan(allowed) else int(min(allowed, INT32_MAX))

    def throttled(self, user: str, client_id: str | None, value: float, wait_ms: int, now_ms: int) -> ThrottleReason:
        """Record that a client is throttled. Returns the reason, for the journal of throttles that tests read.

        value: the last value passed to `record`. wait_ms: the throttle time in ms that `record` returned for this value.
        """
        client = self._clients.get((user, client_id)) or self._bind(user, client_id, now_ms)
        rate = client.sensor.rate
        return self._throttled(
            client, value, rate.measure(now_ms), rate.measured_window_ms(now_ms), wait_ms, now_ms, rate.samples()
        )


class ClientQuotas:
    """The quota managers of one broker, from its start to its stop.

    samples: the setting quota.window.num. window_ms: the setting quota.window.size.seconds, but in ms. semantics: for clients with an empty client
    id, "kip" applies the quotas of the default client id, and "kafka" applies no quota for client ids (D9).
    timers: used to remove the measurements of clients that are idle; None never removes them.
    metric_windows: the windows over which the metrics throttle-time and exempt-request-time are measured: the settings metrics.num.samples and
    metrics.sample.window.ms.
    """

    __slots__ = ("exempt_request_time", "fetch", "produce", "request")

    def __init__(
        self,
        store: ClientQuotaStore,
        semantics: Semantics = "kip",
        samples: int = DEFAULT_SAMPLES,
        window_ms: int = DEFAULT_WINDOW_MS,
        timers: Timers | None = None,
        metric_windows: MetricWindows = DEFAULT_METRIC_WINDOWS,
    ) -> None:
        timers = Timers() if timers is None else timers

        def manager(name: str, key: str, cap_ms: int) -> QuotaManager:
            return QuotaManager(name, key, store, semantics, timers, samples, window_ms, cap_ms, metric_windows)

        self.produce = manager("Produce", PRODUCER_BYTE_RATE, LONGEST_THROTTLE_MS)
        self.fetch = manager("Fetch", CONSUMER_BYTE_RATE, LONGEST_THROTTLE_MS)
        # Request time is never throttled for longer than one window.
        self.request = manager("Request", REQUEST_PERCENTAGE, window_ms)
        self.exempt_request_time = SampledRate(*metric_windows)

    def close(self) -> None:
        """Cancel the timers that remove the measurements of idle clients."""
        for manager in (self.produce, self.fetch, self.request):
            manager.close()

    def quota_changed(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        """Apply a changed quota of an entity to the measurements of all clients (Q-10).

        key: the key of the quota, such as "producer_byte_rate". value: the new quota, None if it was removed.
        """
        for manager in (self.produce, self.fetch, self.request):
            manager.quota_changed(entity, key, value)

    def metrics(self, now_ms: int) -> Iterator[SensorMetrics]:
        for manager in (self.produce, self.fetch, self.request):
            yield from manager.metrics(now_ms)


def new_client_quotas(
    config: BrokerConfig, store: ClientQuotaStore, semantics: Semantics, timers: Timers
) -> ClientQuotas:
    """Return the quota managers of a broker that starts.

    config: the broker's settings, among them the windows of quotas and metrics. The quota managers keep using the windows set at the start, even if
    these settings change later. store: the configured quotas of the cluster. semantics: for clients with an empty client id, "kip" applies the quotas
    of the default client id, and "kafka" applies no quota for client ids (D9). timers: used to remove the measurements of idle clients.
    """
    return ClientQuotas(
        store,
        semantics,
        config["quota.window.num"],
        config["quota.window.size.seconds"] * 1000,
        timers,
        MetricWindows(config["metrics.num.samples"], config["metrics.sample.window.ms"]),
    )
