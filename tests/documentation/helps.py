"""The texts that users read in help pages and in the report of a trace, collected from the real parsers, queries and rules.

`tests.documentation.samples` draws them as the kind "helps".
"""

from __future__ import annotations

import argparse
import re
import runpy
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kafkaproto.cli import COMMANDS
from kafkaproto.pipeline.trace.answers import diff
from kafkaproto.pipeline.trace.audit.rules import RULES
from kafkaproto.pipeline.trace.report import page
from kafkaproto.pipeline.trace.report.making import ANSWERS
from kafkaproto.pipeline.trace.schema import TABLES
from tests.documentation.blocks import ROOT

KAFKAPROTO = ROOT / "kafkaproto" / "__main__.py"
FOLDERS = ("kafkaproto/generator", "pipeline", "benchmarks", "tests")
"""Folders with programs other than the command `kafkaproto`."""
_MARKUP = re.compile(r"<style>.*?</style>|<svg.*?</svg>|{%.*?%}|<nav.*?</nav>", re.DOTALL)


class _Made(Exception):
    """Ends a program when it is about to parse its command line or to print its help. The argument is its parser."""


def helps() -> Iterator[tuple[str, str]]:
    """Yield (program, text) of each text in the help of each program: description, examples, each option."""
    yield from (("kafkaproto", part) for part in overview().split("\n") if part.strip())
    for parser in parsers():
        yield from _texts(parser)


def parsers() -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of each command of `kafkaproto` and of each other program, and those of their subcommands."""
    for command in COMMANDS:
        yield from _with_subparsers(_parser_of(KAFKAPROTO, command, "--help"))
    for program in programs():
        yield from _with_subparsers(_parser_of(program))


def _with_subparsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


def programs() -> list[Path]:
    """Return the files in `FOLDERS` that are programs with options."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    texts = {path: path.read_text() for path in files}
    return [path for path, text in texts.items() if "ArgumentParser(" in text and '\nif __name__ == "__main__"' in text]


def overview() -> str:
    """Return the help of `kafkaproto` without a command."""
    out = StringIO()
    with redirect_stdout(out), suppress(SystemExit):
        _run(KAFKAPROTO, "--help")
    return out.getvalue()


def _parser_of(program: Path, *arguments: str) -> argparse.ArgumentParser:
    """Return the parser of a program. program: its file. arguments: its command line."""

    def stop(self: argparse.ArgumentParser, *_: Any) -> None:
        raise _Made(self)

    with patch.multiple(argparse.ArgumentParser, parse_known_args=stop, print_help=stop):
        try:
            _run(program, *arguments)
        except _Made as ended:
            parser: argparse.ArgumentParser = ended.args[0]
            return parser
    raise AssertionError(f"{program} parsed no command line")


def _run(program: Path, *arguments: str) -> None:
    """Run a program in this process. program: its file. arguments: its command line. Raises SystemExit if it ends."""
    with patch.object(sys, "argv", [str(program), *arguments]):
        runpy.run_path(str(program), run_name="__main__")


def _texts(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Yield (program, text) of the description, the end and each option of a parser."""
    for text in (parser.description, parser.epilog):
        yield from ((parser.prog, part.strip("\n")) for part in (text or "").split("\n\n") if part.strip())
    for action in parser._actions:
        if action.help and action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):
            value = action.metavar or (f"{{{','.join(map(str, action.choices))}}}" if action.choices else "")
            if action.option_strings and action.nargs == "?":
                value = f"[{value}]"
            name = " ".join(filter(None, (", ".join(action.option_strings), str(value)))) or action.dest
            yield parser.prog, f"{name}: {action.help % {'default': action.default}}"


def reports() -> Iterator[tuple[str, str]]:
    """Yield (place, text) of each text on the report page and of each column of the tables."""
    for rule in RULES:
        yield "report: rule", f"rule {rule.number}: {rule.statement}"
    for answer in (*ANSWERS, diff.answer("BEFORE", "AFTER")):
        yield "report: question", answer.question
        yield from (("report: table", f"{answer.question}\n{query.about}") for query in answer.queries)
        for _, caption, _ in page._pictures(answer.name, {}, "3.9"):
            yield "report: caption", f"{answer.question}\n{caption}"
    yield from (("report: small print", f"{name}: {text}") for name, text in page.SMALL_PRINT)
    template = _MARKUP.sub("", (ROOT / "pipeline/trace/report/page.html.j2").read_text())
    for paragraph in re.findall(r"<(p|summary|th|h2|h3|dd)\b[^>]*>(.*?)</\1>", template, re.DOTALL):
        text = " ".join(re.sub(r"<[^>]*>", "", paragraph[1]).split())
        if re.search(r"[a-z]{3}", re.sub(r"{{.*?}}", "", text)):
            yield "report: page", text
    for table, columns in TABLES.items():
        yield from ((f"table {table}", f"{column.name}: {column.about}") for column in columns)


def texts() -> list[tuple[str, str]]:
    """Return (program or place, text) of each text in a help or in the report, without repetitions."""
    return list(dict.fromkeys([*helps(), *reports()]))
