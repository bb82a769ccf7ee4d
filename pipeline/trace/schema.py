"""The tables of a trace: their columns, types and meanings, declared once for Spark, Arrow and people.

A column that is `broker_only` is known to who recorded inside a broker; a capture or a proxy leaves it null. Must never know where rows
come from.
"""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """type: as Spark writes it in DDL. about: what it means, with its unit."""

    name: str
    type: str
    about: str
    broker_only: bool = False


KEYS = (
    Column("run", "string", "which recording"),
    Column("seq", "bigint", "counts the exchanges, states and events of a run"),
)

OF_REQUEST = (
    Column("hour", "string", "of the broker's clock, UTC"),
    Column("broker", "int", "who was asked"),
    Column("conn", "bigint", "the connection, counted per run"),
    Column("begun_ns", "bigint", "monotonic clock: its handler began; where nobody knows that: the request was there"),
    Column("ready_ns", "bigint", "the answer was made"),
)
"""What rows of partitions and batches repeat of their request, so that no rule has to join them."""

REQUESTS = (
    *KEYS,
    Column("hour", "string", "of the broker's clock, UTC, as 2026-11-21T18"),
    Column("broker", "int", "who was asked"),
    Column("conn", "bigint", "the connection, counted per run"),
    Column("clock_ms", "bigint", "the broker's clock when it was answered", True),
    Column("handled_ms", "bigint", "the broker's clock when its handler began", True),
    Column("received_ns", "bigint", "monotonic clock: the whole request was there"),
    Column("handled_ns", "bigint", "its handler began", True),
    Column("ready_ns", "bigint", "the answer was made"),
    Column(
        "wait_ms", "double", "how much of that it was parked, by the same clock; 0: not at all; null: nobody told", True
    ),
    Column("sent_ns", "bigint", "it was handed to the kernel, null where nobody looked"),
    Column("api_key", "int", "the API's number"),
    Column("api", "string", "its name"),
    Column("api_version", "int", "of request and response"),
    Column("correlation_id", "int", "of the request; the response's was the same, or `trouble` says so"),
    Column("client_id", "string", "as the client calls itself"),
    Column("principal", "string", "as whom it has logged in", True),
    Column("listener", "string", "where it came in", True),
    Column("software", "string", "name and version, as the connection's ApiVersions said them"),
    Column("transactional_id", "string", "of requests that have one"),
    Column("bytes_in", "bigint", "the request with its header, without its length"),
    Column("bytes_out", "bigint", "the same of the response; 0 without one"),
    Column("answered", "boolean", "false for acks=0"),
    Column("held", "boolean", "the answer was kept back for its throttle (before 2.0)", True),
    Column("error", "int", "the response's own error code, or the first other one in it; 0 for none"),
    Column("throttle_ms", "int", "as the response says it, null in versions that cannot"),
    Column("decided_ms", "int", "as the broker decided it", True),
    Column("throttle_quota", "string", "Produce, Fetch, Request, ControllerMutation, or Forced", True),
    Column("quota_entity", "string", "whose quota", True),
    Column("quota_value", "double", "what was recorded: bytes, or percent of a thread", True),
    Column("quota_bound", "double", "the quota, a second", True),
    Column("quota_rate", "double", "what was measured, a second", True),
    Column("quota_window_ms", "bigint", "over how long", True),
    Column("muted_from_ms", "bigint", "the broker's clock: its connection is left alone from then", True),
    Column("muted_until_ms", "bigint", "until then", True),
    Column("acks", "int", "of a Produce"),
    Column("max_bytes", "int", "of a Fetch: the limit of the whole answer"),
    Column("min_bytes", "int", "what it waits for"),
    Column("max_wait_ms", "int", "how long at most"),
    Column("isolation", "int", "of a Fetch or ListOffsets, 1: read_committed"),
    Column("session_id", "int", "the fetch session asked for"),
    Column("session_epoch", "int", "its step"),
    Column("answered_session_id", "int", "the session that the answer names"),
    Column("session_expected", "int", "the step that comes next, if this connection has taken the ones before"),
    Column("session_missing", "int", "partitions that an answer had to carry, and did not"),
    Column("session_strays", "int", "partitions that it carries, and nobody asked for"),
    Column("asked_partitions", "int", "of a Fetch: how many, with those of its session; null where that is not known"),
    Column("redirects", "int", "how many are told another replica, or that their log parts"),
    Column("more", "boolean", "a partition that is answered has more for the client than it got"),
    Column("first_batch_bytes", "bigint", "of the first whole batch of a Fetch answer"),
    Column("replica_id", "int", "of a Fetch or ListOffsets: who follows, below 0 a consumer"),
    Column("rack", "string", "of the client"),
    Column("records_bytes", "bigint", "of all records that the request or the answer carried"),
    Column("trouble", "string", "why it could not be read whole, or was refused; null if neither"),
    Column(
        "partial",
        "boolean",
        "the recording has not all of it (packets are missing, its connection ended first) or it was refused, as `trouble` says",
    ),
)

PARTITIONS = (
    *KEYS,
    *OF_REQUEST,
    Column("api", "string", "Produce, Fetch or ListOffsets"),
    Column("isolation", "int", "of a Fetch or ListOffsets"),
    Column("replica_id", "int", "of a Fetch or ListOffsets: who follows, below 0 a consumer"),
    Column("acks", "int", "of a Produce"),
    Column("place", "int", "its place in the answer, from 0; without an answer in the request"),
    Column("topic", "string", "its name, null where only its id was told, and no answer before said whose that is"),
    Column("topic_id", "string", "its id in hex, null where only its name was told"),
    Column("partition", "int", "its index"),
    Column("asked_offset", "bigint", "of a Fetch, in this step of its session or in one before"),
    Column("asked_timestamp", "bigint", "of a ListOffsets"),
    Column("limit_bytes", "int", "of a Fetch: partition_max_bytes"),
    Column("asked_epoch", "int", "the leader epoch that the client believes in, -1: none"),
    Column("error", "int", "0 for none; null without an answer"),
    Column(
        "base_offset", "bigint", "Produce: of the first record; Fetch: of the first batch; ListOffsets: what was found"
    ),
    Column("next_offset", "bigint", "behind the last whole batch, or message of magic 0 or 1"),
    Column("batches", "int", "whole batches of magic 2"),
    Column("records", "bigint", "in them"),
    Column("bytes", "bigint", "of the records field"),
    Column("first_batch_bytes", "bigint", "of its first whole batch"),
    Column("high_watermark", "bigint", "of a Fetch"),
    Column("last_stable_offset", "bigint", "of a Fetch"),
    Column("log_start", "bigint", "log start offset"),
    Column("answered_epoch", "int", "the leader epoch of the answer"),
    Column("answered_timestamp", "bigint", "of a ListOffsets, -1: none"),
    Column("preferred_replica", "int", "of a Fetch, -1: none"),
    Column("aborted", "string", "of a Fetch: [[producer id, first offset], ...] as JSON, null where none are listed"),
)

BATCHES = (
    *KEYS,
    *OF_REQUEST,
    Column("api", "string", "Produce or Fetch"),
    Column("acks", "int", "of a Produce"),
    Column("topic", "string", "its name, null where only its id was told, and no answer before said whose that is"),
    Column("topic_id", "string", "its id in hex, null where only its name was told"),
    Column("partition", "int", "its index"),
    Column("place", "int", "its place in the partition's records, from 0"),
    Column("base_offset", "bigint", "Produce: as the answer assigned it, null without one; Fetch: as stored"),
    Column("last_offset", "bigint", "of its last record"),
    Column("count", "int", "how many records it says; of a compressed message of magic 0 or 1 how many offsets"),
    Column("bytes", "bigint", "of the whole batch"),
    Column("epoch", "int", "partition leader epoch, as stored"),
    Column("producer_id", "bigint", "-1: none"),
    Column("producer_epoch", "int", "-1: none"),
    Column("base_sequence", "int", "-1: none"),
    Column("codec", "int", "0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd"),
    Column("transactional", "boolean", "part of a transaction"),
    Column("control", "boolean", "a marker, no records of clients"),
    Column("max_timestamp", "bigint", "as it says"),
    Column("crc", "bigint", "its checksum; null: a message of magic 0 or 1, which the broker may have made of a batch"),
)

EVENTS = (
    *KEYS,
    Column("hour", "string", "of the broker's clock, UTC"),
    Column("broker", "int", "where, -1: in the cluster"),
    Column("clock_ms", "bigint", "the broker's clock"),
    Column("at_ns", "bigint", "monotonic clock"),
    Column(
        "kind",
        "string",
        "meta (the header of the trace), opened, closed, trouble (of which exchange, and why), throttle, topic, quota, leader, isr, log "
        "(records went), broker, parked, recovery, dropped, …; of a capture lost, unreadable, left_out; and what answers tell for the "
        "first time, or otherwise than before: named (topic, id), rack (of a broker)",
    ),
    Column("facts", "string", "the rest, as JSON"),
)

STATE = (
    *KEYS,
    Column("hour", "string", "of the broker's clock, UTC"),
    Column("broker", "int", "whose log it is"),
    Column("clock_ms", "bigint", "the broker's clock"),
    Column("at_ns", "bigint", "monotonic clock: then it was so"),
    Column("topic", "string", "its name"),
    Column("partition", "int", "its index"),
    Column("begins", "boolean", "a log that is new, or of which nothing was told before"),
    Column("high_watermark", "bigint", "of this replica, be it the leader or not"),
    Column("last_stable_offset", "bigint", "the same"),
    Column("log_start", "bigint", "log start offset"),
    Column("log_end", "bigint", "log end offset; its own moves are not told"),
)
"""A row for each time that a high watermark, a last stable offset or a log start has moved: only a broker can tell."""

TABLES: dict[str, tuple[Column, ...]] = {
    "requests": REQUESTS,
    "partitions": PARTITIONS,
    "batches": BATCHES,
    "events": EVENTS,
    "state": STATE,
}


def ddl(table: str) -> str:
    """The columns of a table as Spark's DDL."""
    return ", ".join(f"`{column.name}` {column.type}" for column in TABLES[table])
