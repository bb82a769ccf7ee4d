"""What a broker that is right does and looks like a fault is no finding; what it looks like is one. Each is a run of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker.proxy.connection import ProxyConnection
from kafkaproto.broker.server.tracing import meta_of
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.pipeline.trace.audit.rule import Tables
from kafkaproto.pipeline.trace.audit.rules import RULES
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.schema import TABLES, ddl
from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.trace.format import Entry, Event
from tests.support.pipeline import patched
from tests.support.recording import recorder_into
from tests.support.scene import lagging
from tests.support.wire import batch, batch_of_bytes, fetch, limit, metadata, produce

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # py4j leaves its sockets to the collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]
EPOCH_MS = 1_700_000_000_000
NS_PER_MS = 1_000_000
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
Scene = Callable[[], patched.Rows]
Found = dict[str, dict[str, int]]
"""Of each run how many rows break each rule, where any do."""
RIGHT: list[Scene] = []
WRONG: dict[Scene, str] = {}
"""To the rule that has to find it."""


def right(scene: Scene) -> Scene:
    RIGHT.append(scene)
    return scene


def wrong(rule: str) -> Callable[[Scene], Scene]:
    def note(scene: Scene) -> Scene:
        WRONG[scene] = rule
        return scene

    return note


# ---- who records -------------------------------------------------------------------------------------------------------------


def rows_of(entries: list[Entry]) -> patched.Rows:
    made = Rows("", EPOCH_MS, 0)
    found: patched.Rows = {table: [] for table in TABLES}
    for entry in entries:
        for table, row in made.of(entry):
            found[table].append(row)
    return found


def blank(table: str, **told: Any) -> dict[str, Any]:
    """A row of which only this is known."""
    return dict.fromkeys(column.name for column in TABLES[table]) | {"run": ""} | told


def fetched(**told: Any) -> dict[str, Any]:
    """A request of a Fetch as a proxy sees it."""
    times = {"received_ns": 1, "ready_ns": 2, "error": 0, "throttle_ms": 0, "records_bytes": 0, "replica_id": -1}
    of = {"seq": 1, "conn": 1, "broker": 0, "api": "Fetch", "api_version": 12, "client_id": "c", "answered": True}
    return blank("requests") | times | of | told


def recorded(cluster: VirtualCluster) -> list[Entry]:
    """What the cluster does from now on, as it records it."""
    entries: list[Entry] = [Event("meta", {**meta_of(cluster.state), "wall_ms": EPOCH_MS, "seq": 0, "broker": -1})]
    cluster.state.record(recorder_into(entries))
    return entries


class Proxied:
    """A client's connection as a proxy sees it: it knows when requests and answers pass, and nothing of what the broker does."""

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
        self._relay.answered(b"".join(bytes(one) for one in buffers), self._now_ns() + 1)
        return True

    def _now_ns(self) -> int:
        return self._cluster.now_ms * NS_PER_MS

    def send(self, request: Any, version: int, then_ms: int = 10) -> None:
        """then_ms: how much time passes behind it."""
        data, _ = self._relay.requested(self._client.frame(request, version), self._now_ns())
        self._client.send_bytes(data)
        self._cluster.advance(then_ms)


# ---- fetches that need not wait, or cannot -----------------------------------------------------------------------------------


@right
def reads_above_the_high_watermark() -> patched.Rows:
    """F-17, D1: what is written there is not to be seen yet; nobody waits for it."""
    cluster = lagging("kafka")
    entries = recorded(cluster)
    client = cluster.connect(0)
    client.ask(fetch(("t", 0, 4), max_wait_ms=700), 12)
    client.ask(fetch(("t", 0, 4), max_wait_ms=700, isolation=1), 12)
    step = client.ask(fetch(("t", 0, 4), max_wait_ms=700, session=(0, 0)), 12)
    client.ask(fetch(max_wait_ms=700, session=(step.session_id, 1)), 12)
    made = rows_of(entries)
    assert [row["ready_ns"] - row["handled_ns"] < 600 * NS_PER_MS for row in made["requests"]] == [True] * 4
    assert not any(row["error"] for row in made["requests"])
    return made


@wrong("13 early")
def answered_early_at_the_high_watermark() -> patched.Rows:
    cluster = lagging("kafka")
    entries = recorded(cluster)
    client = cluster.connect(0)
    client.send(fetch(("t", 0, 2), max_wait_ms=700), 12)
    cluster.advance(700)
    client.ask(fetch(("t", 0, 4), max_wait_ms=700), 12)
    made = rows_of(entries)
    early = patched.row(made["requests"], lambda row: row["api"] == "Fetch")
    early["handled_ms"] = early["clock_ms"]
    return made


@right
def reads_on_while_muted_behind_a_proxy() -> patched.Rows:
    """KIP-219: a client that does not wait by itself, as librdkafka, sends its next fetch; the broker reads it when the mute is over."""
    cluster = VirtualCluster()
    cluster.topic("t")
    limit(cluster, consumer_byte_rate=1000.0)
    cluster.connect(client_id="w").ask(produce("t", batch_of_bytes(16_000)), 9)
    client = Proxied(cluster)
    client.send(fetch(("t", 0, 0), max_wait_ms=500), 11)
    client.send(fetch(("t", 0, 0), max_wait_ms=500), 11, then_ms=60_000)
    made = rows_of(client.entries)
    first, second = made["requests"]
    assert first["throttle_ms"] > 2000 and second["ready_ns"] - second["received_ns"] > 2000 * NS_PER_MS
    return made


@wrong("13")
def answered_late_behind_a_mute() -> patched.Rows:
    made = reads_on_while_muted_behind_a_proxy()
    made["requests"][1]["ready_ns"] += 1501 * NS_PER_MS
    return made


# ---- logs that others take the place of ---------------------------------------------------------------------------------------


@right
def made_again_behind_a_proxy() -> patched.Rows:
    """KIP-516: one name, two ids. What the first log had, the second need not have."""
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
    made = rows_of(client.entries)
    assert [row["error"] for row in made["partitions"]] == [0, 0, 0, 0, 1, 0, 0, 0]
    assert {row["topic"] for row in made["partitions"]} == {"t"}
    return made


def told_before(row: dict[str, Any], high_watermark: int, before_ms: int) -> dict[str, Any]:
    """An answer like another that was asked for and given so long before."""
    asked_ns = row["begun_ns"] - before_ms * NS_PER_MS
    return row | {"high_watermark": high_watermark, "begun_ns": asked_ns, "ready_ns": asked_ns + 1}


@wrong("10")
def falls_in_the_life_before() -> patched.Rows:
    made = made_again_behind_a_proxy()
    last = patched.row(made["partitions"], lambda row: row["high_watermark"] == 3)
    made["partitions"] += [told_before(last, 3, 6), told_before(last, 2, 3)]
    return made


@wrong("10")
def falls_in_the_life_behind() -> patched.Rows:
    made = made_again_behind_a_proxy()
    last = made["partitions"][-1]
    made["partitions"] += [told_before(last, 3, 6), told_before(last, 3, 3)]
    return made


# ---- what one log has, in whichever answers ------------------------------------------------------------------------------------


def numbered(sequence: int, records: int = 1, producer: int = 7, at_ms: int = EPOCH_MS) -> Any:
    """What an idempotent producer writes."""
    some = [NewRecord(b"x", None, at_ms)] * records
    return produce("t", build_batch(some, producer_id=producer, producer_epoch=0, base_sequence=sequence), acks=-1)


def read_of_lives(*lives: tuple[int, ...]) -> patched.Rows:
    """Each of a log that comes in the place of the one before. Each batch is in an answer of its own."""
    cluster = VirtualCluster()
    client = Proxied(cluster)
    for sequences in lives:
        cluster.topic("t")
        client.send(metadata(["t"]), 12)
        by_id = {"topic_ids": {"": cluster.state.controller.image.topics["t"].topic_id}, "version": 13}
        for offset, sequence in enumerate(sequences):
            client.send(numbered(sequence), 9)
            client.send(fetch(("", 0, offset), **by_id), 13)
        cluster.state.controller.delete_topic("t")
        cluster.advance(10)
    made = rows_of(client.entries)
    assert [row["base_sequence"] for row in fetched_batches(made)] == [one for life in lives for one in life]
    return made


def fetched_batches(made: patched.Rows) -> list[dict[str, Any]]:
    return [row for row in made["batches"] if row["api"] == "Fetch"]


@right
def goes_on_with_its_sequence_in_the_next_life() -> patched.Rows:
    """KIP-98: of a producer that a log does not know any sequence is taken."""
    return read_of_lives((0, 1, 2), (3, 4, 5))


@wrong("15")
def leaves_a_number_out_from_answer_to_answer() -> patched.Rows:
    made = read_of_lives((0, 1, 2))
    fetched_batches(made)[2]["base_sequence"] = 3
    return made


@wrong("15")
def leaves_a_number_out_in_a_life_that_begins_as_the_one_before() -> patched.Rows:
    made = read_of_lives((0, 1), (0, 1, 2))
    fetched_batches(made)[-1]["base_sequence"] = 3
    return made


@right
def is_read_here_and_there_where_the_log_before_was_read_whole() -> patched.Rows:
    cluster = VirtualCluster()
    entries = recorded(cluster)
    client = cluster.connect()
    for read in ((0, 1, 2, 3, 4), (0, 4)):
        cluster.topic("t")
        for number in range(5):
            client.ask(numbered(number, producer=len(read)), 9)
        for offset in read:
            client.ask(fetch(("t", 0, offset), partition_max=1), 12)
            cluster.advance(10)
        cluster.state.controller.delete_topic("t")
        cluster.advance(10)
    made = rows_of(entries)
    assert [row["base_offset"] for row in fetched_batches(made)] == [0, 1, 2, 3, 4, 0, 4]
    return made


@right
def is_read_by_an_old_consumer_in_the_middle() -> patched.Rows:
    """KIP-31: what it gets is converted, and tells no producer."""
    cluster = VirtualCluster()
    entries = recorded(cluster)
    cluster.topic("t")
    client = cluster.connect()
    for number in range(3):
        client.ask(numbered(2 * number, records=2), 9)
    client.ask(fetch(("t", 0, 0), partition_max=1), 12)
    client.ask(fetch(("t", 0, 2), partition_max=80), 3)
    client.ask(fetch(("t", 0, 4)), 12)
    made = rows_of(entries)
    assert [row["producer_id"] for row in fetched_batches(made)] == [7, -1, -1, 7]
    return made


@wrong("15")
def leaves_numbers_out_behind_what_an_old_consumer_read() -> patched.Rows:
    made = is_read_by_an_old_consumer_in_the_middle()
    middle, last = fetched_batches(made)[1], fetched_batches(made)[-1]
    fetched_batches(made)[0]["last_offset"] = 3
    middle["last_offset"] = middle["base_offset"]
    last["base_sequence"] = 6
    return made


@right
def begins_at_0_again_when_the_log_has_forgotten_it() -> patched.Rows:
    cluster = VirtualCluster(
        1, {"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "500"}
    )
    entries = recorded(cluster)
    cluster.topic("t")
    client = cluster.connect()
    for offset, sequence in enumerate((0, 1, 0)):
        cluster.advance(5000 if offset == 2 else 10)
        client.ask(numbered(sequence, at_ms=cluster.now_ms), 9)
        client.ask(fetch(("t", 0, offset)), 12)
    made = rows_of(entries)
    assert [row["base_sequence"] for row in fetched_batches(made)] == [0, 1, 0]
    return made


@right
def is_held_back_while_its_topic_is_made_again() -> patched.Rows:
    """KIP-219: before 2.0 an answer waits with its records; what is at their offsets then is another log's."""
    cluster = VirtualCluster(release_name="1.1")
    entries = recorded(cluster)
    cluster.topic("t")
    writer, other, held = (cluster.connect(client_id=name) for name in ("w", "r", "held"))
    writer.ask(numbered(0), 3)
    writer.ask(numbered(1), 3)
    writer.ask(produce("t", batch_of_bytes(8000), acks=-1), 3)
    limit(cluster, client_id="held", consumer_byte_rate=1000.0)
    for offset in (2, 0):
        held.send(fetch(("t", 0, offset), version=6), 6)
        cluster.advance(1)
    cluster.state.controller.delete_topic("t")
    cluster.advance(10)
    cluster.topic("t")
    for sequence, producer in ((0, 9), (1, 9), (0, 7)):
        writer.ask(numbered(sequence, producer=producer), 3)
    cluster.advance(60_000)
    other.send(fetch(("t", 0, 2), version=6), 6)
    cluster.advance(60_000)
    made = rows_of(entries)
    assert [row["held"] for row in made["requests"] if row["api"] == "Fetch"] == [True] * 3
    return made


@right
def begins_anew_with_leader_epochs_in_the_next_life() -> patched.Rows:
    made = read_of_lives((0, 1), (2, 3))
    for row in fetched_batches(made)[:2]:
        row["epoch"] = 1
    return made


@right
def is_copied_by_a_follower_before_others_take_its_place() -> patched.Rows:
    """Of what is above the high watermark an unclean election leaves nothing; a capture tells of no election."""
    made = read_of_lives((0, 1, 2))
    first, *_, last = fetched_batches(made)
    copied = [one | {"seq": 1000 + number, "epoch": 1, "base_sequence": 7} for number, one in enumerate((first, last))]
    made["batches"] += copied
    read = patched.row(made["requests"], lambda row: row["seq"] == first["seq"])
    made["requests"] += [
        read | {"seq": one["seq"], "conn": 7, "correlation_id": one["seq"], "replica_id": 1} for one in copied
    ]
    return made


@wrong("10 epoch")
def falls_to_an_older_leader_from_answer_to_answer() -> patched.Rows:
    made = read_of_lives((0, 1, 2))
    fetched_batches(made)[1]["epoch"] = 1
    return made


# ---- watermarks that fall while others wait -----------------------------------------------------------------------------------


def watermarks_told(*answers: tuple[int, int, int, int]) -> patched.Rows:
    """answers: connection, when each came and was answered, and the high watermark that it told."""
    made: patched.Rows = {table: [] for table in TABLES}
    for seq, (conn, begun_ns, ready_ns, told) in enumerate(answers, 1):
        of = {"seq": seq, "api": "Fetch", "broker": 0, "topic": "t", "partition": 0, "error": 0, "log_start": 0}
        asked = {"conn": conn, "begun_ns": begun_ns, "ready_ns": ready_ns}
        made["partitions"].append(blank("partitions", **of, **asked, high_watermark=told, last_stable_offset=told))
    return made


@right
def waited_while_the_watermark_moved() -> patched.Rows:
    """What they are told was so at some time while they waited."""
    return watermarks_told((1, 0, 10, 100), (2, 5, 20, 90), (3, 9, 30, 80))


@wrong("10")
def watermark_falls_behind_one_who_waited() -> patched.Rows:
    return watermarks_told((1, 0, 10, 100), (2, 5, 20, 90), (1, 25, 30, 90))


@right
def watermark_that_was_cut_and_grows_again() -> patched.Rows:
    made = watermarks_told((1, 0, 10, 100), (1, 20, 30, 90), (1, 40, 50, 95))
    made["events"] = [blank("events", seq=1, at_ns=15, broker=-1, kind="leader", facts='{"topic":"t","partition":0}')]
    return made


@wrong("10")
def watermark_falls_again_behind_a_cut() -> patched.Rows:
    made = watermark_that_was_cut_and_grows_again()
    made["partitions"][2]["high_watermark"] = made["partitions"][2]["last_stable_offset"] = 80
    return made


# ---- look-ups of times -------------------------------------------------------------------------------------------------------


def at_second(number: int) -> ListOffsetsRequest:
    return ListOffsetsRequest(-1, 0, [ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, EPOCH_MS + 1000 * number)])])


def seconds(cluster: VirtualCluster, ask: Callable[[Any, int], Any], number: int = 5) -> None:
    """One record a second, all of one key, each read."""
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


def of_look_ups(made: patched.Rows, *found: int) -> patched.Rows:
    looked = [row for row in made["partitions"] if row["api"] == "ListOffsets"]
    assert [row["base_offset"] for row in looked] == list(found)
    return made


@right
def looked_up_behind_what_was_compacted() -> patched.Rows:
    cluster = VirtualCluster()
    entries = recorded(cluster)
    compacted(cluster, cluster.connect().ask)
    return of_look_ups(rows_of(entries), 3)


@right
def looked_up_behind_what_was_compacted_as_a_proxy_sees_it() -> patched.Rows:
    cluster = VirtualCluster()
    client = Proxied(cluster)
    compacted(cluster, client.send)
    return of_look_ups(rows_of(client.entries), 3)


@wrong("16 time")
def looked_up_too_far_where_nobody_told_of_policies() -> patched.Rows:
    cluster = VirtualCluster()
    client = Proxied(cluster)
    seconds(cluster, client.send)
    client.send(at_second(2), 5)
    client.send(fetch(("t", 0, 2)), 11)
    made = of_look_ups(rows_of(client.entries), 2)
    looked = patched.row(made["partitions"], lambda row: row["api"] == "ListOffsets")
    looked |= {"base_offset": 3, "answered_timestamp": EPOCH_MS + 3000}
    return made


# ---- versions ----------------------------------------------------------------------------------------------------------------


def asks_in_version_9(api_key: int, api: str, error: int) -> patched.Rows:
    """Of a broker that has none above 4."""
    made: patched.Rows = {table: [] for table in TABLES}
    made["requests"] = [fetched(api_key=int(api_key), api=api, api_version=9, error=int(error))]
    facts = json.dumps({"advertised": {"3": [0, 4], "18": [0, 4]}})
    made["events"] = [blank("events", seq=0, at_ns=0, broker=-1, kind="meta", facts=facts)]
    return made


@right
def asks_which_versions_there_are_in_one_that_is_too_new() -> patched.Rows:
    return asks_in_version_9(ApiKey.API_VERSIONS, "ApiVersions", ErrorCode.UNSUPPORTED_VERSION)


@wrong("7")
def is_told_versions_in_one_that_is_too_new() -> patched.Rows:
    return asks_in_version_9(ApiKey.API_VERSIONS, "ApiVersions", ErrorCode.NONE)


@wrong("7")
def asks_who_is_where_in_one_that_is_too_new() -> patched.Rows:
    return asks_in_version_9(ApiKey.METADATA, "Metadata", ErrorCode.UNSUPPORTED_VERSION)


# ---- numbers that a client may send ------------------------------------------------------------------------------------------


@right
def waits_as_long_as_a_number_can_say() -> patched.Rows:
    made: patched.Rows = {table: [] for table in TABLES}
    made["requests"] = [
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
    return made


@wrong("4")
def told_of_a_throttle_that_no_number_can_say() -> patched.Rows:
    """With quotas that divide by nothing, by nearly nothing, or bound nothing."""
    quota: dict[str, Any] = {"throttle_quota": "Fetch", "held": False, "quota_rate": 1e300, "quota_window_ms": 10_000}
    made: patched.Rows = {table: [] for table in TABLES}
    made["requests"] = [
        fetched(**quota, quota_bound=0.0, decided_ms=INT32_MAX, throttle_ms=INT32_MIN),
        fetched(**quota, seq=2, quota_bound=1e-300, decided_ms=INT32_MAX, throttle_ms=INT32_MAX),
        fetched(**quota, seq=3, quota_bound=1e290, decided_ms=INT32_MAX, throttle_ms=INT32_MAX),
        fetched(seq=4, ready_ns=5, records_bytes=9, first_batch_bytes=9, max_bytes=INT32_MAX, max_wait_ms=INT32_MAX),
    ]
    settings = {"quota.window.num": "11", "quota.window.size.seconds": "1", "fetch.max.bytes": "everything"}
    facts = json.dumps({"brokers": [{"id": 0, "settings": settings}]})
    made["events"] = [blank("events", seq=0, at_ns=0, broker=-1, kind="meta", facts=facts)]
    return made


@wrong("17")
def takes_a_step_that_no_number_can_say() -> patched.Rows:
    made: patched.Rows = {table: [] for table in TABLES}
    step = {"session_id": 5, "answered_session_id": 5, "session_expected": 7, "session_epoch": INT32_MIN}
    made["requests"] = [fetched(**step, max_wait_ms=0)]
    return made


@wrong("12")
def reads_from_an_offset_that_no_log_has() -> patched.Rows:
    made: patched.Rows = {table: [] for table in TABLES}
    answer = {"seq": 1, "api": "Fetch", "topic": "t", "partition": 0, "begun_ns": 1, "ready_ns": 2, "error": 0}
    for asked in (-(2**63), 2**63 - 1):
        offsets = {"asked_offset": asked, "base_offset": 0, "next_offset": 5}
        made["partitions"].append(blank("partitions", **answer, **offsets))
    return made


# ---- transactions ------------------------------------------------------------------------------------------------------------

DATA, MARKER = False, True


def committed_reads(*answers: tuple[str | None, list[tuple[int, int, bool]]]) -> patched.Rows:
    """Fetches of one partition with batches of producer 7. answers: what is listed as aborted, and (first, last offset, marker?) of each."""
    made: patched.Rows = {table: [] for table in TABLES}
    for seq, (aborted, batches) in enumerate(answers, 1):
        told = {"seq": seq, "api": "Fetch", "topic": "t", "partition": 0, "begun_ns": seq, "ready_ns": seq}
        ends = {"asked_offset": batches[0][0], "next_offset": batches[-1][1] + 1}
        made["partitions"].append(
            blank("partitions", **told, **ends, isolation=1, replica_id=-1, error=0, aborted=aborted)
        )
        for place, (base, last, control) in enumerate(batches):
            offsets = {"place": place, "base_offset": base, "last_offset": last, "count": last - base + 1}
            made["batches"].append(
                blank("batches", **told, **offsets, producer_id=7, control=control, transactional=True)
            )
    return made


@right
def transaction_whose_marker_nobody_read() -> patched.Rows:
    """It is aborted at 10; the one at 60 is another."""
    return committed_reads(("[[7,0]]", [(0, 4, DATA), (5, 9, DATA)]), (None, [(60, 60, DATA), (61, 61, MARKER)]))


@right
def transaction_whose_marker_was_read_by_another() -> patched.Rows:
    return committed_reads(
        ("[[7,0]]", [(0, 4, DATA), (5, 9, DATA)]),
        (None, [(10, 10, MARKER), (11, 59, DATA), (60, 60, MARKER), (61, 61, DATA), (62, 62, MARKER)]),
    )


@wrong("11 aborted")
def transaction_of_which_two_read_and_one_was_not_told() -> patched.Rows:
    return committed_reads(("[[7,0]]", [(0, 4, DATA), (5, 9, DATA)]), (None, [(5, 9, DATA), (10, 10, MARKER)]))


# ---- the audit of all of them ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found(spark: Any) -> Iterator[Found]:
    """One audit of all, each in a run of its own."""
    tables: patched.Rows = {table: [] for table in TABLES}
    for scene in [*RIGHT, *WRONG]:
        for table, some in scene().items():
            tables[table] += [one | {"run": scene.__name__} for one in some]
    frames = [
        spark.createDataFrame([tuple(one[c.name] for c in TABLES[table]) for one in some], ddl(table)).coalesce(2).cache()
        for table, some in tables.items()
    ]  # fmt: skip
    audited = Tables(*frames)
    broken: Found = {scene.__name__: {} for scene in [*RIGHT, *WRONG]}
    for rule in RULES:
        counts = rule.check(audited).groupBy("run").agg({"broken": "count_if", "excess": "max"})
        for run, rows, _ in counts.select("run", "count_if(broken)", "max(excess)").collect():
            if rows:
                broken[run][rule.number] = rows
    yield broken
    for frame in frames:
        frame.unpersist()


@pytest.mark.parametrize("scene", RIGHT, ids=lambda scene: scene.__name__)
def test_what_is_right_is_no_finding(found: Found, scene: Scene) -> None:
    assert found[scene.__name__] == {}


@pytest.mark.parametrize("scene", WRONG, ids=lambda scene: scene.__name__)
def test_the_fault_beside_it_is_found(found: Found, scene: Scene) -> None:
    assert found[scene.__name__].get(WRONG[scene]) == 1
