"""Kills with `kill -9` while a broker moves the committed offsets of an earlier version from its metadata log to `__consumer_offsets`."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest

from kafkaproto.broker.group.offsets import CommittedOffset
from kafkaproto.broker.persistence import records
from kafkaproto.broker.runtime.clock import ManualClock
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.support.broker.kills import BrokerProcesses, Client, broker_processes
from tests.support.broker.offset_moves import moved, wait_for_moves
from tests.support.broker.processes import Processes

GROUPS = 1500
ROUNDS = 8
LONGEST_START_SECONDS = 0.3
EXPECTED = {f"g{number}": number for number in range(GROUPS)}
"""The committed offset of each group."""


@pytest.fixture
def runner() -> Iterator[BrokerProcesses]:
    with broker_processes() as processes:
        yield processes


@pytest.fixture
def old_data(tmp_path: Path) -> Path:
    """Return a data directory with the commits of many groups in its metadata log, as earlier versions wrote them."""
    folder, now_ms = tmp_path / "old", int(time.time() * 1000)
    processes = Processes(folder, clock=ManualClock(now_ms))
    processes.cluster.topic("t")
    persistence = processes.cluster.state.persistence
    assert persistence is not None
    for group, offset in EXPECTED.items():
        persistence.metadata_log.note(
            records.commit(group, None, {("t", 0): CommittedOffset(offset, 3, "note", now_ms)})
        )
    processes.crash()
    return folder


def committed(client: Client) -> dict[str, int]:
    """Return the committed offset of each group. Waits until the groups have a coordinator."""
    while client.ask(FindCoordinatorRequest("g0"), 3).error_code:
        time.sleep(0.01)
    groups = [
        OffsetFetchRequestGroup(name, topics=[OffsetFetchRequestTopics("t", partition_indexes=[0])])
        for name in EXPECTED
    ]
    response = client.ask(OffsetFetchRequest(groups=groups), 8)
    return {group.group_id: group.topics[0].partitions[0].committed_offset for group in response.groups}


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_offsets_in_an_old_data_dir_survive_kill_9_during_move_to_consumer_offsets(
    tmp_path: Path, old_data: Path, runner: BrokerProcesses
) -> None:
    """Each round starts with the data of the earlier version. One process is killed after a random number of moves, two more at random times."""
    random, interrupted = Random(1), 0
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        shutil.copytree(old_data, folder)
        options = ["--port", "0", "--data-dir", str(folder), "-c", "auto.create.topics.enable=false"]
        moves = random.randrange(1, GROUPS // 2)
        was_starting = runner.kill_while_starting(options, partial(wait_for_moves, folder, moves))
        interrupted += was_starting and moves <= moved(folder) < GROUPS
        for _ in range(2):
            runner.kill_while_starting(options, lambda: time.sleep(random.uniform(0, LONGEST_START_SECONDS)))
        with runner.start(options, 1) as process:
            client = Client(process.addresses[0])
            assert committed(client) == EXPECTED
            client.socket.close()
    assert interrupted > ROUNDS // 2
