"""The outcomes that are expected of each client and release: `outcomes.json`, and the versions of the clients to which they belong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import confluent_kafka

from benchmarks.rivals.jars import NEWER_VERSION
from tests.support.by_release.real import real
from tests.support.by_release.running import (
    CLIENTS,
    PROGRAMS,
    Outcomes,
    missing_effects,
    ours,
    prepare,
    run,
    versions_used,
)

ROOT = Path(__file__).resolve().parents[3]
FILE = Path(__file__).with_name("outcomes.json")
RELEASES = ("0.11", "1.1", "2.8", "3.9", "4.2")
PACKAGES = {"librdkafka": "confluent-kafka", "kafka-python": "kafka-python", "aiokafka": "aiokafka"}
"""Maps the clients for Python to the packages that `constraints.txt` pins."""

Expected = dict[str, Any]
"""The outcomes of a client with a release as JSON: `tasks`, `note` and `versions`."""


def pinned(package: str) -> str:
    """Return the version of a package in `constraints.txt`."""
    [version] = re.findall(rf"^{package}==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    return str(version)


def versions_of_clients() -> dict[str, str]:
    """Return the versions of the clients that the tests use, by client."""
    [franz_go] = re.findall(r"franz-go v(\S+)$", (PROGRAMS / "go" / "go.mod").read_text(), re.MULTILINE)
    versions = {client: pinned(package) for client, package in PACKAGES.items()}
    bundled = confluent_kafka.libversion()[0]
    versions["librdkafka"] = f"{bundled} (confluent-kafka {versions['librdkafka']})"
    versions |= {"java": NEWER_VERSION, "franz-go": franz_go}
    return {client: versions[client] for client in CLIENTS}


def load() -> dict[str, Any]:
    """Return the committed outcomes: for each client its `version`, and in `releases` an `Expected` by release."""
    loaded: dict[str, Any] = json.loads(FILE.read_text())
    return loaded


def observe(release: str) -> dict[str, Expected]:
    """Run all clients with brokers of a release. Returns the outcomes by client.

    Raises AssertionError if a task had no effect on the brokers although its client says that it works.
    """
    with ours(release) as kafka:
        outcomes = run(kafka.bootstrap)
        assert not (missing := missing_effects(kafka, outcomes)), missing
        versions = versions_used(kafka)
    return {client: as_json(outcomes[client]) | {"versions": versions[client]} for client in CLIENTS}


def observe_real(release: str) -> dict[str, Expected]:
    """Run all clients with a real Kafka of a release. Returns the outcomes by client, without the versions of APIs."""
    with real(release) as bootstrap:
        prepare(bootstrap)
        return {client: as_json(outcomes) for client, outcomes in run(bootstrap).items()}


def as_json(outcomes: Outcomes) -> Expected:
    """Return the outcomes of a client in the form of the file, without the versions of APIs."""
    return {"tasks": outcomes.tasks, "note": outcomes.note}


def differences(release: str, actual: Mapping[str, Expected]) -> list[str]:
    """Return the differences from the committed outcomes, one line each. Only the fields that `actual` has are compared."""
    committed = load()
    return [
        f"{client} with {release}: {line}"
        for client, client_results in actual.items()
        for line in _differences(committed[client]["releases"][release], client_results)
    ]


def _differences(expected: Expected, actual: Expected) -> Iterator[str]:
    for field, value in actual.items():
        before = expected[field]
        if not isinstance(value, dict):
            before, value = {"": before}, {"": value}
        for name in sorted({*before, *value}):
            if before.get(name) != value.get(name):
                yield f"{field} {name}: expected {before.get(name)!r}, got {value.get(name)!r}"


def write() -> None:
    """Run all clients with all releases and write the outcomes."""
    observed = {release: observe(release) for release in RELEASES}
    versions = versions_of_clients()
    content = {
        client: {
            "version": versions[client],
            "releases": {release: observed[release][client] for release in RELEASES},
        }
        for client in CLIENTS
    }
    FILE.write_text(json.dumps(content, indent=1) + "\n")
