"""All client libraries at once, each under its own quota, against this broker or Apache Kafka.

`make test-all` runs one cycle of the quota windows and `make long` several. This module does not judge the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer

from kafkaproto.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from kafkaproto.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.describe_client_quotas import DescribeClientQuotasRequest
from kafkaproto.testing import TestCluster, cluster
from tests.support.clients.broker_side import eventually
from tests.support.clients.paced import CONSUMERS, PRODUCERS, Job, Run, run_together, value
from tests.support.clients.replay import FETCH, PRODUCE, Charge, charges
from tests.support.conformance.real_kafka import RealKafka
from tests.support.wire import metadata

QUOTA = 200_000
REQUEST_BYTES = 20_000  # the bytes of a tenth of a second
SAMPLES = 11  # Kafka's default of quota.window.num
AFTERWARDS_SECONDS = 0.5
"""How long clients run beyond their window, so that the window is complete."""
MOST = 1.5
"""No consumer can read more than this share of its quota in any window of ten seconds or more (Q-7)."""
TO_READ = "to-read"
ROLES = {"producer": (PRODUCE, "producer_byte_rate", PRODUCERS), "consumer": (FETCH, "consumer_byte_rate", CONSUMERS)}

Who = tuple[str, str]
"""(role, library)"""
EVERYBODY: list[Who] = [(role, library) for role, (_, _, clients) in ROLES.items() for library in clients]


def name_of(who: Who) -> str:
    """Return the client-id, which is also the topic of a producer."""
    return "-".join(who)


def ratio(run: Run, seconds: float) -> float:
    """Return the ratio of acknowledged or read value bytes to the bytes that the quota allows."""
    return run.within(seconds) * REQUEST_BYTES / (QUOTA * seconds)


@dataclass(frozen=True, slots=True)
class Ours:
    """The results of a run against this broker, with the running cluster and its journal."""

    kafka: TestCluster
    runs: dict[Who, Run]

    def charges(self, who: Who) -> list[Charge]:
        return charges(self.kafka, ROLES[who[0]][0], [name_of(who)])

    def records(self, who: Who) -> list[bytes]:
        """Return the record values in a producer's topic."""
        return [record.value or b"" for record in self.kafka.records(name_of(who))]


Via = Callable[[str], AbstractContextManager[str]]
"""A function that starts a proxy in front of a broker. It takes the broker's address and yields the address for clients."""


@contextmanager
def against_ours(seconds: float, everybody: list[Who], via: Via = nullcontext) -> Iterator[Ours]:
    with cluster(1, {TO_READ: 1}, semantics="kafka") as kafka:
        for number in range(_needed(seconds)):
            kafka.produce(TO_READ, [value(number, REQUEST_BYTES)])
        for role, library in everybody:
            bytes_per_second: dict[str, Any] = {ROLES[role][1]: QUOTA}
            kafka.set_quota(client_id=name_of((role, library)), **bytes_per_second)
            if role == "producer":
                kafka.create_topic(name_of((role, library)))
        with via(kafka.bootstrap) as bootstrap:
            runs = _run(bootstrap, seconds, everybody)
        yield Ours(kafka, runs)


def against_kafka(seconds: float, everybody: list[Who], via: Via = nullcontext) -> dict[Who, Run]:
    """Run all clients against Apache Kafka 3.9.1, with all topics on broker 0."""
    kafka = RealKafka("default")
    try:
        topics = [TO_READ, *(name_of(client) for client in everybody if client[0] == "producer")]
        kafka.ask_once(
            CreateTopicsRequest(
                [CreatableTopic(name, -1, -1, [CreatableReplicaAssignment(0, [0])]) for name in topics], 15_000
            ),
            5,
        )
        eventually(lambda: _has_topics(kafka, topics), "broker 0 leads all topics")
        bootstrap = "{}:{}".format(*kafka.bootstrap[0])
        _fill(bootstrap, _needed(seconds))
        _set_quotas(kafka, everybody)
        with via(bootstrap) as address:
            return _run(address, seconds, everybody)
    finally:
        kafka.stop()


def _fill(bootstrap: str, count: int) -> None:
    """Produce one record per batch, in order."""
    producer = Producer({"bootstrap.servers": bootstrap, "batch.num.messages": 1, "enable.idempotence": True})
    for number in range(count):
        producer.produce(TO_READ, value(number, REQUEST_BYTES))
    assert producer.flush(30) == 0


def _has_topics(kafka: RealKafka, topics: list[str]) -> bool:
    response = kafka.ask_once(metadata(topics), 9)
    return all(topic.partitions and topic.partitions[0].leader_id == 0 for topic in response.topics)


def _set_quotas(kafka: RealKafka, everybody: list[Who]) -> None:
    entries = [
        AlterClientQuotasRequestEntryData(
            [AlterClientQuotasRequestEntityData("client-id", name_of(client))],
            [OpData(ROLES[client[0]][1], float(QUOTA))],
        )
        for client in everybody
    ]
    response = kafka.ask_once(AlterClientQuotasRequest(entries), 1)
    assert {entry.error_code for entry in response.entries} == {0}
    describe_request = DescribeClientQuotasRequest()
    eventually(lambda: len(kafka.ask_once(describe_request, 1).entries) == len(everybody), "broker 0 knows the quotas")


def _run(bootstrap: str, seconds: float, everybody: list[Who]) -> dict[Who, Run]:
    jobs = []
    for role, library in everybody:
        name = name_of((role, library))
        topic = name if role == "producer" else TO_READ
        job = Job(bootstrap, name, topic, REQUEST_BYTES, seconds + AFTERWARDS_SECONDS)
        jobs.append((ROLES[role][2][library], job))
    return dict(zip(everybody, run_together(jobs), strict=True))


def _needed(seconds: float) -> int:
    return int(MOST * (seconds + 2 * AFTERWARDS_SECONDS) * QUOTA / REQUEST_BYTES) + 50
