"""The public test API has the names and signatures committed in `testing_api.txt`."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import subprocess
import sys
import textwrap
from itertools import pairwise

import pytest

from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.testing.topics import TopicMethods
from kafkaproto.testing import TestCluster
from tests.testing_api import LIST, class_lines, lines, undocumented, undocumented_in


def test_public_classes_and_methods_of_kafkaproto_testing_equal_the_committed_list() -> None:
    committed = LIST.read_text().splitlines()
    difference = list(difflib.unified_diff(committed, lines(), "committed", "now", n=0, lineterm=""))
    if difference:
        advice = "If the change is wanted, run `python -m tests.testing_api --write` and name it in the change log."
        pytest.fail("\n".join([*difference, "", advice]), pytrace=False)


def test_public_method_list_shows_changed_signatures_and_omits_removed_methods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = set(class_lines(TestCluster))

    def wait_for(self: TestCluster, condition: object, timeout_s: float = 11.0) -> object: ...

    monkeypatch.setattr(TestCluster, "wait_for", wait_for)
    monkeypatch.delattr(TopicMethods, "compact")
    changed = before ^ set(class_lines(TestCluster))
    assert sorted(changed) == [
        "TestCluster.compact(self, topic: str, partition: int) -> None",
        "TestCluster.wait_for(self, condition: Condition, timeout_s: float = 10.0) -> object",
        "TestCluster.wait_for(self: TestCluster, condition: object, timeout_s: float = 11.0) -> object",
    ]


def test_each_public_name_of_the_testing_api_has_a_docstring_and_type_annotations() -> None:
    assert sorted(set(undocumented())) == []
    assert [line for line in lines() if ": ?" in line or "-> ?" in line] == []


def test_every_field_of_the_class_forced_throttle_has_a_docstring() -> None:
    [definition] = ast.parse(textwrap.dedent(inspect.getsource(ForcedThrottle))).body
    assert isinstance(definition, ast.ClassDef)
    described = [
        before.target.id
        for before, after in pairwise(definition.body)
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name) and isinstance(after, ast.Expr)
    ]
    assert described == [field.name for field in dataclasses.fields(ForcedThrottle)]


class Half:
    """A class with `named`."""

    named: int
    silent: int
    described: int
    """Described here."""

    def __init__(self) -> None:
        self.shown = 1
        """Described here, too."""
        self.hidden = 2
        self._private = 3

    def method(self) -> None:
        pass


def test_docstring_check_lists_public_fields_and_methods_that_have_no_docstring() -> None:
    assert sorted(undocumented_in(Half)) == ["Half.hidden", "Half.method", "Half.silent"]


def test_cluster_but_not_cluster_fixture_can_be_imported_if_pytest_is_missing() -> None:
    program = """
import sys
sys.modules["pytest"] = None  # as if it were not installed
from kafkaproto.testing import cluster
with cluster(topics={"orders": 1}) as c:
    assert c.topics() == {"orders": 1}
try:
    from kafkaproto.testing import cluster_fixture
except ImportError as error:
    print(error.name)
"""
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert completed.stdout == "pytest\n"
