"""Clusters on which client libraries use transactions: this broker and Apache Kafka, in two releases each."""

from __future__ import annotations

from collections.abc import Callable

from kafkaproto.conformance.subject import Subject
from tests.support.conformance.ours import Ours
from tests.support.conformance.real_kafka import NewerKafka, RealKafka
from tests.support.conformance.virtual import NEWER_RELEASE

PROFILE = "default"
CHANGES = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
"""Settings with which another broker can become coordinator, and timeouts are noticed soon."""

STAGES: dict[str, Callable[[], Subject]] = {
    "ours-3.9": lambda: Ours(PROFILE, "kafka", changes=CHANGES),
    "ours-4.2": lambda: Ours(PROFILE, "kafka", NEWER_RELEASE, CHANGES),
    "kafka-3.9.1": lambda: RealKafka(PROFILE, CHANGES),
    "kafka-4.2.0": lambda: NewerKafka(PROFILE, CHANGES),
}
"""The functions that start the clusters, by name."""
