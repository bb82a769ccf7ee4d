"""Writes one section of BENCHMARKS.md between its markers: a table, the command that made it, and the day."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "BENCHMARKS.md"


def write_section(
    key: str, title: str, command: str, text: str, head: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """Replace the section `key`, or add it. Returns what was written."""
    section = section_text(key, title, command, text, head, rows)
    begin, end = markers(key)
    page = PAGE.read_text() if PAGE.exists() else "# Benchmarks\n"
    if begin in page and end in page:
        page = page[: page.index(begin)] + section + page[page.index(end) + len(end) :]
    else:
        page = page.rstrip("\n") + "\n\n" + section + "\n"
    PAGE.write_text(page)
    return section


def section_text(
    key: str, title: str, command: str, text: str, head: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """The section as it stands in the page, its markers included."""
    begin, end = markers(key)
    table = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    table += ["| " + " | ".join(row) + " |" for row in rows]
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()}"
    made = f"Made by `{command}` on {datetime.date.today().isoformat()} ({machine})."
    return "\n".join([begin, f"## {title}\n\n{text}\n\n{made}\n", *table, end])


def markers(key: str) -> tuple[str, str]:
    """What stands around a section."""
    return f"<!-- {key} -->", f"<!-- /{key} -->"
