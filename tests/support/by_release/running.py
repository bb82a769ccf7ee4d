"""Runs all client libraries side by side against one cluster, and collects what each can do with it."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from kafkaproto.conformance.subject import settings_of
from kafkaproto.testing import TestCluster, cluster
from tests.support.by_release.programs.tasks import GIVEN, OFFSET_IN_TRANSACTION, RESUME_AT, VALUES, WORKS
from tests.support.clients.building import go, java, python

LIMIT_SECONDS = 100
PROGRAMS = Path(__file__).parent / "programs"
COMMANDS: Mapping[str, Callable[[], list[str]]] = {
    "java": lambda: java(PROGRAMS / "Tasks.java"),
    "librdkafka": lambda: python("tests.support.by_release.programs.confluent_tasks"),
    "kafka-python": lambda: python("tests.support.by_release.programs.kafka_python_tasks"),
    "aiokafka": lambda: python("tests.support.by_release.programs.aiokafka_tasks"),
    "franz-go": lambda: go(PROGRAMS / "go"),
}
"""The functions that return the commands of the programs, by client library."""
CLIENTS = tuple(COMMANDS)
TASKS = (
    *("connect", "produce", "idempotent produce", "consume", "group", "new group", "transaction"),
    *(
        "offsets in a transaction",
        "describe cluster",
        "list topics",
        "create topic",
        "add partitions",
        "describe configs",
    ),
)
WRITING = {"produce": "produce", "idempotent produce": "idempotent", "transaction": "transaction"} | {
    "offsets in a transaction": "offsets"
}
"""Maps a task to the last part of the name of its topic, which has one value if the task works."""
COMMITTING = {"group": ("classic", RESUME_AT), "new group": ("consumer", RESUME_AT)} | {
    "offsets in a transaction": ("offsets", OFFSET_IN_TRANSACTION)
}
"""Maps a task to (last part of the name of its group, offset that it commits)."""
APIS = (
    *("ApiVersions", "Metadata", "Produce", "Fetch", "ListOffsets", "FindCoordinator", "JoinGroup", "OffsetCommit"),
    *("ConsumerGroupHeartbeat", "InitProducerId", "EndTxn", "CreateTopics"),
)
"""The APIs whose highest used version is reported. Others may or may not be used, depending on the timing."""


class Outcomes(NamedTuple):
    """What one client said about each task, by task, and about the version of the brokers; see `tasks.py`."""

    tasks: dict[str, str]
    note: str | None


def topics() -> list[str]:
    """Return the names of the topics that the tasks of all clients need."""
    return [GIVEN, *(f"{client}-{last}" for client in CLIENTS for last in (*WRITING.values(), "partitions"))]


@contextmanager
def ours(release: str) -> Iterator[TestCluster]:
    """Run three of our brokers of a release, with the topics that the tasks need."""
    config = settings_of("default")
    with cluster(3, dict.fromkeys(topics(), 1), config, profile="kafka", clock="system", release=release) as kafka:
        kafka.produce(GIVEN, [value.encode() for value in VALUES])
        yield kafka


def prepare(bootstrap: str) -> None:
    """Create the topics that the tasks need in a real Kafka, and let it create its internal topics, which takes some seconds."""
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap}
    admin = AdminClient(settings)
    for future in admin.create_topics([NewTopic(name, 1, 3) for name in topics()]).values():
        future.result(30)
    producer = Producer({**settings, "transactional.id": "prepare", "log_level": 0})
    producer.init_transactions(60)
    producer.begin_transaction()
    for value in VALUES:
        producer.produce(GIVEN, value, partition=0)
    producer.commit_transaction(60)
    consumer = Consumer({**settings, "group.id": "prepare", "auto.offset.reset": "earliest"})
    consumer.subscribe([GIVEN])
    assert consumer.poll(60) is not None
    consumer.close()


def run(bootstrap: str) -> dict[str, Outcomes]:
    """Run the programs of all clients side by side against a cluster. Returns their outcomes by client.

    Raises AssertionError with its errors if a program fails or does not end.
    """
    with ExitStack() as stack:
        running = {client: stack.enter_context(_started(client, bootstrap)) for client in CLIENTS}
        return {client: _finished(client, *started) for client, started in running.items()}


@contextmanager
def _started(client: str, bootstrap: str) -> Iterator[tuple[subprocess.Popen[str], Any]]:
    with tempfile.TemporaryFile("w+") as errors:
        command = [*COMMANDS[client](), bootstrap, client]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
            try:
                yield process, errors
            finally:
                process.kill()


def _finished(client: str, process: subprocess.Popen[str], errors: Any) -> Outcomes:
    out, in_time = "", True
    try:
        out, _ = process.communicate(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
        in_time = False
    errors.seek(0)
    assert in_time, f"{client} did not end; it printed\n{out}{errors.read()[-3000:]}"
    assert process.returncode == 0, f"{client} failed: {errors.read()[-3000:]}"
    lines = {line["task"]: line for line in map(json.loads, out.splitlines())}
    assert sorted(lines) == sorted(TASKS), f"{client} did not report all tasks: {sorted(lines)}"
    [note] = {line["note"] for line in lines.values() if line["note"]} or {None}
    return Outcomes({task: lines[task]["outcome"] for task in TASKS}, note)


def versions_used(kafka: TestCluster) -> dict[str, dict[str, int]]:
    """Return the highest version of each of `APIS` that each client used, by client and API."""
    return {client: _versions_of(kafka, client) for client in CLIENTS}


def _versions_of(kafka: TestCluster, client: str) -> dict[str, int]:
    highest: dict[str, int] = {}
    for request in kafka.journal.requests(client_id=client):
        highest[request.api] = max(request.api_version, highest.get(request.api, 0))
    return {api: highest[api] for api in APIS if api in highest}


def missing_effects(kafka: TestCluster, outcomes: Mapping[str, Outcomes]) -> list[str]:
    """Return the tasks that work, as the clients say, but lack the effect that these tasks must have on the brokers."""
    missing = []
    for client, (tasks, _) in outcomes.items():
        effects = _effects(kafka, client)
        missing += [
            f"{client}: {task}" for task, outcome in tasks.items() if outcome == WORKS and not effects.get(task, True)
        ]
    return missing


def _effects(kafka: TestCluster, client: str) -> dict[str, bool]:
    """Return whether each task that changes something had its effect."""
    partitions = kafka.topics()
    effects = {
        "create topic": partitions.get(f"{client}-created") == 2,
        "add partitions": partitions[f"{client}-partitions"] == 2,
    }
    for task, last in WRITING.items():
        effects[task] = [record.value for record in kafka.records(f"{client}-{last}")] == [b"value"]
    for task, (last, offset) in COMMITTING.items():
        committed = kafka.committed(f"{client}-{last}") == {(GIVEN, 0): offset}
        effects[task] = effects.get(task, True) and committed
    return effects
