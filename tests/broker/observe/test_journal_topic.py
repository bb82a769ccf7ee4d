"""The journal topic in virtual time: its records, their times and limits; reading the topic adds no records to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.observe import journal_topic
from kafkaproto.broker.observe.journal_topic import (
    BATCH_BYTES,
    DEFAULT_TOPIC,
    EVERY_MS,
    MOST_WAITING,
    SETTINGS,
    Reached,
)
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.testing import records as direct
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.testing import cluster as served
from tests.support.broker.processes import Processes
from tests.support.wire import batch, fetch, limit, metadata, produce, produce_of_bytes


def virtual(brokers: int = 1, **options: Any) -> VirtualCluster:
    cluster = VirtualCluster(brokers, journal_topic=DEFAULT_TOPIC, **options)
    cluster.topic("t", 2, brokers)
    cluster.advance(EVERY_MS)
    return cluster


def published(cluster: VirtualCluster, kind: str | None = None) -> list[dict[str, Any]]:
    values = [json.loads(record.value or b"") for record in direct.stored(cluster.state, DEFAULT_TOPIC, None)]
    return [value for value in values if kind in (None, value["kind"])]


def end(cluster: VirtualCluster) -> int:
    return direct.leader_of(cluster.state, DEFAULT_TOPIC, 0).log.log_end_offset


def list_offsets(topic: str) -> ListOffsetsRequest:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])])


def read_all(client: MemoryClient, cluster: VirtualCluster) -> None:
    client.ask(fetch((DEFAULT_TOPIC, 0, end(cluster) - 1)), 11)


def test_journal_topic_gets_a_throttle_record_with_the_quota_and_the_throttle_time() -> None:
    cluster = virtual()
    limit(cluster, producer_byte_rate=10_000.0)
    client = cluster.connect()
    at_ms = cluster.now_ms
    client.ask(produce_of_bytes(client, "t", 105_000), 9)
    assert published(cluster, "throttle") == []
    cluster.advance(EVERY_MS)
    [throttle] = cluster.state.journal.throttles()
    assert published(cluster, "throttle") == [
        {
            "v": 1,
            "kind": "throttle",
            "at_ms": at_ms,
            "broker": 0,
            "client_id": "test",
            "api": "Produce",
            "throttle_ms": throttle.throttle_time_ms,
            "held": False,
            "quota": "Produce",
            "bound": 10_000.0,
            "value": 105_000,
            "rate": throttle.reason.rate,  # type: ignore[union-attr]
            "window_ms": 10_000,
            "entity": "client-id 'test'",
        }
    ]
    [record] = [r for r in direct.stored(cluster.state, DEFAULT_TOPIC, None) if b'"throttle"' in (r.value or b"")]
    assert (record.key, record.timestamp_ms) == (b"test", at_ms)


def test_journal_topic_record_of_a_forced_throttle_names_no_quota() -> None:
    cluster = virtual()
    cluster.state.forced_throttles.add(ForcedThrottle(7))
    cluster.connect(client_id=None).ask(metadata(), 9)
    cluster.advance(EVERY_MS)
    [entry] = published(cluster, "throttle")
    assert (entry["client_id"], entry["throttle_ms"], entry["bound"], entry["entity"]) == (None, 7, None, None)


def test_journal_topic_gets_the_log_end_after_produces_and_next_offsets_of_consumers() -> None:
    cluster = virtual()
    writer, reader = cluster.connect(client_id="writer"), cluster.connect(client_id="reader")
    entry = batch(b"x" * 100)
    for _ in range(5):
        writer.ask(produce("t", entry), 9)
    reader.ask(fetch(("t", 0, 1), partition_max=2 * len(entry) + 10), 11)
    cluster.advance(EVERY_MS)
    [wrote], [read] = published(cluster, "produced"), published(cluster, "fetched")
    assert (wrote["client_id"], wrote["topic"], wrote["partition"], wrote["end_offset"]) == ("writer", "t", 0, 5)
    assert (read["client_id"], read["next_offset"], read["high_watermark"]) == ("reader", 3, 5)
    reader.ask(fetch(("t", 0, 5)), 11)
    cluster.advance(EVERY_MS)
    assert [(entry["next_offset"], entry["high_watermark"]) for entry in published(cluster, "fetched")] == [
        (3, 5),
        (5, 5),
    ]


def test_journal_topic_shows_that_a_throttled_fetch_did_not_advance_the_fetch_offset() -> None:
    cluster = virtual()
    cluster.connect().ask(produce("t", batch(b"x" * 100)), 9)
    cluster.state.forced_throttles.add(ForcedThrottle(7, api="Fetch"))
    cluster.connect(client_id="reader").ask(fetch(("t", 0, 0)), 11)
    cluster.advance(EVERY_MS)
    [read] = published(cluster, "fetched")
    assert (read["next_offset"], read["high_watermark"]) == (0, 1)


def test_journal_topic_gets_the_next_offset_of_a_parked_fetch_after_its_completion() -> None:
    cluster = virtual()
    reader = cluster.connect(client_id="reader")
    reader.send(fetch(("t", 0, 0), max_wait_ms=5000), 11)
    cluster.advance(1000)
    assert published(cluster, "fetched") == []
    cluster.connect().ask(produce("t", batch(b"a", b"b")), 9)
    cluster.advance(EVERY_MS)
    [read] = published(cluster, "fetched")
    assert (read["next_offset"], read["high_watermark"], read["at_ms"]) == (2, 2, cluster.now_ms - EVERY_MS)


def test_journal_topic_stops_reporting_the_lag_of_a_consumer_that_has_disconnected() -> None:
    cluster = virtual()
    writer, reader, disconnecting = (cluster.connect(client_id=name) for name in ("writer", "reader", "gone"))
    writer.ask(produce("t", batch(b"a")), 9)
    for client in (reader, disconnecting):
        client.ask(fetch(("t", 0, 0)), 11)
    disconnecting.connection.close()
    cluster.advance(EVERY_MS)
    for _ in range(2):
        writer.ask(produce("t", batch(b"a", b"b")), 9)
        cluster.advance(1000)
    lagging = [
        (entry["client_id"], entry["next_offset"], entry["high_watermark"]) for entry in published(cluster, "behind")
    ]
    assert lagging == [("reader", 1, 3), ("reader", 1, 5)]
    before = end(cluster)
    cluster.advance(60_000)
    assert end(cluster) == before
    writer.ask(produce("t", batch(b"a")), 9)
    reader.ask(fetch(("t", 0, 1)), 11)
    cluster.advance(EVERY_MS)
    assert len(published(cluster, "behind")) == 2 and published(cluster, "fetched")[-1]["next_offset"] == 6


def test_journal_above_3_client_offsets_forgets_the_partition_that_was_read_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_topic, "MOST_WAITING", 3)
    cluster = virtual()
    reached = Reached(cluster.state)
    connection = cluster.connect().connection.connection_id
    for client_id in ("a", "b", "c", "c"):
        reached.note("t", 0, client_id, 0, connection, 7)
    assert reached.connected("t", 0) == [("a", 0, 7), ("b", 0, 7), ("c", 0, 7)]
    reached.note("t", 1, "d", 0, connection, 9)
    assert reached.connected("t", 0) == [] and reached.connected("t", 1) == [("d", 0, 9)]


def test_fetches_of_followers_add_no_records_to_the_journal_topic() -> None:
    cluster = virtual(3)
    leader, _ = cluster.state.controller.image.leader_of("t", 0)
    cluster.connect(leader, client_id="writer").ask(produce("t", batch(b"a")), 9)
    cluster.connect(leader, client_id="f").ask(fetch(("t", 0, 0), replica_id=(leader + 1) % 3), 11)
    cluster.advance(EVERY_MS)
    assert published(cluster, "fetched") == [] and len(published(cluster, "produced")) == 1


def test_journal_topic_gets_the_log_end_of_a_partition_at_most_once_per_100_ms() -> None:
    cluster = virtual()
    log = direct.leader_of(cluster.state, DEFAULT_TOPIC, 0).log
    before = log.log_end_offset
    cluster.state.forced_throttles.add(ForcedThrottle(1, api="Metadata"))
    writer = cluster.connect()
    for _ in range(7):
        writer.ask(produce("t", batch(b"a")), 9)
        cluster.connect().ask(metadata(), 9)
    cluster.advance(EVERY_MS - 1)
    assert log.log_end_offset == before
    cluster.advance(1)
    assert [header.next_offset - header.base_offset for _, header in log.batches(before)] == [8]
    assert [entry["end_offset"] for entry in published(cluster, "produced")] == [7]


@pytest.mark.parametrize("version", [4, 11, 13])
def test_reading_the_journal_topic_adds_no_records_to_the_journal_topic(version: int) -> None:
    cluster = virtual()
    topic_ids = {name: topic.topic_id for name, topic in cluster.state.controller.image.topics.items()}
    cluster.connect().ask(produce("t", batch(b"a")), 9)
    cluster.state.forced_throttles.add(ForcedThrottle(1, client_id="job"))
    cluster.advance(EVERY_MS)
    before = end(cluster)
    reader = cluster.connect(client_id="job")
    for offset in range(before):
        reader.send(fetch((DEFAULT_TOPIC, 0, offset), topic_ids=topic_ids, version=version), version)
        cluster.advance(1000)
        # All requests of the same connection count as those of the reader.
        reader.send(fetch(("t", 0, 0), topic_ids=topic_ids, version=version), version)
        cluster.advance(1000)
    assert len(reader.answers) == 2 * before and len(cluster.state.journal.throttles()) == 2 * before
    assert end(cluster) == before


def test_list_offsets_and_metadata_of_the_journal_topic_add_no_journal_records() -> None:
    cluster = virtual()
    cluster.state.forced_throttles.add(ForcedThrottle(1, client_id="job"))
    before = end(cluster)
    for request, version in ((list_offsets(DEFAULT_TOPIC), 6), (metadata([DEFAULT_TOPIC]), 9)):
        cluster.connect(client_id="job").ask(request, version)
    cluster.connect(client_id="job").ask(produce(DEFAULT_TOPIC, batch(b"{}")), 9)
    cluster.advance(1000)
    assert len(cluster.state.journal.throttles()) == 3
    assert end(cluster) == before + 1  # the client's own record
    cluster.connect(client_id="job").ask(list_offsets("t"), 6)
    cluster.advance(EVERY_MS)
    assert end(cluster) == before + 2


def test_journal_topic_does_not_report_its_own_leader_and_replica_changes() -> None:
    cluster = virtual(3)
    leader, _ = cluster.state.controller.image.leader_of(DEFAULT_TOPIC, 0)
    cluster.state.stop_broker(leader)
    cluster.advance(1000)
    assert {entry.get("topic") for entry in published(cluster)} == {None, "t"}
    assert [(entry["broker"], entry["state"]) for entry in published(cluster, "broker")] == [(leader, "stopped")]
    before = end(cluster)
    cluster.advance(60_000)
    assert end(cluster) == before


def test_journal_topic_loses_no_records_when_its_leader_stops_and_starts() -> None:
    cluster = virtual(3)
    cluster.state.forced_throttles.add(ForcedThrottle(1, api="Metadata"))
    for round_ in range(6):
        leader, _ = cluster.state.controller.image.leader_of(DEFAULT_TOPIC, 0)
        cluster.connect((leader + 1) % 3, client_id=f"c{round_}").ask(metadata(), 9)
        cluster.state.stop_broker(leader)
        cluster.advance(1000)
        cluster.state.start_broker(leader)
        cluster.advance(30_000)
    assert [entry["client_id"] for entry in published(cluster, "throttle")] == [f"c{i}" for i in range(6)]
    assert len(published(cluster, "broker")) == 12


def test_records_for_the_journal_topic_are_queued_while_it_has_no_leader() -> None:
    cluster = virtual(2)
    for broker_id in (0, 1):
        cluster.state.stop_broker(broker_id)
    cluster.advance(1000)
    cluster.state.start_broker(1)
    cluster.advance(1000)
    assert [(entry["broker"], entry["state"]) for entry in published(cluster, "broker")] == [
        (0, "stopped"),
        (1, "stopped"),
        (1, "started"),
    ]


def test_journal_topic_gets_the_number_of_events_dropped_because_its_queue_was_full() -> None:
    cluster = virtual()
    publisher = cluster.state.journal_topic
    assert publisher is not None
    for number in range(MOST_WAITING + 25):
        cluster.state.events.noted(cluster.now_ms, 0, "broker", {"state": "x" * 100, "number": number})
    cluster.advance(EVERY_MS)
    assert publisher.dropped == 25
    assert [entry["number"] for entry in published(cluster, "broker")] == list(range(MOST_WAITING))
    assert [entry["count"] for entry in published(cluster, "dropped")] == [25]
    log = direct.leader_of(cluster.state, DEFAULT_TOPIC, 0).log
    assert max(header.size for _, header in log.batches(0)) < 2 * BATCH_BYTES


def test_journal_topic_keeps_its_records_for_ten_minutes() -> None:
    cluster = virtual()
    for _ in range(30):
        cluster.state.events.noted(cluster.now_ms, 0, "broker", {"state": "started"})
        cluster.advance(60_000)
    retained_ms = cluster.now_ms - min(entry["at_ms"] for entry in published(cluster))
    check_ms = cluster.state.config.get(-1, "log.retention.check.interval.ms")
    assert 10 * 60_000 <= retained_ms <= 11 * 60_000 + check_ms + int(SETTINGS["segment.ms"])


def test_idle_cluster_writes_no_journal_records_and_adds_no_timers() -> None:
    cluster = virtual()
    before, deadlines = end(cluster), len(cluster.state.timers)
    cluster.advance(3_600_000)
    assert end(cluster) == before and len(cluster.state.timers) <= deadlines


def test_journal_topic_contains_events_from_before_and_after_a_cluster_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path / "data", journal_topic=DEFAULT_TOPIC)
    processes.cluster.state.events.noted(processes.cluster.now_ms, 0, "broker", {"state": "first"})
    processes.cluster.advance(EVERY_MS)
    processes.crash_and_restart()
    processes.cluster.state.events.noted(processes.cluster.now_ms, 0, "broker", {"state": "second"})
    processes.end()  # with pending entries
    cluster = processes.restart()
    cluster.state.events.noted(cluster.now_ms, 0, "broker", {"state": "third"})
    cluster.advance(EVERY_MS)
    assert [entry["state"] for entry in published(cluster, "broker")] == ["first", "second", "third"]
    processes.end()


def test_cluster_reset_clears_the_journal_topic() -> None:
    cluster = virtual()
    cluster.state.events.noted(cluster.now_ms, 0, "broker", {"state": "before"})
    cluster.advance(EVERY_MS)
    cluster.state.reset()
    cluster.run()
    cluster.advance(1000)
    assert "before" not in [entry["state"] for entry in published(cluster, "broker")]
    cluster.state.events.noted(cluster.now_ms, 0, "broker", {"state": "after"})
    cluster.advance(EVERY_MS)
    assert published(cluster)[-1]["state"] == "after"


def test_journal_topic_does_not_exist_unless_enabled() -> None:
    cluster = VirtualCluster()
    assert cluster.state.journal_topic is None and DEFAULT_TOPIC not in cluster.state.controller.image.topics


def test_illegal_journal_topic_name_is_rejected() -> None:
    with pytest.raises(ConfigError, match="cannot create the topic 'a b', to which the journal is written"):
        VirtualCluster(journal_topic="a b")


def test_journal_topic_record_has_the_time_of_its_event_on_the_manual_clock() -> None:
    with served(1, {"t": 1}, clock="manual", journal_topic="events") as c:
        c.run_in_loop(lambda: c.state.events.noted(c.clock.now_ms(), 0, "broker", {"state": "x"}))
        at_ms = c.clock.now_ms()
        c.clock.advance(EVERY_MS - 1)
        assert c.records("events") == []
        c.clock.advance(1)
        assert [(r.timestamp_ms, r.key) for r in c.records("events")] == [(at_ms, b"broker-0")]
