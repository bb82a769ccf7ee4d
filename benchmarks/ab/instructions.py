"""Counts the instructions that a broker executes, with callgrind: per request, and for its start. The machine's load does not affect the counts."""

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
    """The number of instructions of one measurement. If callgrind could not count them, `instructions` is None and `why` is the reason."""

    instructions: float | None
    why: str = ""


class Run(NamedTuple):
    """The result of a script that ran under callgrind.

    stdout: the output of the script. parts: maps (process id, part number) to the number of instructions that the process executed in this part. Part
    1 lasts from the start of the process to the first call of `getpriority`, and each further part until the next call. why: last line of stderr if
    the script failed, else "".
    """

    stdout: str
    parts: dict[tuple[int, int], int]
    why: str


def valgrind() -> str | None:
    """Return the path of valgrind, or None if it is not installed."""
    return shutil.which("valgrind")


def of_requests(side: Side, rows: Sequence[str], requests: int) -> dict[str, Count]:
    """Run measurements of `workload.py`. Returns the instructions per request of each measurement, or why they were not counted.

    side: the commit whose code is measured. rows: the names of the measurements. requests: the number of requests that each measurement sends while
    instructions are counted.
    """
    return request_counts(side, rows, requests, callgrind(side, "workload.py", "--requests", str(requests), *rows))


def request_counts(side: Side, rows: Sequence[str], requests: int, run: Run) -> dict[str, Count]:
    """Return the instructions per request of each measurement in a finished run of `workload.py`, or the reason why they were not counted.

    side: the commit whose code was measured. rows: the names of the measurements. requests: the number of requests that each measurement sent while
    instructions were counted. run: the finished run.
    """
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
    """Start a broker, and return two counts of instructions by name: until the broker is ready, and until it has also done its postponed work.

    side: the commit whose code is measured. The broker is ready when it prints its first line. Postponed work is work that the broker does only after
    this line.
    """
    _, parts, why = callgrind(side, "start.py", *START_OPTIONS)
    totals = [total for (_, part), total in sorted(parts.items()) if part in (1, 2)]
    if len(totals) != 2:
        failed = Count(None, why or "the broker printed no ready line")
        return {START: failed, POSTPONED: failed}
    return {START: Count(totals[0]), POSTPONED: Count(sum(totals))}


def read_parts(folder: Path) -> dict[tuple[int, int], int]:
    """Return the number of instructions in each part of each process, by (process id, part number).

    folder: has the files `callgrind.*` that callgrind wrote. Callgrind writes a file, which is one part, each time it dumps its counters.
    """
    parts = {}
    for path in folder.iterdir():
        name_parts = _PART.search(path.name)
        if name_parts is not None:
            parts[int(name_parts[1]), int(name_parts[2])] = int(_TOTALS.search(path.read_text())[1])  # type: ignore[index]
    return parts


def callgrind(side: Side, script: str, *arguments: str) -> Run:
    """Run a script under callgrind, with the code of one of the two commits. script: the name of a file in this folder, or an absolute path.

    side: the commit. arguments: the command-line arguments of the script. Before the counted run, the script runs once without callgrind. That run
    writes the compiled files of all modules that it imports, including those of Python, so that compilation is not counted.
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
        completed = subprocess.run(
            command, cwd=side.folder, env=side.environment(), capture_output=True, text=True, check=False
        )
        parts = read_parts(Path(out))
    why = (
        (completed.stderr.strip().splitlines() or [f"exit status {completed.returncode}"])[-1]
        if completed.returncode
        else ""
    )
    return Run(completed.stdout, parts, why)
