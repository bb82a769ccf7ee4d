"""The public test API has the names and signatures that are committed in `testing_api.txt`."""

from __future__ import annotations

import difflib

import pytest

from kafkaproto.testing import TestCluster
from tests.testing_api import LIST, class_lines, lines


def test_the_public_test_api_is_the_committed_one() -> None:
    committed = LIST.read_text().splitlines()
    difference = list(difflib.unified_diff(committed, lines(), "committed", "now", n=0, lineterm=""))
    if difference:
        advice = "If the change is wanted, run `python -m tests.testing_api --write` and name it in the change log."
        pytest.fail("\n".join([*difference, "", advice]), pytrace=False)


def test_the_list_notices_a_changed_signature_and_a_missing_method(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(class_lines(TestCluster))

    def wait_for(self: TestCluster, condition: object, timeout_s: float = 11.0) -> object: ...

    monkeypatch.setattr(TestCluster, "wait_for", wait_for)
    monkeypatch.delattr(TestCluster.__mro__[1], "compact")
    changed = before ^ set(class_lines(TestCluster))
    assert sorted(changed) == [
        "TestCluster.compact(self, topic: str, partition: int) -> None",
        "TestCluster.wait_for(self, condition: Condition, timeout_s: float = 10.0) -> object",
        "TestCluster.wait_for(self: TestCluster, condition: object, timeout_s: float = 11.0) -> object",
    ]
