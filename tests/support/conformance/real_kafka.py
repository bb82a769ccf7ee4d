"""Apache Kafka as a subject: three brokers and a controller, started from jars. Independent of the tests that use it."""

from __future__ import annotations

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION
from benchmarks.rivals.real_kafka import KafkaCluster
from kafkaproto.conformance.foreign import Foreign
from kafkaproto.conformance.subject import WallClock, settings_of


class Controlled(WallClock):
    """The control functions of a Kafka that is started from jars."""

    _cluster: KafkaCluster

    def restore(self) -> None:
        self._cluster.start_stopped_brokers()

    def stop_broker(self, broker_id: int) -> None:
        self._cluster.stop_broker(broker_id)

    def start_broker(self, broker_id: int) -> None:
        self._cluster.start_broker(broker_id)
        self.close_connections()

    def hold_follower(self, topic: str, partition: int, broker_id: int) -> None:
        """Suspend the whole broker process: Kafka has no finer control."""
        self._cluster.pause_broker(broker_id)

    def release_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self._cluster.resume_broker(broker_id)

    def stop(self) -> None:
        self._cluster.stop()


class RealKafka(Controlled):
    """Kafka 3.9.1, which is right by definition where `semantics=kafka`."""

    slack_ms = 500.0

    def __init__(self, profile: str) -> None:
        super().__init__()
        self.name, self.semantics = f"kafka-{KAFKA_VERSION}", "kafka"
        self._cluster = KafkaCluster(settings_of(profile))
        self.bootstrap = self._cluster.bootstrap


class NewerKafka(Controlled, Foreign):
    """Kafka 4.2.0. A test that sends a version or a setting that this release does not have is skipped, as on a foreign cluster."""

    slack_ms = 500.0

    def __init__(self, profile: str) -> None:
        self._cluster = KafkaCluster(settings_of(profile), NEWER_VERSION)
        Foreign.__init__(self, self._cluster.bootstrap, "kafka", f"kafka-{NEWER_VERSION}")
