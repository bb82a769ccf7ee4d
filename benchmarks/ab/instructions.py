"""Counts instructions with callgrind: of requests in virtual time, and of the start of a broker. Load of the machine does not matter."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.ab.sides import Side

HERE = Path(__file__).resolve().parent
MISSING = "valgrind is missing: make ab counts instructions with it. Get it: apt install valgrind"
START_OPTIONS = ("--port", "0", "--log-level", "error")
START, POSTPONED = "start to the ready line", "start, with what follows the ready line"
_TOTALS = re.compile(r"^totals: (\d+)", re.MULTILINE)
_PART = re.compile(r"callgrind\.(\d+)\.(\d+)\Z")


class Count(NamedTuple):
    """Instructions of a row, or why they were not counted."""

    instructions: float | None
    why: str = ""


class Run(NamedTuple):
    """A script that ran under callgrind.

    parts: instructions by (process id, number of the part); a script begins a part by calling getpriority. why: the last line of stderr if
    the script failed, else "".
    """

    stdout: str
    parts: dict[tuple[int, int], int]
    why: str


def valgrind() -> str | None:
    """Return the path of valgrind, or None if it is not installed."""
    return shutil.which("valgrind")


def of_requests(side: Side, rows: Sequence[str], requests: int) -> dict[str, Count]:
    """Return the instructions per request of each row of the workload."""
    return request_counts(side, rows, requests, _callgrind(side, "workload.py", "--requests", str(requests), *rows))


def request_counts(side: Side, rows: Sequence[str], requests: int, run: Run) -> dict[str, Count]:
    """Return the instructions per request that a run of the workload counted, or why a row has none."""
    counts = {}
    for line in run.stdout.splitlines():
        result = json.loads(line)
        total = run.parts.get((result["pid"], 2))
        if "error" in result:
            counts[result["row"]] = Count(None, result["error"])
        elif not Path(result["source"]).is_relative_to(side.folder):
            counts[result["row"]] = Count(None, f"{result['source']} is not in {side.folder}")
        elif total is not None:
            counts[result["row"]] = Count(total / requests)
    return {row: counts.get(row, Count(None, run.why or "callgrind counted nothing")) for row in rows}


def of_start(side: Side) -> dict[str, Count]:
    """Return the instructions from the start of the process to the ready line, and to the end of the work postponed until after it."""
    _, parts, why = _callgrind(side, "start.py", *START_OPTIONS)
    totals = [total for (_, part), total in sorted(parts.items()) if part in (1, 2)]
    if len(totals) != 2:
        failed = Count(None, why or "the broker printed no ready line")
        return {START: failed, POSTPONED: failed}
    return {START: Count(totals[0]), POSTPONED: Count(sum(totals))}


def read_parts(folder: Path) -> dict[tuple[int, int], int]:
    """Return the instructions by (process id, number of the part) from the files that callgrind wrote as `callgrind.%p`."""
    parts = {}
    for path in folder.iterdir():
        found = _PART.search(path.name)
        if found is not None:
            parts[int(found[1]), int(found[2])] = int(_TOTALS.search(path.read_text())[1])  # type: ignore[index]
    return parts


def _callgrind(side: Side, script: str, *arguments: str) -> Run:
    """Run a script of this folder on a side under callgrind.

    A run that is not counted goes first: it writes the compiled files of every module that the script imports, those of Python included.
    """
    plain = [str(side.python), "-P", str(HERE / script), *arguments]
    subprocess.run(plain, cwd=side.folder, env=side.environment(), capture_output=True, check=False)
    with tempfile.TemporaryDirectory(prefix="ab-") as out:
        command = [
            valgrind() or "valgrind",
            "--quiet",
            "--tool=callgrind",
            "--dump-before=getpriority",
            f"--callgrind-out-file={out}/callgrind.%p",
            *plain,
        ]
        done = subprocess.run(
            command, cwd=side.folder, env=side.environment(), capture_output=True, text=True, check=False
        )
        parts = read_parts(Path(out))
    why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1] if done.returncode else ""
    return Run(done.stdout, parts, why)
