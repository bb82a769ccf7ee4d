"""Log lines about refused clients: which connection, request or feature the broker refused, and how to solve the problem.

There is at most one line per minute, at WARNING, for each client and kind of refusal. Times are those of the cluster's clock. This module
only logs; other modules decide what is refused.
"""

from __future__ import annotations

import logging
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkaproto.api import APIS, ApiKey
from kafkaproto.broker.config.cluster_config import ALL_BROKERS
from kafkaproto.broker.group.results import UNKNOWN_GROUP
from kafkaproto.broker.observe.once_per_period import OncePerPeriod
from kafkaproto.broker.runtime.events import Observer
from kafkaproto.errors import ProtocolError
from kafkaproto.frame import LENGTH_BYTES
from kafkaproto.header import decode_request_header
from kafkaproto.messages.request_header import LAYOUTS as REQUEST_HEADERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafkaproto.broker.config.cluster_config import ClusterConfig
    from kafkaproto.broker.metadata.image import Image
    from kafkaproto.broker.network.connection import Connection
    from kafkaproto.broker.node import Node
    from kafkaproto.broker.observe.journal import Journal
    from kafkaproto.broker.requests.exchange import Exchange, Peer
    from kafkaproto.broker.runtime.timers import Timers

logger = logging.getLogger("kafkaproto.clients")

EVERY_MS = 60_000
REMEMBERED_CLIENTS = 1000
"""The maximum number of stored pairs (client, kind of refusal). Each pair is logged at most once a minute.

When there are more pairs, the oldest pair is removed, and can then be logged again within the same minute.
"""
SEARCHES, SEARCHED_MS = 3, 2000
"""If a client sends 3 FindCoordinator requests for one unknown group within 2000 ms, the broker checks the client 2000 ms later.

The check logs the client if three conditions are met: the group still does not exist, the broker knows a possible reason for that, and the client has
sent no request to read or to join a group (`READS_OR_JOINS`).
"""
LONGEST_NAME = 100
"""The maximum number of characters of a client id, group id or transactional id in a log line; longer ids are shortened."""

OFFSETS_TOPIC, OFFSETS_FACTOR = "__consumer_offsets", "offsets.topic.replication.factor"
PLAINTEXT = "set security.protocol=PLAINTEXT in the client"
HTTP_METHODS = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"TRAC", b"CONN", b"PRI ")
TLS_HANDSHAKE, TLS_MAJOR_VERSION = 0x16, 3

SASL = f"SASL is not served; {PLAINTEXT}"
CONSUMER_PROTOCOL = (
    'the group protocol "consumer" (KIP-848) needs --release 4.0 or later; or set group.protocol=classic in the client'
)
STREAMS_PROTOCOL = 'the group protocol "streams" (KIP-1071) is not served; set group.protocol=classic in the client'
SHARE_GROUPS = "share groups (KIP-932) are not served; use a consumer group"
_KEY_AND_VERSION = Struct(">hh")
_FIRST_TAGLESS_HEADER = 1

ADVICE = {
    ApiKey.SHARE_GROUP_HEARTBEAT: SHARE_GROUPS,
    ApiKey.SHARE_FETCH: SHARE_GROUPS,
    ApiKey.SHARE_ACKNOWLEDGE: SHARE_GROUPS,
    ApiKey.STREAMS_GROUP_HEARTBEAT: STREAMS_PROTOCOL,
}
"""Maps APIs that this broker does not support to advice for the log line. APIs without an alternative are missing."""

UNSERVED = {"consumer protocol": CONSUMER_PROTOCOL, "SASL": SASL}
"""Maps features that this broker does not support to advice. The advice is logged when a client's request asks for the feature."""

READS_OR_JOINS = (ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_COMMIT, ApiKey.JOIN_GROUP)
"""The APIs that a consumer uses to read partitions without joining its group, and JoinGroup, with which a member of a classic group joins.

Repeated FindCoordinator requests of a client are not logged if the client has also sent a request of one of these APIs. Even a rejected JoinGroup
counts: the coordinator may have rejected the request only because the group was still being loaded.
"""
LATEST_REQUESTS = 2000
"""How many of the cluster's last requests are searched for `READS_OR_JOINS`: requests with which a client reads or tries to join its group."""


class Refusal(NamedTuple):
    """Why a client was refused.

    kind: the kind of refusal; a client gets one log line per minute for each kind. request_or_connection: the refused request or connection, as the
    text after the word "refused" in the log line. advice: the reason, and how to solve the problem.
    """

    kind: str
    request_or_connection: str
    advice: str


class Diagnostics(Observer):
    """Logs why connections and requests were refused and which unsupported features clients asked for, with advice.

    Also logs clients that repeatedly look for the coordinator of a group, but neither join the group nor read partitions. release: the
    Kafka release that the cluster emulates. journal: the list of the cluster's requests, which shows whether a client joins or reads.
    """

    def __init__(self, release: str, timers: Timers, journal: Journal) -> None:
        self._release = release
        self._timers = timers
        self._journal = journal
        self._lines = OncePerPeriod(EVERY_MS, REMEMBERED_CLIENTS)
        self._searches: dict[tuple[str, str, str], tuple[int, int]] = {}
        """Maps (address, client id, group id) to (time of the first FindCoordinator request in ms, number of such requests)."""

    def connection_closed(self, broker_id: int, connection: Connection, why: str, now_ms: int) -> None:
        head = connection.refused_head
        if head:
            self._log(broker_id, connection, "unknown", refused_frame(head, why, connection.listener_name), now_ms)

    def request_refused(self, broker_id: int, peer: Peer, frame: memoryview, why: str, now_ms: int) -> None:
        self._log(broker_id, peer, client_id_of(frame), self._refused_request(peer, frame, why), now_ms)

    def feature_requested(self, exchange: Exchange, feature: str, names: Sequence[str]) -> None:
        if feature == "group":
            self._notice_searches(exchange, names)
        elif feature in UNSERVED:
            self._refuse_feature(exchange, feature, names)

    def _refuse_feature(self, exchange: Exchange, feature: str, names: Sequence[str]) -> None:
        api = exchange.codec
        subject = f"{api.name} v{api.version} for {', '.join(_shortened(name) for name in names[:1])}"
        refusal = Refusal(feature, subject, UNSERVED[feature])
        client_id = shown_client_id(exchange.client_id)
        self._log(exchange.node.broker_id, exchange.peer, client_id, refusal, exchange.now_ms)

    def _notice_searches(self, exchange: Exchange, group_ids: Sequence[str]) -> None:
        """Count a client's FindCoordinator requests for each of `group_ids` that does not exist.

        After three requests for a group, `_check_search` is scheduled, which may log the client. A librdkafka consumer with
        `group.protocol=consumer` repeats the request forever if the broker does not support that protocol (KIP-848).
        """
        groups = exchange.node.cluster.groups
        for group_id in group_ids:
            key = exchange.peer.client_address, shown_client_id(exchange.client_id), _shortened(group_id)
            first_ms, count = self._searches.pop(key, (exchange.now_ms, 0))
            if groups.describe(group_id).state != UNKNOWN_GROUP:
                continue
            if exchange.now_ms - first_ms > SEARCHED_MS:
                first_ms, count = exchange.now_ms, 0
            if len(self._searches) >= REMEMBERED_CLIENTS:
                del self._searches[next(iter(self._searches))]
            self._searches[key] = first_ms, count + 1
            if count + 1 == SEARCHES:
                check = partial(self._check_search, exchange.node, address_of(exchange.peer), key, group_id)
                self._timers.at(exchange.now_ms + SEARCHED_MS, check)

    def _check_search(self, node: Node, address: str, key: tuple[str, str, str], group_id: str, now_ms: int) -> None:
        """Log a client that looked for the coordinator of a group, if the group still does not exist and the broker knows a possible cause.

        A cause is that no group can have a coordinator (`no_offsets_topic`), or that the broker lacks the consumer protocol (KIP-848). A client that
        reads without joining, as consumers with `assign` do, or that has tried to join is not logged. key: (address, client id, group id).
        """
        first_ms, count = self._searches.pop(key, (0, 0))
        host, client_id, group = key
        if not count or node.cluster.groups.describe(group_id).state != UNKNOWN_GROUP:
            return
        advice = no_offsets_topic(node.cluster.config, node.image)
        if not advice and not node.groups.serves_consumers:
            advice = f"if it has group.protocol=consumer: {CONSUMER_PROTOCOL}"
        if not advice or self._reads_or_joins(host, client_id, first_ms):
            return
        if self._lines.count((host, client_id, "group protocol"), now_ms) is None:
            return
        logger.warning(
            "broker %d: client-id %s at %s looked %d times for the coordinator of group %s and did not join the group; %s",
            node.broker_id,
            client_id,
            address,
            max(count, SEARCHES),
            group,
            advice,
        )

    def _reads_or_joins(self, host: str, client_id: str, since_ms: int) -> bool:
        """Return whether the client has sent one of `READS_OR_JOINS` since `since_ms`.

        host: the address of the client, without a port. client_id: its client id as log lines show it, quoted and shortened (`shown_client_id`).
        Only the last `LATEST_REQUESTS` requests of the cluster are searched.
        """
        for request in self._journal.latest(LATEST_REQUESTS):
            if request.at_ms < since_ms:
                return False
            if (
                request.api_key in READS_OR_JOINS
                and request.client_address == host
                and shown_client_id(request.client_id) == client_id
            ):
                return True
        return False

    def cleared(self, now_ms: int) -> None:
        self._lines = OncePerPeriod(EVERY_MS, REMEMBERED_CLIENTS)
        self._searches.clear()

    def _refused_request(self, peer: Any, frame: memoryview, why: str) -> Refusal:
        """Return the log entry of a refused request: whether its API, its version or its encoding was the reason, and advice for the user.

        peer: the connection. frame: the request without its length. why: the reason for which the connection was closed, as text.
        """
        if len(frame) < _KEY_AND_VERSION.size:
            return Refusal("frame", "a connection", f"{why}; {_other_protocol(peer.listener_name)}")
        key, version = _KEY_AND_VERSION.unpack_from(frame)
        if key not in APIS:
            return Refusal(
                "unknown API", f"API key {key} v{version}", f"no such API; {_other_protocol(peer.listener_name)}"
            )
        name = APIS[key].name
        subject = f"{name} v{version}"
        served_api = peer.node.apis.get(key)
        if served_api is None:
            advice = (
                f"this broker, as Kafka {self._release}, does not serve it; "
                f"`kafkaproto apis --release {self._release}` lists what is served"
            )
            return Refusal(name, subject, ADVICE.get(ApiKey(key), advice))
        if not served_api.first_accepted <= version <= served_api.max_version:
            versions = f"v{served_api.first_accepted} to v{served_api.max_version}"
            return Refusal(
                name,
                subject,
                f"with release {self._release} only {versions} are served; use a client that asks for versions "
                "(ApiVersions), or start the broker with another --release",
            )
        return Refusal(f"{name} cannot be read", subject, f"{why}; the request is damaged, or its client has a bug")

    def _log(self, broker_id: int, peer: Any, client_id: str, refusal: Refusal, now_ms: int) -> None:
        quiet = self._lines.count((peer.client_address, client_id, refusal.kind), now_ms)
        if quiet is None:
            return
        further_refusals = f"; {quiet} more since the last line" if quiet else ""
        logger.warning(
            "broker %d refused %s of client-id %s at %s: %s%s",
            broker_id,
            refusal.request_or_connection,
            client_id,
            address_of(peer),
            refusal.advice,
            further_refusals,
        )


def no_offsets_topic(config: ClusterConfig, image: Image) -> str:
    """Return why no group can have a coordinator, and how to fix it; "" if the offsets topic exists or can be created."""
    factor = config.get(ALL_BROKERS, OFFSETS_FACTOR)
    count = len(image.brokers)
    if OFFSETS_TOPIC in image.topics or factor <= count:
        return ""
    brokers = "1 broker" if count == 1 else f"{count} brokers"
    return (
        f"consumer groups cannot work: {OFFSETS_FACTOR} is {factor}, but the cluster has {brokers}; "
        f"start it with -c {OFFSETS_FACTOR}={count} or with --brokers {factor}"
    )


def refused_frame(head: bytes, why: str, listener: str) -> Refusal:
    """Return why the broker refused a connection whose first bytes are not a valid frame length, and which protocol the client probably uses.

    head: the first bytes that the client sent, at most eight. why: what is wrong with the frame, as text. listener: the name of the listener.
    """
    if len(head) > 1 and head[0] == TLS_HANDSHAKE and head[1] == TLS_MAJOR_VERSION:
        return Refusal("TLS", "a TLS connection", f"listener {listener} has no TLS; {PLAINTEXT}")
    if head.startswith(HTTP_METHODS):
        advice = (
            f"listener {listener} speaks the Kafka protocol; use its address as bootstrap.servers of a Kafka client"
        )
        return Refusal("HTTP", "an HTTP request", advice)
    if head.startswith(b"SSH-"):
        return Refusal("SSH", "an SSH connection", _other_protocol(listener))
    is_long = int.from_bytes(head[:LENGTH_BYTES], "big", signed=True) > 0
    larger = "raise socket.request.max.bytes, or send smaller requests"
    advice = larger if is_long and _is_request(head) else _other_protocol(listener)
    return Refusal("frame", "a frame", f"{why}; {advice}")


def _is_request(head: bytes) -> bool:
    """Return whether the length field of a frame is followed by the API key and the version of a request that Kafka defines.

    head: the first bytes of the frame, from the length field on.
    """
    if len(head) < LENGTH_BYTES + _KEY_AND_VERSION.size:
        return False
    key, version = _KEY_AND_VERSION.unpack_from(head, LENGTH_BYTES)
    return key in APIS and APIS[key].min_version <= version <= APIS[key].max_version


def _other_protocol(listener: str) -> str:
    return f"listener {listener} accepts only Kafka clients with security.protocol=PLAINTEXT"


def client_id_of(frame: memoryview) -> str:
    """Return the client id in a request's header, quoted and shortened for a log line; "unknown" if the header cannot be decoded.

    frame: the request without its length field.
    """
    try:
        header, _ = decode_request_header(frame, 0, len(frame))
    except ProtocolError:
        try:  # the client id is at the same position in every version but the first, also for an unknown API
            header, _ = REQUEST_HEADERS[_FIRST_TAGLESS_HEADER].decode_flat(frame, 0, len(frame))
        except ProtocolError:
            return "unknown"
    return shown_client_id(header.client_id)


def address_of(peer: Any) -> str:
    """Return the client address of a connection for a log line, followed by the port if the connection has a socket.

    peer: the connection, with its attributes `client_address` and `client_port`.
    """
    return f"{peer.client_address}:{peer.client_port}" if peer.client_port else peer.client_address


def shown_client_id(client_id: str | None) -> str:
    """Return a client id for a log line: quoted and shortened, or "(none)" if the client has none."""
    return "(none)" if client_id is None else _shortened(client_id)


def _shortened(name: str) -> str:
    return repr(name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…")
