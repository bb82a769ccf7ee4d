"""`kill -9` at random moments under load: what clients were told must be there in the next process, once, and in order.

Four folders, fifty processes each. A client does one thing after the other, some of them several at a time; what was on its way
when the process died may have happened or not.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from kafkaproto.broker.group.placement import java_hash
from kafkaproto.client import key_of, read_response
from kafkaproto.frame import read_frame
from kafkaproto.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from kafkaproto.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.messages.describe_client_quotas import DescribeClientQuotasRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kafkaproto.records.batch import batches, records
from tests.support.raw import frame
from tests.support.wire import batch, fetch, flat, produce, produced

PROCESSES = 50
LONGEST_LIFE_SECONDS = 0.1
PATIENCE_SECONDS = 20.0
PARTITIONS = 2
GROUP = next(f"g{i}" for i in range(100) if java_hash(f"g{i}") % 4 == 0)  # broker 0 coordinates it


class Client:
    """A blocking connection to broker 0. Raises OSError or EOFError when the broker is gone."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), PATIENCE_SECONDS)

    def send(self, request: Any, version: int) -> None:
        self.socket.sendall(frame(request, version))

    def answer(self, request: Any, version: int) -> Any:
        return read_response(key_of(request), version, read_frame(self.socket.recv_into)).message

    def ask(self, request: Any, version: int) -> Any:
        self.send(request, version)
        return self.answer(request, version)


class Written(NamedTuple):
    """A batch of one record; sequence -1: its producer is not idempotent."""

    topic: str
    partition: int
    value: bytes
    acks: int
    sequence: int


class Told:
    """What clients were told, and what they asked for without being told."""

    def __init__(self) -> None:
        self.topics: dict[str, bool | None] = {}
        """Whether it is there; None: was asked to change and is not known."""
        self.acked: dict[tuple[str, int], dict[int, bytes]] = {}
        self.unsure: dict[tuple[str, int], set[bytes]] = {}
        self.commits: dict[tuple[str, int], set[int]] = {}
        self.quota: set[float | None] = {None}
        self.producer_id = -1
        self.producer_ids: set[int] = set()
        self.sequences: dict[tuple[str, int], int] = {}
        self.to_repeat: list[Written] = []


class Load:
    """Random work on one connection until the broker dies."""

    def __init__(self, client: Client, told: Told, random: Random, brokers: int) -> None:
        self.client = client
        self.told = told
        self.random = random
        self.replicas = list(range(brokers))
        self.number = 0

    def run(self) -> None:
        try:
            while True:
                self.random.choices(
                    [self.write, self.commit, self.create, self.delete, self.limit], [20, 5, 1, 0.5, 2]
                )[0]()
        except (OSError, EOFError):
            return

    def existing(self) -> list[str]:
        return [name for name, there in self.told.topics.items() if there]

    def write(self) -> None:
        if not self.existing():
            self.create()
        made = [self.one() for _ in range(self.random.randint(1, 5))]
        for written in made:
            self.told.unsure.setdefault(written[:2], set()).add(written.value)
            if written.sequence >= 0:
                self.told.to_repeat.append(written)
        for written in made:
            self.client.send(self.request(written), 9)
        for written in made:
            self.acknowledged(written, produced(self.client.answer(self.request(written), 9)))

    def one(self) -> Written:
        told, random = self.told, self.random
        key = random.choice(self.existing()), random.randrange(PARTITIONS)
        value = os.urandom(8).hex().encode() * random.randint(1, 40)
        sequence = -1
        if random.random() < 0.5:
            sequence = told.sequences.get(key, 0)
            told.sequences[key] = sequence + 1
        return Written(*key, value, random.choice((1, -1)), sequence)

    def request(self, written: Written) -> Any:
        options: dict[str, Any] = {}
        if written.sequence >= 0:
            options = {"producer_id": self.told.producer_id, "producer_epoch": 0, "base_sequence": written.sequence}
        data = batch(written.value, **options)
        return produce(written.topic, data, written.partition, written.acks, timeout_ms=10_000)

    def acknowledged(self, written: Written, answer: Any) -> None:
        assert answer.error_code == 0, (written, answer)
        known = self.told.acked.setdefault(written[:2], {})
        assert known.setdefault(answer.base_offset, written.value) == written.value, "one offset for two batches"
        self.told.unsure[written[:2]].discard(written.value)
        if written in self.told.to_repeat:
            self.told.to_repeat.remove(written)

    def commit(self) -> None:
        topics = self.existing()
        if not topics:
            return
        key = self.random.choice(topics), self.random.randrange(PARTITIONS)
        offset = self.random.randrange(1_000_000)
        known = self.told.commits.setdefault(key, {-1})
        known.add(offset)
        partition = OffsetCommitRequestPartition(key[1], committed_offset=offset)
        request = OffsetCommitRequest(GROUP, topics=[OffsetCommitRequestTopic(key[0], partitions=[partition])])
        answer = self.client.ask(request, 8)
        assert answer.topics[0].partitions[0].error_code == 0
        known.intersection_update({offset})

    def create(self) -> None:
        name = f"t-{os.urandom(4).hex()}"
        self.told.topics[name] = None
        assignments = [CreatableReplicaAssignment(i, self.replicas) for i in range(PARTITIONS)]
        answer = self.client.ask(CreateTopicsRequest([CreatableTopic(name, -1, -1, assignments)], 10_000), 5)
        assert answer.topics[0].error_code == 0
        self.told.topics[name] = True

    def delete(self) -> None:
        topics = self.existing()
        if len(topics) < 3:
            return
        name = self.random.choice(topics)
        self.told.topics[name] = None
        answer = self.client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), 5)
        assert answer.responses[0].error_code == 0
        self.told.topics[name] = False

    def limit(self) -> None:
        value = float(self.random.randrange(1, 1_000_000_000))
        self.told.quota.add(value)
        entity = [AlterClientQuotasRequestEntityData("client-id", "somebody")]
        entry = AlterClientQuotasRequestEntryData(entity, [OpData("consumer_byte_rate", value)])
        assert self.client.ask(AlterClientQuotasRequest([entry]), 1).entries[0].error_code == 0
        self.told.quota = {value}


class Check:
    """Compares a process that has just started with what clients were told before."""

    def __init__(self, client: Client, told: Told) -> None:
        self.client = client
        self.told = told

    def run(self, load: Load) -> None:
        self.topics()
        self.repeat(load)
        for name in load.existing():
            for index in range(PARTITIONS):
                self.records(name, index)
                self.committed(name, index)
        self.quota()
        self.new_producer(load)

    def topics(self) -> None:
        answer = self.client.ask(MetadataRequest(None), 9)
        there = {topic.name for topic in answer.topics if not topic.is_internal}
        for name, expected in list(self.told.topics.items()):
            assert expected is None or expected == (name in there), (name, expected)
            if name in there:
                self.told.topics[name] = True
            else:
                del self.told.topics[name]
                for index in range(PARTITIONS):
                    for known in (self.told.acked, self.told.unsure, self.told.commits):
                        known.pop((name, index), None)
                self.told.to_repeat = [w for w in self.told.to_repeat if w.topic != name]
        assert there <= set(self.told.topics)

    def repeat(self, load: Load) -> None:
        """As a producer would: what it was told nothing of, in order, once more."""
        for written in list(self.told.to_repeat):
            load.acknowledged(written, produced(self.client.ask(load.request(written), 9)))

    def records(self, name: str, index: int) -> None:
        key = (name, index)
        found = self.read(name, index)
        values = list(found.values())
        assert list(found) == list(range(len(found))), "offsets with gaps, or out of order"
        assert len(set(values)) == len(values), "a record twice"
        acked = self.told.acked.setdefault(key, {})
        for offset, value in acked.items():
            assert found.get(offset) == value, f"{name}-{index}: what was told of offset {offset} is not there"
        unsure = self.told.unsure.setdefault(key, set())
        assert {found[offset] for offset in found.keys() - acked.keys()} <= unsure
        acked.update(found)
        unsure.clear()

    def read(self, name: str, index: int) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        while True:
            answer = self.client.ask(fetch((name, index, len(found))), 11)
            [(_, data)] = flat(answer)
            assert data.error_code == 0
            before = len(found)
            for made in batches(bytes(data.records or b"")):
                for record in records(made.view):
                    assert record.value is not None
                    found[record.offset] = record.value
            if len(found) == before:
                assert data.high_watermark == before
                return found

    def committed(self, name: str, index: int) -> None:
        answer = self.client.ask(OffsetFetchRequest(GROUP, [OffsetFetchRequestTopic(name, [index])]), 5)
        offset = answer.topics[0].partitions[0].committed_offset
        known = self.told.commits.setdefault((name, index), {-1})
        assert offset in known, f"{name}-{index}: committed {offset}, told {known}"
        known.intersection_update({offset})

    def quota(self) -> None:
        answer = self.client.ask(DescribeClientQuotasRequest([]), 1)
        [found] = [value.value for entry in answer.entries for value in entry.values] or [None]
        assert found in self.told.quota
        self.told.quota = {found}

    def new_producer(self, load: Load) -> None:
        """Ids are never given twice; the old producer goes on with its sequences as long as this one does not take its place."""
        given = self.client.ask(InitProducerIdRequest(None, 1000), 1).producer_id
        assert given not in self.told.producer_ids
        self.told.producer_ids.add(given)
        if self.told.producer_id < 0 or load.random.random() < 0.2:
            self.told.producer_id = given
            self.told.sequences.clear()


@pytest.fixture
def runner() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.broker.lives_runner"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    yield process
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    process.wait(PATIENCE_SECONDS)
    process.stdout.close()


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("seed", "brokers"), [(1, 1), (2, 1), (3, 3), (4, 3)])
def test_nothing_that_a_client_was_told_is_lost_by_kill_9(
    tmp_path: Path, runner: subprocess.Popen[str], seed: int, brokers: int
) -> None:
    assert runner.stdin is not None and runner.stdout is not None
    random, told = Random(seed), Told()
    options = ["--port", "0", "--brokers", str(brokers), "--data-dir", str(tmp_path / "data")]
    # a client of another test may still look for a topic at this port, where its own broker listened before
    options += ["-c", "auto.create.topics.enable=false"]
    for _ in range(PROCESSES):
        runner.stdin.write(json.dumps(options) + "\n")
        runner.stdin.flush()
        broker = int(runner.stdout.readline())
        try:
            addresses = [runner.stdout.readline().strip() for _ in range(brokers)]
            client = Client(addresses[0])
            load = Load(client, told, random, brokers)
            Check(client, told).run(load)
            killer = threading.Timer(random.uniform(0, LONGEST_LIFE_SECONDS), os.kill, (broker, signal.SIGKILL))
            killer.start()
            load.run()
            killer.join()
            client.socket.close()
            broker = 0
        finally:
            if broker:
                os.kill(broker, signal.SIGKILL)
        assert runner.stdout.readline() == "ended\n"
    assert sum(map(len, told.acked.values())) > 1000


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_without_a_data_directory_nothing_is_left_behind(tmp_path: Path, ending: signal.Signals) -> None:
    command = [sys.executable, "-m", "broker", "--port", "0", "--memory", "0", "--topic", "t:2"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        assert process.stdout is not None
        client = Client(process.stdout.readline().strip())
        for partition, size in ((0, 100), (1, 500_000)):  # in the file that all share, and in one of its own
            answer = client.ask(produce("t", batch(b"x" * size), partition), 9)
            assert produced(answer).error_code == 0
        held = [os.readlink(path) for path in Path(f"/proc/{process.pid}/fd").iterdir()]
        assert sum(target.startswith(str(tmp_path)) for target in held) == 2
        process.send_signal(ending)
        process.wait(PATIENCE_SECONDS)
        client.socket.close()
    assert not list(tmp_path.iterdir())
