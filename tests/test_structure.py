"""The structure of test code: helpers are in `tests/support/`, and no test module or conftest is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HARNESSES = (
    "support",
    "simulation",
    "differential",
    "fuzz",
    "golden",
    "artifacts",
    "long_run",
    "mutations",
    "documentation",
)
"""Folders of `tests/` with their own modules: the helpers, and programs that tests also run."""
PROGRAMS = {
    "tests/clients/bursts.py",
    "tests/clients/long_quotas.py",
    "tests/conformance/__main__.py",
    "tests/distribution.py",
    "tests/oracle/transaction_completion.py",
    "tests/rules.py",
    "tests/testing_api.py",
    "tests/time_by_file.py",
}
"""Single modules, run as `python -m` or loaded by `pytest -p`."""


def problems(root: Path) -> list[str]:
    """Return the imports of `tests/` and `benchmarks/` that are not allowed, and the helpers outside `tests/support/`."""
    messages = []
    for path in sorted(path for folder in ("tests", "benchmarks") for path in (root / folder).rglob("*.py")):
        place = path.relative_to(root)
        for line, module in imported_modules(place, ast.parse(path.read_text())):
            if reason := forbidden(place, module):
                messages.append(f"{place}:{line}: {reason}: {module}")
        if is_misplaced_helper(place):
            messages.append(f"{place}: a helper module outside tests/support")
    return messages


def imported_modules(place: Path, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of everything a module imports, also inside functions; relative names are made absolute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = place.parent.parts[: len(place.parent.parts) - node.level + 1] if node.level else ()
            base = ".".join([*package, *filter(None, [node.module])])
            yield from ((alias.lineno, f"{base}.{alias.name}") for alias in node.names)


def forbidden(place: Path, module: str) -> str:
    """Return why a module at this place must not import another one, or an empty string."""
    parts = module.split(".")
    if parts[0] != "tests":
        return ""
    if place.parts[0] == "benchmarks":
        return "a benchmark imports tests"
    if any(part.startswith("test_") for part in parts):
        return "import of a test module"
    return "import of a conftest" if "conftest" in parts else ""


def is_misplaced_helper(place: Path) -> bool:
    """Return whether a module of `tests/` is neither a test, nor a conftest, nor a program, nor in a folder for helpers."""
    if place.parts[0] != "tests" or place.parts[1] in HARNESSES or place.as_posix() in PROGRAMS:
        return False
    return not place.name.startswith("test_") and place.name not in ("conftest.py", "__init__.py")


def test_shared_helpers_are_in_the_support_folder_and_no_test_imports_a_test_module() -> None:
    assert problems(ROOT) == []


def test_every_program_that_the_structure_check_allows_in_the_tests_folder_exists() -> None:
    assert [name for name in sorted(PROGRAMS) if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize(
    ("place", "text", "problem"),
    [
        ("tests/a/test_x.py", "import os\nfrom tests.a.test_y import z", ":2: import of a test module: tests.a.test_y.z"),
        ("tests/a/test_x.py", "from tests.a import test_y", ":1: import of a test module: tests.a.test_y"),
        ("tests/a/test_x.py", "import tests.a.test_y as y", ":1: import of a test module: tests.a.test_y"),
        ("tests/a/test_x.py", "from . import test_y", ":1: import of a test module: tests.a.test_y"),
        ("tests/a/test_x.py", "from ..b.test_y import z", ":1: import of a test module: tests.b.test_y.z"),
        ("tests/a/test_x.py", "def f():\n    from tests.a.conftest import z", ":2: import of a conftest: tests.a.conftest.z"),
        ("tests/support/x.py", "from tests.a.test_y import z", ":1: import of a test module: tests.a.test_y.z"),
        ("benchmarks/x.py", "def f():\n    import tests.support.wire", ":2: a benchmark imports tests: tests.support.wire"),
        ("benchmarks/b/x.py", "from tests.support import wire", ":1: a benchmark imports tests: tests.support.wire"),
        ("tests/a/helper.py", "import os", ": a helper module outside tests/support"),
    ],
)  # fmt: skip
def test_structure_check_returns_file_and_line_of_each_import_of_a_test_module(
    tmp_path: Path, place: str, text: str, problem: str
) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert problems(tmp_path) == [place + problem]


def test_structure_check_accepts_imports_from_modules_that_are_not_test_modules(tmp_path: Path) -> None:
    path = tmp_path / "tests/a/test_x.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "from tests.support.wire import fetch\nfrom benchmarks.rivals import jars\nfrom other import test_it\n"
    )
    assert problems(tmp_path) == []
