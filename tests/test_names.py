"""Names in code say what a value holds: some general-purpose words are not allowed as names. Names of tests are short enough to be read at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("broker", "kafkaproto", "pipeline", "benchmarks", "tests")
LINKS = ("kafkaproto/broker/", "kafkaproto/pipeline/")
"""Links to `broker` and `pipeline`; in a source distribution copies of them."""
GENERAL_PURPOSE = frozenset({"told", "one", "asked", "found", "wanted"})
LONGEST_NAME_OF_A_TEST = 80
TESTS = ("tests", "kafkaproto/conformance")


def problems(root: Path) -> list[str]:
    """Return a message for each general-purpose name that the code under `root` binds, in the order of files and lines."""
    messages = []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        place = path.relative_to(root).as_posix()
        if place.startswith(LINKS):
            continue
        names = sorted(bound_names(ast.parse(path.read_text())))
        messages += [f"{place}:{line} {name}" for line, name in names if name.strip("_").lower() in GENERAL_PURPOSE]
    return messages


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, name) for each name that the code binds.

    These are variables, attributes, parameters, functions, classes, names from `import … as` and `except … as`, and names in `case` patterns.
    """
    for node in ast.walk(tree):
        name: str | None = None
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case ast.alias(asname=name) | ast.ExceptHandler(name=name) | ast.MatchAs(name=name):
                pass
            case ast.MatchStar(name=name) | ast.MatchMapping(rest=name):
                pass
        if name is not None:
            yield node.lineno, name


def test_names_of_tests_have_at_most_80_characters() -> None:
    too_long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for folder in TESTS
        for path in sorted((ROOT / folder).rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        if len(node.name) > LONGEST_NAME_OF_A_TEST
    ]
    assert not too_long, "\n".join(["shorten these names:", *too_long])


@pytest.mark.timeout(300)
def test_code_defines_no_vague_name_such_as_found_or_wanted() -> None:
    messages = problems(ROOT)
    assert not messages, "\n".join(["give these names a word for what they hold:", *messages])


@pytest.mark.parametrize(
    "code",
    [
        "found = 1",
        "found: int = 1",
        "for found in (): ...",
        "[found for found in ()]",
        "if found := 1: ...",
        "with open('f') as found: ...",
        "[found, *rest] = ()",
        "self.found = 1",
        "def function(found): ...",
        "def function(*found): ...",
        "lambda found: 1",
        "def found(): ...",
        "async def found(): ...",
        "class found: ...",
        "class C:\n    found: int",
        "import module as found",
        "try: ...\nexcept OSError as found: ...",
        "match 1:\n    case found: ...",
        "match 1:\n    case [*found]: ...",
        "match 1:\n    case {**found}: ...",
    ],
)
def test_name_check_returns_file_and_line_of_each_forbidden_name_that_code_defines(tmp_path: Path, code: str) -> None:
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline/module.py").write_text(f"\n{code}\n")
    line = 2 + code[: code.rindex("found")].count("\n")
    assert problems(tmp_path) == [f"pipeline/module.py:{line} found"]


def test_name_check_returns_forbidden_names_in_upper_case_or_with_leading_underscore(tmp_path: Path) -> None:
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker/module.py").write_text("_ONE = 1\nFOUND = _told = 2\n")
    assert problems(tmp_path) == ["broker/module.py:1 _ONE", "broker/module.py:2 FOUND", "broker/module.py:2 _told"]


@pytest.mark.parametrize("code", ["print(found)", "not_found = 1", "text = 'found'", "call(found=1)", "thing.found()"])
def test_name_check_accepts_a_forbidden_name_that_the_code_uses_without_defining_it(tmp_path: Path, code: str) -> None:
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker/module.py").write_text(code)
    assert problems(tmp_path) == []
