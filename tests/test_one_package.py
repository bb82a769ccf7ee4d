"""`broker` and `pipeline` are folders of a checkout, not packages: no run imports a module under two names."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pipeline.recorded import traffic, write
from tests.support.programs import program

ROOT = Path(__file__).resolve().parent.parent
REPORT = """
import atexit, os, sys
atexit.register(lambda: open(os.environ["MODULES_FILE"], "w").write("\\n".join(sys.modules)))
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which a Python process writes the names of its modules to `MODULES_FILE` at exit."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(REPORT)
    return {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "MODULES_FILE": str(tmp_path / "modules")}


def loaded(environment: dict[str, str]) -> set[str]:
    """Return the modules that the process imported, apart from the two packages that only redirect."""
    names = set(Path(environment["MODULES_FILE"]).read_text().split())
    assert any(name.startswith("kafkaproto.") for name in names)
    return names - {"broker", "pipeline"}


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=50, check=False)


def assert_one_name(environment: dict[str, str]) -> None:
    assert [name for name in sorted(loaded(environment)) if name.startswith(("broker.", "pipeline."))] == []


@pytest.mark.parametrize("switch", [["-m", "broker"], ["-mbroker"], ["-Bm", "broker"], ["-m", "kafkaproto.broker"]])
def test_broker_started_in_a_checkout_imports_no_module_under_two_names(
    environment: dict[str, str], switch: list[str]
) -> None:
    command = [sys.executable, *switch, "--port", "0", "--topic", "broker:1"]
    with program(command, cwd=ROOT, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("127.0.0.1:")
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
    assert_one_name(environment)


@pytest.mark.parametrize("module", ["pipeline.trace.tables", "kafkaproto.pipeline.trace.tables"])
def test_trace_table_job_run_in_a_checkout_imports_no_module_under_two_names(
    environment: dict[str, str], tmp_path: Path, module: str
) -> None:
    write(tmp_path / "trace", traffic())
    completed = run(environment, "-m", module, str(tmp_path / "trace"), str(tmp_path / "out"), "--without-spark")
    assert completed.returncode == 0, completed.stderr
    assert list((tmp_path / "out").rglob("*.parquet"))
    assert_one_name(environment)


def test_kafka_cluster_fixture_imports_no_module_under_two_names(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(kafka_cluster):\n    assert kafka_cluster.bootstrap\n")
    completed = run(
        environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)
    )
    assert completed.returncode == 0, completed.stdout
    assert_one_name(environment)


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("import broker.testing", ["kafkaproto.broker", "kafkaproto.testing"]),
        ("from broker.clock import ManualClock", ["kafkaproto.broker"]),
        ("import pipeline.kafka_py", ["kafkaproto.pipeline"]),
        ("from pipeline.kafka_py.source import KafkaPy", ["kafkaproto.pipeline"]),
    ],
)
def test_error_for_importing_a_module_by_its_old_name_contains_the_new_name(
    environment: dict[str, str], statement: str, names: list[str]
) -> None:
    completed = run(environment, "-c", f"import kafkaproto.api; {statement}")
    last = completed.stderr.splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert [name for name in names if name not in last] == []


def test_error_for_a_missing_module_in_old_package_pipeline_says_kafkaproto_pipeline(
    environment: dict[str, str],
) -> None:
    completed = run(environment, "-m", "pipeline.nothing")
    assert completed.returncode == 1
    assert "No module named kafkaproto.pipeline.nothing" in completed.stderr


def test_importing_kafkaproto_imports_no_module_under_an_old_package_name() -> None:
    import kafkaproto.pipeline.trace.tables
    import kafkaproto.testing  # noqa: F401

    assert [name for name in sys.modules if name.split(".")[0] in ("broker", "pipeline")] == []


def test_program_that_imports_an_old_package_name_exits_with_an_error(tmp_path: Path) -> None:
    (tmp_path / "launcher").mkdir()
    (tmp_path / "launcher" / "__init__.py").write_text("import broker")
    (tmp_path / "launcher" / "__main__.py").write_text("")
    path = f"{ROOT}{os.pathsep}{tmp_path}"
    command = [sys.executable, "-m", "launcher"]
    completed = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert completed.returncode == 1
    assert "import kafkaproto.broker instead" in completed.stderr
