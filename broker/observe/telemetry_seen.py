"""The class `TelemetrySeen`: one push of a client's metrics, as `telemetry` of a test cluster returns it.

The class has a module of its own, which a broker imports only once a client has pushed metrics, so that it starts faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkaproto.broker.observe.otlp import MetricSeen


@dataclass(frozen=True, slots=True)
class TelemetrySeen:
    """One push of metrics from a client to a broker."""

    at_ms: int
    """When the broker accepted the metrics, in ms of the cluster's clock."""
    broker_id: int
    """The id of the broker that received the metrics."""
    client_instance_id: str
    """The client instance id (a UUID) in base64 for URLs without padding, as Kafka and its clients write it."""
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
        """Return the metrics in the payload. Raises ValueError if the payload is not a `MetricsData` message."""
        from kafkaproto.broker.observe.otlp import read_metrics  # loaded on first use, so that brokers start faster

        return read_metrics(self.payload)

    def __str__(self) -> str:
        end = ", terminating" if self.terminating else ""
        return (
            f"client {self.client_id} ({self.client_instance_id}) to broker {self.broker_id}: {len(self.payload)} bytes of metrics, "
            f"compression {self.compression}{end}"
        )
