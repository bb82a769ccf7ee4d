"""The other brokers of the benchmark `benchmarks.race`: kfake, and a real Kafka 3.9.1 with three brokers.

On first use, Kafka is downloaded, and kfake is built with Go. The measurements themselves are in `benchmarks.race`.
"""

from __future__ import annotations

from benchmarks.programs import Program
from benchmarks.rivals.kfake import built
from benchmarks.rivals.real_kafka import KafkaCluster

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "fetch.max.bytes": "2147483647",
    "unclean.leader.election.enable": "false",
}
"""The settings of the brokers of the real Kafka, in addition to those of `KafkaCluster`. All other settings keep the defaults.

Most settings in this dict suit a small cluster. The last three concern reads from followers, the size of fetch responses and elections.
"""


def kfake() -> Program:
    """Return kfake, franz-go's test broker, as a program that is not started yet. Builds it with Go if it is missing."""
    return Program("kfake", [built()])


class Kafka(Program):
    """Apache Kafka: three brokers and a controller. `address` and `pid` are those of the first broker."""

    def __init__(self) -> None:
        super().__init__("Kafka 3.9.1", [])
        self._cluster: KafkaCluster | None = None

    def start(self) -> None:
        self._cluster = KafkaCluster(SETTINGS)
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
