"""Who else runs in the race: kfake, and a real Kafka 3.9.1 of three brokers. What they need is fetched on first use.

Must never know what is raced.
"""

from __future__ import annotations

from benchmarks.programs import Program
from benchmarks.rivals.real_kafka import RealKafka
from tests.support.conformance.rivals import built


def kfake() -> Program:
    """franz-go's fake broker, built with Go."""
    return Program("kfake", [built()])


class Kafka(Program):
    """Apache Kafka: three brokers and their controller. The address and the process are the first broker's."""

    def __init__(self) -> None:
        super().__init__("Kafka 3.9.1", [])
        self._cluster: RealKafka | None = None

    def start(self) -> None:
        self._cluster = RealKafka("default")
        host, port = self._cluster.bootstrap[0]
        self.address = f"{host}:{port}"
        self.idle_mb = self.resident_mb()

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.stop()

    @property
    def pid(self) -> int:
        assert self._cluster is not None
        return self._cluster.pid_of(0)
