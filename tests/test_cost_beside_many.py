"""The instructions of a request do not grow with the number of idle members of its group or of open transactions (needs valgrind)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.ab import instructions, sides
from tests.support.broker import heartbeat_rows, transaction_rows

ROOT = Path(__file__).resolve().parent.parent
REQUESTS = 20
MOST = 1.5
"""The instructions beside many members or transactions, divided by those beside few, are at most this."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep compiled files of the test apart from those of a comparison that may be running."""
    if instructions.valgrind() is None:
        pytest.fail(instructions.MISSING)
    monkeypatch.setattr(sides, "CACHE", tmp_path / "cache")


@pytest.mark.parametrize("api", heartbeat_rows.PREPARED)
def test_heartbeat_instruction_count_does_not_grow_from_10_to_1000_idle_members(api: str) -> None:
    compare(heartbeat_rows.__file__, *(heartbeat_rows.row(api, n) for n in (heartbeat_rows.FEW, heartbeat_rows.MANY)))


@pytest.mark.parametrize("request_name", transaction_rows.PREPARED)
def test_request_costs_about_as_much_with_1000_open_transactions_as_with_10(request_name: str) -> None:
    counts = transaction_rows.FEW, transaction_rows.MANY
    compare(transaction_rows.__file__, *(transaction_rows.row(request_name, n) for n in counts))


def compare(script: str, beside_few: str, beside_many: str) -> None:
    """Compare the counted instructions of two rows."""
    side = sides.Side(sides.NOW, ROOT, Path(sys.executable))
    sides.compile_modules(side)
    rows = [beside_few, beside_many]
    run = instructions.callgrind(side, script, "--requests", str(REQUESTS), *rows)
    few, many = (instructions.request_counts(side, rows, REQUESTS, run)[name] for name in rows)
    assert few.instructions and many.instructions, few.why or many.why
    assert many.instructions <= MOST * few.instructions, f"{many.instructions:.0f} instead of {few.instructions:.0f}"
