"""State of incremental fetch sessions (KIP-227): which partitions each fetch covers, and which partitions its response must contain.

`Sessions` needs all fetches of a run (a recording) in their order. After a missing fetch, only the partitions in the request itself are known, until
the session starts again. The state can be saved as JSON. This module does not depend on where the fetches come from or how the results are stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkaproto.trace.cutting import read_heads
from kafkaproto.trace.format import Exchange

FINAL_EPOCH, FIRST_EPOCH = -1, 0
LAST_EPOCH = 2**31 - 1

PartitionKey = tuple[str, bytes, int]
"""Identifies a partition as a request does: (topic name, topic id, partition index). Either the name or the id is empty."""


class RequestedPartition(NamedTuple):
    """One partition of a fetch: its `fetch_offset`, `partition_max_bytes` and `current_leader_epoch`."""

    offset: int
    limit_bytes: int
    epoch: int


class Step(NamedTuple):
    """One fetch of a fetch session: which partitions it covers, and whether its response and its session epoch are right.

    All fields except `requested` are columns of the table `requests`; they are None if unknown. A fetch covers the partitions in its request and, if
    it is incremental, those of earlier fetches of its session.

    - requested: the covered partitions.
    - session_expected: the session epoch that the broker expected.
    - session_missing: number of covered partitions that the response should contain but lacks.
    - session_strays: number of partitions in the response that the fetch does not cover.
    - requested_partitions: number of covered partitions.
    - more: whether any returned partition has records after those in the response.
    """

    requested: dict[PartitionKey, RequestedPartition]
    session_expected: int | None = None
    session_missing: int | None = None
    session_strays: int | None = None
    requested_partitions: int | None = None
    more: bool | None = None

    def columns(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if name != "requested"}


class _Session:
    """State of one fetch session.

    - epoch: the session epoch that the next fetch must have.
    - connection: the connection of the last fetch.
    - requested: the partitions in the session.
    - reported: maps a partition to the high watermark that the client received last in this session, -1 after an error.
    - due_since_ns: maps a partition to the time from which on the session must return it. This is the time of the first later response outside this
      session with a higher high watermark than `reported`. A fetch of this session that the broker handles after this time must return the partition.
      Partitions without such a response are not in the dict.
    """

    __slots__ = ("connection", "due_since_ns", "epoch", "reported", "requested")

    def __init__(self, connection: int, requested: dict[PartitionKey, RequestedPartition], epoch: int = 1) -> None:
        self.epoch = epoch
        self.connection = connection
        self.requested = requested
        self.reported: dict[PartitionKey, int] = {}
        self.due_since_ns: dict[PartitionKey, int] = {}


class Sessions:
    """The fetch sessions of all brokers in one recording."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], _Session] = {}
        self._by_partition: dict[tuple[int, PartitionKey], set[tuple[int, int]]] = {}
        """Maps (broker, partition) to the (broker, session id) of each fetch session that contains the partition."""
        self._by_connection: dict[int, set[tuple[int, int]]] = {}
        """Maps a connection to the (broker, session id) of each fetch session whose last fetch came over the connection."""

    def carried(self) -> list[Any]:
        """Return the state of all sessions as JSON values. A later job passes the result to `from_carried` to restore the sessions."""
        return [
            [
                broker,
                number,
                session.connection,
                session.epoch,
                [_carried_partition(session, partition_key) for partition_key in session.requested],
            ]
            for (broker, number), session in self._open.items()
        ]

    @classmethod
    def from_carried(cls, carried: list[Any]) -> Sessions:
        """Return a new `Sessions` object with the fetch sessions that an earlier job has saved.

        carried: the saved state, a list made by the method `Sessions.carried`. Raises TypeError, ValueError or AttributeError for any other value.
        """
        sessions = cls()
        for broker, number, connection, epoch, partitions in carried:
            session = _Session(connection, {}, epoch)
            for topic, topic_id, partition, offset, limit_bytes, leader_epoch, reported, due_since_ns in partitions:
                partition_key = topic, bytes.fromhex(topic_id), partition
                session.requested[partition_key] = RequestedPartition(offset, limit_bytes, leader_epoch)
                if reported is not None:
                    session.reported[partition_key] = reported
                if due_since_ns is not None:
                    session.due_since_ns[partition_key] = due_since_ns
            sessions._open_session((broker, number), session)
        return sessions

    def close_connection(self, connection: int) -> None:
        """Drop the sessions whose last fetch came over a connection that has closed.

        Clients start new sessions on other connections. If a client continues an old session nevertheless, only the partitions that its requests
        name are known.
        """
        for key in self._by_connection.pop(connection, ()):
            self._close(key)

    def step(self, exchange: Exchange, request: Any, response: Any, throttle_ms: int) -> Step:
        """Update the session of a fetch, and return which partitions the fetch covers and whether its response has the right partitions.

        Call this method for each fetch, in the order of the trace. response: None if the trace lacks the response. throttle_ms: the throttle time of
        the response. A throttled response has no partitions (KIP-219), so no partition is then reported as missing.
        """
        named = {
            (t.topic, t.topic_id, p.partition): RequestedPartition(
                p.fetch_offset, p.partition_max_bytes, p.current_leader_epoch
            )
            for t in request.topics
            for p in t.partitions
        }
        if response is None:
            self._close((exchange.broker, request.session_id))
            return Step(named)
        response_partitions = _response_partitions(response)
        key = exchange.broker, request.session_id
        step = (self._full if _is_full(request) else self._incremental)(exchange, key, request, response, named)
        if response.error_code == 0 and step.requested_partitions is not None and not throttle_ms:
            missing = self._missing(exchange, key, request, step.requested, response_partitions)
            strays = len(response_partitions.keys() - step.requested.keys())
            step = step._replace(
                session_missing=missing,
                session_strays=strays,
                more=_has_more(request, step.requested, response_partitions),
            )
        self._note(exchange, request, response, response_partitions)
        return step

    def _full(
        self,
        exchange: Exchange,
        key: tuple[int, int],
        request: Any,
        response: Any,
        named: dict[PartitionKey, RequestedPartition],
    ) -> Step:
        self._close(key)
        if request.session_epoch == FIRST_EPOCH and response.session_id and not response.error_code:
            self._open_session((exchange.broker, response.session_id), _Session(exchange.connection, named))
        return Step(named, requested_partitions=len(named))

    def _incremental(
        self,
        exchange: Exchange,
        key: tuple[int, int],
        request: Any,
        response: Any,
        named: dict[PartitionKey, RequestedPartition],
    ) -> Step:
        session = self._open.get(key)
        if session is None:
            return Step(named)
        expected = session.epoch if session.connection == exchange.connection else None
        if session.epoch != request.session_epoch or response.error_code:
            self._close(key)
            return Step(named, session_expected=expected)
        for partition_key in named:
            self._by_partition.setdefault((key[0], partition_key), set()).add(key)
        session.requested.update(named)
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                self._forget(key, session, (topic.topic, topic.topic_id, partition))
        session.epoch = 1 if session.epoch == LAST_EPOCH else session.epoch + 1
        self._by_connection[session.connection].discard(key)
        session.connection = exchange.connection
        self._by_connection.setdefault(exchange.connection, set()).add(key)
        return Step(session.requested, expected, requested_partitions=len(session.requested))

    def _missing(
        self,
        exchange: Exchange,
        key: tuple[int, int],
        request: Any,
        requested: dict[PartitionKey, RequestedPartition],
        response_partitions: dict[PartitionKey, Any],
    ) -> int:
        """Return the number of partitions that the response to a fetch lacks.

        A full fetch must return all its partitions. An incremental fetch must return each partition whose high watermark has risen since the session
        last returned the partition. Fetch responses of the same broker outside the session show that a high watermark has risen. Such a response
        counts only if it was ready before the broker began to handle this fetch or, if the trace lacks this time, before the broker received the
        fetch. key: (broker, session id). requested: all partitions that the fetch covers. response_partitions: maps the partitions in the response
        to their data.
        """
        if _is_full(request):
            return len(requested.keys() - response_partitions.keys())
        session = self._open.get(key)
        if session is None:
            return 0
        start_ns = exchange.handled_ns or exchange.received_ns
        return sum(
            since_ns < start_ns and partition_key not in response_partitions
            for partition_key, since_ns in session.due_since_ns.items()
        )

    def _note(
        self, exchange: Exchange, request: Any, response: Any, response_partitions: dict[PartitionKey, Any]
    ) -> None:
        """Store the high watermarks in a fetch response, for its session and for the other sessions of the broker.

        A partition of the response may also be in another session, whose client last received a lower high watermark of the partition. The next
        response of that other session must then contain the partition. Its `due_since_ns` therefore gets the time of this response for the partition,
        unless it already has an earlier time. response_partitions: maps the partitions in the response to their data.
        """
        own_key = (exchange.broker, response.session_id)
        session = self._open.get(own_key)
        for partition_key, data in response_partitions.items():
            if session is not None and partition_key in session.requested:
                session.due_since_ns.pop(partition_key, None)
                session.reported[partition_key] = data.high_watermark if data.error_code == 0 else -1
            for key in self._by_partition.get((exchange.broker, partition_key), ()):
                other_session = self._open[key]
                if key == own_key or data.error_code or data.high_watermark < 0:
                    continue
                if 0 <= other_session.reported.get(partition_key, -1) < data.high_watermark:
                    other_session.due_since_ns.setdefault(partition_key, exchange.ready_ns)

    def _open_session(self, key: tuple[int, int], session: _Session) -> None:
        self._close(key)
        self._open[key] = session
        self._by_connection.setdefault(session.connection, set()).add(key)
        for partition_key in session.requested:
            self._by_partition.setdefault((key[0], partition_key), set()).add(key)

    def _forget(self, key: tuple[int, int], session: _Session, partition_key: PartitionKey) -> None:
        session.requested.pop(partition_key, None)
        session.reported.pop(partition_key, None)
        session.due_since_ns.pop(partition_key, None)
        self._remove_from_index(key, partition_key)

    def _close(self, key: tuple[int, int]) -> None:
        session = self._open.pop(key, None)
        if session is not None:
            self._by_connection.get(session.connection, set()).discard(key)
            for partition_key in session.requested:
                self._remove_from_index(key, partition_key)

    def _remove_from_index(self, key: tuple[int, int], partition_key: PartitionKey) -> None:
        keys = self._by_partition.get((key[0], partition_key), set())
        keys.discard(key)
        if not keys:
            self._by_partition.pop((key[0], partition_key), None)


def _carried_partition(session: _Session, partition_key: PartitionKey) -> list[Any]:
    topic, topic_id, partition = partition_key
    return [
        topic,
        topic_id.hex(),
        partition,
        *session.requested[partition_key],
        session.reported.get(partition_key),
        session.due_since_ns.get(partition_key),
    ]


def _is_full(request: Any) -> bool:
    return bool(request.session_epoch in (FINAL_EPOCH, FIRST_EPOCH))


def _response_partitions(response: Any) -> dict[PartitionKey, Any]:
    return {(t.topic, t.topic_id, p.partition_index): p for t in response.responses for p in t.partitions}


def _has_more(
    request: Any, requested: dict[PartitionKey, RequestedPartition], response_partitions: dict[PartitionKey, Any]
) -> bool:
    """Return True if the log of a returned partition has further records that the client may read after those in the response.

    requested: all partitions that the fetch covers. response_partitions: the partitions in the response.
    """
    for partition_key, data in response_partitions.items():
        end = data.last_stable_offset if request.isolation_level else data.high_watermark
        heads = read_heads(data.records or b"")
        if heads:
            reached = heads[-1].next_offset
        elif partition_key in requested:
            reached = requested[partition_key].offset
        else:
            continue
        if reached < end:
            return True
    return False
