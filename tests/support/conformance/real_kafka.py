"""Apache Kafka as a subject: three brokers and a controller, started from jars. Must never know what is tested."""

from __future__ import annotations

from benchmarks.rivals.jars import KAFKA_VERSION
from benchmarks.rivals.real_kafka import KafkaCluster
from kafkaproto.conformance.subject import WallClock, settings_of


class RealKafka(WallClock):
    """Kafka 3.9.1, which is right by definition where `semantics=kafka`."""

    slack_ms = 500.0

    def __init__(self, profile: str) -> None:
        super().__init__()
        self.name, self.semantics = f"kafka-{KAFKA_VERSION}", "kafka"
        self._cluster = KafkaCluster(settings_of(profile))
        self.bootstrap = self._cluster.bootstrap

    def restore(self) -> None:
        self._cluster.start_stopped_brokers()

    def stop_broker(self, broker_id: int) -> None:
        self._cluster.stop_broker(broker_id)

    def start_broker(self, broker_id: int) -> None:
        self._cluster.start_broker(broker_id)
        self.close_connections()

    def hold_follower(self, topic: str, partition: int, broker_id: int) -> None:
        """All that the broker does is held: Kafka has nothing finer."""
        self._cluster.pause_broker(broker_id)

    def release_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self._cluster.resume_broker(broker_id)

    def stop(self) -> None:
        self._cluster.stop()
