"""Entry by entry of a trace the rows of the tables in `schema`, with our codec and nothing else: no Spark, no Arrow.

Whatever a frame holds, rows come out: what cannot be read is told in `trouble`. Entries come in the order of the trace, as some columns
are told by entries before: what is known of them is kept here, and can be carried on as JSON. Must never know files, nor how rows are
stored.
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
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.pipeline.trace.sessions import Sessions
from kafkaproto.trace.decoded import Decoded
from kafkaproto.trace.format import Entry, Event, Exchange, State

MS_PER_HOUR = 3_600_000
LATE_CONNECTIONS = 1000
"""A connection is remembered until so many others have closed after it: an exchange that it was closed in is told behind that, and a run
with a million connections must not be kept whole."""


class Known:
    """What answers told, whoever asked. topics: topic id in hex to name; and what only a capture has to be told: brokers: (host, port) to id,
    advertised: API key to the widest range of versions that a broker offered."""

    def __init__(self) -> None:
        self.topics: dict[str, str] = {}
        self.brokers: dict[tuple[str, int], int] = {}
        self.advertised: dict[int, tuple[int, int]] = {}

    def offered(self, key: int, lowest: int, highest: int) -> None:
        before = self.advertised.get(key, (lowest, highest))
        self.advertised[key] = min(before[0], lowest), max(before[1], highest)


class Rows:
    """The rows of one run, entry by entry; of a capture those of one connection.

    wall_ms, at_ns: from the header of the trace: what time it was when the monotonic clock stood there. known: what others share with it.
    """

    def __init__(self, run: str, wall_ms: int, at_ns: int, known: Known | None = None) -> None:
        self._run = run
        self._wall_ms = wall_ms
        self._at_ns = at_ns
        self._sessions = Sessions()
        self._known = Known() if known is None else known
        self._told: dict[tuple[Any, ...], Any] = {}
        """What answers of a broker have told: ids of topics, racks of brokers."""
        self._connections: dict[int, Row] = {}
        """Columns of all requests of a connection that only something before tells."""
        self._closed: deque[int] = deque()
        """Connections of which not much more will come."""
        self._throttles: dict[int, tuple[int, Row]] = {}
        """Of a connection the sequence number of an exchange, and why it is throttled: this is decided, and told, before it is answered."""
        self._troubles: dict[int, str] = {}
        """Sequence number of an exchange to what is wrong with it, as who recorded it knows."""

    def carried(self) -> Row:
        """All that entries told that may matter to later ones, as JSON has it. Another `kafkaproto.pipeline.trace.place.FORM` where this changes."""
        return {
            "sessions": self._sessions.carried(),
            "topics": self._known.topics,
            "told": [[*about, value] for about, value in self._told.items()],
            "connections": [[number, told] for number, told in self._connections.items()],
            "closed": list(self._closed),
            "throttles": [[number, *why] for number, why in self._throttles.items()],
            "troubles": [[seq, why] for seq, why in self._troubles.items()],
        }

    @classmethod
    def carrying(cls, run: str, wall_ms: int, at_ns: int, carried: Row) -> Rows:
        """Rows that go on where those were that told this. Raises KeyError, TypeError, ValueError or AttributeError for anything else."""
        made = cls(run, wall_ms, at_ns)
        made._known.topics = {str(topic_id): str(name) for topic_id, name in carried["topics"].items()}
        made._sessions = Sessions.carrying(carried["sessions"])
        made._told = {tuple(about): value for *about, value in carried["told"]}
        made._connections = {int(number): _only(_OF_CONNECTION, told) for number, told in carried["connections"]}
        made._closed.extend(map(int, carried["closed"]))
        made._throttles = {
            int(number): (int(seq), _only(_OF_THROTTLE, why)) for number, seq, why in carried["throttles"]
        }
        made._troubles = {int(seq): str(why) for seq, why in carried["troubles"]}
        return made

    def of(self, entry: Entry) -> Iterator[tuple[str, Row]]:
        """(table, row) of everything that an entry tells."""
        if isinstance(entry, Event):
            if entry.kind == "throttle" and entry.facts.get("of") is not None:
                number = int(entry.facts.get("connection", 0))
                self._throttles[number] = entry.facts["of"], columns.throttle(entry.facts)
            elif entry.kind == "trouble":
                self._troubles[entry.facts["of"]] = entry.facts["why"]
            self._note_connection(entry)
            yield "events", self._event(entry)
            return
        if isinstance(entry, State):
            yield from self._state(entry)
            return
        for table, row in self._exchange(entry):
            if row.get("topic_id") is not None and row["topic"] is None:
                row["topic"] = self._known.topics.get(row["topic_id"])
            yield table, row

    def _note_connection(self, entry: Event) -> None:
        number = int(entry.facts.get("connection", 0))
        if entry.kind == "closed":
            self._closed.append(number)
            if len(self._closed) > LATE_CONNECTIONS:
                self._let_go(self._closed.popleft())
        elif entry.kind in ("opened", "authenticated"):
            known = self._connections.setdefault(number, {})
            known |= {name: entry.facts[name] for name in ("principal", "listener") if name in entry.facts}

    def _let_go(self, number: int) -> None:
        self._connections.pop(number, None)
        self._throttles.pop(number, None)
        self._sessions.let_go(number)

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
        told = {"run": self._run, "hour": self._hour(entry.clock_ms, entry.at_ns), **entry._asdict()}
        del told["logs"]
        for log in entry.logs:
            yield "state", {**told, **log._asdict()}

    def _exchange(self, one: Exchange) -> Iterator[tuple[str, Row]]:
        row = columns.blank("requests")
        keys = {"run": self._run, "seq": one.seq, "hour": self._hour(one.clock_ms, one.ready_ns), "broker": one.broker}
        row |= keys | columns.recorded(one) | self._throttle(one)
        if not one.clock_ms:
            row |= _ONLY_BROKERS_KNOW
        seen = Decoded(one)
        header, request, response = seen.header, seen.request, seen.response
        lacks = self._troubles.pop(one.seq, "")
        row |= {"trouble": lacks or seen.trouble or None, "partial": bool(lacks)}
        if header is not None:
            row |= {
                "api_key": header.api_key,
                "api": seen.api,
                "api_version": header.api_version,
                "correlation_id": header.correlation_id,
                "client_id": header.client_id,
            }
            row |= columns.answer(seen, header)
        if header is None or request is None:
            yield "requests", row
            return
        row["transactional_id"] = getattr(request, "transactional_id", None)
        if header.api_key == ApiKey.API_VERSIONS:
            self._note_versions(one, request, response)
        row |= self._connections.get(one.connection, {})
        if header.api_key in columns.OF_API:
            row |= columns.OF_API[header.api_key](request, response)
        step = None
        if header.api_key == ApiKey.FETCH:
            step = self._sessions.step(one, request, response, row["throttle_ms"] or one.throttle_ms)
            row |= step.columns()
        yield "requests", row
        begun_ns = one.handled_ns or one.received_ns
        keys |= {"api": row["api"], "conn": one.connection, "begun_ns": begun_ns, "ready_ns": one.ready_ns}
        if header.api_key in _NAMING and response is not None:
            yield from self._news(keys, one, response)
        elif step is not None:
            keys |= {"isolation": row["isolation"], "replica_id": row["replica_id"]}
            yield from columns.fetch_rows(keys, one, response, step.asked)
        elif header.api_key == ApiKey.PRODUCE:
            yield from columns.produce_rows({**keys, "acks": row["acks"]}, one, request, response)
        elif header.api_key == ApiKey.LIST_OFFSETS:
            keys |= {"isolation": row["isolation"], "replica_id": row["replica_id"]}
            yield from columns.list_offsets_rows(keys, request, response)

    def _throttle(self, one: Exchange) -> Row:
        of, why = self._throttles.get(one.connection, (0, {}))
        if of != one.seq:
            return {}
        del self._throttles[one.connection]
        return why

    def _note_versions(self, one: Exchange, request: Any, response: Any) -> None:
        if request.client_software_name:
            software = f"{request.client_software_name} {request.client_software_version}"
            self._connections.setdefault(one.connection, {})["software"] = software
        for offer in () if response is None else response.api_keys:
            self._known.offered(offer.api_key, offer.min_version, offer.max_version)

    def _news(self, keys: Row, one: Exchange, response: Any) -> Iterator[tuple[str, Row]]:
        """What an answer tells of topics and brokers, if its broker has not told that before."""
        for topic in response.topics:
            which = columns.topic_columns(topic.name, topic.topic_id)
            if which["topic_id"] and which["topic"]:
                self._known.topics[which["topic_id"]] = which["topic"]
                yield from self._new(one, ("named", topic.name), which["topic_id"], which)
        for broker in getattr(response, "brokers", ()):
            self._known.brokers[broker.host, broker.port] = broker.node_id
            facts = {"node": broker.node_id, "rack": broker.rack}
            yield from self._new(one, ("rack", broker.node_id), broker.rack, facts)

    def _new(self, one: Exchange, about: tuple[Any, ...], value: Any, facts: Row) -> Iterator[tuple[str, Row]]:
        key = (one.broker, *about)
        if self._told.get(key, self) != value:
            self._told[key] = value
            at = {"seq": one.seq, "clock_ms": one.clock_ms, "at_ns": one.ready_ns, "broker": one.broker}
            yield "events", self._event(Event(about[0], {**at, "begun_ns": one.handled_ns or one.received_ns, **facts}))


_ONLY_BROKERS_KNOW: Row = {column.name: None for column in TABLES["requests"] if column.broker_only}
"""Of who has no broker's clock."""
_OF_CONNECTION = frozenset({"principal", "listener", "software"})
_OF_THROTTLE = frozenset(columns.throttle({}))


def _only(names: frozenset[str], told: Row) -> Row:
    """A row's other columns say whose it is and where it is kept: nobody who carries something may set those."""
    if not told.keys() <= names:
        raise ValueError(f"{sorted(told.keys() - names)} are not carried")
    return dict(told)


_NAMING = (ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_TOPIC_PARTITIONS)
"""Answers that tell which id belongs to which name."""
