"""Size limits of files and classes; each exception is listed with its reason."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("kafkaproto", "broker", "pipeline")
GENERATED = ("kafkaproto/messages", "kafkaproto/data", "kafkaproto/error_codes.py", "kafkaproto/release_table.py")
LINKS = ("kafkaproto/broker/", "kafkaproto/pipeline/")
"""Links to `broker` and `pipeline`; in a source distribution copies of them."""
FILE_LINES = 400
CLASS_LINES = 300
CLASS_METHODS = 25
MOST_EXCEPTIONS = 5

EXCEPTIONS = {
    "broker/log/replica_log.py": "the class below, and the small types that its signatures name",
    "broker/log/replica_log.py::ReplicaLog": "offsets, epochs and producers of a log change together in append, truncate "
    "and delete: apart, each part could be changed alone",
    "broker/runtime/events.py::Observer": "one method for each event that a cluster reports, and nothing else",
}
"""A file, or `file::Class`, above a limit, and the reason not to split it. A file and a class in it are two entries."""


class Size(NamedTuple):
    """A file or class: its key in `EXCEPTIONS`, and the limits that it exceeds."""

    name: str
    excess: str


def sizes(root: Path) -> Iterator[Size]:
    """Yield every hand-written file and every class of the three folders, in order."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if name.startswith((*GENERATED, *LINKS)):
                continue
            text = path.read_text()
            lines = text.count("\n")
            yield Size(name, f"{lines} lines" if lines > FILE_LINES else "")
            yield from (Size(f"{name}::{size.name}", size.excess) for size in classes(ast.parse(text)))


def classes(tree: ast.Module) -> Iterator[Size]:
    """Yield every class of a module, also those inside functions and classes, by qualified name."""
    yield from _classes(tree, "")


def _classes(node: ast.AST, outer: str) -> Iterator[Size]:
    for child in ast.iter_child_nodes(node):
        inner = outer
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{outer}{child.name}."
        if isinstance(child, ast.ClassDef):
            yield Size(inner[:-1], excess_of(child))
        yield from _classes(child, inner)


def excess_of(cls: ast.ClassDef) -> str:
    """Return the limits that a class exceeds. Its lines are counted from `class` or the first decorator to its last line."""
    first = min([cls.lineno, *(decorator.lineno for decorator in cls.decorator_list)])
    lines = (cls.end_lineno or first) - first + 1
    methods = sum(isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) for statement in cls.body)
    excesses = []
    if lines > CLASS_LINES:
        excesses.append(f"{lines} lines")
    if methods > CLASS_METHODS:
        excesses.append(f"{methods} methods")
    return " and ".join(excesses)


def problems(sizes_found: Iterable[Size], exceptions: Mapping[str, str]) -> list[str]:
    """Return files and classes above a limit without a reason, and exceptions that are needless, without a reason or too many."""
    excesses = {size.name: size.excess for size in sizes_found if size.excess}
    lines = [f"{name} has {excess}: split it" for name, excess in excesses.items() if name not in exceptions]
    for name, reason in exceptions.items():
        if name not in excesses:
            lines.append(f"{name} exceeds no limit, or does not exist: remove it from the list")
        elif not reason.strip():
            lines.append(f"{name} has no reason")
    if len(exceptions) > MOST_EXCEPTIONS:
        lines.append(f"{len(exceptions)} exceptions are listed; at most {MOST_EXCEPTIONS} are allowed")
    return lines


def test_every_file_or_class_above_the_size_limits_is_in_the_list_of_exceptions() -> None:
    messages = problems(sizes(ROOT), EXCEPTIONS)
    if messages:
        limits = f"limits: {FILE_LINES} lines a file, {CLASS_LINES} lines and {CLASS_METHODS} methods a class"
        pytest.fail("\n".join([limits, *messages]), pytrace=False)


def test_code_size_check_measures_no_file_twice_and_no_generated_message_file() -> None:
    names = [size.name for size in sizes(ROOT)]
    assert len(names) == len({*names})
    assert {"kafkaproto/message.py", "broker/cluster.py", "pipeline/trace/report/figures.py"} <= {*names}
    assert {"broker/cluster.py::Cluster", "kafkaproto/message.py::Message"} <= {*names}
    assert [name for name in names if name.startswith(("kafkaproto/broker/", "kafkaproto/messages/"))] == []


def made_up(folder: Path, text: str) -> list[Size]:
    """Write one module of a made-up project and return its files and classes above a limit."""
    (folder / "broker").mkdir()
    (folder / "broker" / "large.py").write_text(text)
    return [size for size in sizes(folder) if size.excess]


METHODS = [
    "def f{0}(self): ...",
    "async def f{0}(self): ...",
    "@property\n    def f{0}(self): ...",
    "def __f{0}__(self): ...",
]


@pytest.mark.parametrize(
    ("text", "excess"),
    [
        ("x = 0\n" * 400, []),
        ("x = 0\n" * 401, [("broker/large.py", "401 lines")]),
        ("class C:\n" + "    x = 0\n" * 299, []),
        ("class C:\n" + "    x = 0\n" * 300, [("broker/large.py::C", "301 lines")]),
        ("@final\nclass C:\n" + "    x = 0\n" * 299, [("broker/large.py::C", "301 lines")]),
        ("class C:\n    class D:\n" + "        x = 0\n" * 300, [
            ("broker/large.py::C", "302 lines"),
            ("broker/large.py::C.D", "301 lines"),
        ]),
        ("def f():\n    class C:\n" + "        x = 0\n" * 300, [("broker/large.py::f.C", "301 lines")]),
    ],
)  # fmt: skip
def test_code_size_check_finds_files_and_classes_above_a_size_limit(
    tmp_path: Path, text: str, excess: list[tuple[str, str]]
) -> None:
    assert made_up(tmp_path, text) == excess


@pytest.mark.parametrize("method", METHODS)
def test_code_size_check_counts_methods_of_every_kind_but_no_functions_in_methods(tmp_path: Path, method: str) -> None:
    text = "class C:\n    def g(self):\n        def inner(): ...\n"
    more = [f"    {method.format(number)}\n" for number in range(25)]
    assert made_up(tmp_path, text + "".join(more)) == [("broker/large.py::C", "26 methods")]
    assert [size for size in classes(ast.parse(text + "".join(more[1:]))) if size.excess] == []


LARGE = [Size("a.py", "500 lines"), Size("a.py::A", "30 methods"), Size("b.py", "")]


@pytest.mark.parametrize(
    ("exceptions", "messages"),
    [
        ({"a.py": "one table", "a.py::A": "one table"}, []),
        ({"a.py": "one table"}, ["a.py::A has 30 methods: split it"]),
        (
            {"a.py": "one table", "a.py::A": "one table", "b.py": "was large"},
            ["b.py exceeds no limit, or does not exist: remove it from the list"],
        ),
        ({"a.py": "one table", "a.py::A": " "}, ["a.py::A has no reason"]),
    ],
)
def test_code_size_check_reports_an_exemption_that_is_not_needed_or_has_no_reason(
    exceptions: dict[str, str], messages: list[str]
) -> None:
    assert problems(LARGE, exceptions) == messages


def test_code_size_check_allows_at_most_five_files_or_classes_above_the_size_limit() -> None:
    six = [Size(f"{number}.py", "500 lines") for number in range(6)]
    allowed = {size.name: "one table" for size in six}
    assert problems(six, allowed) == ["6 exceptions are listed; at most 5 are allowed"]
    assert problems(six[:5], {size.name: "one table" for size in six[:5]}) == []
