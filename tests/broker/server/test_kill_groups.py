"""Kills with `kill -9` during commits and rebalances: acknowledged offsets, generations and epochs survive, and members continue.

`make long` kills a hundred times (`tests/long_run`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.broker import group_kills
from tests.support.broker.kills import broker_processes

KILLS = 12


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.rule("GO-11", "GN-12")
def test_commits_and_epochs_of_groups_survive_kill_9_during_rebalances(tmp_path: Path) -> None:
    with broker_processes() as processes:
        seen = group_kills.run(processes, tmp_path, KILLS, seed=1)
    assert seen.kills == KILLS
    assert seen.commits > 10 * KILLS
    assert seen.rebalances > KILLS
    assert seen.continued > KILLS
