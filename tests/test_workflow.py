"""The CI workflow runs the commands of `.ci/run` on every Python that the package names."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "Programming Language :: Python :: 3."


@pytest.fixture(scope="module")
def jobs() -> dict[str, Any]:
    [workflow] = (ROOT / ".github" / "workflows").iterdir()
    job_definitions: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    return job_definitions


def pythons(job: dict[str, Any]) -> list[str]:
    """Return the versions of Python that the job runs on: those of its matrix, or the one that its step installs."""
    if "strategy" in job:
        return list(job["strategy"]["matrix"]["python"])
    return [step["with"]["python-version"] for step in job["steps"] if "python-version" in step.get("with", {})]


def make_calls(job: dict[str, Any], folder: Path) -> list[str]:
    """Run the commands of a job with stand-ins for make and for what `.ci/run` would install, and return make's arguments."""
    calls = folder / "calls"
    for name in ("make", "chromium", "valgrind", "mvn", "go", "npm"):
        (folder / name).write_text(f'#!/bin/sh\necho "$@" >> "{calls}"\n')
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    for command in (step["run"] for step in job["steps"] if "run" in step):
        subprocess.run(["bash", "-ec", command], cwd=ROOT, env=environment, capture_output=True, timeout=30, check=True)
    return calls.read_text().splitlines()


def test_ci_workflow_contains_every_supported_python_version_exactly_once(jobs: dict[str, Any]) -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    named = [f"3.{classifier.removeprefix(PREFIX)}" for classifier in classifiers if classifier.startswith(PREFIX)]
    assert named
    assert sorted(version for job in jobs.values() for version in pythons(job)) == sorted(named)


def test_ci_runs_all_tests_on_the_oldest_python_and_fast_tests_on_newer_versions(
    jobs: dict[str, Any], tmp_path: Path
) -> None:
    calls = {}
    for number, job in enumerate(jobs.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        calls |= dict.fromkeys(pythons(job), make_calls(job, folder))
    oldest = min(calls, key=lambda version: tuple(map(int, version.split("."))))
    assert calls.pop(oldest) == ["check", "test-all", "docs"]
    assert set(map(tuple, calls.values())) == {("check", "test")}
