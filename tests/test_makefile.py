"""The Makefile: its targets, the commands that it runs, and its errors about missing programs."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafkaproto.pipeline.session import TESTED_PYSPARK
from tests.rules import SLOW_MARKERS

ROOT = Path(__file__).resolve().parent.parent
LISTED = ("demo", "broker", "report", "conformance", "test", "test-all", "check", "docs", "ab", "race", "bench", "long")
"""The listed targets in the order in which a newcomer needs them. fuzz, generate and rules are not listed."""
LONGEST_LINE = 100
MAKE = shutil.which("make")


def make(*arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    assert MAKE is not None, "make is missing: apt install make"
    clean = {
        k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "ARGS", "BASE", "SPARK")
    }
    return subprocess.run(
        [MAKE, "--no-print-directory", *arguments],
        cwd=ROOT,
        env={**clean, "PATH": clean["PATH"] if path is None else path},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """Return a PATH with the tools of any machine, but without Python and Java."""
    for name in ("sh", "bash", "uname", "grep", "test", "touch", "echo"):
        path = shutil.which(name)
        if path is not None:
            (tmp_path / name).symlink_to(path)
    return tmp_path


def program(folder: Path, name: str, text: str) -> None:
    page = folder / name
    page.write_text(f"#!/bin/sh\n{text}\n")
    page.chmod(0o755)


def test_make_without_a_target_lists_the_main_targets() -> None:
    result = make()
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert [re.findall(r"^make ([\w-]+)  ", line) for line in lines] == [[target] for target in LISTED]
    assert max(map(len, lines)) <= LONGEST_LINE


@pytest.mark.parametrize("target", LISTED)
def test_every_target_that_make_lists_exists_in_the_makefile(target: str) -> None:
    assert make("-n", target, f"PYTHON={sys.executable}", "TRACE=trace").returncode == 0


def test_every_python_module_that_the_makefile_runs_exists() -> None:
    modules = set(re.findall(r"python -m ([\w.]+)", (ROOT / "Makefile").read_text())) - {"venv", "pip", "pytest"}
    assert {"kafkaproto.pipeline.demo", "tests.rules", "kafkaproto.generator", "benchmarks.race"} <= modules
    assert [name for name in modules if importlib.util.find_spec(name) is None] == []


def test_make_target_demo_runs_without_spark_and_java_if_variable_spark_is_0() -> None:
    plan = make("-n", "demo", "SPARK=0", f"PYTHON={sys.executable}")
    assert plan.returncode == 0
    assert "kafkaproto.pipeline.demo --without-spark" in plan.stdout
    assert "java" not in plan.stdout
    plan = make("-n", "demo", f"PYTHON={sys.executable}")
    assert "--without-spark" not in plan.stdout
    assert "java -version" in plan.stdout


def test_make_installs_exactly_the_pyspark_version_that_the_tests_use() -> None:
    plan = make("-n", "-B", ".venv/.installed-all", f"PYTHON={sys.executable}").stdout
    file = re.search(r"pip install .*--constraint (\S+) --editable '\.\[dev,spark\]'", plan)
    assert file is not None
    lines = [line for line in (ROOT / file[1]).read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if line.startswith("pyspark")] == [f"pyspark=={TESTED_PYSPARK}"]
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in lines)


def test_make_target_test_skips_slow_and_java_tests_and_target_test_all_runs_them() -> None:
    plan = make("-n", "test", f"PYTHON={sys.executable}")
    assert "-m pytest" in plan.stdout
    assert "--dist loadfile" in plan.stdout  # for one Spark session all its tests must run in one process
    expression = re.search(r'-m "(not .*?)"', plan.stdout)
    assert expression is not None and set(re.findall(r"not (\w+)", expression[1])) == SLOW_MARKERS
    assert "java -version" not in plan.stdout
    everything = make("-n", "test-all", f"PYTHON={sys.executable}").stdout
    assert "-m pytest" in everything and "not java" not in everything


def test_ci_script_runs_make_check_make_test_all_and_make_docs(tmp_path: Path) -> None:
    for name in ("make", "chromium", "valgrind", "mvn", "go", "npm"):
        program(tmp_path, name, f'echo "{name} $@" >> "{tmp_path}/calls"')
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run([ROOT / ".ci" / "run"], cwd=tmp_path, env=environment, capture_output=True, timeout=30, check=True)
    assert (tmp_path / "calls").read_text().splitlines() == ["make check", "make test-all", "make docs"]


def test_make_target_broker_passes_racks_and_extra_arguments_to_the_broker_command() -> None:
    from kafkaproto.broker.server.main import parser

    plan = make("-n", "broker", "ARGS=--port 0 -c fetch.max.bytes=2048", f"PYTHON={sys.executable}")
    words = plan.stdout[plan.stdout.rindex("kafkaproto broker") :].replace("\\\n", " ").split()[2:]
    options = parser().parse_args(words)
    settings = dict(options.settings)
    assert (options.brokers, options.port) == (3, 0)
    assert [settings[f"{i}.broker.rack"] for i in range(3)] == ["a", "b", "c"]
    assert settings["fetch.max.bytes"] == "2048"


def test_make_target_ab_compares_the_working_tree_with_head_or_the_given_commit() -> None:
    plan = make("-n", "ab", f"PYTHON={sys.executable}")
    assert plan.stdout.rstrip().endswith("-m benchmarks.ab HEAD")
    plan = make("-n", "ab", "BASE=v1.0", "ARGS=--only race", f"PYTHON={sys.executable}")
    assert plan.stdout.rstrip().endswith("-m benchmarks.ab v1.0 --only race")


def test_make_reports_a_missing_or_old_python_with_the_install_command(bare_path: Path) -> None:
    result = make("needs", path=str(bare_path))
    assert result.returncode != 0
    assert "Python 3.11 or later is missing" in result.stderr
    program(bare_path, "python3", 'case "$1" in --version) echo Python 3.9.2;; *) exit 1;; esac')
    result = make("needs", path=str(bare_path))
    assert result.returncode != 0
    assert "(Python 3.9.2)" in result.stderr
    assert "apt install" in result.stderr and "brew install" in result.stderr


def test_makefile_java_check_accepts_java_17_to_25_and_rejects_java_11_or_no_java(bare_path: Path) -> None:
    result = make("needs-java", f"PYTHON={sys.executable}", path=str(bare_path))
    assert result.returncode != 0
    assert "A JDK 17 or later is missing" in result.stderr
    assert "make demo SPARK=0" in result.stderr
    program(bare_path, "java", 'echo openjdk version \\"11.0.2\\" >&2')
    assert make("needs-java", f"PYTHON={sys.executable}", path=str(bare_path)).returncode != 0
    for version in ("17.0.15", "21", "25.0.1"):
        program(bare_path, "java", f'echo openjdk version \\"{version}\\" >&2')
        assert make("needs-java", f"PYTHON={sys.executable}", path=str(bare_path)).returncode == 0


def test_make_on_windows_exits_with_a_one_line_error(bare_path: Path) -> None:
    (bare_path / "uname").unlink()
    program(bare_path, "uname", "echo MINGW64_NT-10.0")
    result = make("needs", f"PYTHON={sys.executable}", path=str(bare_path))
    assert result.returncode != 0
    assert result.stderr.splitlines()[0].startswith("kafkaproto runs on Linux and macOS")


@pytest.mark.parametrize(
    ("target", "program", "command"),
    [
        ("needs-browser", "A browser", "apt install chromium"),
        ("needs-valgrind", "valgrind", "apt install valgrind"),
        ("needs-go", "Go", "apt install golang-go"),
        ("needs-clients", "mvn", "apt install maven golang-go npm"),
    ],
)
def test_make_error_for_a_missing_browser_or_valgrind_contains_the_install_command(
    bare_path: Path, target: str, program: str, command: str
) -> None:
    result = make(target, f"PYTHON={sys.executable}", path=str(bare_path))
    assert result.returncode != 0
    assert f"{program} is missing" in result.stderr and command in result.stderr
