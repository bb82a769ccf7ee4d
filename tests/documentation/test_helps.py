"""The texts of the help of all programs: the collection misses none, and the help fits into a terminal."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from kafkaproto.cli import COMMANDS

pytestmark = pytest.mark.spark
"""The help of the pipeline's programs, and the texts of the report, need the packages of the extra "spark"."""

WIDTH = 100
"""The maximum number of characters in a line of a help, in a terminal of this width."""


@pytest.fixture(name="helps")
def import_helps() -> Any:
    """Return the module `tests.documentation.helps`. Imported here, so that pytest can collect this file without the extra."""
    from tests.documentation import helps

    return helps


def test_collected_help_texts_include_command_options_and_texts_of_the_trace_report(helps: Any) -> None:
    texts = helps.texts()
    programs = {source for source, _ in texts}
    assert {f"kafkaproto {command}" for command in COMMANDS} <= programs
    assert {"python -m benchmarks.race", "python -m kafkaproto.pipeline.demo", "kafkaproto trace cut"} <= programs
    assert ("kafkaproto encode", "--hex: print the bytes as hex digits") in texts
    assert (
        "python -m benchmarks.ab",
        "--requests N: requests per measurement in the part instructions (default: 100)",
    ) in texts
    assert any(source == "report: question" for source, _ in texts) and any(
        source == "table events" for source, _ in texts
    )


def test_collected_help_texts_of_an_argument_parser_omit_suppressed_options(helps: Any) -> None:
    parser = argparse.ArgumentParser(prog="tool", description="Do it.\n\nTwice.", epilog="Examples:\n  tool")
    parser.add_argument("name", metavar="NAME", help="a name")
    parser.add_argument("--kind", choices=("a", "b"), default="a", help="a kind (default: %(default)s)")
    parser.add_argument("--secret", help=argparse.SUPPRESS)
    assert [text for _, text in helps._texts(parser)] == [
        "Do it.",
        "Twice.",
        "Examples:\n  tool",
        "NAME: a name",
        "--kind {a,b}: a kind (default: a)",
    ]


def test_no_line_of_any_help_output_is_longer_than_100_characters(helps: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH + 2))  # argparse leaves two columns free
    pages = [helps.overview(), *(parser.format_help() for parser in helps.parsers())]
    assert [line for page in pages for line in page.splitlines() if len(line) > WIDTH] == []
