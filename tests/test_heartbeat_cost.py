"""The instructions of a heartbeat do not grow with the number of idle members of its group (needs valgrind)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.ab import instructions, sides
from tests.support.broker import heartbeat_rows
from tests.support.broker.heartbeat_rows import FEW, MANY, row

ROOT = Path(__file__).resolve().parent.parent
REQUESTS = 20
MOST = 1.5
"""The instructions beside many members, divided by those beside few, are at most this."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep compiled files of the test apart from those of a comparison that may be running."""
    if instructions.valgrind() is None:
        pytest.fail(instructions.MISSING)
    monkeypatch.setattr(sides, "CACHE", tmp_path / "cache")


@pytest.mark.parametrize("api", heartbeat_rows.PREPARED)
def test_heartbeat_beside_1000_idle_members_costs_little_more_than_beside_10(api: str) -> None:
    side = sides.Side(sides.NOW, ROOT, Path(sys.executable))
    sides.compile_modules(side)
    rows = [row(api, FEW), row(api, MANY)]
    run = instructions.callgrind(side, heartbeat_rows.__file__, "--requests", str(REQUESTS), *rows)
    few, many = (instructions.request_counts(side, rows, REQUESTS, run)[name] for name in rows)
    assert few.instructions and many.instructions, few.why or many.why
    assert many.instructions <= MOST * few.instructions, f"{many.instructions:.0f} instead of {few.instructions:.0f}"
