"""The other end of ``Quotas.java``: Kafka's quota arithmetic and its managers, fed with sequences of events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.support.oracle.oracle import Process

Step = Sequence[Any]
"""As ``Quotas.java`` describes them."""


class QuotaOracle(Process):
    """Each question is a whole sequence; the answer has one entry per event that has an outcome."""

    program = "Quotas.java"

    def rates(self, samples: int, window_ms: int, cap_ms: int, steps: Sequence[Step]) -> list[list[float]]:
        """A sensor's [rate, window in ms, throttle in ms, capped] after each [time, value, bound]."""
        told: list[list[float]] = self._ask("rate", samples=samples, window_ms=window_ms, cap_ms=cap_ms, steps=steps)
        return told

    def tokens(self, samples: int, window_ms: int, steps: Sequence[Step]) -> list[list[float]]:
        """A bucket's [tokens, throttle in ms or -1] after each [time, value, bound, strict]."""
        told: list[list[float]] = self._ask("bucket", samples=samples, window_ms=window_ms, steps=steps)
        return told

    def client_quotas(self, samples: int, window_seconds: int, kind: str, steps: Sequence[Step]) -> list[int]:
        """Throttle times that a ClientQuotaManager gives. kind: Produce, Fetch."""
        told: list[int] = self._ask("client", samples=samples, window_seconds=window_seconds, type=kind, steps=steps)
        return told

    def mutation_quotas(self, samples: int, window_seconds: int, steps: Sequence[Step]) -> list[list[Any]]:
        """[refused, throttle in ms] that a ControllerMutationQuotaManager gives."""
        told: list[list[Any]] = self._ask("mutation", samples=samples, window_seconds=window_seconds, steps=steps)
        return told

    def connection_quotas(self, samples: int, window_seconds: int, steps: Sequence[Step]) -> list[int]:
        """For how long ConnectionQuotas throttles an address at each connect."""
        told: list[int] = self._ask("connection", samples=samples, window_seconds=window_seconds, steps=steps)
        return told

    def entities(self, steps: Sequence[Step]) -> list[list[Any]]:
        """What the controller answers to each AlterClientQuotas, and a broker to each DescribeClientQuotas."""
        told: list[list[Any]] = self._ask("entities", steps=steps)
        return told

    def replication_quota(self, samples: int, window_seconds: int, steps: Sequence[Step]) -> list[tuple[bool, float]]:
        """(exceeded, rate) of a ReplicationQuotaManager at each look."""
        found = self._ask("replication", samples=samples, window_seconds=window_seconds, steps=steps)
        return [(bool(exceeded), float(rate)) for exceeded, rate in found]

    def metric_names(self, user: str, client: str) -> set[tuple[str, str, tuple[tuple[str, str], ...]]]:
        """(name, group, tags) of all metrics of a client with a quota of each type, and of replication."""
        found = self._ask("names", user=user, client=client)
        return {(name, group, tuple(sorted(tags.items()))) for name, group, tags in found}

    def _ask(self, question: str, **told: Any) -> Any:
        return json.loads(self.ask(question, json.dumps(told, separators=(",", ":"))))
