"""A cluster that we did not start: where its brokers are, and whether it has the settings that a test needs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from kafkaproto.conformance.client import Closed
from kafkaproto.conformance.subject import WallClock, settings_of
from kafkaproto.errors import ProtocolError
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.metadata import MetadataRequest

BROKER = 4
DELETE_VERSION, DELETE_WITHIN_MS = 3, 10_000
RACKS = {0: "r0", 1: "r1", 2: "r2"}
"""The brokers that the tests talk to, and their racks."""


class Foreign(WallClock):
    """A broker at an address that we know nothing else of."""

    takes_settings = True
    """Whether the brokers can be started with the settings of a profile; if not, they have those of "default"."""

    def __init__(self, bootstrap: list[tuple[str, int]], semantics: str, name: str = "foreign") -> None:
        super().__init__()
        self.name, self.semantics, self.bootstrap = name, semantics, bootstrap

    def _no_control(self) -> None:
        pytest.skip("not prepared: needs control over the brokers, which an address alone does not give")

    def stop_broker(self, broker_id: int) -> None:
        self._no_control()

    def start_broker(self, broker_id: int) -> None:
        self._no_control()

    def hold_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self._no_control()

    def release_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self._no_control()

    def restore(self) -> None:
        """We stopped nothing."""

    def stop(self) -> None:
        """Delete the topics of the tests, as far as the brokers allow it. The cluster itself is not ours to stop."""
        request = DeleteTopicsRequest(topic_names=self.names, timeout_ms=DELETE_WITHIN_MS)
        for broker_id in range(len(self.bootstrap)):  # only the controller deletes, unless the others forward
            with suppress(OSError, Closed, ProtocolError, AssertionError):
                self.ask_once(request, DELETE_VERSION, broker_id)


class NoCluster(Exception):
    """No cluster can be tested at an address; the message is one line that says why."""


def brokers_at(addresses: list[tuple[str, int]], semantics: str) -> list[tuple[str, int]]:
    """Return where the brokers of a cluster are, by id. One of the addresses must answer. Raises NoCluster."""
    reasons = []
    for host, port in addresses:
        try:
            brokers = metadata_of((host, port), semantics).brokers
        except NoCluster as error:
            reasons.append(str(error))
            continue
        if brokers:
            return [(broker.host, broker.port) for broker in sorted(brokers, key=lambda broker: int(broker.node_id))]
        reasons.append(f"the broker at {host}:{port} names no brokers")
    raise NoCluster("; ".join(reasons))


def metadata_of(address: tuple[str, int], semantics: str) -> Any:
    """Ask the broker at one address for Metadata. Raises NoCluster."""
    place = f"{address[0]}:{address[1]}"
    try:
        return Foreign([address], semantics).ask_once(MetadataRequest([]), 1)
    except ProtocolError as error:
        raise NoCluster(f"{place} is no Kafka broker: {error}") from None
    except (OSError, OverflowError, UnicodeError, Closed, AssertionError) as error:
        raise NoCluster(f"no broker answers at {place}: {error}") from None


def check_reachable(brokers: list[tuple[str, int]], semantics: str) -> None:
    """Raise NoCluster if a broker does not answer at the address that the cluster advertises for it."""
    for host, port in brokers:
        try:
            metadata_of((host, port), semantics)
        except NoCluster as error:
            raise NoCluster(f"the cluster advertises {host}:{port}, but {error}") from None


def check_profile(subject: Foreign, profile: str) -> None:
    """Skips the test, naming the settings, unless the cluster has those of the profile."""
    if not subject.takes_settings:
        if profile != "default":
            pytest.skip(f"not prepared: needs the profile {profile}, and this broker takes no settings")
        return
    racks = {broker.node_id: broker.rack for broker in subject.ask_once(MetadataRequest([]), 1).brokers}
    if racks.keys() != RACKS.keys():
        pytest.skip(f"not prepared: needs three brokers with the ids 0, 1 and 2; there are {sorted(racks)}")
    missing = [f"broker.rack={rack} of broker {broker}" for broker, rack in RACKS.items() if racks[broker] != rack]
    missing += [f"{key}={value}" for key, value in differing(subject, settings_of(profile)).items()]
    if missing:
        pytest.skip(f"not prepared: needs {', '.join(missing)}")


def differing(subject: Foreign, wanted: dict[str, str]) -> dict[str, str]:
    """Of the wanted settings those that the first broker has not."""
    connection = subject.connect()
    request = DescribeConfigsRequest([DescribeConfigsResource(BROKER, "0", list(wanted))])
    [found] = subject.ask(connection, request, 2).results
    assert found.error_code == 0, (found.error_code, found.error_message)
    current = {config.name: config.value for config in found.configs}
    return {key: value for key, value in wanted.items() if current.get(key) != value}
