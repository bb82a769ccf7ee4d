"""What a step says while it works and what it leaves: cells of expected and seen, and the table of all of them."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

README = Path("README.md").absolute()
BEGIN, END = "<!-- demo -->", "<!-- /demo -->"
HEAD = ("step", "what", "expected", "seen", "s")


@dataclass(frozen=True, slots=True)
class Cell:
    """One thing that was looked at. `ok` is whether seen is what was expected."""

    what: str
    expected: str
    seen: str
    ok: bool


def same(what: str, expected: object, seen: object) -> Cell:
    """Expected and seen must be equal."""
    return Cell(what, _text(expected), _text(seen), expected == seen)


def within(what: str, low: float, high: float, seen: float, unit: str = "", digits: int = 0) -> Cell:
    """Seen must lie from low to high."""
    text = f"{low:,.{digits}f} to {high:,.{digits}f} {unit}".rstrip()
    return Cell(what, text, f"{seen:,.{digits}f} {unit}".rstrip(), low <= seen <= high)


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@dataclass(slots=True)
class Step:
    """A finished step."""

    name: str
    cells: list[Cell] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return bool(self.cells) and all(cell.ok for cell in self.cells)


class Progress:
    """Lines while it works, each with the seconds since the beginning. `note` adds one under the running step."""

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
    """A line per cell; the step's name and its seconds stand on its first."""
    lines: list[tuple[str, ...]] = []
    for number, step in enumerate(steps, 1):
        for i, cell in enumerate(step.cells):
            seen = cell.seen if cell.ok else f"{cell.seen}  DIFFERS"
            first = i == 0
            lines.append(
                (
                    f"{number}. {step.name}" if first else "",
                    cell.what,
                    cell.expected,
                    seen,
                    f"{step.seconds:.1f}" if first else "",
                )
            )
    return lines


def markdown(steps: Sequence[Step]) -> str:
    """The table as the README has it, columns aligned so that it reads well in a terminal too."""
    lines = [HEAD, *rows(steps)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    out = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    out.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(out)


def write_readme(steps: Sequence[Step], page: Path = README) -> None:
    """Put the table between its markers."""
    text = page.read_text()
    part = f"{BEGIN}\n{markdown(steps)}\n{END}"
    page.write_text(re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: part, text, flags=re.DOTALL))
