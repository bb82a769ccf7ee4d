"""Runs the calls of Kafka's AdminClient against a cluster, and removes from their results what must differ between two clusters."""

from __future__ import annotations

import difflib
import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rivals.real_kafka import CONTROLLER
from tests.support.clients.building import java

PROGRAM = Path(__file__).with_name("AdminCalls.java")
LIMIT_SECONDS = 240
EARLIEST_NOW_MS, LATEST_NOW_MS = 1_500_000_000_000, 4_000_000_000_000
"""The bounds of a plausible time of the test, in ms: July 2017 and October 2096."""
BROKERS = range(3)
"""The ids of the brokers in both clusters. Broker i has the rack "ri"."""
CONTROLLERS = (0, CONTROLLER)
"""The ids of the controllers: broker 0 of this broker's cluster (AD-25), and a process of its own in the real Kafka."""

NOT_CALLED: Mapping[str, str] = {
    **dict.fromkeys(
        ("close", "registerMetricForSubscription", "unregisterMetricFromSubscription"), "they send no request"
    ),
    **dict.fromkeys(
        (
            *("describeShareGroups", "alterShareGroupOffsets", "listShareGroupOffsets", "deleteShareGroupOffsets"),
            "deleteShareGroups",
        ),
        "share groups are not served",
    ),
    **dict.fromkeys(
        (
            *("listStreamsGroupOffsets", "deleteStreamsGroups", "deleteStreamsGroupOffsets"),
            *("alterStreamsGroupOffsets", "describeStreamsGroups"),
        ),
        "streams groups are not served",
    ),
}
"""Maps each method of the AdminClient that the test program does not call to the reason for not calling it."""

NOT_OF_A_BROKER: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("listConsumerGroupOffsets", "list the offsets of a group and a missing group"): {
        "java.lang.IllegalStateException": "`partitionsToOffsetAndMetadata()` without a group works only for one group"
    },
}
"""Maps a call, (method, case), to the exceptions that the client or the test program must raise in it, each with the reason."""
TIMEOUT = "TimeoutException"
"""The exception for a call that got no response. It is in the same package as the errors of brokers."""


class Result(NamedTuple):
    """The result of one call. call: the method's name; case: what the call does; content: decoded JSON."""

    call: str
    case: str
    content: Any


class Rule(NamedTuple):
    """A replacement for the valid values of one field, and why two clusters cannot have the same value.

    replace: returns the replacement of a valid value, and any other value unchanged, so that null, -1 and wrong values are compared.
    """

    replace: Callable[[Any], Any]
    reason: str


def _mask(text: str, is_valid: Callable[[Any], bool]) -> Callable[[Any], Any]:
    return lambda value: text if is_valid(value) else value


def _number(lowest: int, highest: int = 2**63 - 1) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and lowest <= value <= highest


def _text(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


# An id is 128 bits in base64url. The zero id, 22 times "A", means that there is no id.
_is_uuid = _text(r"(?!A{22})[A-Za-z0-9_-]{22}")
_is_time = _number(EARLIEST_NOW_MS, LATEST_NOW_MS)


def _is_optional_time(value: Any) -> bool:
    match = re.fullmatch(r"OptionalLong\[(\d+)\]", str(value))
    return match is not None and _is_time(int(match[1]))


def _by_id(nodes: Any) -> Any:
    return sorted(nodes, key=lambda node: int(node["id"])) if isinstance(nodes, list) else nodes


def _without_random_part(text: Any) -> Any:
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>", text) if isinstance(text, str) else text


def _without_controller(text: Any) -> Any:
    return re.sub(r"(?<=Local controller )\d+", "<id>", text) if isinstance(text, str) else text


def _any_broker(node: Any) -> Any:
    """Return a node without the fields that identify the broker. Any other value is returned unchanged."""
    if not isinstance(node, dict) or node.get("id") not in BROKERS:
        return node
    own = {"id": node["id"], "idString": str(node["id"]), "rack": f"r{node['id']}"}
    return {name: "<broker>" if (name, value) in own.items() else value for name, value in node.items()}


def _any_order(by_broker: Any) -> Any:
    """Return the values of a map from the id of each broker. A map with other keys, such as an error, is returned unchanged."""
    if not isinstance(by_broker, dict) or set(by_broker) != set(map(str, BROKERS)):
        return by_broker
    return sorted(by_broker.values(), key=str)


def _quorum(info: Any) -> Any:
    """Return a quorum's description without the controller's id and address, and without broker 0 as an observer.

    An error, and a quorum with an unexpected leader, are returned unchanged.
    """
    if not isinstance(info, dict) or info.get("leaderId") not in CONTROLLERS:
        return info
    leader, nodes = info["leaderId"], info["nodes"]
    observers = [observer for observer in info["observers"] if observer["replicaId"] != 0]
    return {
        **info,
        "leaderId": "<controller>",
        "nodes": "<controller>" if list(nodes) == [str(leader)] else nodes,
        "voters": [
            {**voter, "replicaId": "<controller>"} if voter["replicaId"] == leader else voter
            for voter in info["voters"]
        ],
        "observers": sorted(observers, key=lambda observer: int(observer["replicaId"])),
    }


FIELDS: Mapping[str, Rule] = {
    "topicId": Rule(_mask("<topic id>", _is_uuid), "each topic gets a random id"),
    "message": Rule(_without_controller, "it may name the controller, which has another id (AD-25)"),
    "port": Rule(_mask("<port>", _number(1, 65535)), "each cluster has its own ports"),
    "clusterId": Rule(_mask("<cluster id>", _is_uuid), "each cluster has its own id"),
    "controller": Rule(_any_broker, "a broker of a KRaft cluster names any broker"),
    "coordinator": Rule(_any_broker, "each cluster spreads its internal topics differently"),
    "coordinatorId": Rule(
        _mask("<broker>", _number(BROKERS[0], BROKERS[-1])), "each cluster spreads its internal topics differently"
    ),
    "allByBrokerId": Rule(_any_order, "coordinators are on different brokers"),
    "byBrokerId": Rule(_any_order, "coordinators are on different brokers"),
    "producerId": Rule(_mask("<producer id>", _number(0)), "each cluster counts its producer ids"),
    "consumerId": Rule(_without_random_part, "the coordinator makes a random id"),
    "isr": Rule(_by_id, "leaders of Kafka 4 send the in-sync replicas as a set"),
    "finalizedFeaturesEpoch": Rule(_mask("<epoch>", _number(1)), "it counts all changes of the metadata"),
    "getCurrentReplicaLogDir": Rule(_mask("<directory>", _text(r"(/[^/]+)+")), "each cluster has its own folders"),
    "lastTimestamp": Rule(_mask("<time>", _is_time), "it is the time of the test, unless the test set it"),
    "transactionStartTimeMs": Rule(_mask("<time>", _is_optional_time), "it is the time of the test"),
    "quorumInfo": Rule(
        _quorum,
        "this broker has one controller without a listener (AD-25): the controller has another id and address, "
        "and broker 0 is no observer",
    ),
    "highWatermark": Rule(_mask("<offset>", _number(1)), "it counts all changes of the metadata"),
    "logEndOffset": Rule(_mask("<offset>", _number(1)), "it counts all changes of the metadata"),
    "replicaDirectoryId": Rule(_mask("<directory id>", _is_uuid), "each log directory gets a random id"),
    "lastFetchTimestamp": Rule(_mask("<time>", _is_optional_time), "it is the time of the test"),
    "lastCaughtUpTimestamp": Rule(_mask("<time>", _is_optional_time), "it is the time of the test"),
}
"""Maps the name of a field to the rule that replaces its valid values before a comparison. All other values must be equal."""


def normalised(content: Any, field: str = "") -> Any:
    """Return the content of a result with values replaced by the rules in `FIELDS`. field: the name of the field that holds the content."""
    if field in FIELDS:
        content = FIELDS[field].replace(content)
    if isinstance(content, dict):
        return {
            ("<topic id>" if _is_uuid(name) and field.startswith(("allTopicIds", "topicId")) else name): (
                normalised(value, name)
            )
            for name, value in content.items()
        }
    if isinstance(content, list):
        return [normalised(item) for item in content]
    return content


def cases() -> dict[str, list[str]]:
    """Return the cases in which the program calls each method, by method."""
    cases_by_call: dict[str, list[str]] = {}
    for call, case in re.findall(r'print\("(\w+)", "([^"]+)"', PROGRAM.read_text()):
        if case not in (cases_of_call := cases_by_call.setdefault(call, [])):
            cases_of_call.append(case)
    return cases_by_call


def start(bootstrap: str, version: str) -> subprocess.Popen[str]:
    """Start the calls against a cluster with the client of one Kafka version."""
    command = [*java(PROGRAM, version), bootstrap]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> list[Result]:
    """Return the results of a started program. Raises AssertionError with its errors if it fails."""
    try:
        out, errors = process.communicate(timeout=LIMIT_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, errors[-3000:]
    lines = [json.loads(line) for line in out.splitlines()]
    return [Result(line["call"], line["case"], line["result"]) for line in lines]


def methods(version: str) -> list[str]:
    """Return the names of all methods of the AdminClient of one Kafka version."""
    command = [*java(PROGRAM, version), "methods"]
    completed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS)
    names: list[str] = json.loads(completed.stdout)
    return names


def differences(expected: Sequence[Result], actual: Sequence[Result]) -> list[str]:
    """Return the differences between the results of a real Kafka and those of this broker, as text, call by call."""
    texts = []
    for kafka_result, broker_result in zip(expected, actual, strict=True):
        assert (kafka_result.call, kafka_result.case) == (broker_result.call, broker_result.case)
        if normalised(kafka_result.content) != normalised(broker_result.content):
            before, after = (
                json.dumps(normalised(r.content), indent=1, sort_keys=True).splitlines()
                for r in (kafka_result, broker_result)
            )
            changes = difflib.unified_diff(before, after, "Kafka", "this broker", lineterm="", n=2)
            texts.append("\n".join([f"{kafka_result.call}: {kafka_result.case}", *changes]))
    return texts


def broken_calls(
    results: Sequence[Result], allowed: Mapping[tuple[str, str], Mapping[str, str]] = NOT_OF_A_BROKER
) -> list[str]:
    """Return a text for each call whose result has other exceptions of the client or the test program than it must have.

    Such an exception is equal for all clusters, and so proves nothing about a broker. allowed: see `NOT_OF_A_BROKER`.
    """
    texts = []
    for result in results:
        raised = {exception: message for exception, message in _exceptions(result.content) if _is_local(exception)}
        expected = allowed.get((result.call, result.case), {})
        texts += [
            f"{result.call}: {result.case}: not an error of a broker: {exception}: {raised[exception]}"
            for exception in sorted(raised.keys() - expected.keys())
        ]
        texts += [
            f"{result.call}: {result.case}: no {exception}; remove it from NOT_OF_A_BROKER"
            for exception in sorted(expected.keys() - raised.keys())
        ]
    return texts


def _exceptions(content: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the message of each exception in the content of a result."""
    if isinstance(content, dict):
        if content.keys() == {"error", "message"} and isinstance(content["error"], str):
            yield content["error"], content["message"]
        content = list(content.values())
    if isinstance(content, list):
        for item in content:
            yield from _exceptions(item)


def _is_local(exception: str) -> bool:
    """Return whether an exception is not an error that a broker sent. The program prints only errors of brokers without their package."""
    return "." in exception or exception == TIMEOUT
