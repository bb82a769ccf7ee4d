"""The history of client telemetry: the metrics that clients pushed to the brokers. The history is bounded."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from kafkaproto.broker.runtime.events import Observer

if TYPE_CHECKING:
    from kafkaproto.broker.observe.telemetry_seen import TelemetrySeen
    from kafkaproto.broker.telemetry.instances import TelemetryPush

MOST_PUSHES = 1000
MOST_BYTES = 16 * 1024 * 1024


class TelemetryHistory(Observer):
    """Collects the metrics that clients push: the last 1,000 pushes, or fewer if their payloads exceed 16 MiB in total.

    The last push is always kept.
    """

    def __init__(self) -> None:
        self._pushes: deque[TelemetrySeen] = deque()
        self._bytes = 0

    def telemetry_pushed(self, broker_id: int, push: TelemetryPush, now_ms: int) -> None:
        from kafkaproto.broker.observe.telemetry_seen import (
            TelemetrySeen,  # loaded on first use, so that brokers start faster
        )

        push_seen = TelemetrySeen(
            now_ms,
            broker_id,
            push.client_instance_id,
            push.client_id,
            push.terminating,
            push.compression.name.lower(),
            push.payload,
        )
        self._pushes.append(push_seen)
        self._bytes += len(push_seen.payload)
        while len(self._pushes) > MOST_PUSHES or (self._bytes > MOST_BYTES and len(self._pushes) > 1):
            self._bytes -= len(self._pushes.popleft().payload)

    def cleared(self, now_ms: int) -> None:
        self._pushes.clear()
        self._bytes = 0

    def pushes(self, client_id: str | None = None) -> list[TelemetrySeen]:
        """Return the pushes, oldest first. client_id: only those of clients with this `client.id`; None for all."""
        return [push for push in self._pushes if client_id in (None, push.client_id)]
