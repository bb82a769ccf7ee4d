"""Logs clients that seem to require SASL: they send ApiVersions, find no SaslHandshake in the response and close the connection.

librdkafka repeats this several times a second; kafka-python and aiokafka do it once and raise an error. The Java client sends
SaslHandshake nevertheless, which `diagnostics` logs. A client that does not require SASL sends another request on that connection, or
soon on another connection.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkaproto.api import ApiKey
from kafkaproto.broker.observe.diagnostics import (
    EVERY_MS,
    LATEST_REQUESTS,
    REMEMBERED_CLIENTS,
    SASL,
    address_of,
    shown_client_id,
)
from kafkaproto.broker.observe.once_per_period import OncePerPeriod
from kafkaproto.broker.runtime.events import CLIENT_ENDED, SOCKET_GONE, Observer

if TYPE_CHECKING:
    from kafkaproto.broker.network.connection import Connection
    from kafkaproto.broker.observe.journal import Journal
    from kafkaproto.broker.requests.exchange import Exchange, Peer
    from kafkaproto.broker.runtime.timers import Timers

logger = logging.getLogger("kafkaproto.clients")

ATTEMPTS, WINDOW_MS = 3, 10_000
"""The number of connections that a client must open and close within a time in ms to be logged at WARNING."""
SERVED_FACTOR = 3
"""How many connections a client must close unused for each connection that it, or another client with its address and client id, used.

A client that requires SASL may have the client id of one that does not, such as librdkafka's default `rdkafka`. Short-lived clients close a few
connections unused for each one that they use.
"""
PATIENCE_MS = 2000
"""The time in ms without another request after which a client with fewer than ATTEMPTS connections is logged at INFO."""
MOST_TIMES = 100
"""The maximum number of remembered times of attempts for each client."""
SHORT_MS = 1000
"""The maximum time in ms between an ApiVersions request and the closing of its connection for it to count as a SASL attempt."""

Client = tuple[str, str]
"""Identifies a client: (address without port, client id in the form of log lines)."""


class Versions(NamedTuple):
    """The ApiVersions requests of one connection. successes: how many got a response without an error. at_ms: the time of the first request."""

    client: Client
    at_ms: int
    successes: int


class SaslAttempts(Observer):
    """Logs clients whose connections close after one ApiVersions request.

    journal: the journal of the cluster's requests, which shows whether a client sends anything else.
    """

    def __init__(self, timers: Timers, journal: Journal) -> None:
        self._timers = timers
        self._journal = journal
        self.cleared(0)

    def cleared(self, now_ms: int) -> None:
        self._lines = OncePerPeriod(EVERY_MS, REMEMBERED_CLIENTS)
        self._versions: dict[int, Versions] = {}
        """Maps connection ids to the ApiVersions requests of the connection."""
        self._attempts: dict[Client, list[int]] = {}
        """Maps clients to the times at which their connections closed after nothing but ApiVersions."""
        self._persistent: dict[Client, int] = {}
        """Maps clients to the latest time at which they had enough attempts for a WARNING, whether it was logged or not."""

    def feature_asked(self, exchange: Exchange, feature: str, names: Sequence[str]) -> None:
        if feature != "versions":
            return
        client = exchange.peer.client_address, shown_client_id(exchange.client_id)
        connection_id = exchange.peer.connection_id
        seen = self._versions.pop(connection_id, Versions(client, exchange.now_ms, 0))
        _make_room(self._versions)
        self._versions[connection_id] = seen._replace(successes=seen.successes + 1)

    def request_refused(self, broker_id: int, peer: Peer, frame: memoryview, why: str, now_ms: int) -> None:
        self._versions.pop(peer.connection_id, None)  # `diagnostics` has a line for it

    def connection_closed(self, broker_id: int, connection: Connection, why: str, now_ms: int) -> None:
        versions = self._versions.pop(connection.connection_id, None)
        if versions is None or versions.successes != 1 or not 0 <= now_ms - versions.at_ms <= SHORT_MS:
            return
        if not why.startswith((CLIENT_ENDED, SOCKET_GONE)) or connection.parked is not None:
            return
        if self._asked_for_more(connection.connection_id):
            return
        client = versions.client
        times = [at_ms for at_ms in self._attempts.pop(client, []) if 0 <= now_ms - at_ms < WINDOW_MS]
        times.append(now_ms)
        served = self._served_connections(client, times[0] - WINDOW_MS) if len(times) >= ATTEMPTS else 0
        if len(times) >= ATTEMPTS + SERVED_FACTOR * served:
            self._log(logging.WARNING, client, broker_id, address_of(connection), len(times), now_ms)
            self._persistent.pop(client, None)
            _make_room(self._persistent)
            self._persistent[client] = now_ms
            return
        _make_room(self._attempts)
        self._attempts[client] = times[-MOST_TIMES:]
        if len(times) == 1:
            check = partial(self._check_few, client, now_ms, broker_id, address_of(connection))
            self._timers.at(now_ms + PATIENCE_MS, check)

    def _check_few(self, client: Client, first_ms: int, broker_id: int, address: str, now_ms: int) -> None:
        """Log a client with too few attempts for a WARNING if it has sent nothing but ApiVersions since `WINDOW_MS` before its first attempt.

        first_ms: the time of the first attempt.
        """
        if client in self._persistent and 0 <= now_ms - self._persistent[client] < EVERY_MS:
            return
        times = self._attempts.get(client, [])
        if times[:1] == [first_ms] and not self._served_connections(client, first_ms - WINDOW_MS):
            self._log(logging.INFO, client, broker_id, address, len(times), now_ms)

    def _asked_for_more(self, connection_id: int) -> bool:
        """Return whether the last request of a connection is not ApiVersions, or is not in the journal any more."""
        for seen in self._journal.latest(LATEST_REQUESTS):
            if seen.connection_id == connection_id:
                return seen.api_key != ApiKey.API_VERSIONS
        return True

    def _served_connections(self, client: Client, since_ms: int) -> int:
        """Return how many connections of a client have sent a request other than ApiVersions since `since_ms`."""
        served = set()
        for seen in self._journal.latest(LATEST_REQUESTS):
            if seen.at_ms < since_ms:
                break
            if seen.api_key != ApiKey.API_VERSIONS and client == (seen.client_address, shown_client_id(seen.client_id)):
                served.add(seen.connection_id)
        return len(served)

    def _log(self, level: int, client: Client, broker_id: int, address: str, count: int, now_ms: int) -> None:
        if self._lines.count(client, now_ms) is not None:
            logger.log(
                level,
                "broker %d: client-id %s at %s sent only ApiVersions and closed %s; if it has security.protocol=SASL_PLAINTEXT: %s",
                broker_id,
                client[1],
                address,
                "the connection" if count == 1 else f"{count} connections",
                SASL,
            )


def _make_room(remembered: dict[Any, Any]) -> None:
    """Remove the oldest entry of a dict that has reached its maximum size, before another one is added."""
    if len(remembered) >= REMEMBERED_CLIENTS:
        del remembered[next(iter(remembered))]
