"""A client of ``Quotas.java``: Kafka's quota arithmetic and managers, fed with sequences of events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.support.oracle.oracle import Process

Step = Sequence[Any]
"""One event for Kafka's quota classes, in the format that ``Quotas.java`` describes."""


class QuotaOracle(Process):
    """Kafka's quota classes. Each question is a whole sequence; the answer has one entry per event with an outcome."""

    program = "Quotas.java"

    def rates(self, samples: int, window_ms: int, cap_ms: int, steps: Sequence[Step]) -> list[list[float]]:
        """Return a sensor's [rate, window in ms, throttle in ms, capped] after each [time, value, bound]."""
        rates_read: list[list[float]] = self._ask(
            "rate", samples=samples, window_ms=window_ms, cap_ms=cap_ms, steps=steps
        )
        return rates_read

    def tokens(self, samples: int, window_ms: int, steps: Sequence[Step]) -> list[list[float]]:
        """Return a bucket's [tokens, throttle in ms or -1] after each [time, value, bound, strict]."""
        tokens_read: list[list[float]] = self._ask("bucket", samples=samples, window_ms=window_ms, steps=steps)
        return tokens_read

    def client_quotas(self, samples: int, window_seconds: int, kind: str, steps: Sequence[Step]) -> list[int]:
        """Return the throttle times of a ClientQuotaManager. kind: Produce or Fetch."""
        throttles: list[int] = self._ask(
            "client", samples=samples, window_seconds=window_seconds, type=kind, steps=steps
        )
        return throttles

    def mutation_quotas(self, samples: int, window_seconds: int, steps: Sequence[Step]) -> list[list[Any]]:
        """Return [refused, throttle in ms] of a ControllerMutationQuotaManager."""
        throttles: list[list[Any]] = self._ask("mutation", samples=samples, window_seconds=window_seconds, steps=steps)
        return throttles

    def connection_quotas(self, samples: int, window_seconds: int, steps: Sequence[Step]) -> list[int]:
        """Return for how long ConnectionQuotas throttles an address at each connection, in ms."""
        throttles: list[int] = self._ask("connection", samples=samples, window_seconds=window_seconds, steps=steps)
        return throttles

    def entities(self, steps: Sequence[Step]) -> list[list[Any]]:
        """Return the controller's result of each AlterClientQuotas and a broker's result of each DescribeClientQuotas."""
        entities_read: list[list[Any]] = self._ask("entities", steps=steps)
        return entities_read

    def replication_quota(self, samples: int, window_seconds: int, steps: Sequence[Step]) -> list[tuple[bool, float]]:
        """Return (exceeded, rate) of a ReplicationQuotaManager at each check."""
        replies = self._ask("replication", samples=samples, window_seconds=window_seconds, steps=steps)
        return [(bool(exceeded), float(rate)) for exceeded, rate in replies]

    def metric_names(self, user: str, client: str) -> set[tuple[str, str, tuple[tuple[str, str], ...]]]:
        """Return (name, group, tags) of all metrics of a client with a quota of each type, and of replication."""
        names_read = self._ask("names", user=user, client=client)
        return {(name, group, tuple(sorted(tags.items()))) for name, group, tags in names_read}

    def _ask(self, question: str, **fields: Any) -> Any:
        return json.loads(self.ask(question, json.dumps(fields, separators=(",", ":"))))
