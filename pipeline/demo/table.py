"""Output of the demo: progress lines of its steps, and the table that compares expected with actual results."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

PAGE = Path("docs/status.md").absolute()
"""The Markdown page into which the demo writes its table of results. The working directory must be a checkout of the project."""
BEGIN, END = "<!-- demo -->", "<!-- /demo -->"
HEAD = ("step", "check", "expected", "actual", "s")


@dataclass(frozen=True, slots=True)
class Cell:
    """One check of a demo step. what: name of the check. expected, actual: both results as text. ok: True if the actual result is as expected."""

    what: str
    expected: str
    actual: str
    ok: bool


def same(what: str, expected: object, actual: object) -> Cell:
    """Return a check (`Cell`, a row of the demo's table) whose result `actual` must equal the expected result. what: name of the check."""
    return Cell(what, _text(expected), _text(actual), expected == actual)


def within(what: str, low: float, high: float, actual: float, unit: str = "", digits: int = 0) -> Cell:
    """Return a check (`Cell`, a row of the demo's table) whose result `actual` must lie between `low` and `high`, both inclusive.

    what: name of the check. unit: unit of the three numbers, printed as text. digits: number of decimals to print.
    """
    text = f"{low:,.{digits}f} to {high:,.{digits}f} {unit}".rstrip()
    return Cell(what, text, f"{actual:,.{digits}f} {unit}".rstrip(), low <= actual <= high)


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@dataclass(slots=True)
class Step:
    """A step of the demo with its results: name, checks (`cells`) and duration in seconds."""

    name: str
    cells: list[Cell] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return bool(self.cells) and all(cell.ok for cell in self.cells)


class Progress:
    """A log on standard output. Each line starts with the seconds since the start. `begin` starts a step, `note` adds a line to the step."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    def begin(self, number: int, count: int, name: str) -> None:
        self._write(f"[{number}/{count}] {name}")

    def note(self, text: str) -> None:
        self._write(f"      {text}")

    def _write(self, text: str) -> None:
        sys.stdout.write(f"{self.seconds:6.1f} s  {text}\n")
        sys.stdout.flush()


def rows(steps: Sequence[Step]) -> list[tuple[str, ...]]:
    """Return (step, name of the check, expected, actual, seconds) for each check. Step and seconds are empty except in the first line of a step."""
    lines: list[tuple[str, ...]] = []
    for number, step in enumerate(steps, 1):
        for i, cell in enumerate(step.cells):
            actual = cell.actual if cell.ok else f"{cell.actual}  DIFFERS"
            first = i == 0
            lines.append(
                (
                    f"{number}. {step.name}" if first else "",
                    cell.what,
                    cell.expected,
                    actual,
                    f"{step.seconds:.1f}" if first else "",
                )
            )
    return lines


def markdown(steps: Sequence[Step]) -> str:
    """Return the table of results in Markdown, with aligned columns so that it is readable in a terminal too."""
    lines = [HEAD, *rows(steps)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    out = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    out.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(out)


def write_page(steps: Sequence[Step], run: str, page: Path = PAGE) -> None:
    """Write the results of the steps as a table into the Markdown file `page`, in place of everything between two marker lines.

    run: when and with which code the steps were run, such as "2026-11-26 at 398a81f".
    """
    text = page.read_text()
    part = f"{BEGIN}\nRun on {run}:\n\n{markdown(steps)}\n{END}"
    page.write_text(re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: part, text, flags=re.DOTALL))
