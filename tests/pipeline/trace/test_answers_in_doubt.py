"""What trace analyses must not report: quotas not in force, losses that are none, and waiting counted twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.broker.server.tracing import meta_of
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.pipeline.trace import tables as job
from kafkaproto.pipeline.trace.answers import fetch_sizes, latency, ledger, spark_doctor, throttles, what_if
from kafkaproto.pipeline.trace.audit import durability, offsets, throttling
from kafkaproto.pipeline.trace.audit.rule import Tables
from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.trace.format import Entry, Event, Exchange
from tests.support.pipeline.played import answer_rows
from tests.support.pipeline.recorded import write
from tests.support.recording import recorder_into
from tests.support.scene import hold
from tests.support.wire import batch, fetch, limit, produce

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

QUOTA = 10_000
SENT_BYTES = 9_000
TIMESTAMP = 1_700_000_000_000


def recorded(
    spark: Any,
    folder: Path,
    play: Callable[[VirtualCluster], None],
    select: Callable[[list[Entry]], list[Entry]] = list,
    brokers: int = 1,
    **options: Any,
) -> Tables:
    """Return the tables of the entries recorded by `play`. select: selects the entries to keep."""
    folder.mkdir(exist_ok=True)
    entries: list[Entry] = []
    cluster = VirtualCluster(brokers, {"quota.window.num": "3"}, **options)
    meta = meta_of(cluster.state)
    cluster.state.record(recorder_into(entries))
    cluster.topic("t")
    play(cluster)
    cluster.run()
    write(folder / "trace", select(entries), **meta)
    job.build(folder / "trace", folder / "out", job.without_spark)
    return Tables.of(spark, folder / "out")


def sends(cluster: VirtualCluster, client_id: str, times: int, version: int = 9) -> None:
    client = cluster.connect(client_id=client_id)
    for _ in range(times):
        response = client.ask(produce("t", batch(b"x" * SENT_BYTES)), version)
        cluster.advance(response.throttle_time_ms + 10)


def test_quota_prediction_leaves_out_shared_quotas_and_quotas_that_changed(spark: Any, tmp_path: Path) -> None:
    def changed(cluster: VirtualCluster) -> None:
        limit(cluster, "same", producer_byte_rate=QUOTA)
        limit(cluster, "changed", producer_byte_rate=QUOTA)
        first = cluster.connect(client_id="late")
        first.ask(produce("t", batch(b"x" * SENT_BYTES)), 9)
        limit(cluster, "late", producer_byte_rate=QUOTA)
        late = cluster.connect(client_id="late")
        for _ in range(4):
            cluster.advance(late.ask(produce("t", batch(b"x" * SENT_BYTES)), 9).throttle_time_ms)
        sends(cluster, "changed", 4)
        limit(cluster, "changed", producer_byte_rate=100 * QUOTA)
        sends(cluster, "changed", 4)
        sends(cluster, "same", 4)

    def shared(cluster: VirtualCluster) -> None:
        limit(cluster, None, user="ANONYMOUS", producer_byte_rate=QUOTA)
        for _ in range(3):
            sends(cluster, "one", 1)
            sends(cluster, "other", 1)

    def in_force(play: Callable[[VirtualCluster], None]) -> list[tuple[str, int]]:
        plan = answer_rows(what_if.ANSWER, "planned", recorded(spark, tmp_path / play.__name__, play))
        return [(r["client_id"], r["differs_from_the_broker"]) for r in plan if r["in_force"]]

    assert in_force(changed) == [("same", 0)]
    assert in_force(shared) == []


def test_predicted_throttle_times_equal_those_of_an_emulated_kafka_1_1_broker(spark: Any, tmp_path: Path) -> None:
    def play(cluster: VirtualCluster) -> None:
        limit(cluster, "h", producer_byte_rate=QUOTA, consumer_byte_rate=QUOTA)
        client = cluster.connect(client_id="h")
        for _ in range(6):
            client.send(produce("t", batch(b"x" * SENT_BYTES)), 5)
            cluster.advance(700)
        cluster.advance(20_000)
        for at in range(6):
            client.send(fetch(("t", 0, at), max_bytes=SENT_BYTES), 6)
            cluster.advance(700)
        cluster.advance(20_000)

    tables = recorded(spark, tmp_path, play, release_name="1.1")
    real = [r for r in answer_rows(what_if.ANSWER, "planned", tables) if r["in_force"]]
    assert real and all(r["differs_from_the_broker"] == 0 for r in real)
    throttled = sum(r["throttled_ms"] for r in answer_rows(throttles.ANSWER, "clients", tables))
    assert throttled == sum(r["throttled_ms"] for r in real) > 0
    parts = {(r["api"], r["part"]): r["max_ms"] for r in answer_rows(latency.ANSWER, "parts", tables)}
    assert all(parts[r["api"], part] < r["longest_ms"] for r in real for part in ("handled", "waited"))


def test_quota_prediction_leaves_out_requests_that_were_never_charged_to_a_quota(spark: Any, tmp_path: Path) -> None:
    """The connection closes while a produce waits for replicas, so that produce was never charged."""

    def play(cluster: VirtualCluster) -> None:
        cluster.topic("all", 1, 2, min_insync_replicas="1")
        leader, _ = cluster.state.controller.image.leader_of("all", 0)
        hold(cluster, 1 - leader, topic="all", at=0)
        limit(cluster, "p", producer_byte_rate=QUOTA)
        disconnecting = cluster.connect(leader, client_id="p")
        disconnecting.send(produce("all", batch(b"x" * 6 * SENT_BYTES), acks=-1, timeout_ms=30_000), 9)
        cluster.advance(10)
        disconnecting.connection.socket_closed()
        client = cluster.connect(leader, client_id="p")
        for _ in range(4):
            client.ask(produce("all", batch(b"x" * 6 * SENT_BYTES), acks=1), 9)
            cluster.advance(8000)

    tables = recorded(spark, tmp_path, play, brokers=2)
    counts = tables.requests.selectExpr("count_if(api = 'Produce')", "count_if(NOT has_response)").first()
    assert counts is not None and tuple(counts) == (5, 1)
    [real] = [r for r in answer_rows(what_if.ANSWER, "planned", tables) if r["in_force"]]
    assert (real["requests"], real["differs_from_the_broker"]) == (4, 0) and real["throttled_ms"] > 0


@pytest.mark.parametrize("acks", [0, 1])
def test_quota_prediction_includes_bytes_of_a_request_whose_connection_closed(
    spark: Any, tmp_path: Path, acks: int
) -> None:
    """Before 2.0 the bytes are charged first, and then the response is delayed."""

    def play(cluster: VirtualCluster) -> None:
        limit(cluster, "h", producer_byte_rate=QUOTA)
        for lost in (True, False):
            client = cluster.connect(client_id="h")
            for _ in range(5):
                client.send(produce("t", batch(b"x" * SENT_BYTES), acks=acks), 5)
                cluster.advance(300)
            if lost:
                client.connection.socket_closed()
        cluster.advance(20_000)

    tables = recorded(spark, tmp_path, play, release_name="1.1")
    lost = tables.requests.where("NOT has_response AND applied_throttle_ms = 0 AND throttle_quota = 'Produce'").count()
    [real] = [r for r in answer_rows(what_if.ANSWER, "planned", tables) if r["in_force"]]
    assert lost == 1 and real["differs_from_the_broker"] == 0 and real["throttles"] > 2


def test_waiting_fetch_of_a_closed_connection_is_not_counted_as_an_empty_fetch(spark: Any, tmp_path: Path) -> None:
    """The last fetch of each consumer is abandoned if the consumer is closed while the fetch waits."""
    spark_s = "consumer-spark-kafka-source-0059f3c4-3cc8-43e4-9c79-7ec93d93c1e2--757908602-executor-1"

    def play(cluster: VirtualCluster) -> None:
        sends(cluster, "p", 1)
        client = cluster.connect(client_id=spark_s)
        client.ask(fetch(("t", 0, 0)), 11)
        client.send(fetch(("t", 0, 1), max_wait_ms=20_000), 11)
        cluster.advance(100)
        client.connection.socket_closed()

    tables = recorded(spark, tmp_path, play)
    [sizes] = answer_rows(fetch_sizes.ANSWER, "clients", tables)
    assert (sizes["fetches"], sizes["empty"]) == (1, 0)
    assert [r["power_of_two"] for r in answer_rows(fetch_sizes.ANSWER, "records", tables)] == [0]
    [query] = answer_rows(spark_doctor.ANSWER, "queries", tables)
    assert (query["requests"], query["fetches"], query["empty_fetches"]) == (2, 1, 0)
    assert query["bytes_per_fetch"] > SENT_BYTES


def test_share_of_time_that_a_client_is_throttled_never_exceeds_100_percent(spark: Any, tmp_path: Path) -> None:
    """The broker's clock is moved by the test, and the monotonic clock is not."""

    def play(cluster: VirtualCluster) -> None:
        limit(cluster, "p", producer_byte_rate=QUOTA)
        sends(cluster, "p", 5)

    [client_row] = answer_rows(throttles.ANSWER, "clients", recorded(spark, tmp_path, play))
    assert client_row["throttled_ms"] > 1000 and client_row["percent_of_time"] <= 100


def test_audit_reports_no_wrong_quota_charge_if_entries_are_missing_from_the_trace(spark: Any, tmp_path: Path) -> None:
    def play(cluster: VirtualCluster) -> None:
        limit(cluster, "r", consumer_byte_rate=QUOTA)
        sends(cluster, "p", 1)
        client = cluster.connect(client_id="r")
        for _ in range(12):
            cluster.advance(client.ask(fetch(("t", 0, 0)), 11).throttle_time_ms + 10)

    def dropped(entries: list[Entry]) -> list[Entry]:
        """Return the entries without successful fetches after the first throttle."""
        whole = [isinstance(entry, Exchange) and entry.response_records and not entry.throttle_ms for entry in entries]
        first = next(i for i, entry in enumerate(entries) if isinstance(entry, Exchange) and entry.throttle_ms)
        remaining = [entry for i, entry in enumerate(entries) if i < first or not whole[i]]
        assert len(remaining) < len(entries)
        return [
            *remaining,
            Event("dropped", {"seq": 0, "clock_ms": 0, "broker": -1, "entries": len(entries) - len(remaining)}),
        ]

    all_of_it = throttling.taken_back(recorded(spark, tmp_path / "whole", play))
    assert all_of_it.count() > 0 == all_of_it.where("broken").count()
    assert throttling.taken_back(recorded(spark, tmp_path / "part", play, dropped)).where("broken").count() == 0


def test_record_analysis_does_not_count_compacted_or_deleted_records_as_lost(spark: Any, tmp_path: Path) -> None:
    def play(cluster: VirtualCluster) -> None:
        cluster.topic("c", cleanup_policy="compact", segment_bytes="300", min_cleanable_dirty_ratio="0.01")
        client = cluster.connect(client_id="x")
        for value in range(8):
            client.ask(produce("c", build_batch([NewRecord(b"%d" % value * 100, b"k", TIMESTAMP)])), 9)
        cluster.state.log_manager.compaction.clean("c", 0, cluster.now_ms)
        client.ask(fetch(("c", 0, 0)), 11)
        client.ask(produce("t", batch(b"1", b"2")), 9)
        cluster.state.controller.delete_topic("t")
        cluster.run()
        cluster.topic("t")
        client.ask(produce("t", batch(b"1", b"2")), 9)
        client.ask(fetch(("t", 0, 0)), 11)
        cluster.topic("old")
        client.ask(produce("old", batch(b"1")), 9)
        client.ask(produce("old", batch(b"2")), 9)
        client.ask(fetch(("old", 0, 0)), 2)

    tables = recorded(spark, tmp_path, play)
    rows = {r["topic"]: r for r in answer_rows(ledger.ANSWER, "partitions", tables)}
    assert (rows["old"]["read"], rows["old"]["unread"], rows["old"]["lost"]) == (2, 0, 0)
    assert (rows["t"]["acknowledged"], rows["t"]["read"], rows["t"]["unread"]) == (4, 2, 2)
    assert rows["c"]["lost"] == 0 < rows["c"]["unread"] and rows["c"]["acknowledged"] == 8
    assert durability.same_bytes(tables).where("topic = 'old'").count() == 0
    for rule in (durability.not_skipped, offsets.gaps):
        checked = rule(tables)
        assert checked.where("topic = 'c'").count() == 0 and checked.where("broken").count() == 0
