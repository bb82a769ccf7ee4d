"""One exchange or event of a trace as rows of the tables in `schema`, with our codec and nothing else: no Spark, no Arrow.

Whatever a frame holds, rows come out: what cannot be read is told in `trouble`. Entries come in the order of the trace, as some columns
are told by entries before: what is known of them can be carried on as JSON. Must never know files, nor how rows are stored.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

from kafkaproto.api import ApiKey, codec
from kafkaproto.header import RequestHeader
from kafkaproto.records.batch import BatchHeader
from kafkaproto.records.message_set import MessageHeader
from kafkaproto.trace.cutting import read_heads
from kafkaproto.trace.decoded import Decoded
from kafkaproto.trace.format import Entry, Event, Exchange, State
from pipeline.trace.schema import KEYS, OF_REQUEST, TABLES
from pipeline.trace.sessions import Asked, Key, Sessions

Row = dict[str, Any]
NO_TOPIC_ID = bytes(16)
MS_PER_HOUR = 3_600_000
NS_PER_MS = 1_000_000
LATE_CONNECTIONS = 1000
"""A connection is remembered until so many others have closed after it: an exchange that it was closed in is told behind that, and a run
with a million connections must not be kept whole."""
_BATCH_KEYS = (*(column.name for column in (*KEYS, *OF_REQUEST)), "api", "acks")


class Known:
    """What answers told, whoever asked. topics: topic id in hex to name. brokers: (host, port) to id. advertised: API key to the widest
    range of versions that a broker offered."""

    def __init__(self) -> None:
        self.topics: dict[str, str] = {}
        self.brokers: dict[tuple[str, int], int] = {}
        self.advertised: dict[int, tuple[int, int]] = {}

    def offered(self, key: int, lowest: int, highest: int) -> None:
        before = self.advertised.get(key, (lowest, highest))
        self.advertised[key] = min(before[0], lowest), max(before[1], highest)

    def carried(self) -> Row:
        """As JSON has it."""
        return {
            "topics": self.topics,
            "brokers": [[*address, broker] for address, broker in self.brokers.items()],
            "advertised": [[key, *versions] for key, versions in self.advertised.items()],
        }

    @classmethod
    def carrying(cls, carried: Row) -> Known:
        """The same again. Raises as `Rows.carrying`."""
        made = cls()
        made.topics = dict(carried["topics"])
        made.brokers = {(host, port): broker for host, port, broker in carried["brokers"]}
        made.advertised = {key: (lowest, highest) for key, lowest, highest in carried["advertised"]}
        return made


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
        """All that entries told that may matter to later ones, as JSON has it. Another `pipeline.trace.place.FORM` where this changes."""
        return {
            "sessions": self._sessions.carried(),
            "known": self._known.carried(),
            "told": [[*about, value] for about, value in self._told.items()],
            "connections": [[number, columns] for number, columns in self._connections.items()],
            "closed": list(self._closed),
            "throttles": [[number, *why] for number, why in self._throttles.items()],
            "troubles": [[seq, why] for seq, why in self._troubles.items()],
        }

    @classmethod
    def carrying(cls, run: str, wall_ms: int, at_ns: int, carried: Row) -> Rows:
        """Rows that go on where those were that told this. Raises KeyError, TypeError, ValueError or AttributeError for anything else."""
        made = cls(run, wall_ms, at_ns, Known.carrying(carried["known"]))
        made._sessions = Sessions.carrying(carried["sessions"])
        made._told = {tuple(about): value for *about, value in carried["told"]}
        made._connections = {int(number): _only(_OF_CONNECTION, columns) for number, columns in carried["connections"]}
        made._closed.extend(map(int, carried["closed"]))
        made._throttles = {
            int(number): (int(seq), _only(_OF_THROTTLE, columns)) for number, seq, columns in carried["throttles"]
        }
        made._troubles = {int(seq): str(why) for seq, why in carried["troubles"]}
        return made

    def of(self, entry: Entry) -> Iterator[tuple[str, Row]]:
        """(table, row) of everything that an entry tells."""
        if isinstance(entry, Event):
            if entry.kind == "throttle" and entry.facts.get("of") is not None:
                number = int(entry.facts.get("connection", 0))
                self._throttles[number] = entry.facts["of"], _throttle_columns(entry.facts)
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
        row = _blank("requests")
        keys = {"run": self._run, "seq": one.seq, "hour": self._hour(one.clock_ms, one.ready_ns), "broker": one.broker}
        row |= keys | _recorded_columns(one) | self._throttle(one)
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
        if header is None or request is None:
            yield "requests", row
            return
        row |= _answer_columns(seen, header)
        row["transactional_id"] = getattr(request, "transactional_id", None)
        if header.api_key == ApiKey.API_VERSIONS:
            self._note_versions(one, request, response)
        row |= self._connections.get(one.connection, {})
        if header.api_key in _COLUMNS:
            row |= _COLUMNS[header.api_key](request, response)
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
            yield from _fetch(keys, one, response, step.asked)
        elif header.api_key == ApiKey.PRODUCE:
            yield from _produce({**keys, "acks": row["acks"]}, one, request, response)
        elif header.api_key == ApiKey.LIST_OFFSETS:
            keys |= {"isolation": row["isolation"], "replica_id": row["replica_id"]}
            yield from _list_offsets(keys, request, response)

    def _throttle(self, one: Exchange) -> Row:
        of, columns = self._throttles.get(one.connection, (0, {}))
        if of != one.seq:
            return {}
        del self._throttles[one.connection]
        return columns

    def _note_versions(self, one: Exchange, request: Any, response: Any) -> None:
        if request.client_software_name:
            software = f"{request.client_software_name} {request.client_software_version}"
            self._connections.setdefault(one.connection, {})["software"] = software
        for offer in () if response is None else response.api_keys:
            self._known.offered(offer.api_key, offer.min_version, offer.max_version)

    def _news(self, keys: Row, one: Exchange, response: Any) -> Iterator[tuple[str, Row]]:
        """What an answer tells of topics and brokers, if its broker has not told that before."""
        for topic in response.topics:
            which = _topic(topic.name, topic.topic_id)
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


def _blank(table: str) -> Row:
    return dict.fromkeys(column.name for column in TABLES[table])


def _recorded_columns(one: Exchange) -> Row:
    """What who recorded it knows, without its frames."""
    row: Row = {
        "conn": one.connection,
        "clock_ms": one.clock_ms or None,
        "handled_ms": one.handled_ms or None,
        "received_ns": one.received_ns,
        "handled_ns": one.handled_ns or None,
        "ready_ns": one.ready_ns,
        "wait_ms": one.wait_ns / NS_PER_MS if one.wait_ns >= 0 else None,
        "sent_ns": one.sent_ns or None,
        "bytes_in": one.request_bytes,
        "bytes_out": one.response_bytes,
        "answered": one.answered,
        "held": one.held,
        "decided_ms": one.throttle_ms,
        "records_bytes": sum(one.request_records) + sum(one.response_records),
    }
    if one.throttle_ms > 0 and one.clock_ms and not one.held:
        row |= {"muted_from_ms": one.clock_ms, "muted_until_ms": one.clock_ms + one.throttle_ms}
    return row


def _throttle_columns(facts: Row) -> Row:
    """Whose quota, and its numbers; of one that was forced there are none."""
    window_ms = facts.get("window_ms")
    return {
        "throttle_quota": facts.get("quota", "Forced"),
        "quota_entity": facts.get("entity") or None,
        "quota_value": _double(facts.get("value")),
        "quota_bound": _double(facts.get("bound")),
        "quota_rate": _double(facts.get("rate")),
        "quota_window_ms": None if window_ms is None else int(window_ms),
    }


def _double(value: Any) -> float | None:
    return None if value is None else float(value)


_OF_CONNECTION = frozenset({"principal", "listener", "software"})
_OF_THROTTLE = frozenset(_throttle_columns({}))


def _only(names: frozenset[str], columns: Row) -> Row:
    """A row's other columns say whose it is and where it is kept: nobody who carries something may set those."""
    if not columns.keys() <= names:
        raise ValueError(f"{sorted(columns.keys() - names)} are not carried")
    return dict(columns)


@cache
def _tells_throttles(api_key: int, api_version: int) -> bool:
    return "throttleTimeMs" in codec(api_key, api_version).response.cls().to_json(api_version)


def _answer_columns(seen: Decoded, header: RequestHeader) -> Row:
    if seen.response is None:
        return {}
    tells = _tells_throttles(header.api_key, header.api_version)
    return {"error": next(seen.errors(), 0), "throttle_ms": seen.response.throttle_time_ms if tells else None}


def _fetch_columns(request: Any, response: Any) -> Row:
    replica = request.replica_state.replica_id
    return {
        "max_bytes": request.max_bytes,
        "min_bytes": request.min_bytes,
        "max_wait_ms": request.max_wait_ms,
        "isolation": request.isolation_level,
        "session_id": request.session_id,
        "session_epoch": request.session_epoch,
        "answered_session_id": None if response is None else response.session_id,
        "replica_id": replica if replica != -1 else request.replica_id,
        "rack": request.rack_id,
        **_answered_fetch(request, response),
    }


def _answered_fetch(request: Any, response: Any) -> Row:
    """What its partitions say of the whole answer. A records field that was not empty still tells that it was there."""
    answered = [] if response is None else [p for topic in response.responses for p in topic.partitions]
    first = next((p.records for p in answered if p.records), None)
    heads = _heads(first)
    return {
        "redirects": sum(p.preferred_read_replica >= 0 or p.diverging_epoch.epoch >= 0 for p in answered),
        "first_batch_bytes": heads[0].size if heads else None,
    }


def _list_offsets_columns(request: Any, _: Any) -> Row:
    return {"isolation": request.isolation_level, "replica_id": request.replica_id}


def _produce_columns(request: Any, _: Any) -> Row:
    return {"acks": request.acks}


def _topic(name: str | None, topic_id: bytes = NO_TOPIC_ID) -> Row:
    return {"topic": name or None, "topic_id": None if topic_id == NO_TOPIC_ID else topic_id.hex()}


def _left(records: Any) -> tuple[list[BatchHeader], list[MessageHeader]]:
    """What `kafkaproto.trace.cutting` left of records: headers of batches, or of messages of magic 0 and 1."""
    found: list[Any] = read_heads(records or b"")
    return ([], found) if found and type(found[0]) is MessageHeader else (found, [])


def _heads(records: Any) -> list[BatchHeader]:
    return _left(records)[0]


def _records_columns(heads: list[BatchHeader], length: int) -> Row:
    return {
        "batches": len(heads),
        "records": sum(head.record_count for head in heads),
        "bytes": length,
        "first_batch_bytes": heads[0].size if heads else None,
    }


def _keys_of_batch(keys: Row) -> Row:
    return {name: keys.get(name) for name in _BATCH_KEYS}


def _batch_rows(keys: Row, where: Row, heads: list[BatchHeader], base_offset: int | None) -> Iterator[tuple[str, Row]]:
    """base_offset: what the broker assigned to the first one; None: as it stands in each."""
    for place, head in enumerate(heads):
        base = head.base_offset if base_offset is None else base_offset
        yield (
            "batches",
            {
                **_keys_of_batch(keys),
                **where,
                "place": place,
                "base_offset": base if base >= 0 else None,
                "last_offset": base + head.last_offset_delta if base >= 0 else None,
                "count": head.record_count,
                "bytes": head.size,
                "epoch": head.partition_leader_epoch,
                "producer_id": head.producer_id,
                "producer_epoch": head.producer_epoch,
                "base_sequence": head.base_sequence,
                "codec": head.compression,
                "transactional": head.is_transactional,
                "control": head.is_control,
                "max_timestamp": head.max_timestamp,
                "crc": head.crc,
            },
        )


def _message_rows(keys: Row, where: Row, messages: list[MessageHeader], asked: int | None) -> Iterator[tuple[str, Row]]:
    """As batches without a producer. Where a compressed one begins it does not say: behind the one before, the first at the asked offset."""
    begins = asked
    for place, head in enumerate(messages):
        base = head.offset if begins is None or not head.compression else min(begins, head.offset)
        begins = head.next_offset
        yield (
            "batches",
            {
                **_keys_of_batch(keys),
                **where,
                "place": place,
                "base_offset": base,
                "last_offset": head.last_offset,
                "count": head.next_offset - base,
                "bytes": head.size,
                "epoch": -1,
                "producer_id": -1,
                "producer_epoch": -1,
                "base_sequence": -1,
                "codec": head.compression,
                "transactional": False,
                "control": False,
                "max_timestamp": head.max_timestamp,
                "crc": None,
            },
        )


def _produce(keys: Row, one: Exchange, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    lengths = iter(one.request_records)
    answers = {
        (topic.name, topic.topic_id, answer.index): answer
        for topic in (() if response is None else response.responses)
        for answer in topic.partition_responses
    }
    place = 0
    for topic in request.topic_data:
        for data in topic.partition_data:
            length = 0 if data.records is None else next(lengths, 0)
            heads = _heads(data.records)
            answer = answers.get((topic.name, topic.topic_id, data.index))
            base = -1 if answer is None else answer.base_offset
            where = {**_topic(topic.name, topic.topic_id), "partition": data.index}
            row = {**_blank("partitions"), **keys, **where, "place": place, **_records_columns(heads, length)}
            if answer is not None:
                row |= {"error": answer.error_code, "log_start": answer.log_start_offset}
                if base >= 0:
                    row |= {
                        "base_offset": base,
                        "next_offset": base + heads[0].last_offset_delta + 1 if heads else None,
                    }
            yield "partitions", row
            yield from _batch_rows(keys, where, heads, base)
            place += 1


def _fetch(keys: Row, one: Exchange, response: Any, asked: dict[Key, Asked]) -> Iterator[tuple[str, Row]]:
    lengths = iter(one.response_records)
    place = 0
    for topic in () if response is None else response.responses:
        for data in topic.partitions:
            length = 0 if data.records is None else next(lengths, 0)
            heads, messages = _left(data.records)
            where = {**_topic(topic.topic, topic.topic_id), "partition": data.partition_index}
            row = {**_blank("partitions"), **keys, **where, "place": place, **_records_columns(heads, length)}
            row |= {
                "error": data.error_code,
                "base_offset": heads[0].base_offset if heads else None,
                "next_offset": heads[-1].next_offset if heads else None,
                "high_watermark": data.high_watermark,
                "last_stable_offset": data.last_stable_offset,
                "log_start": data.log_start_offset,
                "preferred_replica": data.preferred_read_replica,
                "aborted": _aborted(data.aborted_transactions),
            }
            wanted = asked.get((topic.topic, topic.topic_id, data.partition_index))
            if wanted is not None:
                row |= {
                    "asked_offset": wanted.offset,
                    "limit_bytes": wanted.limit_bytes,
                    "asked_epoch": wanted.epoch,
                }
            listed = list(_message_rows(keys, where, messages, row["asked_offset"]))
            if listed:
                row |= {"base_offset": listed[0][1]["base_offset"], "next_offset": listed[-1][1]["last_offset"] + 1}
            yield "partitions", row
            yield from _batch_rows(keys, where, heads, None)
            yield from listed
            place += 1


def _aborted(listed: Any) -> str | None:
    if listed is None:
        return None
    return json.dumps([[one.producer_id, one.first_offset] for one in listed], separators=(",", ":"))


def _list_offsets(keys: Row, request: Any, response: Any) -> Iterator[tuple[str, Row]]:
    answers = {
        (topic.name, p.partition_index): p
        for topic in (() if response is None else response.topics)
        for p in topic.partitions
    }
    place = 0
    for topic in request.topics:
        for wanted in topic.partitions:
            row = {**_blank("partitions"), **keys, **_topic(topic.name), "partition": wanted.partition_index}
            row |= {"place": place, "asked_timestamp": wanted.timestamp, "asked_epoch": wanted.current_leader_epoch}
            answer = answers.get((topic.name, wanted.partition_index))
            if answer is not None:
                row |= {
                    "error": answer.error_code,
                    "base_offset": answer.offset,
                    "answered_epoch": answer.leader_epoch,
                    "answered_timestamp": answer.timestamp,
                }
            yield "partitions", row
            place += 1


_COLUMNS: dict[int, Callable[[Any, Any], Row]] = {
    ApiKey.PRODUCE: _produce_columns,
    ApiKey.FETCH: _fetch_columns,
    ApiKey.LIST_OFFSETS: _list_offsets_columns,
}
_NAMING = (ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_TOPIC_PARTITIONS)
"""Answers that tell which id belongs to which name."""
