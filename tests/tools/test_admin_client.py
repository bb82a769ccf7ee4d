"""Kafka's AdminClient of 3.9.1 and 4.2.0 gets the same results from this broker as from a real Kafka of its version."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.rivals.real_kafka import KafkaCluster
from kafkaproto.conformance.subject import settings_of
from kafkaproto.testing import cluster
from tests.support.admin_client.comparing import (
    NOT_CALLED,
    Result,
    broken_calls,
    differences,
    finish,
    methods,
    start,
)
from tests.support.tools.steps import VERSIONS

RACKS = {f"{broker_id}.broker.rack": f"r{broker_id}" for broker_id in range(3)}
real = [pytest.mark.clients, pytest.mark.java, pytest.mark.kafka, pytest.mark.timeout(400)]


def results(version: str) -> tuple[list[Result], list[Result]]:
    """Return the results of all calls from a real Kafka of one version, and from this broker with the release of that version."""
    settings = settings_of("default")
    kafka = KafkaCluster(settings, version)
    config = {**settings, **RACKS}
    try:
        with cluster(3, config=config, profile="kafka", clock="system", release=version.rpartition(".")[0]) as ours:
            bootstraps = [",".join(f"{host}:{port}" for host, port in kafka.bootstrap), ours.bootstrap]
            processes = [start(bootstrap, version) for bootstrap in bootstraps]
            expected, actual = [finish(process) for process in processes]
    finally:
        kafka.stop()
    return expected, actual


@pytest.mark.parametrize("version", [pytest.param(version, marks=real) for version in VERSIONS])
def test_each_admin_client_method_returns_equal_results_from_this_broker_and_kafka(version: str) -> None:
    expected, actual = results(version)
    called = {result.call for result in expected}
    assert called | set(NOT_CALLED) >= set(methods(version))
    assert not called & set(NOT_CALLED)
    assert not (texts := broken_calls(expected)), "\n".join(texts)
    assert not (texts := differences(expected, actual)), "\n\n".join(texts)


GROUP = {
    "describedGroups": {
        "g": {"state": "STABLE", "coordinator": {"id": 0}, "members": [{"consumerId": "c", "offset": 5}]}
    },
    "error": "GroupNotEmptyException",
    "message": "The group is not empty.",
}


def _changed_state(group: Any) -> None:
    group["describedGroups"]["g"]["state"] = "EMPTY"


def _changed_number(group: Any) -> None:
    group["describedGroups"]["g"]["members"][0]["offset"] = 6


def _changed_error(group: Any) -> None:
    group["error"] = "GroupIdNotFoundException"


def _no_message(group: Any) -> None:
    group["message"] = None


def _changed_message(group: Any) -> None:
    group["message"] = "Group g has members."


def _no_member(group: Any) -> None:
    group["describedGroups"]["g"]["members"].clear()


@pytest.mark.parametrize(
    "change", [_changed_state, _changed_number, _changed_error, _changed_message, _no_message, _no_member]
)
def test_comparison_of_admin_client_results_returns_1_difference_for_1_changed_value(
    change: Callable[[Any], None],
) -> None:
    other = copy.deepcopy(GROUP)
    change(other)
    results = [[Result("describeConsumerGroups", "a group", content)] for content in (GROUP, other)]
    assert len(differences(*results)) == 1


def test_comparison_of_admin_client_results_ignores_the_coordinators_of_groups() -> None:
    other = copy.deepcopy(GROUP)
    other["describedGroups"]["g"]["coordinator"] = {"id": 2}  # type: ignore[index]
    results = [[Result("describeConsumerGroups", "a group", content)] for content in (GROUP, other)]
    assert differences(*results) == []


QUORUM = {
    "quorumInfo": {
        "highWatermark": 296,
        "leaderEpoch": 1,
        "leaderId": 100,
        "nodes": {"100": {"nodeId": 100}},
        "observers": [{"replicaId": 2, "logEndOffset": 296}, {"replicaId": 0, "logEndOffset": 296}],
        "voters": [{"replicaId": 100, "logEndOffset": 296}],
    }
}


def _of_this_broker(quorum: Any) -> None:
    replicas = [{"replicaId": 0, "logEndOffset": 31}], [{"replicaId": 2, "logEndOffset": 31}]
    quorum.update(highWatermark=31, leaderId=0, nodes={}, voters=replicas[0], observers=replicas[1])


def _other_epoch(quorum: Any) -> None:
    quorum["leaderEpoch"] = 2


def _other_leader(quorum: Any) -> None:
    quorum["leaderId"] = 2


def _no_observer(quorum: Any) -> None:
    quorum["observers"].clear()


def _other_field(quorum: Any) -> None:
    quorum["voters"][0]["directory"] = "x"


@pytest.mark.parametrize(
    ("change", "expected"),
    [(_of_this_broker, 0), (_other_epoch, 1), (_other_leader, 1), (_no_observer, 1), (_other_field, 1)],
)
def test_compared_quorum_descriptions_may_differ_in_offsets_but_not_in_epochs(
    change: Callable[[Any], None], expected: int
) -> None:
    other = copy.deepcopy(QUORUM)
    change(other["quorumInfo"])
    results = [[Result("describeMetadataQuorum", "all", content)] for content in (QUORUM, other)]
    assert len(differences(*results)) == expected


NOT_EMPTY = {"error": "GroupNotEmptyException", "message": "The group is not empty."}
EXCEPTIONS_OF_THE_PROGRAM = [
    "java.lang.NoSuchMethodException",
    "java.lang.IllegalArgumentException",
    "java.lang.ClassCastException",
    "java.lang.NullPointerException",
    "java.lang.ClassNotFoundException",
    "java.util.concurrent.TimeoutException",
    "org.apache.kafka.common.KafkaException",
    "TimeoutException",
]


def raised(exception: str) -> dict[str, Any]:
    return {"error": exception, "message": None}


@pytest.mark.parametrize("exception", EXCEPTIONS_OF_THE_PROGRAM)
@pytest.mark.parametrize(
    "wrap", [raised, lambda exception: {"all": [1, {"g": raised(exception)}, NOT_EMPTY]}], ids=["call", "field"]
)
def test_exception_of_an_admin_client_call_is_reported_unless_listed_as_expected(
    exception: str, wrap: Callable[[str], Any]
) -> None:
    results = [Result("deleteConsumerGroups", "one", NOT_EMPTY), Result("listGroups", "all", wrap(exception))]
    assert differences(results, results) == []
    assert broken_calls(results) == [f"listGroups: all: not an error of a broker: {exception}: None"]
    assert broken_calls(results, {("listGroups", "all"): {exception: "a reason"}}) == []


def test_broker_errors_in_admin_client_results_are_not_reported_as_failed_calls() -> None:
    log_dir = {"error": NOT_EMPTY, "message": "java.lang.NullPointerException"}
    values: list[Any] = [NOT_EMPTY, {"error": None, "replicaInfos": {}}, log_dir, [], None, 3, GROUP]
    assert broken_calls([Result("describeLogDirs", "all", value) for value in values]) == []


def test_admin_client_call_that_does_not_raise_the_expected_exception_is_reported() -> None:
    allowed = {("listGroups", "all"): {"java.lang.IllegalStateException": "a reason"}}
    [text] = broken_calls([Result("listGroups", "all", NOT_EMPTY)], allowed)
    assert text == "listGroups: all: no java.lang.IllegalStateException; remove it from NOT_OF_A_BROKER"
