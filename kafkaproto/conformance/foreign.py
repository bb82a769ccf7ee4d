"""A cluster that the conformance suite did not start: finds its brokers, and checks that it meets the requirements of a test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.client import Closed, Connection, SocketConnection
from kafkaproto.conformance.needs import Needs, missing
from kafkaproto.conformance.release_range import ReleaseRange
from kafkaproto.conformance.served import (
    NotServed,
    Served,
    release_of,
    restricted,
    settings_in,
    unsupported_settings,
)
from kafkaproto.conformance.subject import WallClock
from kafkaproto.errors import ProtocolError
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.releases import Ranges

METADATA_VERSION = 1
DELETE_VERSION, DELETE_WITHIN_MS = 3, 10_000


@contextmanager
def skip_if_not_served() -> Iterator[None]:
    """Return a context in which the error NotServed skips the current test instead of failing it.

    NotServed is raised for a request in a version that the broker does not serve. The skip message names the version.
    """
    try:
        yield
    except NotServed as error:
        pytest.skip(f"not prepared: needs {error}")


class ForeignConnection(SocketConnection):
    """A connection to a cluster that the conformance suite did not start. A request in a version that the broker lacks skips the current test."""

    def __init__(self, served: Served, host: str, port: int, client_id: str | None, address: str | None = None) -> None:
        super().__init__(host, port, client_id, address)
        self._served = served

    def check(self, key: int, version: int) -> None:
        with skip_if_not_served():
            self._served.check(key, version)


class Foreign(WallClock):
    """A cluster under test that the conformance suite did not start. Only the addresses of its brokers are known."""

    takes_settings = True
    """Whether the brokers have settings. If False, as for kfake, tests whose profile (file of settings) is not "default" are skipped."""

    def __init__(self, bootstrap: list[tuple[str, int]], semantics: str, name: str = "foreign") -> None:
        super().__init__()
        self.name, self.semantics, self.bootstrap = name, semantics, bootstrap
        self._served: dict[int, Served] = {}

    def open(self, broker_id: int = 0, client_id: str | None = "conformance", address: str | None = None) -> Connection:
        """Open a connection, which the current test must close. Skips the test if the cluster has no broker `broker_id`.

        A request in a version that the broker does not serve skips the test, except if the test sends the request as bytes. client_id: the client id
        in the requests. address: the local IP address to connect from; None for any.
        """
        self.need_broker(broker_id)
        return ForeignConnection(self._served_by(broker_id), *self.bootstrap[broker_id], client_id, address)

    def _served_by(self, broker_id: int) -> Served:
        """Return the versions that a broker serves. If it does not respond to ApiVersions, all versions count as served."""
        if broker_id not in self._served:
            self._served[broker_id] = Served(self._offered_by(broker_id))
        return self._served[broker_id]

    def _offered_by(self, broker_id: int) -> Ranges | None:
        with closing(super().open(broker_id)) as connection, suppress(OSError, Closed, ProtocolError, AssertionError):
            response = self.ask(connection, ApiVersionsRequest(), 0)
            if response.error_code == 0:
                return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        return None

    def version(self, key: int, preferred: int, lowest: int = 0) -> int:
        with skip_if_not_served():
            return self._served_by(0).closest(key, preferred, lowest)

    def served(self, key: int, versions: Iterable[int]) -> list[int]:
        listed_versions, served = list(versions), self._served_by(0)
        if not (served_versions := [version for version in listed_versions if served.serves(key, version)]):
            with skip_if_not_served():
                served.check(key, listed_versions[-1])
        return served_versions

    def offered(self) -> Ranges:
        """Return the API versions that the cluster must offer: those of its Kafka release, or those of 3.9 if the release is unknown."""
        ranges = self._served_by(0).offered
        return super().offered() if ranges is None or release_of(ranges) is None else restricted(ranges)

    def need_release(self, applies: ReleaseRange) -> None:
        """Skip the current test if the cluster's release is not in the range `applies`, the releases for which the test is meant.

        The cluster's release is the newest one that offers the API versions of the cluster (`release_of`). If no known release does, the test is not
        skipped.
        """
        release = release_of(self._served_by(0).offered)
        if release is not None and not applies.includes(release):
            pytest.skip(f"not prepared: needs Kafka {applies} (the cluster serves the versions of {release})")

    def topic_settings(self, settings: Mapping[str, str]) -> dict[str, str]:
        release = release_of(self._served_by(0).offered)
        return dict(settings) if release is None else settings_in(release, settings)

    def need_topic_settings(self, settings: Mapping[str, str]) -> None:
        """Skip the current test if the release of the cluster rejects a topic with these settings."""
        release = release_of(self._served_by(0).offered)
        if release and (unmet := unsupported_settings(release, settings)):
            pytest.skip(f"not prepared: needs {', '.join(unmet)}")

    def need_broker(self, broker_id: int) -> None:
        """Skip the current test if the cluster has no broker with this id."""
        count = len(self.bootstrap)
        if broker_id >= count:
            brokers = "1 broker" if count == 1 else f"{count} brokers"
            pytest.skip(f"not prepared: needs a broker with the id {broker_id} (the cluster has {brokers})")

    def _no_control(self) -> None:
        pytest.skip("not prepared: needs control over the brokers, which a bootstrap address does not provide")

    def stop_broker(self, broker_id: int) -> None:
        self._no_control()

    def start_broker(self, broker_id: int) -> None:
        self._no_control()

    def hold_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self._no_control()

    def release_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self._no_control()

    def restore(self) -> None:
        """Do nothing: no broker needs a restart after a test, because tests cannot stop the brokers of a cluster that the suite did not start."""

    def stop(self) -> None:
        """Delete the topics that the tests created, and ignore errors. The cluster keeps running."""
        request = DeleteTopicsRequest(topic_names=self.names, timeout_ms=DELETE_WITHIN_MS)
        for broker_id in range(
            len(self.bootstrap)
        ):  # only the controller deletes topics, unless other brokers forward the request
            with suppress(OSError, Closed, ProtocolError, AssertionError, pytest.skip.Exception):
                version = self.version(ApiKey.DELETE_TOPICS, DELETE_VERSION)
                self.ask_once(request, version, broker_id)


class NoCluster(Exception):
    """Raised if no cluster can be tested at an address. The message is one line that gives the reason."""


def brokers_at(addresses: list[tuple[str, int]], semantics: str) -> list[tuple[str, int]]:
    """Look up all brokers of a cluster with a Metadata request, and return their addresses ordered by broker id.

    addresses: bootstrap addresses, of which at least one must respond. semantics: the value of the option `--semantics`: whether to expect the
    behaviour of Kafka's design documents ("kip") or of its code ("kafka"), or to find out ("auto"). It does not change the result. Raises NoCluster,
    with the reason, if no address responds with a list of brokers.
    """
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
    """Return the Metadata response of the broker at an address. Raises NoCluster if there is no response.

    semantics: the value of the option `--semantics`: whether to expect the behaviour of Kafka's design documents ("kip") or of its code ("kafka"), or
    to find out ("auto"). It does not change the result.
    """
    place = f"{address[0]}:{address[1]}"
    try:
        with closing(SocketConnection(*address, "conformance")) as connection:
            return Foreign([address], semantics).ask(connection, MetadataRequest([]), METADATA_VERSION)
    except ProtocolError as error:
        raise NoCluster(f"{place} is not a Kafka broker: {error}") from None
    except (OSError, OverflowError, UnicodeError, Closed, AssertionError) as error:
        raise NoCluster(f"no broker responds at {place}: {error}") from None


def check_reachable(brokers: list[tuple[str, int]], semantics: str) -> None:
    """Check that every broker responds at its advertised address. Raises NoCluster if a broker does not respond.

    semantics: the value of the option `--semantics`: whether to expect the behaviour of Kafka's design documents ("kip") or of its code ("kafka"), or
    to find out ("auto"). It does not change the result.
    """
    for host, port in brokers:
        try:
            metadata_of((host, port), semantics)
        except NoCluster as error:
            raise NoCluster(
                f"the cluster advertises a broker at {host}:{port}, but {error}; check advertised.listeners of that broker"
            ) from None


def check(subject: Foreign, profile: str, needs: Needs) -> None:
    """Skip the current test if the cluster does not meet all requirements of the test. The reason names those that are not met.

    profile: the settings profile (a file of broker settings) that the test's module requires. If `subject.takes_settings` is False, the brokers have
    no settings: `needs` is then ignored, and the test is skipped unless the profile is "default".
    """
    if subject.takes_settings:
        if unmet := missing(subject, needs):
            pytest.skip(f"not prepared: needs {', '.join(unmet)}")
    elif profile != "default":
        pytest.skip(f"not prepared: needs the profile {profile}, and this broker cannot be started with settings")
