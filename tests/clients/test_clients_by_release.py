"""Each client library does with each release what `outcomes.json` says, with brokers of this project and with a real Kafka."""

from __future__ import annotations

import copy
from importlib.metadata import version
from typing import Any

import pytest

from tests.support.by_release import expected
from tests.support.by_release.programs.tasks import MISSING, WAITS, WORKS
from tests.support.by_release.running import CLIENTS, TASKS, Outcomes, missing_effects, ours

pytestmark = pytest.mark.clients
programs = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(200)]
REWRITE = "run python -m tests.support.by_release --write if the change is intended"


@pytest.mark.parametrize("release", [pytest.param(release, marks=programs) for release in expected.RELEASES])
def test_client_libraries_succeed_or_fail_with_each_broker_release_as_documented(release: str) -> None:
    assert not (differences := expected.differences(release, expected.observe(release))), [*differences, REWRITE]


@pytest.mark.parametrize("release", [pytest.param(release, marks=programs) for release in ("3.9", "4.2")])
def test_client_libraries_succeed_or_fail_with_real_kafka_3_9_and_4_2_as_documented(release: str) -> None:
    """For the older releases `python -m tests.support.by_release --real` compares the same; in all tests it would take too long."""
    assert expected.differences(release, expected.observe_real(release)) == []


def test_documented_results_of_client_libraries_name_the_installed_library_versions() -> None:
    documented = expected.load()
    assert {client: entry["version"] for client, entry in documented.items()} == expected.versions_of_clients()
    packages = expected.PACKAGES.values()
    assert {name: version(name) for name in packages} == {name: expected.pinned(name) for name in packages}


def test_each_client_library_has_a_documented_result_per_kafka_release_and_operation() -> None:
    documented = expected.load()
    assert tuple(documented) == CLIENTS
    for client, entry in documented.items():
        assert tuple(entry["releases"]) == expected.RELEASES
        for release, results in entry["releases"].items():
            assert tuple(results["tasks"]) == TASKS
            assert {"connect", "produce", "consume", "group"} <= {
                task for task, outcome in results["tasks"].items() if outcome == WORKS
            }, f"{client} with {release}"


def _other_text(results: dict[str, Any]) -> None:
    results["tasks"]["new group"] = results["tasks"]["new group"].replace("CLASSIC", "classic")


def _waits(results: dict[str, Any]) -> None:
    results["tasks"]["group"] = WAITS


def _missing(results: dict[str, Any]) -> None:
    results["tasks"]["transaction"] = MISSING


def _no_task(results: dict[str, Any]) -> None:
    del results["tasks"]["produce"]


def _other_version(results: dict[str, Any]) -> None:
    results["versions"]["Fetch"] += 1


def _other_note(results: dict[str, Any]) -> None:
    results["note"] = "Broker version identified as 4.2"


@pytest.mark.parametrize("change", [_other_text, _waits, _missing, _no_task, _other_version, _other_note])
def test_comparison_with_documented_client_results_returns_each_difference_once(change: Any) -> None:
    documented = expected.load()
    results_by_client = {client: copy.deepcopy(entry["releases"]["2.8"]) for client, entry in documented.items()}
    assert expected.differences("2.8", results_by_client) == []
    change(results_by_client["java"])
    assert len(expected.differences("2.8", results_by_client)) == 1


def test_client_check_flags_a_client_that_reports_success_but_committed_no_offset() -> None:
    with ours("3.9") as kafka:
        kafka.produce("java-produce", [b"value"])
        outcomes = {"java": Outcomes({"connect": WORKS, "produce": WORKS, "group": WORKS, "new group": WAITS}, None)}
        assert missing_effects(kafka, outcomes) == ["java: group"]
