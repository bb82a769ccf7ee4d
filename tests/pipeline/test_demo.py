"""The demo: its output, its exit status, and its check of quotas."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from kafkaproto.broker.quota.windows import SampledRate
from kafkaproto.pipeline.demo import __main__ as demo
from kafkaproto.pipeline.demo.table import BEGIN, END, Cell, Progress, Step, markdown, same, within, write_page
from tests.support.clients import KAFKA_PYTHON_WARNINGS

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_PACKAGE = """
import sys
missing = sys.argv.pop(1)

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
from kafkaproto.pipeline.demo.__main__ import main
sys.exit(main())
"""
"""Runs the demo as if the package named by the first argument were not installed."""

pytestmark = [pytest.mark.clients, pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS)]


def test_demo_table_marks_each_actual_value_that_differs_from_the_expected_value() -> None:
    assert same("n", 20_000, 20_000) == Cell("n", "20,000", "20,000", True)
    assert not same("n", 1, 2).ok
    assert within("r", 10, 20, 20, "%").ok
    assert not within("r", 10, 20, 20.1, "%").ok
    steps = [Step("one", [same("a", 1, 1), same("b", 1, 2)], 1.25), Step("two", [same("c", "x", "x")], 3.0)]
    lines = markdown(steps).splitlines()
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "---" not in line] == [
        ["step", "check", "expected", "actual", "s"],
        ["1. one", "a", "1", "1", "1.2"],
        ["", "b", "1", "2  DIFFERS", ""],
        ["2. two", "c", "x", "x", "3.0"],
    ]
    assert len({len(line) for line in lines}) == 1


def test_demo_replaces_only_the_text_between_the_begin_and_end_markers_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "status.md"
    page.write_text(f"before\n{BEGIN}\nold \\1\n{END}\nafter\n")
    steps = [Step("one", [same("a\\g<0>", 1, 1)], 1.0)]
    write_page(steps, "2026-11-26 at 398a81f", page)
    write_page(steps, "2026-11-26 at 398a81f", page)
    assert page.read_text() == f"before\n{BEGIN}\nRun on 2026-11-26 at 398a81f:\n\n{markdown(steps)}\n{END}\nafter\n"


@pytest.mark.parametrize(("actual", "status"), [(1, 0), (2, 1)], ids=["as expected", "one cell differs"])
def test_demo_exits_with_status_1_if_an_actual_value_differs_from_the_expected_value(
    actual: int, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(brokers: object, progress: Progress) -> list[Cell]:
        return [same("a", 1, 1), same("b", 1, actual)]

    monkeypatch.setattr("kafkaproto.pipeline.demo.limits.run", run)
    assert demo.main(["--only", "limits"]) == status
    out, _ = capsys.readouterr()
    assert ("DIFFERS" in out) == bool(status)
    assert "three brokers are ready" in out


@pytest.mark.parametrize(
    ("module", "name"),
    [pytest.param(*step, marks=[pytest.mark.spark] if step[0] in demo.WITH_SPARK else []) for step in demo.STEPS],
)
def test_every_step_of_the_demo_is_a_module_with_a_function_named_run(module: str, name: str) -> None:
    work = importlib.import_module(f"kafkaproto.pipeline.demo.{module}").run
    assert list(inspect.signature(work).parameters) == ["brokers", "progress"]
    assert name


@pytest.mark.parametrize(
    ("missing", "arguments", "expected_text"),
    [
        ("kafka", ["--only", "limits"], "demo"),
        ("confluent_kafka", ["--without-spark"], "demo"),
        ("pyspark", [], "demo,spark"),
    ],
)
def test_demo_prints_a_pip_install_command_and_exits_if_a_package_is_missing(
    missing: str, arguments: list[str], expected_text: str
) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", WITHOUT_PACKAGE, missing, *arguments],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (completed.returncode, completed.stdout) == (3, "")
    assert (
        completed.stderr
        == f"demo: {missing} is missing: install it in a checkout with pip install '.[{expected_text}]'\n"
    )


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_demo_steps_that_do_not_need_spark_run_from_the_command_line() -> None:
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
def test_demo_quota_check_accepts_throttles_of_kafka_but_not_those_of_a_token_bucket() -> None:
    from kafkaproto.pipeline.demo.quotas import QUOTA, MeasuredResponse, throttle_mismatches

    rate, now_ms, responses = SampledRate(), 0.0, []
    for _ in range(58):
        now_ms += 1
        throttle_ms = rate.record_and_throttle(250_000, int(now_ms), QUOTA)
        responses.append(MeasuredResponse(now_ms, throttle_ms))
        now_ms += throttle_ms
    assert throttle_mismatches(responses, 250_000) == []
    late = [MeasuredResponse(a.at_ms + 40, a.throttle_ms) for a in responses]  # as a client sees it
    assert throttle_mismatches(late, 250_000) == []
    never = [MeasuredResponse(a.at_ms, 0) for a in responses]
    assert throttle_mismatches(never, 250_000) != []
    # A token bucket: ten seconds' worth at once, then each request waits for its tokens.
    bucket = [MeasuredResponse(i + max(0, i - 40) * 250.0, 0 if i < 40 else 250) for i in range(58)]
    assert throttle_mismatches(bucket, 250_000) != []


@pytest.mark.rule("Q-13")
def test_demo_quota_check_counts_no_bytes_for_a_throttled_fetch_without_records() -> None:
    from kafkaproto.pipeline.demo.quotas import QUOTA, MeasuredResponse, throttle_mismatches

    rate, now_ms, responses, remaining = SampledRate(), 0.0, [], 140
    while remaining:
        now_ms += 1
        throttle_ms = rate.record_and_throttle(100_300, int(now_ms), QUOTA)
        if throttle_ms:
            rate.record(-100_300, int(now_ms))
        else:
            remaining -= 1
        responses.append(MeasuredResponse(now_ms, throttle_ms, empty=throttle_ms > 0))
        now_ms += throttle_ms
    assert any(a.empty for a in responses)
    assert throttle_mismatches(responses, 100_300) == []
    assert (
        throttle_mismatches([MeasuredResponse(a.at_ms, a.throttle_ms) for a in responses], 100_300) != []
    )  # not taken back
