"""The history of client telemetry: the metrics that clients pushed to the brokers. The history is bounded."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkaproto.broker.runtime.events import Observer

if TYPE_CHECKING:
    from kafkaproto.broker.observe.otlp import MetricSeen
    from kafkaproto.broker.telemetry.instances import TelemetryPush

MOST_PUSHES = 1000
MOST_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TelemetrySeen:
    """One push of metrics from a client to a broker."""

    at_ms: int
    """When the broker accepted the metrics, in ms of the cluster's clock."""
    broker_id: int
    """The id of the broker that received the metrics."""
    client_instance_id: str
    """The id that the broker gave to the client, as Kafka and its clients write it."""
    client_id: str
    """The `client.id` of the client; empty if it has none."""
    terminating: bool
    """Whether this is the client's last push, because the client is closing."""
    compression: str
    """The name of the compression type that the client used, such as "zstd"; "none" for none."""
    payload: bytes
    """The decompressed metrics: a `MetricsData` message of OpenTelemetry."""

    @property
    def metrics(self) -> list[MetricSeen]:
        """Return the metrics in the payload. Raises ValueError if it is not a `MetricsData` message."""
        from kafkaproto.broker.observe.otlp import read_metrics  # loaded on first use, so that brokers start faster

        return read_metrics(self.payload)

    def __str__(self) -> str:
        end = ", terminating" if self.terminating else ""
        return (
            f"client {self.client_id} ({self.client_instance_id}) to broker {self.broker_id}: {len(self.payload)} bytes of metrics, "
            f"compression {self.compression}{end}"
        )


class TelemetryHistory(Observer):
    """Collects the metrics that clients push: the last 1,000 pushes, and at most 16 MiB of payload besides the last push."""

    def __init__(self) -> None:
        self._pushes: deque[TelemetrySeen] = deque()
        self._bytes = 0

    def telemetry_pushed(self, broker_id: int, push: TelemetryPush, now_ms: int) -> None:
        seen = TelemetrySeen(
            now_ms,
            broker_id,
            push.client_instance_id,
            push.client_id,
            push.terminating,
            push.compression.name.lower(),
            push.payload,
        )
        self._pushes.append(seen)
        self._bytes += len(seen.payload)
        while len(self._pushes) > MOST_PUSHES or (self._bytes > MOST_BYTES and len(self._pushes) > 1):
            self._bytes -= len(self._pushes.popleft().payload)

    def cleared(self, now_ms: int) -> None:
        self._pushes.clear()
        self._bytes = 0

    def pushes(self, client_id: str | None = None) -> list[TelemetrySeen]:
        """Return the pushes, oldest first. client_id: only those of clients with this `client.id`; None for all."""
        return [seen for seen in self._pushes if client_id in (None, seen.client_id)]
