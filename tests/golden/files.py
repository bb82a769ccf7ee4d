"""The runs by name, and their committed texts, compressed in `data/<name>.z`.

The compressed bytes are not compared, only the text.
"""

from __future__ import annotations

import subprocess
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import tests.golden.admin_cases
import tests.golden.transaction_cases  # noqa: F401 - registers its cases
from kafkaproto.broker.assembly import SEMANTICS
from kafkaproto.broker.config.release import RELEASES
from tests.golden.api_runs import CASES, run_api
from tests.golden.release_runs import run_release
from tests.golden.scenario_runs import SCENARIOS, run_scenario

DATA = Path(__file__).parent / "data"
SUFFIX = ".z"

RUNS: dict[str, Callable[[], list[str]]] = {
    **{f"api-{name}-{semantics}": partial(run_api, semantics, name) for name in CASES for semantics in SEMANTICS},
    **{
        f"release-{name}-{semantics}": partial(run_release, semantics, name)
        for name in RELEASES
        for semantics in SEMANTICS
    },
    **{
        f"scenario-{name}-{semantics}": partial(run_scenario, semantics, name)
        for name in SCENARIOS
        for semantics in SEMANTICS
    },
}


def packed(lines: list[str]) -> bytes:
    return zlib.compress("\n".join(lines).encode(), 9)


def unpacked(data: bytes) -> list[str]:
    return zlib.decompress(data).decode().split("\n")


def committed(name: str, revision: str | None = None) -> list[str]:
    """Return the lines of a run in the working tree or in a git revision, or an empty list if the run does not exist there."""
    path = DATA / f"{name}{SUFFIX}"
    if revision is None:
        return unpacked(path.read_bytes()) if path.exists() else []
    result = subprocess.run(["git", "show", f"{revision}:./{path.name}"], cwd=DATA, capture_output=True, check=False)
    return unpacked(result.stdout) if result.returncode == 0 else []


def write() -> list[str]:
    """Write every run whose text has changed, delete the files of removed runs, and return the names."""
    DATA.mkdir(exist_ok=True)
    changed = []
    for name, run in RUNS.items():
        lines = run()
        if lines != committed(name):
            (DATA / f"{name}{SUFFIX}").write_bytes(packed(lines))
            changed.append(name)
    for path in DATA.glob(f"*{SUFFIX}"):
        if path.name.removesuffix(SUFFIX) not in RUNS:
            path.unlink()
            changed.append(path.name.removesuffix(SUFFIX))
    return changed
