"""The audit reports faults that resemble correct behaviour, and does not report correct behaviour. Each case is its own run."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker.proxy.connection import ProxyConnection
from kafkaproto.broker.server.tracing import meta_of
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.pipeline.trace.audit.rule import Tables
from kafkaproto.pipeline.trace.audit.rules import RULES
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.schema import TABLES, ddl
from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.trace.format import UNANSWERED, Entry, Event
from tests.support.pipeline import patched
from tests.support.recording import recorder_into
from tests.support.scene import lagging
from tests.support.wire import batch, batch_of_bytes, fetch, limit, metadata, produce

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]
EPOCH_MS = 1_700_000_000_000
NS_PER_MS = 1_000_000
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
Scene = Callable[[], patched.Rows]
BrokenRules = dict[str, dict[str, int]]
"""Maps a run to the number of rows that break each rule, if any."""
RIGHT: list[Scene] = []
WRONG: dict[Scene, str] = {}
"""Maps a wrong run to the rule that must report it."""


def right(scene: Scene) -> Scene:
    RIGHT.append(scene)
    return scene


def wrong(rule: str) -> Callable[[Scene], Scene]:
    def note(scene: Scene) -> Scene:
        WRONG[scene] = rule
        return scene

    return note


# ---- recorders ---------------------------------------------------------------------------------------------------------------


def rows_of(entries: list[Entry]) -> patched.Rows:
    row_builder = Rows("", EPOCH_MS, 0)
    all_rows: patched.Rows = {table: [] for table in TABLES}
    for entry in entries:
        for table, row in row_builder.of(entry):
            all_rows[table].append(row)
    return all_rows


def blank(table: str, **fields: Any) -> dict[str, Any]:
    """Return a row with these values and null in all other columns."""
    return dict.fromkeys(column.name for column in TABLES[table]) | {"run": ""} | fields


def fetched(**fields: Any) -> dict[str, Any]:
    """Return a Fetch request as a proxy records it."""
    times = {"received_ns": 1, "ready_ns": 2, "error": 0, "throttle_ms": 0, "records_bytes": 0, "replica_id": -1}
    request_fields = {
        "seq": 1,
        "conn": 1,
        "broker": 0,
        "api": "Fetch",
        "api_version": 12,
        "client_id": "c",
        "has_response": True,
    }
    return blank("requests") | times | request_fields | fields


def meta_event(cluster: VirtualCluster) -> Event:
    return Event("meta", {**meta_of(cluster.state), "wall_ms": EPOCH_MS, "seq": 0, "broker": -1})


def recorded(cluster: VirtualCluster) -> list[Entry]:
    """Return a list that receives everything the cluster records from now on."""
    entries: list[Entry] = [meta_event(cluster)]
    cluster.state.record(recorder_into(entries))
    return entries


class Proxied:
    """A client's connection as a proxy sees it: the times of requests and responses, without the broker's internal events."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.entries: list[Entry] = []
        self._cluster = cluster
        self._client: MemoryClient = cluster.connect()
        counted = count(1)
        self._relay = ProxyConnection(
            1, lambda: 0, lambda _, host, port: (host, port), lambda: next(counted), self.entries.append
        )
        self._client.write = self._write  # type: ignore[method-assign]

    def _write(self, buffers: Any) -> bool:
        self._relay.responded(b"".join(bytes(buffer) for buffer in buffers), self._now_ns() + 1)
        return True

    def _now_ns(self) -> int:
        return self._cluster.now_ms * NS_PER_MS

    def send(self, request: Any, version: int, then_ms: int = 10) -> None:
        """Send a request, and let `then_ms` pass afterwards."""
        self.send_frame(self._client.frame(request, version), then_ms)

    def send_frame(self, frame: bytes, then_ms: int = 10) -> None:
        """Send the bytes of a request, length first, and let `then_ms` pass afterwards."""
        data, _ = self._relay.requested(frame, self._now_ns())
        self._client.send_bytes(data)
        self._cluster.advance(then_ms)


# ---- fetches that need not wait, or cannot -----------------------------------------------------------------------------------


@right
def fetch_above_the_high_watermark() -> patched.Rows:
    """Fetch above the high watermark, where records are not visible yet: the fetch does not wait (F-17, D1)."""
    cluster = lagging("kafka")
    entries = recorded(cluster)
    client = cluster.connect(0)
    client.ask(fetch(("t", 0, 4), max_wait_ms=700), 12)
    client.ask(fetch(("t", 0, 4), max_wait_ms=700, isolation=1), 12)
    step = client.ask(fetch(("t", 0, 4), max_wait_ms=700, session=(0, 0)), 12)
    client.ask(fetch(max_wait_ms=700, session=(step.session_id, 1)), 12)
    tables = rows_of(entries)
    assert [row["ready_ns"] - row["handled_ns"] < 600 * NS_PER_MS for row in tables["requests"]] == [True] * 4
    assert not any(row["error"] for row in tables["requests"])
    return tables


@wrong("13-early")
def answered_early_at_the_high_watermark() -> patched.Rows:
    cluster = lagging("kafka")
    entries = recorded(cluster)
    client = cluster.connect(0)
    client.send(fetch(("t", 0, 2), max_wait_ms=700), 12)
    cluster.advance(700)
    client.ask(fetch(("t", 0, 4), max_wait_ms=700), 12)
    tables = rows_of(entries)
    early = patched.row(tables["requests"], lambda row: row["api"] == "Fetch")
    early["handled_ms"] = early["clock_ms"]
    return tables


@right
def fetch_sent_while_muted_behind_a_proxy() -> patched.Rows:
    """Fetch while muted: a client that ignores the throttle time, such as librdkafka, sends at once; the broker reads it after the mute (KIP-219)."""
    cluster = VirtualCluster()
    cluster.topic("t")
    limit(cluster, consumer_byte_rate=1000.0)
    cluster.connect(client_id="w").ask(produce("t", batch_of_bytes(16_000)), 9)
    client = Proxied(cluster)
    client.send(fetch(("t", 0, 0), max_wait_ms=500), 11)
    client.send(fetch(("t", 0, 0), max_wait_ms=500), 11, then_ms=60_000)
    tables = rows_of(client.entries)
    first, second = tables["requests"]
    assert first["throttle_ms"] > 2000 and second["ready_ns"] - second["received_ns"] > 2000 * NS_PER_MS
    return tables


@wrong("13")
def late_response_after_a_mute() -> patched.Rows:
    tables = fetch_sent_while_muted_behind_a_proxy()
    tables["requests"][1]["ready_ns"] += 1501 * NS_PER_MS
    return tables


# ---- logs that replace others -------------------------------------------------------------------------------------------------


@right
def topic_created_again_behind_a_proxy() -> patched.Rows:
    """Create a topic again under its name: the second log need not contain the records of the first one (KIP-516)."""
    cluster = VirtualCluster()
    client = Proxied(cluster)
    for records in (3, 2):
        cluster.topic("t")
        by_id = {"topic_ids": {"": cluster.state.controller.image.topics["t"].topic_id}, "version": 13}
        client.send(metadata(["t"]), 12)
        if records == 2:
            client.send(fetch(("", 0, 3), **by_id), 13)
        for number in range(records):
            client.send(produce("t", batch(b"%d of %d" % (number, records)), acks=-1), 9)
        client.send(fetch(("", 0, 0), **by_id), 13)
        cluster.state.controller.delete_topic("t")
        cluster.advance(10)
    tables = rows_of(client.entries)
    assert [row["error"] for row in tables["partitions"]] == [0, 0, 0, 0, 1, 0, 0, 0]
    assert {row["topic"] for row in tables["partitions"]} == {"t"}
    return tables


def reported_earlier(row: dict[str, Any], high_watermark: int, before_ms: int) -> dict[str, Any]:
    """Return a copy of a response with another high watermark, requested and sent `before_ms` earlier."""
    request_ns = row["begun_ns"] - before_ms * NS_PER_MS
    return row | {"high_watermark": high_watermark, "begun_ns": request_ns, "ready_ns": request_ns + 1}


@wrong("10")
def watermark_falls_in_the_earlier_log() -> patched.Rows:
    tables = topic_created_again_behind_a_proxy()
    last = patched.row(tables["partitions"], lambda row: row["high_watermark"] == 3)
    tables["partitions"] += [reported_earlier(last, 3, 6), reported_earlier(last, 2, 3)]
    return tables


@wrong("10")
def watermark_falls_in_the_later_log() -> patched.Rows:
    tables = topic_created_again_behind_a_proxy()
    last = tables["partitions"][-1]
    tables["partitions"] += [reported_earlier(last, 3, 6), reported_earlier(last, 3, 3)]
    return tables


# ---- one log, seen in several responses ---------------------------------------------------------------------------------------


def idempotent_batch(sequence: int, records: int = 1, producer: int = 7, at_ms: int = EPOCH_MS) -> Any:
    """Return a batch of an idempotent producer."""
    new_records = [NewRecord(b"x", None, at_ms)] * records
    return produce(
        "t", build_batch(new_records, producer_id=producer, producer_epoch=0, base_sequence=sequence), acks=-1
    )


def fetches_of_successive_logs(*lives: tuple[int, ...]) -> patched.Rows:
    """Return the fetched batches of several logs, each of which replaces the one before. Each batch is in its own response."""
    cluster = VirtualCluster()
    client = Proxied(cluster)
    for sequences in lives:
        cluster.topic("t")
        client.send(metadata(["t"]), 12)
        by_id = {"topic_ids": {"": cluster.state.controller.image.topics["t"].topic_id}, "version": 13}
        for offset, sequence in enumerate(sequences):
            client.send(idempotent_batch(sequence), 9)
            client.send(fetch(("", 0, offset), **by_id), 13)
        cluster.state.controller.delete_topic("t")
        cluster.advance(10)
    tables = rows_of(client.entries)
    assert [row["base_sequence"] for row in fetched_batches(tables)] == [
        base_sequence for life in lives for base_sequence in life
    ]
    return tables


def fetched_batches(tables: patched.Rows) -> list[dict[str, Any]]:
    return [row for row in tables["batches"] if row["api"] == "Fetch"]


@right
def sequence_continues_in_the_next_log() -> patched.Rows:
    """Continue a producer's sequence in a new log: a log accepts any sequence of an unknown producer (KIP-98)."""
    return fetches_of_successive_logs((0, 1, 2), (3, 4, 5))


@wrong("15")
def sequence_gap_between_responses() -> patched.Rows:
    tables = fetches_of_successive_logs((0, 1, 2))
    fetched_batches(tables)[2]["base_sequence"] = 3
    return tables


@wrong("15")
def sequence_gap_in_a_log_that_begins_like_the_previous() -> patched.Rows:
    tables = fetches_of_successive_logs((0, 1), (0, 1, 2))
    fetched_batches(tables)[-1]["base_sequence"] = 3
    return tables


@right
def sparse_reads_after_a_completely_read_log() -> patched.Rows:
    cluster = VirtualCluster()
    entries = recorded(cluster)
    client = cluster.connect()
    for read in ((0, 1, 2, 3, 4), (0, 4)):
        cluster.topic("t")
        for number in range(5):
            client.ask(idempotent_batch(number, producer=len(read)), 9)
        for offset in read:
            client.ask(fetch(("t", 0, offset), partition_max=1), 12)
            cluster.advance(10)
        cluster.state.controller.delete_topic("t")
        cluster.advance(10)
    tables = rows_of(entries)
    assert [row["base_offset"] for row in fetched_batches(tables)] == [0, 1, 2, 3, 4, 0, 4]
    return tables


@right
def old_consumer_reads_some_batches() -> patched.Rows:
    """Read some batches with an old consumer, whose converted records lack the producer (KIP-31)."""
    cluster = VirtualCluster()
    entries = recorded(cluster)
    cluster.topic("t")
    client = cluster.connect()
    for number in range(3):
        client.ask(idempotent_batch(2 * number, records=2), 9)
    client.ask(fetch(("t", 0, 0), partition_max=1), 12)
    client.ask(fetch(("t", 0, 2), partition_max=80), 3)
    client.ask(fetch(("t", 0, 4)), 12)
    tables = rows_of(entries)
    assert [row["producer_id"] for row in fetched_batches(tables)] == [7, -1, -1, 7]
    return tables


@wrong("15")
def sequence_gap_after_reads_of_an_old_consumer() -> patched.Rows:
    tables = old_consumer_reads_some_batches()
    middle, last = fetched_batches(tables)[1], fetched_batches(tables)[-1]
    fetched_batches(tables)[0]["last_offset"] = 3
    middle["last_offset"] = middle["base_offset"]
    last["base_sequence"] = 6
    return tables


@right
def sequence_restarts_after_producer_expiration() -> patched.Rows:
    cluster = VirtualCluster(
        1, {"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "500"}
    )
    entries = recorded(cluster)
    cluster.topic("t")
    client = cluster.connect()
    for offset, sequence in enumerate((0, 1, 0)):
        cluster.advance(5000 if offset == 2 else 10)
        client.ask(idempotent_batch(sequence, at_ms=cluster.now_ms), 9)
        client.ask(fetch(("t", 0, offset)), 12)
    tables = rows_of(entries)
    assert [row["base_sequence"] for row in fetched_batches(tables)] == [0, 1, 0]
    return tables


@right
def response_held_while_its_topic_is_recreated() -> patched.Rows:
    """Hold a response back while its topic is created again (KIP-219).

    Before 2.0 a delayed response contains its records, which belong to the old log.
    """
    cluster = VirtualCluster(release_name="1.1")
    entries = recorded(cluster)
    cluster.topic("t")
    writer, other, delayed = (cluster.connect(client_id=name) for name in ("w", "r", "held"))
    writer.ask(idempotent_batch(0), 3)
    writer.ask(idempotent_batch(1), 3)
    writer.ask(produce("t", batch_of_bytes(8000), acks=-1), 3)
    limit(cluster, client_id="held", consumer_byte_rate=1000.0)
    for offset in (2, 0):
        delayed.send(fetch(("t", 0, offset), version=6), 6)
        cluster.advance(1)
    cluster.state.controller.delete_topic("t")
    cluster.advance(10)
    cluster.topic("t")
    for sequence, producer in ((0, 9), (1, 9), (0, 7)):
        writer.ask(idempotent_batch(sequence, producer=producer), 3)
    cluster.advance(60_000)
    other.send(fetch(("t", 0, 2), version=6), 6)
    cluster.advance(60_000)
    tables = rows_of(entries)
    assert [row["held"] for row in tables["requests"] if row["api"] == "Fetch"] == [True] * 3
    return tables


@right
def leader_epochs_restart_in_the_next_log() -> patched.Rows:
    tables = fetches_of_successive_logs((0, 1), (2, 3))
    for row in fetched_batches(tables)[:2]:
        row["epoch"] = 1
    return tables


@right
def uncommitted_batch_replaced_after_replication() -> patched.Rows:
    """Copy records above the high watermark before an unclean election removes them; a capture does not show the election."""
    tables = fetches_of_successive_logs((0, 1, 2))
    first, *_, last = fetched_batches(tables)
    copied = [
        batch_row | {"seq": 1000 + number, "epoch": 1, "base_sequence": 7}
        for number, batch_row in enumerate((first, last))
    ]
    tables["batches"] += copied
    read = patched.row(tables["requests"], lambda row: row["seq"] == first["seq"])
    tables["requests"] += [
        read | {"seq": batch_row["seq"], "conn": 7, "correlation_id": batch_row["seq"], "replica_id": 1}
        for batch_row in copied
    ]
    return tables


@wrong("10-epoch")
def leader_epoch_falls_between_responses() -> patched.Rows:
    tables = fetches_of_successive_logs((0, 1, 2))
    fetched_batches(tables)[1]["epoch"] = 1
    return tables


# ---- high watermarks that fall while fetches wait ------------------------------------------------------------------------------


def reported_watermarks(*answers: tuple[int, int, int, int]) -> patched.Rows:
    """Return the rows of responses, given as connection, times of request and response, and reported high watermark."""
    tables: patched.Rows = {table: [] for table in TABLES}
    for seq, (conn, begun_ns, ready_ns, watermark) in enumerate(answers, 1):
        request_fields = {
            "seq": seq,
            "api": "Fetch",
            "broker": 0,
            "topic": "t",
            "partition": 0,
            "error": 0,
            "log_start": 0,
        }
        fields = {"conn": conn, "begun_ns": begun_ns, "ready_ns": ready_ns}
        tables["partitions"].append(
            blank("partitions", **request_fields, **fields, high_watermark=watermark, last_stable_offset=watermark)
        )
    return tables


@right
def parked_while_the_watermark_moved() -> patched.Rows:
    """Wait while the high watermark moves: each reported value was correct at some time during the wait."""
    return reported_watermarks((1, 0, 10, 100), (2, 5, 20, 90), (3, 9, 30, 80))


@wrong("10")
def watermark_falls_after_a_parked_fetch() -> patched.Rows:
    return reported_watermarks((1, 0, 10, 100), (2, 5, 20, 90), (1, 25, 30, 90))


@right
def watermark_truncated_and_growing_again() -> patched.Rows:
    tables = reported_watermarks((1, 0, 10, 100), (1, 20, 30, 90), (1, 40, 50, 95))
    tables["events"] = [blank("events", seq=1, at_ns=15, broker=-1, kind="leader", facts='{"topic":"t","partition":0}')]
    return tables


@wrong("10")
def watermark_falls_again_after_a_truncation() -> patched.Rows:
    tables = watermark_truncated_and_growing_again()
    tables["partitions"][2]["high_watermark"] = tables["partitions"][2]["last_stable_offset"] = 80
    return tables


# ---- offset lookups by time ---------------------------------------------------------------------------------------------------


def at_second(number: int) -> ListOffsetsRequest:
    return ListOffsetsRequest(-1, 0, [ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, EPOCH_MS + 1000 * number)])])


def seconds(cluster: VirtualCluster, ask: Callable[[Any, int], Any], number: int = 5) -> None:
    """Write one record per second, all with one key, and read each."""
    cluster.topic("t", cleanup_policy="compact", segment_bytes="130", min_cleanable_dirty_ratio="0.01")
    for second in range(number):
        record = NewRecord(b"x" * 40, b"k", EPOCH_MS + 1000 * second)
        ask(produce("t", build_batch([record])), 9)
    for second in range(number):
        ask(fetch(("t", 0, second)), 11)


def compacted(cluster: VirtualCluster, ask: Callable[[Any, int], Any]) -> None:
    seconds(cluster, ask)
    cluster.state.log_manager.compaction.clean("t", 0, cluster.now_ms + 1_000_000)
    ask(at_second(1), 5)


def lookup_rows(tables: patched.Rows, *offsets: int) -> patched.Rows:
    looked = [row for row in tables["partitions"] if row["api"] == "ListOffsets"]
    assert [row["base_offset"] for row in looked] == list(offsets)
    return tables


@right
def lookup_after_compacted_records() -> patched.Rows:
    cluster = VirtualCluster()
    entries = recorded(cluster)
    compacted(cluster, cluster.connect().ask)
    return lookup_rows(rows_of(entries), 3)


@right
def lookup_after_compacted_records_behind_a_proxy() -> patched.Rows:
    cluster = VirtualCluster()
    client = Proxied(cluster)
    compacted(cluster, client.send)
    return lookup_rows(rows_of(client.entries), 3)


@wrong("16-time")
def lookup_too_far_with_unknown_cleanup_policy() -> patched.Rows:
    cluster = VirtualCluster()
    client = Proxied(cluster)
    seconds(cluster, client.send)
    client.send(at_second(2), 5)
    client.send(fetch(("t", 0, 2)), 11)
    tables = lookup_rows(rows_of(client.entries), 2)
    looked = patched.row(tables["partitions"], lambda row: row["api"] == "ListOffsets")
    looked |= {"base_offset": 3, "returned_timestamp": EPOCH_MS + 3000}
    return tables


# ---- versions ----------------------------------------------------------------------------------------------------------------


UNKNOWN_VERSION = "API key 18 has no v9, only ApiVersions v0 to v4"
"""The problem of the row of a request whose body cannot be decoded."""


def request_in_version_9(api_key: int, api: str, error: int | None, **fields: Any) -> patched.Rows:
    """Request version 9 of an API from a broker that supports versions up to 4."""
    tables: patched.Rows = {table: [] for table in TABLES}
    tables["requests"] = [fetched(**{"api_key": int(api_key), "api": api, "api_version": 9, "error": error} | fields)]
    facts = json.dumps({"advertised": {"3": [0, 4], "18": [0, 4]}})
    tables["events"] = [blank("events", seq=0, at_ns=0, broker=-1, kind="meta", facts=facts)]
    return tables


@right
def api_versions_request_in_unsupported_version() -> patched.Rows:
    return request_in_version_9(ApiKey.API_VERSIONS, "ApiVersions", int(ErrorCode.UNSUPPORTED_VERSION))


@right
def api_versions_request_in_undecodable_version() -> patched.Rows:
    error = int(ErrorCode.UNSUPPORTED_VERSION)
    return request_in_version_9(ApiKey.API_VERSIONS, "ApiVersions", error, problem=UNKNOWN_VERSION, partial=False)


@right
def api_versions_request_in_undecodable_version_of_a_killed_client() -> patched.Rows:
    fields = {"problem": UNANSWERED, "partial": True, "has_response": False}
    return request_in_version_9(ApiKey.API_VERSIONS, "ApiVersions", None, **fields)


@right
def api_versions_request_in_undecodable_version_behind_a_proxy() -> patched.Rows:
    """Send version 5 of ApiVersions (KIP-1242), which Kafka 4.2 does not support, and then version 4, as franz-go 1.22.2 does."""
    cluster = VirtualCluster()
    client = Proxied(cluster)
    request = struct.pack(">hhih1sB", ApiKey.API_VERSIONS, 5, 0, 1, b"c", 0)
    body = b"\x04kgo\x08v1.22.2\0" + struct.pack(">iB", -1, 0)
    client.send_frame(struct.pack(">i", len(request + body)) + request + body)
    client.send(ApiVersionsRequest("kgo", "v1.22.2"), 4)
    tables = rows_of([meta_event(cluster), *client.entries])
    assert [(row["api_version"], row["error"]) for row in tables["requests"]] == [(5, 35), (4, 0)]
    assert tables["requests"][0]["problem"]
    return tables


@wrong("7")
def api_versions_response_that_cannot_be_decoded() -> patched.Rows:
    return request_in_version_9(ApiKey.API_VERSIONS, "ApiVersions", None, problem=UNKNOWN_VERSION, partial=False)


@wrong("7")
def api_versions_request_in_supported_version_that_cannot_be_decoded() -> patched.Rows:
    fields = {"api_version": 4, "problem": "string length -7", "partial": False}
    return request_in_version_9(ApiKey.API_VERSIONS, "ApiVersions", int(ErrorCode.UNSUPPORTED_VERSION), **fields)


@wrong("7")
def api_versions_response_in_unsupported_version() -> patched.Rows:
    return request_in_version_9(ApiKey.API_VERSIONS, "ApiVersions", int(ErrorCode.NONE))


@wrong("7")
def metadata_request_in_unsupported_version() -> patched.Rows:
    return request_in_version_9(ApiKey.METADATA, "Metadata", int(ErrorCode.UNSUPPORTED_VERSION))


# ---- numbers that a client may send ------------------------------------------------------------------------------------------


@right
def largest_possible_max_wait() -> patched.Rows:
    tables: patched.Rows = {table: [] for table in TABLES}
    tables["requests"] = [
        fetched(max_wait_ms=INT32_MAX, min_bytes=INT32_MAX, max_bytes=INT32_MAX, received_ns=1, ready_ns=10**10),
        fetched(
            seq=2,
            received_ns=10**10,
            ready_ns=10**10 + 1,
            max_wait_ms=INT32_MIN,
            min_bytes=INT32_MIN,
            max_bytes=INT32_MIN,
            session_epoch=INT32_MIN,
        ),
    ]
    return tables


@wrong("4")
def throttle_from_an_infinite_quota() -> patched.Rows:
    """Report throttle times for quotas of zero, nearly zero and infinity."""
    quota: dict[str, Any] = {"throttle_quota": "Fetch", "held": False, "quota_rate": 1e300, "quota_window_ms": 10_000}
    tables: patched.Rows = {table: [] for table in TABLES}
    tables["requests"] = [
        fetched(**quota, quota_bound=0.0, applied_throttle_ms=INT32_MAX, throttle_ms=INT32_MIN),
        fetched(**quota, seq=2, quota_bound=1e-300, applied_throttle_ms=INT32_MAX, throttle_ms=INT32_MAX),
        fetched(**quota, seq=3, quota_bound=1e290, applied_throttle_ms=INT32_MAX, throttle_ms=INT32_MAX),
        fetched(seq=4, ready_ns=5, records_bytes=9, first_batch_bytes=9, max_bytes=INT32_MAX, max_wait_ms=INT32_MAX),
    ]
    settings = {"quota.window.num": "11", "quota.window.size.seconds": "1", "fetch.max.bytes": "everything"}
    facts = json.dumps({"brokers": [{"id": 0, "settings": settings}]})
    tables["events"] = [blank("events", seq=0, at_ns=0, broker=-1, kind="meta", facts=facts)]
    return tables


@wrong("17")
def session_epoch_out_of_range() -> patched.Rows:
    tables: patched.Rows = {table: [] for table in TABLES}
    step = {"session_id": 5, "returned_session_id": 5, "session_expected": 7, "session_epoch": INT32_MIN}
    tables["requests"] = [fetched(**step, max_wait_ms=0)]
    return tables


@wrong("12")
def fetch_from_an_impossible_offset() -> patched.Rows:
    tables: patched.Rows = {table: [] for table in TABLES}
    fetch_fields = {"seq": 1, "api": "Fetch", "topic": "t", "partition": 0, "begun_ns": 1, "ready_ns": 2, "error": 0}
    for offset in (-(2**63), 2**63 - 1):
        offsets = {"requested_offset": offset, "base_offset": 0, "next_offset": 5}
        tables["partitions"].append(blank("partitions", **fetch_fields, **offsets))
    return tables


# ---- transactions ------------------------------------------------------------------------------------------------------------

DATA, MARKER = False, True


def committed_reads(*answers: tuple[str | None, list[tuple[int, int, bool]]]) -> patched.Rows:
    """Return fetches of a partition with batches of producer 7.

    answers: the aborted transactions, and (first offset, last offset, is marker) of each batch.
    """
    tables: patched.Rows = {table: [] for table in TABLES}
    for seq, (aborted, batches) in enumerate(answers, 1):
        fields = {"seq": seq, "api": "Fetch", "topic": "t", "partition": 0, "begun_ns": seq, "ready_ns": seq}
        ends = {"requested_offset": batches[0][0], "next_offset": batches[-1][1] + 1}
        tables["partitions"].append(
            blank("partitions", **fields, **ends, isolation=1, replica_id=-1, error=0, aborted=aborted)
        )
        for position, (base, last, control) in enumerate(batches):
            offsets = {"position": position, "base_offset": base, "last_offset": last, "count": last - base + 1}
            tables["batches"].append(
                blank("batches", **fields, **offsets, producer_id=7, control=control, transactional=True)
            )
    return tables


@right
def transaction_without_a_fetched_marker() -> patched.Rows:
    """Omit the marker of the transaction aborted at 10; the one at 60 is another transaction."""
    return committed_reads(("[[7,0]]", [(0, 4, DATA), (5, 9, DATA)]), (None, [(60, 60, DATA), (61, 61, MARKER)]))


@right
def transaction_with_a_marker_fetched_by_another_client() -> patched.Rows:
    return committed_reads(
        ("[[7,0]]", [(0, 4, DATA), (5, 9, DATA)]),
        (None, [(10, 10, MARKER), (11, 59, DATA), (60, 60, MARKER), (61, 61, DATA), (62, 62, MARKER)]),
    )


@wrong("11-aborted")
def aborted_transaction_reported_to_one_of_two_readers() -> patched.Rows:
    return committed_reads(("[[7,0]]", [(0, 4, DATA), (5, 9, DATA)]), (None, [(5, 9, DATA), (10, 10, MARKER)]))


# ---- the audit of all runs ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def audited(spark: Any) -> Iterator[BrokenRules]:
    """Audit all cases at once, each in its own run."""
    tables: patched.Rows = {table: [] for table in TABLES}
    for scene in [*RIGHT, *WRONG]:
        for table, table_rows in scene().items():
            tables[table] += [row | {"run": scene.__name__} for row in table_rows]
    frames = [
        spark.createDataFrame([tuple(row[c.name] for c in TABLES[table]) for row in table_rows], ddl(table))
        .coalesce(2)
        .cache()
        for table, table_rows in tables.items()
    ]  # fmt: skip
    audited = Tables(*frames)
    broken: BrokenRules = {scene.__name__: {} for scene in [*RIGHT, *WRONG]}
    for rule in RULES:
        counts = rule.check(audited).groupBy("run").agg({"broken": "count_if", "excess": "max"})
        for run, rows, _ in counts.select("run", "count_if(broken)", "max(excess)").collect():
            if rows:
                broken[run][rule.number] = rows
    yield broken
    for frame in frames:
        frame.unpersist()


@pytest.mark.parametrize("scene", RIGHT, ids=lambda scene: scene.__name__)
def test_audit_reports_no_fault_for_correct_behaviour_that_resembles_a_fault(
    audited: BrokenRules, scene: Scene
) -> None:
    assert audited[scene.__name__] == {}


@pytest.mark.parametrize("scene", WRONG, ids=lambda scene: scene.__name__)
def test_audit_reports_the_single_faulty_row_of_each_trace_that_looks_almost_correct(
    audited: BrokenRules, scene: Scene
) -> None:
    assert audited[scene.__name__].get(WRONG[scene]) == 1
