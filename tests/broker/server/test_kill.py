"""Kills with `kill -9` at random moments under load: acknowledged records are recovered exactly once and in order.

Each of four data directories is used by fifty processes. A client sends one request at a time, and some clients send several.
A request that was in flight when the process was killed may or may not have been executed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

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
from kafkaproto.partitioner import java_hash
from kafkaproto.records.batch import batches, records
from tests.support.broker.kills import BrokerProcesses, Client, broker_processes
from tests.support.programs import program
from tests.support.wire import batch, fetch, flat, produce, produced

PROCESSES = 50
LONGEST_LIFE_SECONDS = 0.1
PATIENCE_SECONDS = 20.0
PARTITIONS = 2
GROUP = next(f"g{i}" for i in range(100) if java_hash(f"g{i}") % 4 == 0)  # broker 0 coordinates it


class Written(NamedTuple):
    """A batch of one record; sequence -1 means that its producer is not idempotent."""

    topic: str
    partition: int
    value: bytes
    acks: int
    sequence: int


class Responses:
    """The responses that clients received, and the requests that got no response."""

    def __init__(self) -> None:
        self.topics: dict[str, bool | None] = {}
        """Topic to whether it exists; None if a change of it got no response."""
        self.acked: dict[tuple[str, int], dict[int, bytes]] = {}
        self.unsure: dict[tuple[str, int], set[bytes]] = {}
        self.commits: dict[tuple[str, int], set[int]] = {}
        self.quota: set[float | None] = {None}
        self.producer_id = -1
        self.producer_ids: set[int] = set()
        self.sequences: dict[tuple[str, int], int] = {}
        self.to_repeat: list[Written] = []


class Load:
    """Random requests on one connection until the broker is killed."""

    def __init__(self, client: Client, acknowledged: Responses, random: Random, brokers: int) -> None:
        self.client = client
        self.acknowledged = acknowledged
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
        return [name for name, exists in self.acknowledged.topics.items() if exists]

    def write(self) -> None:
        if not self.existing():
            self.create()
        written_batches = [self.produce() for _ in range(self.random.randint(1, 5))]
        for written in written_batches:
            self.acknowledged.unsure.setdefault(written[:2], set()).add(written.value)
            if written.sequence >= 0:
                self.acknowledged.to_repeat.append(written)
        for written in written_batches:
            self.client.send(self.request(written), 9)
        for written in written_batches:
            self.note(written, produced(self.client.answer(self.request(written), 9)))

    def produce(self) -> Written:
        acknowledged, random = self.acknowledged, self.random
        key = random.choice(self.existing()), random.randrange(PARTITIONS)
        value = os.urandom(8).hex().encode() * random.randint(1, 40)
        sequence = -1
        if random.random() < 0.5:
            sequence = acknowledged.sequences.get(key, 0)
            acknowledged.sequences[key] = sequence + 1
        return Written(*key, value, random.choice((1, -1)), sequence)

    def request(self, written: Written) -> Any:
        options: dict[str, Any] = {}
        if written.sequence >= 0:
            options = {
                "producer_id": self.acknowledged.producer_id,
                "producer_epoch": 0,
                "base_sequence": written.sequence,
            }
        data = batch(written.value, **options)
        return produce(written.topic, data, written.partition, written.acks, timeout_ms=10_000)

    def note(self, written: Written, answer: Any) -> None:
        assert answer.error_code == 0, (written, answer)
        values_by_offset = self.acknowledged.acked.setdefault(written[:2], {})
        assert values_by_offset.setdefault(answer.base_offset, written.value) == written.value, (
            "one offset for two batches"
        )
        self.acknowledged.unsure[written[:2]].discard(written.value)
        if written in self.acknowledged.to_repeat:
            self.acknowledged.to_repeat.remove(written)

    def commit(self) -> None:
        topics = self.existing()
        if not topics:
            return
        key = self.random.choice(topics), self.random.randrange(PARTITIONS)
        offset = self.random.randrange(1_000_000)
        possible_offsets = self.acknowledged.commits.setdefault(key, {-1})
        possible_offsets.add(offset)
        partition = OffsetCommitRequestPartition(key[1], committed_offset=offset)
        request = OffsetCommitRequest(GROUP, topics=[OffsetCommitRequestTopic(key[0], partitions=[partition])])
        response = self.client.ask(request, 8)
        assert response.topics[0].partitions[0].error_code == 0
        possible_offsets.intersection_update({offset})

    def create(self) -> None:
        name = f"t-{os.urandom(4).hex()}"
        self.acknowledged.topics[name] = None
        assignments = [CreatableReplicaAssignment(i, self.replicas) for i in range(PARTITIONS)]
        response = self.client.ask(CreateTopicsRequest([CreatableTopic(name, -1, -1, assignments)], 10_000), 5)
        assert response.topics[0].error_code == 0
        self.acknowledged.topics[name] = True

    def delete(self) -> None:
        topics = self.existing()
        if len(topics) < 3:
            return
        name = self.random.choice(topics)
        self.acknowledged.topics[name] = None
        response = self.client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), 5)
        assert response.responses[0].error_code == 0
        self.acknowledged.topics[name] = False

    def limit(self) -> None:
        value = float(self.random.randrange(1, 1_000_000_000))
        self.acknowledged.quota.add(value)
        entity = [AlterClientQuotasRequestEntityData("client-id", "somebody")]
        entry = AlterClientQuotasRequestEntryData(entity, [OpData("consumer_byte_rate", value)])
        assert self.client.ask(AlterClientQuotasRequest([entry]), 1).entries[0].error_code == 0
        self.acknowledged.quota = {value}


class Check:
    """A comparison of a restarted process with the responses that clients received before."""

    def __init__(self, client: Client, acknowledged: Responses) -> None:
        self.client = client
        self.acknowledged = acknowledged

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
        response = self.client.ask(MetadataRequest(None), 9)
        topic_names = {topic.name for topic in response.topics if not topic.is_internal}
        for name, expected in list(self.acknowledged.topics.items()):
            assert expected is None or expected == (name in topic_names), (name, expected)
            if name in topic_names:
                self.acknowledged.topics[name] = True
            else:
                del self.acknowledged.topics[name]
                for index in range(PARTITIONS):
                    for by_partition in (self.acknowledged.acked, self.acknowledged.unsure, self.acknowledged.commits):
                        by_partition.pop((name, index), None)
                self.acknowledged.to_repeat = [w for w in self.acknowledged.to_repeat if w.topic != name]
        assert topic_names <= set(self.acknowledged.topics)

    def repeat(self, load: Load) -> None:
        """Send all batches without a response again, in order, as a producer does."""
        for written in list(self.acknowledged.to_repeat):
            load.note(written, produced(self.client.ask(load.request(written), 9)))

    def records(self, name: str, index: int) -> None:
        key = (name, index)
        stored = self.read(name, index)
        values = list(stored.values())
        assert list(stored) == list(range(len(stored))), "offsets with gaps, or out of order"
        assert len(set(values)) == len(values), "a record twice"
        acked = self.acknowledged.acked.setdefault(key, {})
        for offset, value in acked.items():
            assert stored.get(offset) == value, f"{name}-{index}: the acknowledged record at offset {offset} is missing"
        unsure = self.acknowledged.unsure.setdefault(key, set())
        assert {stored[offset] for offset in stored.keys() - acked.keys()} <= unsure
        acked.update(stored)
        unsure.clear()

    def read(self, name: str, index: int) -> dict[int, bytes]:
        stored: dict[int, bytes] = {}
        while True:
            response = self.client.ask(fetch((name, index, len(stored))), 11)
            [(_, data)] = flat(response)
            assert data.error_code == 0
            before = len(stored)
            for stored_batch in batches(bytes(data.records or b"")):
                for record in records(stored_batch.view):
                    assert record.value is not None
                    stored[record.offset] = record.value
            if len(stored) == before:
                assert data.high_watermark == before
                return stored

    def committed(self, name: str, index: int) -> None:
        response = self.client.ask(OffsetFetchRequest(GROUP, [OffsetFetchRequestTopic(name, [index])]), 5)
        offset = response.topics[0].partitions[0].committed_offset
        possible_offsets = self.acknowledged.commits.setdefault((name, index), {-1})
        assert offset in possible_offsets, f"{name}-{index}: committed offset {offset}, acknowledged {possible_offsets}"
        possible_offsets.intersection_update({offset})

    def quota(self) -> None:
        response = self.client.ask(DescribeClientQuotasRequest([]), 1)
        [quota_value] = [value.value for entry in response.entries for value in entry.values] or [None]
        assert quota_value in self.acknowledged.quota
        self.acknowledged.quota = {quota_value}

    def new_producer(self, load: Load) -> None:
        """Check that producer ids are never reused; the old producer continues its sequences until a new one replaces it."""
        producer_id = self.client.ask(InitProducerIdRequest(None, 1000), 1).producer_id
        assert producer_id not in self.acknowledged.producer_ids
        self.acknowledged.producer_ids.add(producer_id)
        if self.acknowledged.producer_id < 0 or load.random.random() < 0.2:
            self.acknowledged.producer_id = producer_id
            self.acknowledged.sequences.clear()


@pytest.fixture
def runner() -> Iterator[BrokerProcesses]:
    with broker_processes() as processes:
        yield processes


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("seed", "brokers"), [(1, 1), (2, 1), (3, 3), (4, 3)])
def test_acknowledged_records_survive_kill_9_exactly_once_and_in_order(
    tmp_path: Path, runner: BrokerProcesses, seed: int, brokers: int
) -> None:
    random, acknowledged = Random(seed), Responses()
    options = ["--port", "0", "--brokers", str(brokers), "--data-dir", str(tmp_path / "data")]
    # a client of another test may still connect to this port, where its own broker listened before
    options += ["-c", "auto.create.topics.enable=false"]
    for _ in range(PROCESSES):
        with runner.start(options, brokers) as process:
            client = Client(process.addresses[0])
            load = Load(client, acknowledged, random, brokers)
            Check(client, acknowledged).run(load)
            process.kill_after(random.uniform(0, LONGEST_LIFE_SECONDS))
            load.run()
            client.socket.close()
    assert sum(map(len, acknowledged.acked.values())) > 1000


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_broker_without_a_data_dir_leaves_no_files_when_killed_or_stopped(
    tmp_path: Path, ending: signal.Signals
) -> None:
    command = [sys.executable, "-m", "broker", "--port", "0", "--memory", "0", "--topic", "t:2"]
    with program(command, stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(tmp_path)}) as process:
        assert process.stdout is not None
        client = Client(process.stdout.readline().strip())
        for partition, size in ((0, 100), (1, 500_000)):  # in the shared file, and in a file of its own
            response = client.ask(produce("t", batch(b"x" * size), partition), 9)
            assert produced(response).error_code == 0
        open_paths = [os.readlink(path) for path in Path(f"/proc/{process.pid}/fd").iterdir()]
        assert sum(target.startswith(str(tmp_path)) for target in open_paths) == 2
        process.send_signal(ending)
        process.wait(PATIENCE_SECONDS)
        client.socket.close()
    assert not list(tmp_path.iterdir())
