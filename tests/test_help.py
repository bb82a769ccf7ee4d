"""The script `kafkaproto` without a command or with an unknown one, and the help of each command."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kafkaproto
from kafkaproto import command_line
from kafkaproto.broker.proxy import main as proxy
from kafkaproto.broker.server import health, settings_command
from kafkaproto.broker.server import main as broker
from kafkaproto.cli import COMMANDS, COMMANDS_OF_EXTRAS, main
from kafkaproto.conformance import options as conformance
from kafkaproto.pipeline import options as spark
from kafkaproto.trace import command_line as trace
from tests.documentation.blocks import ROOT
from tests.support.oracle import settings as tables_of_settings

PACKAGES_OF_EXTRAS = ("pyspark", "pandas", "pyarrow", "matplotlib", "jinja2", "pytest", "numpy")


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the script in this process. Returns exit status, stdout and stderr."""
    monkeypatch.setattr(sys, "argv", ["kafkaproto", *arguments])
    try:
        status = main()
    except SystemExit as ended:
        status = int(ended.code or 0)
    out, err = capsys.readouterr()
    return status, out, err


def parser_of(command: str) -> argparse.ArgumentParser:
    """Return the options of a command."""
    if command in ("broker", "proxy"):
        return (broker if command == "broker" else proxy).parser()
    if command in ("settings", "health"):
        return (settings_command if command == "settings" else health).parser()
    if command == "trace":
        return trace.parser()
    if command == "conformance":
        return conformance.parser()
    return spark.parser(command) if command in COMMANDS_OF_EXTRAS else command_line.parser(command)


def examples_of(text: str) -> Iterator[str]:
    """Yield the commands in the examples of a help."""
    _, _, examples = text.partition("Examples:\n")
    yield from (line.strip() for line in examples.splitlines() if line.startswith("  kafkaproto "))


@pytest.mark.parametrize("option", ["--version", "-V", "version"])
def test_version_option_prints_the_package_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    assert run(monkeypatch, capsys, option) == (0, f"kafkaproto {kafkaproto.__version__}\n", "")


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("brokr", 'unknown command "brokr"; did you mean "broker"?'),
        ("REPORTS", 'unknown command "REPORTS"; did you mean "report"?'),
        ("xyzzy", 'unknown command "xyzzy"; kafkaproto --help lists the commands'),
        ("--versoin", 'unknown option "--versoin"; did you mean "--version"?'),
    ],
)
def test_unknown_command_prints_a_single_error_line_with_the_nearest_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, error: str
) -> None:
    assert run(monkeypatch, capsys, command) == (2, "", f"kafkaproto: {error}\n")


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("help",)])
def test_kafkaproto_help_lists_every_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    status, out, err = run(monkeypatch, capsys, *arguments)
    assert (status, err) == (0, "")
    assert [command for command in COMMANDS if f"kafkaproto {command} " not in out] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_examples_of_each_command_use_valid_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    for arguments in ((command, "--help"), ("help", command)):
        status, out, err = run(monkeypatch, capsys, *arguments)
        assert (status, err) == (0, "")
        assert out.startswith(f"usage: kafkaproto {command} ")
    examples = [*examples_of(out)]
    assert examples
    for example in examples:
        words = shlex.split(example.partition(" > ")[0])
        assert words[:2] == ["kafkaproto", command]
        if "--help" not in words:
            parser_of(command).parse_known_args(words[2:])


@pytest.mark.parametrize("command", ["show", "cut"])
def test_help_examples_of_each_trace_command_use_valid_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    status, out, _ = run(monkeypatch, capsys, "trace", command, "--help")
    examples = [shlex.split(example) for example in examples_of(out)]
    assert status == 0 and len(examples) > 1
    for example in examples:
        assert trace.parser().parse_args(example[2:]).command == command


@pytest.mark.parametrize("command", COMMANDS_OF_EXTRAS)
def test_help_of_every_command_is_printed_without_optional_packages(command: str) -> None:
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({PACKAGES_OF_EXTRAS}));"
        f"sys.argv[1:] = [{command!r}, '--help']; from kafkaproto.cli import main; sys.exit(main())"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=20)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout.startswith(f"usage: kafkaproto {command} ")


def test_command_whose_optional_packages_are_missing_names_the_extra_to_install() -> None:
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({PACKAGES_OF_EXTRAS}));"
        "sys.argv[1:] = ['report', 'trace']; from kafkaproto.cli import main; sys.exit(main())"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=20)
    assert (completed.returncode, completed.stdout) == (3, "")
    assert (
        completed.stderr
        == "kafkaproto report: pyarrow is missing: install it in a checkout with pip install '.[spark]'\n"
    )


def test_each_stderr_line_of_a_command_begins_with_kafkaproto_and_the_command_name() -> None:
    """`python -m kafkaproto.pipeline.demo` is not a command of `kafkaproto`."""
    starts = [
        f"{path.relative_to(ROOT)}: {text}"
        for folder in ("kafkaproto", "broker", "pipeline")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.parent.parts[-2:] != ("pipeline", "demo")  # in an sdist it is in kafkaproto/
        for text in _starts_of_lines_on_stderr(path)
        if re.match(r"[a-z]+( [a-z]+| {})*: ", text)
    ]
    assert [start for start in starts if not re.search(r": kafkaproto( [a-z]+| {}|): ", start)] == []
    assert len(starts) > 15


def _starts_of_lines_on_stderr(path: Path) -> Iterator[str]:
    """Yield each text that a module writes to stderr, with `{}` in place of the values in it."""
    for call in ast.walk(ast.parse(path.read_text())):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "sys.stderr.write" and call.args:
            match call.args[0]:
                case ast.Constant(value=str(text)):
                    yield text
                case ast.JoinedStr(values=parts):
                    yield "".join(
                        part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "{}"
                        for part in parts
                    )


def test_help_option_of_the_settings_table_generator_writes_no_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tables_of_settings, "table", None)
    with pytest.raises(SystemExit, match="0"):
        tables_of_settings.main(["--help"])
    assert "--check" in capsys.readouterr().out
