"""Kills with `kill -9` in the middle of transactions: what was acknowledged as committed is visible, and the rest is aborted in the end.

`make long` kills a hundred times (`tests/long_run`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.broker import transaction_kills
from tests.support.broker.kills import broker_processes

KILLS = 6


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.rule("TX-8", "TX-39", "TX-43", "TX-53", "X-7")
@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_transactions_interrupted_by_kill_9_are_visible_completely_or_not_at_all(tmp_path: Path, release: str) -> None:
    with broker_processes() as processes:
        counts = transaction_kills.run(processes, tmp_path, KILLS, seed=1, release=release)
    assert counts.kills == KILLS
    assert min(counts.committed, counts.aborted) > KILLS
    assert min(counts.open, counts.continued) > 0
