"""Every imported package is required by the package itself or by the extra of its commands."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COPIES = ["kafkaproto/broker/", "kafkaproto/pipeline/"]
"""Links to the neighbouring folders in a checkout, and copies of these in an unpacked sdist."""
PARTS = {
    "the broker": (["broker"], [], ()),
    "the codec": (["kafkaproto"], [*COPIES, "kafkaproto/conformance", "kafkaproto/pytest_plugin.py"], ()),
    "the conformance suite": (["kafkaproto/conformance"], [], ("conformance",)),
    "the Spark jobs": (["pipeline"], ["pipeline/demo"], ("spark",)),
    "the demo": (["pipeline/demo"], [], ("demo", "spark")),
}
"""Folders, the excluded parts of each, and the extras that their users install."""
OPTIONAL = {"numpy"}
"""Packages that are used if installed, but never required."""


def imported(path: Path) -> Iterator[str]:
    """Yield the top-level name of each import of a module, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def plain(name: str) -> str:
    """Return the name of a distribution as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required(extras: Iterable[str]) -> set[str]:
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in PROJECT["optional-dependencies"][extra])]
    return {plain(re.split(r"[\s<>=!~;\[]", line, maxsplit=1)[0]) for line in lines}


@pytest.mark.parametrize("part", PARTS)
def test_imported_packages_are_declared_as_dependencies_of_the_package_or_its_extras(part: str) -> None:
    folders, without, extras = PARTS[part]
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    paths = [path for path in paths if not path.relative_to(ROOT).as_posix().startswith(tuple(without) or "-")]
    assert paths
    names = {name for path in paths for name in imported(path)} - {"kafkaproto"} - set(sys.stdlib_module_names)
    distributions = packages_distributions()
    requirements_expected = {plain(distributions.get(name, [name])[0]) for name in names}
    assert requirements_expected - OPTIONAL - required(extras) == set()


COLLECTED = """import sys, pytest
sys.modules.update(dict.fromkeys(("pyspark", "pandas", "matplotlib", "jinja2", "markupsafe")))
sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "-m", sys.argv[1]]))"""
"""A program that collects tests where the packages of the extra "spark" cannot be imported, except pyarrow, which the extra "dev" has, too."""


@pytest.mark.slow
def test_fast_tests_can_be_collected_without_the_packages_of_the_extra_spark() -> None:
    """`make test` installs the extra "dev" only."""
    markers = re.search(r'-m "(not [^"]*)"', (ROOT / "Makefile").read_text())
    assert markers is not None
    completed = subprocess.run(
        [sys.executable, "-c", COLLECTED, markers[1]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stdout[-3000:] + completed.stderr[-3000:]
