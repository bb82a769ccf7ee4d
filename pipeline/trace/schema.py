"""The tables of a trace: columns, types and meanings, declared once for Spark, Arrow and people.

Only a recorder inside a broker knows the columns marked `broker_only`; they are null in the trace of a proxy or a capture. This module does
not depend on where rows come from.
"""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """A column of a table. type: as in Spark's DDL. about: its meaning and unit. broker_only: whether only traces of brokers have values for it."""

    name: str
    type: str
    about: str
    broker_only: bool = False


KEYS = (
    Column("run", "string", "name of the recording"),
    Column("seq", "bigint", "number, in its recording, of the request, event or offset change that the row comes from"),
)

HOUR = Column(
    "hour", "string", "UTC hour of the response or event, such as 2026-11-21T18 (broker's clock, or else recorder's)"
)
REQUEST_KEYS = (
    HOUR,
    Column("broker", "int", "id of the broker that received the request"),
    Column("conn", "bigint", "number of the connection in its recording"),
    Column(
        "begun_ns",
        "bigint",
        "when the handler started or, if unknown, when the request had arrived, in ns of the recorder's monotonic clock",
    ),
    Column(
        "ready_ns",
        "bigint",
        "when the response was ready, in ns of the recorder's monotonic clock; in the trace of a proxy or a capture, when the response was seen",
    ),
)
"""Columns about a request that are repeated in tables with several rows per request, such as `partitions` and `batches`.

Because these columns are repeated, a query about times, brokers or connections needs no join. A query that needs other columns, such as `client_id`,
joins the table `requests` by `run` and `seq`.
"""

REQUESTS = (
    *KEYS,
    *REQUEST_KEYS[:3],
    Column("clock_ms", "bigint", "when the response was ready, by the broker's clock, in ms since 1970", True),
    Column("handled_ms", "bigint", "when the handler started, by the broker's clock, in ms since 1970", True),
    Column("received_ns", "bigint", "when the whole request had arrived, in ns of the recorder's monotonic clock"),
    Column("handled_ns", "bigint", "when the handler started, in ns of the recorder's monotonic clock", True),
    Column(
        "ready_ns",
        "bigint",
        "when the response was ready, in ns of the recorder's monotonic clock; in the trace of a proxy or a capture, when the response was seen",
    ),
    Column(
        "wait_ms",
        "double",
        "time that the request was parked in purgatory, by the monotonic clock; 0 if it was not parked, null if not recorded",
        True,
    ),
    Column(
        "sent_ns",
        "bigint",
        "when the kernel accepted the response, in ns of the recorder's monotonic clock; null if not recorded",
    ),
    Column("api_key", "int", "API key"),
    Column("api", "string", "name of the API"),
    Column("api_version", "int", "version of request and response"),
    Column(
        "correlation_id", "int", "correlation id of the request; if that of the response differs, `problem` says so"
    ),
    Column("client_id", "string", "client id"),
    Column("principal", "string", "user that the connection is authenticated as", True),
    Column("listener", "string", "listener of the broker that accepted the connection", True),
    Column("software", "string", "name and version of the client software, from the connection's ApiVersions request"),
    Column("transactional_id", "string", "transactional id, for requests that have one"),
    Column("bytes_in", "bigint", "size of the request with its header, without the length prefix"),
    Column(
        "bytes_out", "bigint", "size of the response with its header, without the length prefix; 0 without a response"
    ),
    Column("has_response", "boolean", "whether the request got a response; false for acks=0"),
    Column("held", "boolean", "whether the response was delayed by its throttle time (releases before 2.0)", True),
    Column(
        "error",
        "int",
        "top-level error code of the response, or else its first error code in a topic, partition or group; 0: none",
    ),
    Column("throttle_ms", "int", "throttle time in the response; null in versions without that field"),
    Column("applied_throttle_ms", "int", "throttle time that the broker applied", True),
    Column(
        "throttle_quota",
        "string",
        "quota that caused the throttle: Produce, Fetch, Request, ControllerMutation, or Forced (a throttle that a test sets)",
        True,
    ),
    Column("quota_entity", "string", "user or client id to which the quota belongs", True),
    Column(
        "quota_value",
        "double",
        "amount charged to the quota for the request: bytes, percent of a thread, or partitions",
        True,
    ),
    Column("quota_bound", "double", "limit of the quota, per second", True),
    Column("quota_rate", "double", "measured rate, per second", True),
    Column("quota_window_ms", "bigint", "time over which the rate was measured", True),
    Column("muted_from_ms", "bigint", "when the broker muted the connection, by its clock, in ms since 1970", True),
    Column("muted_until_ms", "bigint", "when the broker unmuted the connection, by its clock, in ms since 1970", True),
    Column("acks", "int", "`acks` of a Produce"),
    Column("max_bytes", "int", "`max_bytes` of a Fetch: the limit of the whole response"),
    Column("min_bytes", "int", "`min_bytes` of a Fetch: bytes to wait for"),
    Column("max_wait_ms", "int", "`max_wait_ms` of a Fetch: the longest wait for `min_bytes`"),
    Column("isolation", "int", "isolation level of a Fetch or ListOffsets; 1: read_committed"),
    Column("session_id", "int", "fetch session id of the request"),
    Column("session_epoch", "int", "fetch session epoch of the request"),
    Column("returned_session_id", "int", "fetch session id of the response"),
    Column(
        "session_expected",
        "int",
        "session epoch that this request should have, if all earlier fetches of the session came over this connection",
    ),
    Column("session_missing", "int", "number of partitions that the response should contain but does not"),
    Column("session_strays", "int", "number of partitions in the response that the session does not contain"),
    Column(
        "requested_partitions",
        "int",
        "number of partitions that a Fetch covers, including those of its session; null if unknown",
    ),
    Column(
        "redirects",
        "int",
        "number of partitions for which the response has a preferred replica or a diverging epoch instead of records",
    ),
    Column("more", "boolean", "whether a partition of the Fetch has further records after those in the response"),
    Column("first_batch_bytes", "bigint", "size of the first whole batch of a Fetch response"),
    Column("replica_id", "int", "broker id of the follower that sends a Fetch or ListOffsets; below 0 for a consumer"),
    Column("rack", "string", "rack of the client"),
    Column("records_bytes", "bigint", "size of all records in the request or response"),
    Column(
        "problem",
        "string",
        "why the exchange could not be decoded completely, or why the broker rejected it; null otherwise",
    ),
    Column(
        "partial",
        "boolean",
        "whether a part is missing (lost packets, a connection that closed early) or the broker rejected the request; `problem` says which",
    ),
)

PARTITIONS = (
    *KEYS,
    *REQUEST_KEYS,
    Column("api", "string", "Produce, Fetch or ListOffsets"),
    Column("isolation", "int", "isolation level of a Fetch or ListOffsets; 1: read_committed"),
    Column("replica_id", "int", "broker id of the follower that sends a Fetch or ListOffsets; below 0 for a consumer"),
    Column("acks", "int", "`acks` of a Produce"),
    Column("position", "int", "position of the partition in the response, from 0; without a response, in the request"),
    Column("topic", "string", "topic name; null if only the id is known"),
    Column("topic_id", "string", "topic id in hex; null if the request has only a name"),
    Column("partition", "int", "partition index"),
    Column(
        "requested_offset", "bigint", "offset that the Fetch requests, in this or an earlier request of its session"
    ),
    Column("requested_timestamp", "bigint", "timestamp that the ListOffsets requests"),
    Column("limit_bytes", "int", "`partition_max_bytes` of a Fetch"),
    Column("requested_epoch", "int", "current leader epoch that the client sends; -1: none"),
    Column("error", "int", "error code of the partition; 0 for none, null without a response"),
    Column(
        "base_offset",
        "bigint",
        "Produce: offset of the first record; Fetch: of the first batch; ListOffsets: the offset in the response",
    ),
    Column("next_offset", "bigint", "offset after the last whole batch, or after the last message of magic 0 or 1"),
    Column("batches", "int", "number of whole batches of magic 2"),
    Column("records", "bigint", "number of records in the whole batches of magic 2"),
    Column("bytes", "bigint", "size of the records field"),
    Column("first_batch_bytes", "bigint", "size of the first whole batch"),
    Column("high_watermark", "bigint", "high watermark in a Fetch response"),
    Column("last_stable_offset", "bigint", "last stable offset in a Fetch response"),
    Column("log_start", "bigint", "log start offset"),
    Column("returned_epoch", "int", "leader epoch of the offset in a ListOffsets response; -1: unknown"),
    Column("returned_timestamp", "bigint", "timestamp in a ListOffsets response; -1: none"),
    Column("preferred_replica", "int", "preferred read replica in a Fetch response; -1: none"),
    Column(
        "aborted",
        "string",
        "aborted transactions of a Fetch: [[producer id, first offset], ...] as JSON; null if none are listed",
    ),
)

BATCHES = (
    *KEYS,
    *REQUEST_KEYS,
    Column("api", "string", "Produce or Fetch"),
    Column("acks", "int", "`acks` of a Produce"),
    Column("topic", "string", "topic name; null if only the id is known"),
    Column("topic_id", "string", "topic id in hex; null if the request has only a name"),
    Column("partition", "int", "partition index"),
    Column("position", "int", "position of the batch in the records of its partition, from 0"),
    Column(
        "base_offset",
        "bigint",
        "Produce: offset that the broker assigned, null without a response; Fetch: offset in the batch",
    ),
    Column("last_offset", "bigint", "offset of the last record"),
    Column(
        "count",
        "int",
        "number of records in the batch; for a compressed message of magic 0 or 1, the number of offsets it covers",
    ),
    Column("bytes", "bigint", "size of the whole batch"),
    Column("epoch", "int", "partition leader epoch in the batch"),
    Column("producer_id", "bigint", "producer id; -1: none"),
    Column("producer_epoch", "int", "producer epoch; -1: none"),
    Column("base_sequence", "int", "sequence number of the first record; -1: none"),
    Column("codec", "int", "compression: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd"),
    Column("transactional", "boolean", "whether the batch belongs to a transaction"),
    Column("control", "boolean", "whether the batch is a transaction marker without client records"),
    Column(
        "committed",
        "boolean",
        "whether the marker commits the transaction; null for other batches, and in traces before format version 5",
    ),
    Column("coordinator_epoch", "int", "epoch of the coordinator that wrote the marker; null like `committed`"),
    Column("max_timestamp", "bigint", "largest timestamp of the batch, from its header"),
    Column(
        "crc",
        "bigint",
        "CRC of the batch; null for a message of magic 0 or 1, which the broker may have down-converted",
    ),
)

GROUPS = (
    *KEYS,
    *REQUEST_KEYS,
    Column("api", "string", "JoinGroup, SyncGroup, Heartbeat, LeaveGroup, ConsumerGroupHeartbeat or DeleteGroups"),
    Column("position", "int", "position of the member or group in the request, from 0"),
    Column("group_id", "string", "group id"),
    Column(
        "member_id",
        "string",
        "member id of the response, or else of the request; null: none yet, or the request names an instance only",
    ),
    Column("instance_id", "string", "group instance id of a static member (KIP-345)"),
    Column("protocol_type", "string", "protocol type, such as consumer; null if the request has none"),
    Column("assignors", "string", "assignors that the JoinGroup offers, as a JSON list"),
    Column("assignor", "string", "assignor (protocol name) of the group, or the one for which the member asks"),
    Column(
        "requested_epoch",
        "int",
        "generation or member epoch in the request; ConsumerGroupHeartbeat: 0 joins, -1 leaves, -2 leaves temporarily; null if there is none",
    ),
    Column(
        "returned_epoch",
        "int",
        "generation or member epoch of the member after this response; null after an error, and for Heartbeat and LeaveGroup",
    ),
    Column("error", "int", "error code for the member; 0 for none, null without a response"),
    Column("leader", "string", "member id of the leader, in a JoinGroup response"),
    Column("members", "int", "number of members that a JoinGroup response lists; only the leader's lists any"),
    Column("session_timeout_ms", "int", "session timeout that a JoinGroup requests"),
    Column("rebalance_timeout_ms", "int", "rebalance timeout in the request; null if unchanged"),
    Column(
        "subscribed", "string", "topics to which the member subscribes, as a JSON list; null if unchanged or unknown"
    ),
    Column(
        "subscribed_pattern", "string", "regular expression to which the member subscribes; null if unchanged or none"
    ),
    Column(
        "owned",
        "string",
        "partitions that the member reports to own, as JSON: {topic name or id in hex: [partition, ...]}; null if it reports nothing",
    ),
    Column("assigned", "string", "partitions that the response assigns, like `owned`; null if it assigns nothing new"),
    Column("reason", "string", "reason that the member gives for joining again or leaving (KIP-800)"),
)
"""Columns of the table `groups`, for requests by which members join, stay in or leave a group, and for DeleteGroups.

A request has a row for each member or group that it names.
"""

GROUP_OFFSETS = (
    *KEYS,
    *REQUEST_KEYS,
    Column("api", "string", "OffsetCommit, TxnOffsetCommit, OffsetFetch or OffsetDelete"),
    Column(
        "position", "int", "position of the partition in the request of a commit, or in the response of a fetch, from 0"
    ),
    Column("group_id", "string", "group id"),
    Column("member_id", "string", "member id; null: none"),
    Column("instance_id", "string", "group instance id of a static member (KIP-345)"),
    Column("requested_epoch", "int", "generation or member epoch in the request; -1: none"),
    Column("topic", "string", "topic name; null if only the id is known"),
    Column("topic_id", "string", "topic id in hex; null if the request has only a name"),
    Column("partition", "int", "partition index"),
    Column(
        "offset", "bigint", "offset that is committed, or the committed offset in the response; null if there is none"
    ),
    Column("leader_epoch", "int", "leader epoch of the committed offset; -1: none"),
    Column("error", "int", "error code of the partition, or else of the group; 0 for none, null without a response"),
)
"""Columns of the table `group_offsets`: a row for each partition in a request that commits, fetches or deletes offsets of a group."""

TRANSACTIONS = (
    *KEYS,
    *REQUEST_KEYS,
    Column(
        "api",
        "string",
        "InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn, WriteTxnMarkers, DescribeProducers, "
        "DescribeTransactions or ListTransactions",
    ),
    Column("position", "int", "position of the row among those of its request, from 0"),
    Column("transactional_id", "string", "transactional id; null if the request or response has none"),
    Column("producer_id", "bigint", "producer id in the request, or of the producer that is described; -1: none"),
    Column("producer_epoch", "int", "producer epoch in the request, or of the producer that is described; -1: none"),
    Column(
        "returned_producer_id",
        "bigint",
        "producer id to continue with, after InitProducerId or EndTxn (version 5) without an error",
    ),
    Column("returned_epoch", "int", "producer epoch to continue with, when `returned_producer_id` is not null"),
    Column("group_id", "string", "group whose offsets are part of the transaction"),
    Column("topic", "string", "topic name; null if the row is not about a partition"),
    Column("partition", "int", "partition index; null if the row is not about a partition"),
    Column("committed", "boolean", "whether EndTxn or WriteTxnMarkers commits the transaction"),
    Column("coordinator_epoch", "int", "coordinator epoch in WriteTxnMarkers or DescribeProducers"),
    Column("timeout_ms", "int", "transaction timeout in InitProducerId or DescribeTransactions"),
    Column("verify_only", "boolean", "whether AddPartitionsToTxn only asks if the partitions are in the transaction"),
    Column("state", "string", "state of the transaction in DescribeTransactions or ListTransactions, such as Ongoing"),
    Column("start_ms", "bigint", "time at which the transaction began, in DescribeTransactions; -1: none"),
    Column("start_offset", "bigint", "first offset of the open transaction in DescribeProducers; -1: none"),
    Column("last_sequence", "int", "last sequence number of the producer in DescribeProducers; -1: none"),
    Column("error", "int", "error code of the partition, or else of the request; 0 for none, null without a response"),
)
"""Columns of the table `transactions`: a row for each producer, transaction or partition in a request about transactions."""

EVENTS = (
    *KEYS,
    HOUR,
    Column("broker", "int", "id of the broker; -1 for the cluster"),
    Column("clock_ms", "bigint", "time of the event by the broker's clock, in ms since 1970; 0 if it is unknown"),
    Column("at_ns", "bigint", "time of the event, in ns of the recorder's monotonic clock"),
    Column(
        "kind",
        "string",
        "what happened: meta (start of the recording), opened (a connection), closed (a connection), problem (a request is incomplete, rejected "
        "or without the response that it needs), throttle (of a request), topic (it exists at the start, or is created, changed or deleted), "
        "group (a group changed), transaction (a transactional id changed its state), quota (a quota changed), leader (a partition got a new "
        "leader), isr (the in-sync replicas of a partition changed), log (records were removed, or the high watermark moved down), broker (it "
        "stopped or started), parked (a request waits in purgatory), recovery (a broker recovered its logs), undeliverable (the quota of a "
        "client never lets a fetch pass), connection delayed (a new connection waits, because too many are opened per second), connection waits "
        "for a slot (a new connection waits, because too many are open), connection throttled (the broker closes a new connection after a delay, "
        "because too many are opened per second from its IP address), connection refused (the broker closes a new connection at once, because too "
        "many from its IP address are open), dropped (the recorder lost entries), lost (packets are missing in a capture), unreadable (bytes in a "
        "capture cannot be decoded), left_out (how many packets of a capture are not in the tables, by reason), named (a response shows the id of "
        "a topic), rack (a response shows the rack of a broker)",
    ),
    Column("facts", "string", "details of the event, as JSON"),
)

STATE = (
    *KEYS,
    HOUR,
    Column("broker", "int", "id of the broker that has the replica"),
    Column("clock_ms", "bigint", "when the offsets had these values, by the broker's clock, in ms since 1970"),
    Column("at_ns", "bigint", "when the offsets had these values, in ns of the recorder's monotonic clock"),
    Column("topic", "string", "topic name"),
    Column("partition", "int", "partition index"),
    Column("begins", "boolean", "whether the log is new: earlier rows of this replica are about a deleted log"),
    Column("high_watermark", "bigint", "high watermark of this replica, leader or follower"),
    Column("last_stable_offset", "bigint", "last stable offset of this replica"),
    Column("log_start", "bigint", "log start offset"),
    Column("log_end", "bigint", "log end offset; a change of this alone makes no row"),
)
"""Columns of the table `state`: a row for each change of a high watermark, last stable offset or log start offset, as a broker records it."""

TABLES: dict[str, tuple[Column, ...]] = {
    "requests": REQUESTS,
    "partitions": PARTITIONS,
    "batches": BATCHES,
    "events": EVENTS,
    "state": STATE,
    "groups": GROUPS,
    "group_offsets": GROUP_OFFSETS,
    "transactions": TRANSACTIONS,
}


def ddl(table: str) -> str:
    """Return the columns of a table as Spark DDL."""
    return ", ".join(f"`{column.name}` {column.type}" for column in TABLES[table])
