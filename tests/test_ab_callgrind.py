"""`make ab` with valgrind: instruction counts are reproducible and grow with the work."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from benchmarks.ab import instructions, sides

ROOT = Path(__file__).resolve().parent.parent
ROW = "metadata"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep compiled files of the tests apart from those of a comparison that may be running."""
    if instructions.valgrind() is None:
        pytest.fail(instructions.MISSING)
    monkeypatch.setattr(sides, "CACHE", tmp_path / "cache")


def side_of(folder: Path) -> sides.Side:
    side = sides.Side(sides.NOW, folder, Path(sys.executable))
    sides.compile_modules(side)
    return side


def counted(side: sides.Side) -> float:
    count = instructions.of_requests(side, [ROW], 20)[ROW]
    assert count.instructions is not None, count.why
    return count.instructions


def slower_copy(folder: Path) -> Path:
    """Return a checkout whose connections do needless work for each received frame."""
    for name in ("kafkaproto", "broker", "pipeline"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    connection = folder / "broker" / "network" / "connection.py"
    text = connection.read_text()
    line = "        self._active_ms = now_ms\n        if self.node.events.bytes_received"
    assert text.count(line) == 1
    connection.write_text(text.replace(line, "        sum(range(1000))\n" + line))
    return folder


def test_instruction_count_is_equal_in_two_runs_and_larger_for_slower_code(tmp_path: Path) -> None:
    side = side_of(ROOT)
    first, second = counted(side), counted(side)
    assert first == second
    slower = counted(side_of(slower_copy(tmp_path)))
    assert slower > first * 1.05, (slower, first)


def test_ab_benchmark_counts_more_instructions_until_broker_exit_than_until_ready() -> None:
    counts = instructions.of_start(side_of(ROOT))
    ready, whole = counts[instructions.START], counts[instructions.POSTPONED]
    assert ready.instructions is not None and whole.instructions is not None, ready.why or whole.why
    assert 1e8 < ready.instructions < whole.instructions < 1e11
