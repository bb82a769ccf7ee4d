"""Apache Kafka as a subject: three brokers and a controller, started from jars. Independent of the tests that use it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION
from benchmarks.rivals.real_kafka import KafkaCluster
from kafkaproto.conformance.served import Newer
from kafkaproto.conformance.subject import Subject, WallClock, settings_of
from tests.support.conformance.virtual import NEWER_RELEASE


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

    def kill_broker(self, broker_id: int) -> None:
        """Kill the process of a broker, without a controlled shutdown."""
        os.kill(self._cluster.pid_of(broker_id), signal.SIGKILL)
        self._cluster.stop_broker(broker_id)

    def hold_follower(self, topic: str, partition: int, broker_id: int) -> None:
        """Suspend the whole broker process: Kafka has no finer control.

        The broker must be resumed before its session ends (`broker.session.timeout.ms`, 30 s in a `KafkaCluster`). Otherwise the controller would
        fence it, and it would leave the in-sync replicas.
        """
        self._cluster.pause_broker(broker_id)

    def release_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self._cluster.resume_broker(broker_id)

    def stop(self) -> None:
        self._cluster.stop()


class RealKafka(Controlled):
    """Kafka 3.9.1, which is right by definition where `semantics=kafka`. changes: settings that replace those of the profile."""

    slack_ms = 500.0
    kafka = KAFKA_VERSION

    def __init__(self, profile: str, changes: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.name, self.semantics = f"kafka-{self.kafka}", "kafka"
        self._cluster = KafkaCluster(settings_of(profile) | dict(changes or {}), self.kafka)
        self.bootstrap = self._cluster.bootstrap


class NewerKafka(Newer, RealKafka):
    """Kafka 4.2.0, which is right by definition with `--release 4.2`."""

    kafka = NEWER_VERSION
    release = NEWER_RELEASE


def as_on_kafka(kafka: RealKafka, story: Callable[[Subject], Iterable[tuple[str, Any]]]) -> dict[str, Any]:
    """Play a story on a real Kafka of its own, stop it, and return what the story yields: values by name."""
    try:
        return dict(story(kafka))
    finally:
        kafka.close_connections()
        kafka.stop()
