"""Kafka's AdminClient of 3.9.1 and 4.2.0 gets the same results from this broker as from a real Kafka of its version."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.rivals.real_kafka import KafkaCluster
from kafkaproto.conformance.subject import settings_of
from kafkaproto.testing import cluster
from tests.support.admin_client.comparing import (
    FIELDS,
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


def node(broker_id: int, **changes: object) -> dict[str, Any]:
    """Return a broker as the AdminClient describes it, with some fields changed."""
    name = {"id": broker_id, "idString": str(broker_id), "rack": f"r{broker_id}", "hasRack": True, "isEmpty": False}
    return {**name, "host": "127.0.0.1", "port": 9092 + broker_id, **changes}


GROUP = {
    "describedGroups": {
        "g": {"state": "STABLE", "coordinator": node(0), "members": [{"consumerId": "c", "offset": 5}]}
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
    other["describedGroups"]["g"]["coordinator"] = node(2)  # type: ignore[index]
    results = [[Result("describeConsumerGroups", "a group", content)] for content in (GROUP, other)]
    assert differences(*results) == []


VALID: dict[str, tuple[Any, Any]] = {
    "topicId": ("CVCQ5zVDSQ6MzDdQCKJ7pw", "VFrkTZKQQ5mW69WOTmU4tg"),
    "message": ("Local controller 100 only supports versions 1-21", "Local controller 0 only supports versions 1-21"),
    "port": (1, 65535),
    "clusterId": ("AAAAAAAAAAAAAAAAAAAAAQ", "zQcs2L5vn2KsTAnCggbn4w"),
    "controller": (node(0), node(2)),
    "coordinator": (node(0), node(2)),
    "coordinatorId": (0, 2),
    "allByBrokerId": ({"0": [], "1": ["t"], "2": []}, {"0": [], "1": [], "2": ["t"]}),
    "byBrokerId": ({"0": [], "1": ["t"], "2": []}, {"0": [], "1": [], "2": ["t"]}),
    "producerId": (0, 1000),
    "consumerId": ("m-63c15fb9-e86d-4b0a-83be-83e6dcde3c12", "m-0466f043-d449-4118-9569-2c9a700bb1d4"),
    "isr": ([node(0), node(1)], [node(1), node(0)]),
    "finalizedFeaturesEpoch": (1, 56),
    "getCurrentReplicaLogDir": ("/tmp/kafka-1q3tbt_n/data-1", "/kafkaproto/broker-1"),
    "lastTimestamp": (1_796_012_188_338, 1_796_012_203_701),
    "transactionStartTimeMs": ("OptionalLong[1796012188356]", "OptionalLong[1796012203703]"),
    "highWatermark": (65, 17),
    "logEndOffset": (65, 17),
    "replicaDirectoryId": ("bDgp3cPWRHuV-fZRcl7-vA", "q88ZOmM0TYUogkVN2U_xFA"),
    "lastFetchTimestamp": ("OptionalLong[1796012182628]", "OptionalLong[1796012199205]"),
    "lastCaughtUpTimestamp": ("OptionalLong[1796012182628]", "OptionalLong[1796012199205]"),
}
"""Maps each field, except `quorumInfo`, to values that a real Kafka and this broker may have at the same time."""
ZERO_ID = "A" * 22
INVALID: dict[str, list[Any]] = {
    "topicId": [ZERO_ID, "admin-a"],
    "port": [None, -1, 0, 65536, "9092"],
    "clusterId": [None, "", ZERO_ID, "zQcs2L5vn2KsTAnCggbn4"],
    "controller": [
        None,
        {},
        {"id": 0},
        node(3),
        node(0, idString="1"),
        node(0, rack=None),
        node(0, host=""),
        node(0, port=-1),
    ],
    "coordinator": [None, {}, {"id": 0}, node(-1), node(0, idString="1"), node(0, rack="r1"), node(0, isEmpty=True)],
    "coordinatorId": [None, -1, 3, "0"],
    "allByBrokerId": [{"0": [], "1": ["t"], "3": []}, {"a": [], "b": ["t"], "c": []}],
    "byBrokerId": [{"0": [], "1": ["t"], "3": []}, {"a": [], "b": ["t"], "c": []}],
    "producerId": [None, -1, True, "0"],
    "finalizedFeaturesEpoch": [None, -1, 0, "OptionalLong[56]"],
    "getCurrentReplicaLogDir": ["data-1", "/"],
    "lastTimestamp": [9_000_000_000_000, 2**63 - 1],
    "transactionStartTimeMs": ["OptionalLong[5]", "OptionalLong[0]", "OptionalLong[9000000000000]"],
}
"""Maps a field to values that no broker may return. Two clusters must not differ in them."""


@pytest.mark.parametrize("field", [field for field in FIELDS if field != "quorumInfo"])
def test_comparison_of_admin_client_results_ignores_valid_values_that_must_differ(field: str) -> None:
    results = [[Result("describe", "all", {field: value})] for value in VALID[field]]
    assert differences(*results) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param(field, value, id=f"{field}-{number}")
        for field, values in INVALID.items()
        for number, value in enumerate(values)
    ],
)
def test_comparison_of_admin_client_results_returns_a_difference_for_invalid_values(field: str, value: Any) -> None:
    results = [[Result("describe", "all", {field: content})] for content in (VALID[field][0], value)]
    assert len(differences(*results)) == 1


def _replica(replica_id: int) -> dict[str, Any]:
    fields = ("logEndOffset", "replicaDirectoryId", "lastFetchTimestamp", "lastCaughtUpTimestamp")
    return {"replicaId": replica_id, **{field: VALID[field][0] for field in fields}}


QUORUM = {
    "quorumInfo": {
        "highWatermark": 296,
        "leaderEpoch": 1,
        "leaderId": 100,
        "nodes": {"100": {"nodeId": 100}},
        "observers": [_replica(2), _replica(0)],
        "voters": [_replica(100)],
    }
}


def _of_this_broker(quorum: Any) -> None:
    voter, observer = [{**_replica(broker_id), "logEndOffset": 31} for broker_id in (0, 2)]
    quorum.update(highWatermark=31, leaderId=0, nodes={"0": {"nodeId": 0}}, voters=[voter], observers=[observer])


def _other_epoch(quorum: Any) -> None:
    quorum["leaderEpoch"] = 2


def _other_leader(quorum: Any) -> None:
    quorum["leaderId"] = 2


def _no_observer(quorum: Any) -> None:
    quorum["observers"].clear()


def _other_field(quorum: Any) -> None:
    quorum["voters"][0]["directory"] = "x"


def _other_voter(quorum: Any) -> None:
    quorum["voters"][0]["replicaId"] = 2


def _other_node(quorum: Any) -> None:
    quorum["nodes"] = {"7": {"nodeId": 7}}


NO_VALUES = [
    *(("highWatermark", value) for value in (None, -1)),
    *(("logEndOffset", value) for value in (None, -1)),
    *(("replicaDirectoryId", value) for value in (None, ZERO_ID)),
    *(("lastFetchTimestamp", value) for value in ("OptionalLong.empty", "OptionalLong[-1]")),
    *(("lastCaughtUpTimestamp", value) for value in ("OptionalLong.empty", "OptionalLong[-1]")),
    *(("leaderId", value) for value in (None, -1)),
    ("nodes", {}),
]


@pytest.mark.parametrize(("field", "value"), NO_VALUES, ids=itertools.count())
def test_compared_quorum_descriptions_must_have_equal_invalid_values(field: str, value: Any) -> None:
    other: Any = copy.deepcopy(QUORUM)
    quorum = other["quorumInfo"]
    [fields] = [fields for fields in (quorum, quorum["observers"][0]) if field in fields]
    fields[field] = value
    results = [[Result("describeMetadataQuorum", "all", content)] for content in (QUORUM, other)]
    assert len(differences(*results)) == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        *((_of_this_broker, 0), (_other_epoch, 1), (_other_leader, 1), (_no_observer, 1), (_other_field, 1)),
        *((_other_voter, 1), (_other_node, 1)),
    ],
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
