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
    begin, end = f"<!-- {key} -->", f"<!-- /{key} -->"
    table = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    table += ["| " + " | ".join(row) + " |" for row in rows]
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()}"
    day = datetime.date.today().isoformat()
    section = (
        f"{begin}\n## {title}\n\n{text}\n\nMade by `{command}` on {day} ({machine}).\n\n"
        + "\n".join(table)
        + f"\n{end}"
    )
    page = PAGE.read_text() if PAGE.exists() else "# Benchmarks\n"
    if begin in page and end in page:
        page = page[: page.index(begin)] + section + page[page.index(end) + len(end) :]
    else:
        page = page.rstrip("\n") + "\n\n" + section + "\n"
    PAGE.write_text(page)
    return section
