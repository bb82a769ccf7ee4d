"""Options for the subjects of a run, and the collection of the suite below one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkaproto.conformance.plugin import Kind
from tests.support.conformance.kinds import DEFAULT, KINDS
from tests.support.conformance.suite import Suite


def pytest_addoption(parser: pytest.Parser) -> None:
    names = ", ".join(kind.name for kind in DEFAULT)
    parser.getgroup("conformance").addoption(
        "--subjects",
        help=f"which of {', '.join(KINDS)} to start, separated by commas, each for the whole suite (default: {names}; real-newer without the "
        "modules for quotas and replica placement)",
    )


def pytest_conformance_kinds(config: pytest.Config) -> Sequence[Kind]:
    names: str | None = config.getoption("--subjects", None)
    return [KINDS[name] for name in names.split(",")] if names else DEFAULT


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the conformance suite in place of `test_suite.py`."""
    return Suite.from_parent(parent, path=module_path) if module_path.name == "test_suite.py" else None
