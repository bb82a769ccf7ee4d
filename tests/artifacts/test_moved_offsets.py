"""The committed offsets of a data directory that commit 0a628baa wrote move from its metadata log to `__consumer_offsets`, and none is lost.

Broker processes of the current code use the directory one after the other. Clients on sockets then read every offset and every record.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafkaproto.coordinator_records import read_record
from kafkaproto.data.offset_commit_key import OffsetCommitKey
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kafkaproto.records.batch import batches, records
from kafkaproto.records.record import Record
from tests.artifacts.holding import expected, unpack
from tests.artifacts.make_offsets import GROUPS, NAME, PLACES, values_of
from tests.support.broker.kills import BrokerProcesses, Client, broker_processes
from tests.support.broker.offset_moves import moved, wait_for_moves
from tests.support.wire import fetch

OFFSETS = "__consumer_offsets"
OFFSETS_PARTITIONS = 4
SETTINGS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "offsets.retention.minutes": str(2**31 - 1),
}
"""The offsets do not expire, however old the artifact is."""
ROUNDS = 4
KILLS = 4
"""In each round, so many processes are killed after some moves, and then so many after a random time."""
LONGEST_START_SECONDS = 0.1
"""The longest of these random times in seconds."""

Commits = dict[str, list[list[Any]]]
"""Maps each group to its committed offsets, as sorted lists of topic, partition, offset, metadata and leader epoch."""


@pytest.fixture
def runner() -> Iterator[BrokerProcesses]:
    with broker_processes() as processes:
        yield processes


@pytest.fixture(scope="module")
def old_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(NAME, tmp_path_factory.mktemp("old"))


def options_for(folder: Path) -> list[str]:
    settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    return ["--port", "0", "--data-dir", str(folder), *settings]


def fetched(client: Client, commits: Commits) -> Commits:
    """Return what OffsetFetch returns for all topics of each group. Waits until the groups have a coordinator."""
    while client.ask(FindCoordinatorRequest("group-000"), 3).error_code:
        time.sleep(0.01)
    response = client.ask(
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(name, topics=None) for name in commits]), 8
    )
    assert {group.error_code for group in response.groups} == {0}
    return {
        group.group_id: sorted(
            [topic.name, p.partition_index, p.committed_offset, p.metadata, p.committed_leader_epoch]
            for topic in group.topics
            for p in topic.partitions
        )
        for group in response.groups
    }


def records_of(client: Client, topic: str, index: int) -> list[Record]:
    response = client.ask(fetch((topic, index, 0)), 11).responses[0].partitions[0]
    assert response.error_code == 0
    return [record for batch in batches(response.records or b"") for record in records(batch.view)]


def stored_offsets(client: Client) -> list[tuple[str, list[Any], int]]:
    """Return (group, committed offset as in `Commits`, commit time in ms) of each offset record in `__consumer_offsets`."""
    offset_records = []
    for index in range(OFFSETS_PARTITIONS):
        for record in records_of(client, OFFSETS, index):
            key, value = read_record(OFFSETS, record.key or b"", record.value)
            if isinstance(key, OffsetCommitKey):
                committed: Any = value
                place = [key.topic, key.partition]
                offset = [*place, committed.offset, committed.metadata, committed.leader_epoch]
                offset_records.append((key.group, offset, committed.commit_timestamp))
    return offset_records


def check(runner: BrokerProcesses, folder: Path) -> set[str]:
    """Compare offsets, offset records and other records with what clients wrote. Returns the groups with an offset record that occurs repeatedly."""
    facts = expected(NAME)
    commits: Commits = facts["groups"]
    with runner.start(options_for(folder), 1) as process:
        client = Client(process.addresses[0])
        assert fetched(client, commits) == commits
        for topic, index in PLACES:
            assert [record.value for record in records_of(client, topic, index)] == values_of(topic, index)
        written = stored_offsets(client)
        client.socket.close()
    assert all(facts["began_ms"] <= committed_ms <= facts["ended_ms"] for _, _, committed_ms in written)
    copies = Counter((group, tuple(offset)) for group, offset, _ in written)
    assert copies.keys() == {(group, tuple(offset)) for group, offsets in commits.items() for offset in offsets}
    return {group for (group, _), count in copies.items() if count > 1}


def test_offsets_in_an_old_metadata_log_are_written_to_consumer_offsets_exactly_once(
    runner: BrokerProcesses, tmp_path: Path, old_data: Path
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(old_data, folder)
    for _ in range(2):
        assert check(runner, folder) == set()


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_kill_9_during_offset_migration_of_an_old_data_directory_loses_no_data(
    runner: BrokerProcesses, tmp_path: Path, old_data: Path
) -> None:
    """A process that is killed between the two steps of a group makes the next process repeat the offsets of this group only."""
    random, interrupted = Random(1), 0
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        shutil.copytree(old_data, folder)
        options = options_for(folder)
        for _ in range(KILLS):
            moves = random.randrange(1, GROUPS // KILLS // 2)
            if not runner.kill_while_starting(options, partial(wait_for_moves, folder, moves)):
                break  # it was killed too late: no group is left to move
            interrupted += moved(folder) >= moves
        for _ in range(KILLS):
            runner.kill_while_starting(options, lambda: time.sleep(random.uniform(0, LONGEST_START_SECONDS)))
        assert len(check(runner, folder)) <= 2 * KILLS
    assert interrupted >= ROUNDS // 2
