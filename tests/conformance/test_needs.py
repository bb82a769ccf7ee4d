"""Requirements of conformance tests: the settings exist, and a missing one is reported with its value."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from kafkaproto.conformance.needs import Needs, missing, needs_of
from kafkaproto.conformance.plugin import modules
from kafkaproto.testing import TestCluster, cluster
from tests.support.conformance.ours import Ours


class Marked:
    """A test of the suite with its markers."""

    def __init__(self, nodeid: str, marks: list[pytest.Mark]) -> None:
        self.nodeid = nodeid
        self._marks = marks

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        return (mark for mark in self._marks if mark.name == name)


def suite() -> Iterator[tuple[Marked, str]]:
    """Yield each test of the suite with the profile of its module."""
    for path in modules():
        module: Any = importlib.import_module(f"kafkaproto.conformance.{path.stem}")
        for name, value in vars(module).items():
            if name.startswith("test_"):
                yield (
                    Marked(f"{path.stem}::{name}", getattr(value, "pytestmark", [])),
                    getattr(module, "PROFILE", "default"),
                )


def test_each_conformance_module_sets_all_broker_settings_that_its_tests_require() -> None:
    needs = {test.nodeid: needs_of(test, profile) for test, profile in suite()}
    assert len(needs) > 150
    assert needs[
        "test_small_limits::test_fetch_response_obeys_broker_fetch_max_bytes_if_the_request_allows_more"
    ] == Needs({"fetch.max.bytes": "1024"}, {}, 1, False)
    assert (
        sum(not (need.settings or need.at_least or need.racks) and need.brokers == 1 for need in needs.values()) > 100
    )


def test_needs_marker_for_a_setting_that_the_module_does_not_set_raises_value_error() -> None:
    test = Marked("test_x", [pytest.mark.needs("fetch.max.byte").mark])
    with pytest.raises(ValueError, match=r"test_x: .* the profile default does not set: fetch\.max\.byte"):
        needs_of(test, "default")


def test_requirements_of_two_needs_markers_of_a_conformance_test_are_combined() -> None:
    marks = [
        pytest.mark.needs("num.partitions", racks=True).mark,
        pytest.mark.needs("auto.create.topics.enable", at_least={"fetch.max.bytes": 5}, brokers=2).mark,
    ]
    expected_settings = {"num.partitions": "3", "auto.create.topics.enable": "true"}
    assert needs_of(Marked("test_x", marks), "lag") == Needs(expected_settings, {"fetch.max.bytes": 5}, 2, True)


class Running(Ours):
    """A running cluster with other settings than those of a profile."""

    def __init__(self, running: TestCluster) -> None:
        super(Ours, self).__init__()
        self.bootstrap = [(host, int(port)) for host, _, port in (a.rpartition(":") for a in running.bootstrap_servers)]


@pytest.mark.parametrize(
    ("needs", "lacks"),
    [
        (Needs({}, {}, 1, False), []),
        (Needs({"num.partitions": "1"}, {"fetch.max.bytes": 4096}, 2, False), []),
        (Needs({"num.partitions": "3"}, {}, 1, False), ["num.partitions=3 (is 1)"]),
        (Needs({}, {"fetch.max.bytes": 4097}, 1, False), ["fetch.max.bytes of 4097 or more (is 4096)"]),
        (Needs({"replica.selector.class": "x"}, {}, 1, False), ["replica.selector.class=x (is (none))"]),
        (Needs({}, {}, 3, False), ["brokers with the ids 0, 1 and 2 (the cluster has the ids 0 and 1)"]),
        (Needs({}, {}, 1, True), ["broker.rack=r1 of broker 1 (is (none))"]),
        (Needs({}, {}, 1, False, offsets_topic=True), ["offsets.topic.replication.factor of 2 or less (is 3)"]),
    ],
)
def test_conformance_suite_reports_required_and_actual_values_of_unsuitable_settings(
    needs: Needs, lacks: list[str]
) -> None:
    config = {"fetch.max.bytes": "4096", "num.partitions": "1", "0.broker.rack": "r0"}
    config["offsets.topic.replication.factor"] = "3"
    with cluster(2, config=config, clock="system") as running:
        subject = Running(running)
        assert missing(subject, needs) == lacks
