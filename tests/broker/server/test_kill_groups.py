"""Kills with `kill -9` during commits and rebalances: acknowledged offsets, generations and epochs survive, and members continue.

`make long` kills a hundred times (`tests/long_run`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker import group_kills
from tests.support.broker.group_kills import COORDINATORS
from tests.support.broker.kills import BrokerProcesses, broker_processes

KILLS = 4


@pytest.fixture(scope="module")
def processes() -> Iterator[BrokerProcesses]:
    with broker_processes() as started:
        yield started


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.rule("GO-11", "GN-12", "X-9", "X-10")
@pytest.mark.parametrize("name", COORDINATORS)
def test_committed_offsets_and_group_epochs_survive_kill_9_during_rebalances(
    processes: BrokerProcesses, tmp_path: Path, name: str
) -> None:
    counts = group_kills.run(processes, tmp_path, KILLS, seed=1, coordinator=COORDINATORS[name], continued=KILLS)
    assert counts.kills >= KILLS
    assert counts.commits > 10 * KILLS
    assert counts.rebalances > 3 * KILLS
    assert counts.continued >= KILLS
