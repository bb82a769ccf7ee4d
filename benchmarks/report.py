"""Writes sections of docs/benchmarks.md. A section is the text between two marker lines: a table, the command that made it, and the date."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"


def write_section(
    key: str, title: str, command: str, text: str, head: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """Replace the section `key` of docs/benchmarks.md, or add it at the end. Returns the text of the section.

    key: identifies the section by its marker lines, ``<!-- key -->`` before it and ``<!-- /key -->`` after it. command: the command line that makes
    the section. text: the paragraph before the table. head: titles of the columns. rows: cells of each table row.
    """
    section = section_text(key, title, command, text, head, rows)
    start_marker, end_marker = markers(key)
    page = PAGE.read_text() if PAGE.exists() else "# Benchmarks\n"
    if start_marker in page and end_marker in page:
        page = page[: page.index(start_marker)] + section + page[page.index(end_marker) + len(end_marker) :]
    else:
        page = page.rstrip("\n") + "\n\n" + section + "\n"
    PAGE.write_text(page)
    return section


def section_text(
    key: str, title: str, command: str, text: str, head: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """Return the text of a section, between its two marker lines and with a line for the command, the date and the machine.

    key: the name in the marker lines, ``<!-- key -->`` and ``<!-- /key -->``. text: the paragraph before the table. head: titles of the columns.
    rows: cells of each table row.
    """
    start_marker, end_marker = markers(key)
    table = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    table += ["| " + " | ".join(row) + " |" for row in rows]
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()}"
    created = f"Made by `{command}` on {datetime.date.today().isoformat()} ({machine})."
    return "\n".join([start_marker, f"## {title}\n\n{text}\n\n{created}\n", *table, end_marker])


def add_limitation(parser: argparse.ArgumentParser) -> None:
    """Add the option `--limitation TEXT`, which says what may distort a run, such as other programs on the machine."""
    parser.add_argument(
        "--limitation",
        default="",
        metavar="TEXT",
        help="write into docs/benchmarks.md what may distort this run, such as other programs on the machine (default: nothing)",
    )


def limitation(text: str) -> str:
    """Return the sentence "Limitation: TEXT." with a space before it, to append to other text; "" if `text` is empty.

    text: the value of the option `--limitation`: what may distort the run.
    """
    return f" Limitation: {text.rstrip('.')}." if text else ""


def markers(key: str) -> tuple[str, str]:
    """Return the two marker lines around a section of docs/benchmarks.md: `<!-- key -->` and `<!-- /key -->`, with `key` filled in."""
    return f"<!-- {key} -->", f"<!-- /{key} -->"
