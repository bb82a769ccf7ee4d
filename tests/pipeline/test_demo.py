"""The demo itself: what it prints, when it fails, and that its yardstick for quotas can tell right from wrong."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from kafkaproto.broker.quota.windows import SampledRate
from kafkaproto.pipeline.demo import __main__ as demo
from kafkaproto.pipeline.demo.table import BEGIN, END, Cell, Progress, Step, markdown, same, within, write_readme
from tests.support.clients import KAFKA_PYTHON_WARNINGS

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.clients, pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS)]


def test_a_cell_is_as_expected_or_says_that_it_differs() -> None:
    assert same("n", 20_000, 20_000) == Cell("n", "20,000", "20,000", True)
    assert not same("n", 1, 2).ok
    assert within("r", 10, 20, 20, "%").ok
    assert not within("r", 10, 20, 20.1, "%").ok
    steps = [Step("one", [same("a", 1, 1), same("b", 1, 2)], 1.25), Step("two", [same("c", "x", "x")], 3.0)]
    lines = markdown(steps).splitlines()
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "---" not in line] == [
        ["step", "what", "expected", "seen", "s"],
        ["1. one", "a", "1", "1", "1.2"],
        ["", "b", "1", "2  DIFFERS", ""],
        ["2. two", "c", "x", "x", "3.0"],
    ]
    assert len({len(line) for line in lines}) == 1


def test_the_readme_changes_between_the_markers_only(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(f"before\n{BEGIN}\nold \\1\n{END}\nafter\n")
    steps = [Step("one", [same("a\\g<0>", 1, 1)], 1.0)]
    write_readme(steps, page)
    write_readme(steps, page)
    assert page.read_text() == f"before\n{BEGIN}\n{markdown(steps)}\n{END}\nafter\n"


@pytest.mark.parametrize(("seen", "status"), [(1, 0), (2, 1)], ids=["as expected", "one cell differs"])
def test_the_exit_status_is_1_when_one_cell_differs(
    seen: int, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(brokers: object, progress: Progress) -> list[Cell]:
        return [same("a", 1, 1), same("b", 1, seen)]

    monkeypatch.setattr("kafkaproto.pipeline.demo.limits.run", run)
    assert demo.main(["--only", "limits"]) == status
    out, _ = capsys.readouterr()
    assert ("DIFFERS" in out) == bool(status)
    assert "three brokers are ready" in out


@pytest.mark.parametrize(
    ("module", "name"),
    [pytest.param(*step, marks=[pytest.mark.spark] if step[0] in demo.WITH_SPARK else []) for step in demo.STEPS],
)
def test_the_steps_are_modules_with_a_run(module: str, name: str) -> None:
    work = importlib.import_module(f"kafkaproto.pipeline.demo.{module}").run
    assert list(inspect.signature(work).parameters) == ["brokers", "progress"]
    assert name


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_steps_without_spark_run_as_a_user_runs_them() -> None:
    only = ["--only", "groups", "--only", "racks", "--only", "limits"]
    result = subprocess.run(
        [sys.executable, "-m", "kafkaproto.pipeline.demo", *only],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "DIFFERS" not in result.stdout
    assert result.stderr == ""


@pytest.mark.rule("Q-6")
def test_the_yardstick_takes_what_the_windows_give_and_nothing_else() -> None:
    from kafkaproto.pipeline.demo.quotas import QUOTA, Answer, wrong

    rate, now_ms, answers = SampledRate(), 0.0, []
    for _ in range(58):
        now_ms += 1
        throttle_ms = rate.record_and_throttle(250_000, int(now_ms), QUOTA)
        answers.append(Answer(now_ms, throttle_ms))
        now_ms += throttle_ms
    assert wrong(answers, 250_000) == []
    late = [Answer(a.at_ms + 40, a.throttle_ms) for a in answers]  # as a client sees it
    assert wrong(late, 250_000) == []
    never = [Answer(a.at_ms, 0) for a in answers]
    assert wrong(never, 250_000) != []
    # A token bucket: ten seconds' worth at once, then each request waits for its own tokens.
    bucket = [Answer(i + max(0, i - 40) * 250.0, 0 if i < 40 else 250) for i in range(58)]
    assert wrong(bucket, 250_000) != []


@pytest.mark.rule("Q-13")
def test_the_yardstick_takes_a_throttled_fetch_back() -> None:
    from kafkaproto.pipeline.demo.quotas import QUOTA, Answer, wrong

    rate, now_ms, answers, left = SampledRate(), 0.0, [], 140
    while left:
        now_ms += 1
        throttle_ms = rate.record_and_throttle(100_300, int(now_ms), QUOTA)
        if throttle_ms:
            rate.record(-100_300, int(now_ms))
        else:
            left -= 1
        answers.append(Answer(now_ms, throttle_ms, empty=throttle_ms > 0))
        now_ms += throttle_ms
    assert any(a.empty for a in answers)
    assert wrong(answers, 100_300) == []
    assert wrong([Answer(a.at_ms, a.throttle_ms) for a in answers], 100_300) != []  # not taken back
