"""Rows of the trace tables (see `schema`), made from the entries of a trace without Spark or Arrow.

Every entry yields rows, whatever its frames contain: the column `problem` says what could not be decoded. Entries must come in the order of the
trace, because some columns depend on earlier entries. `Rows` keeps the necessary facts of earlier entries, and can save them as JSON. This module
does not depend on files or how rows are stored.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.pipeline.trace import columns
from kafkaproto.pipeline.trace.columns import NS_PER_MS, Row
from kafkaproto.pipeline.trace.group_columns import GROUP_ROWS
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.pipeline.trace.sessions import Sessions
from kafkaproto.pipeline.trace.transaction_columns import TRANSACTION_ROWS
from kafkaproto.trace.decoded import Decoded
from kafkaproto.trace.format import Entry, Event, Exchange, State

MS_PER_HOUR = 3_600_000
LATE_CONNECTIONS = 1000
"""The maximum number of closed connections whose state is kept.

If a connection closes during an exchange (a request and its response), the exchange is recorded after the event `closed` and still needs the state.
The limit bounds the memory: a run (a recording) can have a million connections.
"""


class ClusterFacts:
    """Facts about the cluster that responses reported to any client.

    topics: maps a topic id in hex to the topic name. brokers: maps (host, port) to the broker id. advertised: maps an API key to the widest range of
    versions that a broker offered, as (lowest, highest). Only captures need `brokers` and `advertised`: for a trace, the header of the file has these
    facts.
    """

    def __init__(self) -> None:
        self.topics: dict[str, str] = {}
        self.brokers: dict[tuple[str, int], int] = {}
        self.advertised: dict[int, tuple[int, int]] = {}

    def add_versions(self, api_key: int, lowest: int, highest: int) -> None:
        versions = self.advertised.get(api_key, (lowest, highest))
        self.advertised[api_key] = min(versions[0], lowest), max(versions[1], highest)


class Rows:
    """Makes the rows of one run (recording), or of one connection of a capture, entry by entry.

    wall_ms, at_ns: wall clock and monotonic clock at the start of the recording, from the header of the trace. cluster: collects facts about the
    cluster, and is shared by the `Rows` objects of several connections; None for a new one.
    """

    def __init__(self, run: str, wall_ms: int, at_ns: int, cluster: ClusterFacts | None = None) -> None:
        self._run = run
        self._wall_ms = wall_ms
        self._at_ns = at_ns
        self._sessions = Sessions()
        self._cluster = ClusterFacts() if cluster is None else cluster
        self._reported: dict[tuple[Any, ...], Any] = {}
        """The topic id of each topic and the rack of each broker, as each responding broker reported them last.

        The keys are (responding broker, "named", topic name) for a topic id, and (responding broker, "rack", broker id) for a rack.
        """
        self._connections: dict[int, Row] = {}
        """Maps a connection to the columns that all its requests share: principal, listener and client software."""
        self._closed: deque[int] = deque()
        """The ids of recently closed connections, oldest first."""
        self._throttles: dict[int, tuple[int, Row]] = {}
        """Maps a connection to (sequence number of a throttled request, its throttle columns). In a trace, a throttle event precedes its request."""
        self._problems: dict[int, str] = {}
        """Maps the sequence number of an exchange (a request and its response) to the problem that the recorder reported for it."""

    def carried(self) -> Row:
        """Return the state that the rows of later entries need, such as open fetch sessions and topic names, as JSON values.

        The next job passes it to `from_carried` to continue after the entries that were converted so far. If the structure of the result changes,
        increase the version number `FORM` in the module `kafkaproto.pipeline.trace.place`, so that older saved states are not used.
        """
        return {
            "sessions": self._sessions.carried(),
            "topics": self._cluster.topics,
            "reported": [[*reported_key, value] for reported_key, value in self._reported.items()],
            "connections": [[number, shared_columns] for number, shared_columns in self._connections.items()],
            "closed": list(self._closed),
            "throttles": [[number, *why] for number, why in self._throttles.items()],
            "problems": [[seq, why] for seq, why in self._problems.items()],
        }

    @classmethod
    def from_carried(cls, run: str, wall_ms: int, at_ns: int, carried: Row) -> Rows:
        """Return a `Rows` object that continues with a saved state.

        run: name of the run (recording). wall_ms, at_ns: wall clock and monotonic clock at its start. carried: the saved state, a dict made by
        the method `Rows.carried`. Raises KeyError, TypeError, ValueError or AttributeError for any other value.
        """
        rows = cls(run, wall_ms, at_ns)
        rows._cluster.topics = {str(topic_id): str(name) for topic_id, name in carried["topics"].items()}
        rows._sessions = Sessions.from_carried(carried["sessions"])
        rows._reported = {tuple(reported_key): value for *reported_key, value in carried["reported"]}
        rows._connections = {
            int(number): _only(_CONNECTION_COLUMNS, shared_columns) for number, shared_columns in carried["connections"]
        }
        rows._closed.extend(map(int, carried["closed"]))
        rows._throttles = {
            int(number): (int(seq), _only(_THROTTLE_COLUMNS, why)) for number, seq, why in carried["throttles"]
        }
        rows._problems = {int(seq): str(why) for seq, why in carried["problems"]}
        return rows

    def of(self, entry: Entry) -> Iterator[tuple[str, Row]]:
        """Yield (table name, row) for each row made from an entry of the trace."""
        if isinstance(entry, Event):
            if entry.kind == "throttle" and entry.facts.get("of") is not None:
                number = int(entry.facts.get("connection", 0))
                self._throttles[number] = entry.facts["of"], columns.throttle(entry.facts)
            elif entry.kind == "problem":
                self._problems[entry.facts["of"]] = entry.facts["why"]
            self._note_connection(entry)
            yield "events", self._event(entry)
            return
        if isinstance(entry, State):
            yield from self._state(entry)
            return
        for table, row in self._exchange(entry):
            if row.get("topic_id") is not None and row["topic"] is None:
                row["topic"] = self._cluster.topics.get(row["topic_id"])
            yield table, row

    def _note_connection(self, entry: Event) -> None:
        number = int(entry.facts.get("connection", 0))
        if entry.kind == "closed":
            self._closed.append(number)
            if len(self._closed) > LATE_CONNECTIONS:
                self._forget_connection(self._closed.popleft())
        elif entry.kind in ("opened", "authenticated"):
            shared_columns = self._connections.setdefault(number, {})
            shared_columns |= {name: entry.facts[name] for name in ("principal", "listener") if name in entry.facts}

    def _forget_connection(self, number: int) -> None:
        self._connections.pop(number, None)
        self._throttles.pop(number, None)
        self._sessions.close_connection(number)

    def _hour(self, clock_ms: int, at_ns: int) -> str:
        ms = clock_ms or self._wall_ms + (at_ns - self._at_ns) // NS_PER_MS
        return datetime.fromtimestamp(ms // MS_PER_HOUR * 3600, UTC).strftime("%Y-%m-%dT%H")

    def _event(self, entry: Event) -> Row:
        facts = dict(entry.facts)
        clock_ms, at_ns = int(facts.pop("clock_ms", 0)), int(facts.pop("at_ns", 0))
        return {
            "run": self._run,
            "seq": int(facts.pop("seq", 0)),
            "hour": self._hour(clock_ms, at_ns),
            "broker": int(facts.pop("broker", -1)),
            "clock_ms": clock_ms,
            "at_ns": at_ns,
            "kind": entry.kind,
            "facts": json.dumps(facts, separators=(",", ":")),
        }

    def _state(self, entry: State) -> Iterator[tuple[str, Row]]:
        shared = {"run": self._run, "hour": self._hour(entry.clock_ms, entry.at_ns), **entry._asdict()}
        del shared["logs"]
        for log in entry.logs:
            yield "state", {**shared, **log._asdict()}

    def _exchange(self, exchange: Exchange) -> Iterator[tuple[str, Row]]:
        row = columns.empty_row("requests")
        keys = {
            "run": self._run,
            "seq": exchange.seq,
            "hour": self._hour(exchange.clock_ms, exchange.ready_ns),
            "broker": exchange.broker,
        }
        row |= keys | columns.recording_columns(exchange) | self._throttle(exchange)
        if not exchange.clock_ms:
            row |= _NO_BROKER_COLUMNS
        decoded = Decoded(exchange)
        header, request, response = decoded.header, decoded.request, decoded.response
        problem = self._problems.pop(exchange.seq, "")
        row |= {"problem": problem or decoded.problem or None, "partial": bool(problem)}
        if header is not None:
            row |= {
                "api_key": header.api_key,
                "api": decoded.api,
                "api_version": header.api_version,
                "correlation_id": header.correlation_id,
                "client_id": header.client_id,
            }
            row |= columns.response_columns(decoded, header)
        if header is None or request is None:
            yield "requests", row
            return
        row["transactional_id"] = getattr(request, "transactional_id", None)
        if header.api_key == ApiKey.API_VERSIONS:
            self._note_versions(exchange, request, response)
        row |= self._connections.get(exchange.connection, {})
        if header.api_key in columns.REQUEST_COLUMNS:
            row |= columns.REQUEST_COLUMNS[header.api_key](request, response)
        step = None
        if header.api_key == ApiKey.FETCH:
            step = self._sessions.step(exchange, request, response, row["throttle_ms"] or exchange.throttle_ms)
            row |= step.columns()
        yield "requests", row
        started_ns = exchange.handled_ns or exchange.received_ns
        keys |= {"api": row["api"], "conn": exchange.connection, "begun_ns": started_ns, "ready_ns": exchange.ready_ns}
        if header.api_key in _NAMING_APIS and response is not None:
            yield from self._name_and_rack_events(exchange, response)
        elif step is not None:
            keys |= {"isolation": row["isolation"], "replica_id": row["replica_id"]}
            yield from columns.fetch_rows(keys, exchange, response, step.requested)
        elif header.api_key == ApiKey.PRODUCE:
            yield from columns.produce_rows({**keys, "acks": row["acks"]}, exchange, request, response)
        elif header.api_key == ApiKey.LIST_OFFSETS:
            keys |= {"isolation": row["isolation"], "replica_id": row["replica_id"]}
            yield from columns.list_offsets_rows(keys, request, response)
        else:
            yield from _coordinator_rows(header.api_key, keys, request, response)

    def _throttle(self, exchange: Exchange) -> Row:
        seq, throttle = self._throttles.get(exchange.connection, (0, {}))
        if seq != exchange.seq:
            return {}
        del self._throttles[exchange.connection]
        return throttle

    def _note_versions(self, exchange: Exchange, request: Any, response: Any) -> None:
        if request.client_software_name:
            software = f"{request.client_software_name} {request.client_software_version}"
            self._connections.setdefault(exchange.connection, {})["software"] = software
        for offer in () if response is None else response.api_keys:
            self._cluster.add_versions(offer.api_key, offer.min_version, offer.max_version)

    def _name_and_rack_events(self, exchange: Exchange, response: Any) -> Iterator[tuple[str, Row]]:
        """Yield an event, as (table name, row), for each new topic id and rack in a response.

        A topic id or rack is new if this broker reports it for the first time, or has reported another value before.
        """
        for topic in response.topics:
            names = columns.topic_columns(topic.name, topic.topic_id)
            if names["topic_id"] and names["topic"]:
                self._cluster.topics[names["topic_id"]] = names["topic"]
                yield from self._event_if_new(exchange, ("named", topic.name), names["topic_id"], names)
        for broker in getattr(response, "brokers", ()):
            self._cluster.brokers[broker.host, broker.port] = broker.node_id
            facts = {"node": broker.node_id, "rack": broker.rack}
            yield from self._event_if_new(exchange, ("rack", broker.node_id), broker.rack, facts)

    def _event_if_new(
        self, exchange: Exchange, subject: tuple[Any, ...], value: Any, facts: Row
    ) -> Iterator[tuple[str, Row]]:
        key = (exchange.broker, *subject)
        if self._reported.get(key, self) != value:
            self._reported[key] = value
            times = {
                "seq": exchange.seq,
                "clock_ms": exchange.clock_ms,
                "at_ns": exchange.ready_ns,
                "broker": exchange.broker,
            }
            yield (
                "events",
                self._event(
                    Event(subject[0], {**times, "begun_ns": exchange.handled_ns or exchange.received_ns, **facts})
                ),
            )


def _coordinator_rows(api_key: int, keys: Row, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    """Yield (table name, row) for a request about groups or transactions.

    A TxnOffsetCommit is about both: it yields rows about the group and rows about the transaction. keys: maps the columns that identify the request
    to their values, which each row gets. response: None if the trace lacks the response.
    """
    for rows in (GROUP_ROWS, TRANSACTION_ROWS):
        if api_key in rows:
            yield from rows[api_key](keys, request, response)


_NO_BROKER_COLUMNS: Row = {column.name: None for column in TABLES["requests"] if column.broker_only}
"""Maps columns of the table `requests` to None: those that only a recorder inside a broker can fill, and that are None in all other traces."""
_CONNECTION_COLUMNS = frozenset({"principal", "listener", "software"})
_THROTTLE_COLUMNS = frozenset(columns.throttle({}))


def _only(names: frozenset[str], carried: Row) -> Row:
    """Return a copy of the columns in `carried`, which come from a saved state, after checking their names.

    names: the columns that are allowed. Raises ValueError for any other column, because it could overwrite a column that identifies a row.
    """
    if not carried.keys() <= names:
        raise ValueError(
            f"the state saved with the last position sets the columns {sorted(carried.keys() - names)} of the table `requests`, "
            f"but may set only {sorted(names)}; do not use this state, but build the tables again from the start of the trace"
        )
    return dict(carried)


_NAMING_APIS = (ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_TOPIC_PARTITIONS)
"""APIs whose responses map topic ids to topic names."""
