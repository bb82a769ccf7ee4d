"""Tables that are generated from the code into pages whose other text is written by hand.

A section stands between `<!-- generated: NAME -->` and `<!-- /generated -->`. Names, facts, sizes and tags come from the code; what they mean comes
from this module, which has exactly one meaning for each of them: `table_of` raises KeyError or ValueError if one is missing or left over.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence

from kafkaproto.broker.observe import journal_topic, recorder
from kafkaproto.broker.observe.metrics import snapshot
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.trace import format as trace_format
from tests.documentation import events
from tests.documentation.markdown import table
from tests.support.wire import fetch, limit, produce_of_bytes

JOURNAL, TRACE_FORMAT, METRICS = (f"reference/{name}.md" for name in ("journal", "trace-format", "metrics"))
BEGIN, END = "<!-- generated: {} -->\n", "<!-- /generated -->"
_SECTION = re.compile(rf"{BEGIN.format('([a-z ]+)')}.*?{END}", re.DOTALL)

EVENTS = {
    "broker": "a broker stopped or started",
    "leader": "a partition has another leader",
    "isr": "the in-sync replicas changed",
    "group": "a group has another state, epoch or member, or was loaded or deleted",
    "transaction": "a transactional id has another state, epoch or partition, or was loaded; a test wrote a hanging transaction",
    "parked": "a request waits: a long poll, a join, a sync. Only a join or sync has a `group`",
    "recovery": "a start with a data directory truncated something",
    "undeliverable": "a fetch can never pass its quota (Q-14)",
    "connection delayed": "a listener accepts connections faster than its rate (W-13)",
    "connection waits for a slot": "a connection waits because of `max.connections` (W-12)",
    "connection throttled": "a connection exceeds the rate of its address (W-13)",
    "connection refused": "a connection exceeds `max.connections.per.ip` (W-12)",
}
"""Maps the kinds of events in the journal to when they occur."""
TRACE_EVENTS = {
    "topic": "a topic exists at the start, is created, changed or deleted",
    "opened": "a connection was accepted",
    "closed": "a connection closed",
    "log": "a replica was truncated, or its high watermark moved down",
    "quota": "a quota changed",
    "throttle": "a client was throttled by a quota, or by a forced throttle, which has a `rule_id`",
    "problem": "a request has no response although it needs one",
}
"""Maps the kinds of events that only traces have to when they occur."""
TOPIC_RECORDS = {
    "throttle": "a client was throttled; the facts from `quota` on are null for a forced throttle",
    "fetched": "a client has read up to another offset",
    "behind": "a connected client has not fetched since the last produce",
    "produced": "a client has written records",
    "leader": EVENTS["leader"],
    "isr": EVENTS["isr"],
    "broker": EVENTS["broker"],
    "dropped": "records were lost because too many waited or could not be appended; `count` says how many since the last such record",
}
"""Maps the kinds of records in the journal topic to when they are written."""
EXCHANGE = (
    "`seq`: counts all entries from 1",
    "broker",
    "connection",
    "the broker's clock when it responded, ms; 0 if no broker recorded it",
    "received: the monotonic clock, ns; 0 if unknown, as in the next three fields",
    "handled: when the handler began",
    "ready: when the response was ready",
    "sent: when the response was sent",
    "the throttle time that the broker decided, ms",
    f"flags: {trace_format.ANSWERED} there is a response, {trace_format.HELD} the response was held back (before 2.0), {trace_format.CLOSES} the "
    "connection was closed",
    "size of the request on the wire, without its length",
    "size of the response on the wire, without its length",
    "size of the request frame in this entry",
    "size of the response frame in this entry",
    "number of record fields in the request",
    "number of record fields in the response",
    "the broker's clock when the handler began, ms",
    f"how long the request was parked, ns; 0 not at all, {trace_format.UNKNOWN_WAIT_NS} unknown",
)
STATE = (
    "`seq`: counts all entries from 1",
    "broker",
    "the broker's clock, ms",
    "the monotonic clock, ns",
    "number of logs",
)
LOG = (
    "length of the topic's name",
    "partition",
    f"flags: {trace_format.BEGINS} discard earlier states of this log",
    "high watermark",
    "last stable offset",
    "log start offset",
    "log end offset",
)
_INTEGERS = {
    "Q": "unsigned",
    "q": "signed",
    "I": "unsigned",
    "i": "signed",
    "H": "unsigned",
    "h": "signed",
    "B": "unsigned",
}
METRIC_MEANINGS = {
    ("byte-rate", "Produce, Fetch"): "bytes a second of an identity with a quota (Q-17)",
    ("request-time", "Request"): "percent of one thread that an identity used",
    ("exempt-request-time", "Request"): "percent of one thread for requests that no quota limits",
    (
        "throttle-time",
        "Produce, Fetch, Request, ControllerMutation",
    ): "the mean throttle time of an identity in ms, once it was throttled",
    ("mutation-rate", "ControllerMutation"): "partitions created or deleted a second (KIP-599)",
    ("tokens", "ControllerMutation"): "tokens that are left in the bucket",
    (
        "queue-size",
        "Produce, Fetch, Request, ControllerMutation",
    ): "connections that are muted because of this quota",
    ("byte-rate", "LeaderReplication, FollowerReplication"): "bytes a second of throttled replicas (KIP-73)",
    (
        "SumReplicaLag",
        "ReplicaManager",
    ): "by how many offsets the follower replicas on this broker are behind the log ends of their leaders, in "
    "total (KIP-73 proposes it)",
    (
        "PartitionBytesInRate",
        "BrokerTopicMetrics",
    ): "bytes a second that producers wrote (KIP-73 proposes it)",
    ("NumIncrementalFetchSessions", "FetchSessionCache"): "fetch sessions (KIP-227)",
    ("NumIncrementalFetchPartitionsCached", "FetchSessionCache"): "partitions in fetch sessions",
    (
        "IncrementalFetchSessionEvictionsPerSec",
        "FetchSessionCache",
    ): "evictions since the start: the count of Kafka's meter",
    ("broker-connection-accept-rate", "socket-server-metrics"): "connections accepted a second",
    ("connection-accept-rate", "socket-server-metrics"): "connections accepted a second (KIP-612)",
}
"""Maps (name, groups in order) of metrics to what they measure."""


def rewritten(name: str, page: str) -> str:
    """Return a page with its current sections. Raises ValueError if the page does not have each of its sections once."""
    make = SECTIONS[name]
    if sorted(_SECTION.findall(page)) != sorted(make):
        raise ValueError(f"docs/{name} must have these sections once: {', '.join(make)}")
    return _SECTION.sub(lambda match: f"{BEGIN.format(match[1])}\n{make[match[1]]()}\n{END}", page)


def table_of(kinds: Mapping[str, Iterable[str]], meanings: Mapping[str, str]) -> str:
    """Return a table of kinds in the order of their meanings. kinds: the facts of each kind. Raises ValueError if the two differ in a kind."""
    if kinds.keys() != meanings.keys():
        raise ValueError(f"kinds without a meaning, or the other way round: {kinds.keys() ^ meanings.keys()}")
    rows = ((f"`{kind}`", when, ", ".join(f"`{fact}`" for fact in kinds[kind])) for kind, when in meanings.items())
    return table(("kind", "when", "facts"), rows)


def _events() -> str:
    return table_of(events.ordered_journal_events(), EVENTS)


def _trace_events() -> str:
    kinds = events.ordered_recorder_events()
    kinds["throttle"] |= dict.fromkeys(recorder._REASON)
    return table_of(kinds, TRACE_EVENTS)


def _topic_records() -> str:
    described = dict(re.findall(r"^(\w+): +(.+\n(?: +.+\n)*)", str(journal_topic.__doc__), re.MULTILINE))
    kinds = {kind: re.findall(r"\w+", re.sub(r"\([^)]*\)", "", text)) for kind, text in described.items()}
    kinds["behind"] = kinds["fetched"]
    published = events.ordered_journal_events()
    return table_of(kinds | {kind: list(published[kind]) for kind in journal_topic.PUBLISHED}, TOPIC_RECORDS)


def layout(fields: struct.Struct, meanings: Sequence[str], *, then: Iterable[tuple[str, str]] = ()) -> str:
    """Return a table of the fixed fields of an entry. then: (bytes, field) of what follows. Raises ValueError if a field has no meaning."""
    kinds = fields.format.removeprefix(">")
    rows = [
        (str(struct.calcsize(f">{kind}")), _INTEGERS[kind], meaning)
        for kind, meaning in zip(kinds, meanings, strict=True)
    ]
    return table(("bytes", "integer", "field"), [*rows, *((size, "", field) for size, field in then)])


def _exchange() -> str:
    lengths = "the length of each record field, first those of the request"
    frames = "the request frame, then the response frame, both without records"
    return layout(trace_format.EXCHANGE_FIELDS, EXCHANGE, then=[("4 each", lengths), ("…", frames)])


def _state() -> str:
    return layout(trace_format.STATE_FIELDS, STATE)


def _log() -> str:
    return layout(trace_format.POSITIONS_FIELDS, LOG, then=[("…", "the topic's name")])


def metrics() -> set[tuple[str, str, str]]:
    """Return (name, group, names of tags) of all metrics of a cluster with quotas that clients exceed."""
    cluster = VirtualCluster()
    cluster.topic("orders")
    limit(cluster, producer_byte_rate=1000.0, consumer_byte_rate=4200.0, request_percentage=1.0)
    limit(cluster, controller_mutation_rate=1.0)
    cluster.state.request_cost_ms["Metadata"] = 2000.0
    for request, version in (
        (None, 9),
        (fetch(("orders", 0, 0)), 11),
        (CreateTopicsRequest([CreatableTopic("new", 60, 1)]), 5),
        (MetadataRequest(), 9),
    ):
        client = cluster.connect()
        client.send(request or produce_of_bytes(client, "orders", 50_000), version)
    return {
        (name.name, name.group, ", ".join(tag for tag, _ in name.tags))
        for name in snapshot(cluster.state, cluster.now_ms)
    }


def _metrics() -> str:
    tags: dict[tuple[str, str], set[str]] = {}
    for name, group, names_of_tags in metrics():
        tags.setdefault((name, group), set()).add(names_of_tags)
    tags["connection-accept-rate", "socket-server-metrics"].add("ip")  # for addresses whose rate has a quota
    documented = {(name, group) for name, groups in METRIC_MEANINGS for group in groups.split(", ")}
    if documented != tags.keys():
        raise ValueError(f"metrics without a meaning, or the other way round: {documented ^ tags.keys()}")
    rows = []
    for (name, groups), meaning in METRIC_MEANINGS.items():
        [all_tags] = {", or ".join(sorted(tags[name, group], reverse=True)) for group in groups.split(", ")}
        rows.append((f"`{name}`", ", ".join(f"`{group}`" for group in groups.split(", ")), all_tags, meaning))
    return table(("metric", "group (type)", "tags", "meaning"), rows)


SECTIONS: dict[str, dict[str, Callable[[], str]]] = {
    JOURNAL: {"events": _events, "topic records": _topic_records},
    TRACE_FORMAT: {"exchange": _exchange, "events": _trace_events, "state": _state, "log": _log},
    METRICS: {"metrics": _metrics},
}
"""The sections of each page, by name of the page below docs/."""
