"""The journal as a topic, in virtual time: what it tells and when, that its readers do not make it grow, and its bounds."""

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
from tests.support.broker.lives import Lives
from tests.support.wire import batch, fetch, limit, metadata, produce, produce_of_bytes


def virtual(brokers: int = 1, **options: Any) -> VirtualCluster:
    made = VirtualCluster(brokers, journal_topic=DEFAULT_TOPIC, **options)
    made.topic("t", 2, brokers)
    made.advance(EVERY_MS)
    return made


def told(cluster: VirtualCluster, kind: str | None = None) -> list[dict[str, Any]]:
    values = [json.loads(one.value or b"") for one in direct.stored(cluster.state, DEFAULT_TOPIC, None)]
    return [value for value in values if kind in (None, value["kind"])]


def end(cluster: VirtualCluster) -> int:
    return direct.leader_of(cluster.state, DEFAULT_TOPIC, 0).log.log_end_offset


def list_offsets(topic: str) -> ListOffsetsRequest:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])])


def read_all(client: MemoryClient, cluster: VirtualCluster) -> None:
    client.ask(fetch((DEFAULT_TOPIC, 0, end(cluster) - 1)), 11)


def test_a_throttle_is_told_as_the_journal_has_it() -> None:
    cluster = virtual()
    limit(cluster, producer_byte_rate=10_000.0)
    client = cluster.connect()
    at_ms = cluster.now_ms
    client.ask(produce_of_bytes(client, "t", 105_000), 9)
    assert told(cluster, "throttle") == []
    cluster.advance(EVERY_MS)
    [seen] = cluster.state.journal.throttles()
    assert told(cluster, "throttle") == [
        {
            "v": 1,
            "kind": "throttle",
            "at_ms": at_ms,
            "broker": 0,
            "client_id": "test",
            "api": "Produce",
            "throttle_ms": seen.throttle_time_ms,
            "held": False,
            "quota": "Produce",
            "bound": 10_000.0,
            "value": 105_000,
            "rate": seen.reason.rate,  # type: ignore[union-attr]
            "window_ms": 10_000,
            "entity": "client-id 'test'",
        }
    ]
    [record] = [r for r in direct.stored(cluster.state, DEFAULT_TOPIC, None) if b'"throttle"' in (r.value or b"")]
    assert (record.key, record.timestamp_ms) == (b"test", at_ms)


def test_a_forced_throttle_has_no_quota_to_tell_of() -> None:
    cluster = virtual()
    cluster.state.forced_throttles.add(ForcedThrottle(7))
    cluster.connect(client_id=None).ask(metadata(), 9)
    cluster.advance(EVERY_MS)
    [one] = told(cluster, "throttle")
    assert (one["client_id"], one["throttle_ms"], one["bound"], one["entity"]) == (None, 7, None, None)


def test_positions_tell_where_a_client_reads_on_and_where_it_ends() -> None:
    cluster = virtual()
    writer, reader = cluster.connect(client_id="writer"), cluster.connect(client_id="reader")
    one = batch(b"x" * 100)
    for _ in range(5):
        writer.ask(produce("t", one), 9)
    reader.ask(fetch(("t", 0, 1), partition_max=2 * len(one) + 10), 11)
    cluster.advance(EVERY_MS)
    [wrote], [read] = told(cluster, "produced"), told(cluster, "fetched")
    assert (wrote["client_id"], wrote["topic"], wrote["partition"], wrote["end_offset"]) == ("writer", "t", 0, 5)
    assert (read["client_id"], read["next_offset"], read["high_watermark"]) == ("reader", 3, 5)
    reader.ask(fetch(("t", 0, 5)), 11)
    cluster.advance(EVERY_MS)
    assert [(one["next_offset"], one["high_watermark"]) for one in told(cluster, "fetched")] == [(3, 5), (5, 5)]


def test_a_throttled_fetch_has_not_moved_its_client() -> None:
    cluster = virtual()
    cluster.connect().ask(produce("t", batch(b"x" * 100)), 9)
    cluster.state.forced_throttles.add(ForcedThrottle(7, api="Fetch"))
    cluster.connect(client_id="reader").ask(fetch(("t", 0, 0)), 11)
    cluster.advance(EVERY_MS)
    [read] = told(cluster, "fetched")
    assert (read["next_offset"], read["high_watermark"]) == (0, 1)


def test_a_parked_fetch_that_is_woken_tells_where_it_got() -> None:
    cluster = virtual()
    reader = cluster.connect(client_id="reader")
    reader.send(fetch(("t", 0, 0), max_wait_ms=5000), 11)
    cluster.advance(1000)
    assert told(cluster, "fetched") == []
    cluster.connect().ask(produce("t", batch(b"a", b"b")), 9)
    cluster.advance(EVERY_MS)
    [read] = told(cluster, "fetched")
    assert (read["next_offset"], read["high_watermark"], read["at_ms"]) == (2, 2, cluster.now_ms - EVERY_MS)


def test_who_is_connected_and_does_not_ask_falls_behind() -> None:
    cluster = virtual()
    writer, reader, gone = (cluster.connect(client_id=name) for name in ("writer", "reader", "gone"))
    writer.ask(produce("t", batch(b"a")), 9)
    for client in (reader, gone):
        client.ask(fetch(("t", 0, 0)), 11)
    gone.connection.close()
    cluster.advance(EVERY_MS)
    for _ in range(2):
        writer.ask(produce("t", batch(b"a", b"b")), 9)
        cluster.advance(1000)
    found = [(one["client_id"], one["next_offset"], one["high_watermark"]) for one in told(cluster, "behind")]
    assert found == [("reader", 1, 3), ("reader", 1, 5)]
    before = end(cluster)
    cluster.advance(60_000)
    assert end(cluster) == before
    writer.ask(produce("t", batch(b"a")), 9)
    reader.ask(fetch(("t", 0, 1)), 11)
    cluster.advance(EVERY_MS)
    assert len(told(cluster, "behind")) == 2 and told(cluster, "fetched")[-1]["next_offset"] == 6


def test_how_far_clients_have_read_is_kept_of_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_topic, "MOST_WAITING", 3)
    cluster = virtual()
    reached = Reached(cluster.state)
    connection = cluster.connect().connection.connection_id
    for client_id in ("a", "b", "c", "c"):
        reached.note("t", 0, client_id, 0, connection, 7)
    assert reached.connected("t", 0) == [("a", 0, 7), ("b", 0, 7), ("c", 0, 7)]
    reached.note("t", 1, "d", 0, connection, 9)
    assert reached.connected("t", 0) == [] and reached.connected("t", 1) == [("d", 0, 9)]


def test_followers_have_no_positions() -> None:
    cluster = virtual(3)
    leader, _ = cluster.state.controller.image.leader_of("t", 0)
    cluster.connect(leader, client_id="writer").ask(produce("t", batch(b"a")), 9)
    cluster.connect(leader, client_id="f").ask(fetch(("t", 0, 0), replica_id=(leader + 1) % 3), 11)
    cluster.advance(EVERY_MS)
    assert told(cluster, "fetched") == [] and len(told(cluster, "produced")) == 1


def test_what_happens_within_a_tenth_of_a_second_is_one_batch_and_of_positions_the_latest() -> None:
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
    assert [one["end_offset"] for one in told(cluster, "produced")] == [7]


@pytest.mark.parametrize("version", [4, 11, 13])
def test_a_reader_of_the_journal_adds_nothing_to_it(version: int) -> None:
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
        # On the same connection, so on behalf of the same reader, whatever it asks for.
        reader.send(fetch(("t", 0, 0), topic_ids=topic_ids, version=version), version)
        cluster.advance(1000)
    assert len(reader.answers) == 2 * before and len(cluster.state.journal.throttles()) == 2 * before
    assert end(cluster) == before


def test_asking_for_its_offsets_or_its_leader_is_reading_it() -> None:
    cluster = virtual()
    cluster.state.forced_throttles.add(ForcedThrottle(1, client_id="job"))
    before = end(cluster)
    for request, version in ((list_offsets(DEFAULT_TOPIC), 6), (metadata([DEFAULT_TOPIC]), 9)):
        cluster.connect(client_id="job").ask(request, version)
    cluster.connect(client_id="job").ask(produce(DEFAULT_TOPIC, batch(b"{}")), 9)
    cluster.advance(1000)
    assert len(cluster.state.journal.throttles()) == 3
    assert end(cluster) == before + 1  # what the client wrote itself
    cluster.connect(client_id="job").ask(list_offsets("t"), 6)
    cluster.advance(EVERY_MS)
    assert end(cluster) == before + 2


def test_its_own_leader_and_replicas_are_not_told() -> None:
    cluster = virtual(3)
    leader, _ = cluster.state.controller.image.leader_of(DEFAULT_TOPIC, 0)
    cluster.state.stop_broker(leader)
    cluster.advance(1000)
    assert {one.get("topic") for one in told(cluster)} == {None, "t"}
    assert [(one["broker"], one["state"]) for one in told(cluster, "broker")] == [(leader, "stopped")]
    before = end(cluster)
    cluster.advance(60_000)
    assert end(cluster) == before


def test_stop_and_start_of_its_leader_lose_nothing() -> None:
    cluster = virtual(3)
    cluster.state.forced_throttles.add(ForcedThrottle(1, api="Metadata"))
    for round_ in range(6):
        leader, _ = cluster.state.controller.image.leader_of(DEFAULT_TOPIC, 0)
        cluster.connect((leader + 1) % 3, client_id=f"c{round_}").ask(metadata(), 9)
        cluster.state.stop_broker(leader)
        cluster.advance(1000)
        cluster.state.start_broker(leader)
        cluster.advance(30_000)
    assert [one["client_id"] for one in told(cluster, "throttle")] == [f"c{i}" for i in range(6)]
    assert len(told(cluster, "broker")) == 12


def test_what_nobody_can_take_waits_for_a_leader() -> None:
    cluster = virtual(2)
    for broker_id in (0, 1):
        cluster.state.stop_broker(broker_id)
    cluster.advance(1000)
    cluster.state.start_broker(1)
    cluster.advance(1000)
    assert [(one["broker"], one["state"]) for one in told(cluster, "broker")] == [
        (0, "stopped"),
        (1, "stopped"),
        (1, "started"),
    ]


def test_what_there_is_no_room_for_is_counted() -> None:
    cluster = virtual()
    publisher = cluster.state.journal_topic
    assert publisher is not None
    for number in range(MOST_WAITING + 25):
        cluster.state.events.noted(cluster.now_ms, 0, "broker", {"state": "x" * 100, "number": number})
    cluster.advance(EVERY_MS)
    assert publisher.dropped == 25
    assert [one["number"] for one in told(cluster, "broker")] == list(range(MOST_WAITING))
    assert [one["count"] for one in told(cluster, "dropped")] == [25]
    log = direct.leader_of(cluster.state, DEFAULT_TOPIC, 0).log
    assert max(header.size for _, header in log.batches(0)) < 2 * BATCH_BYTES


def test_it_is_kept_for_ten_minutes() -> None:
    cluster = virtual()
    for _ in range(30):
        cluster.state.events.noted(cluster.now_ms, 0, "broker", {"state": "started"})
        cluster.advance(60_000)
    kept_ms = cluster.now_ms - min(one["at_ms"] for one in told(cluster))
    check_ms = cluster.state.config.get(-1, "log.retention.check.interval.ms")
    assert 10 * 60_000 <= kept_ms <= 11 * 60_000 + check_ms + int(SETTINGS["segment.ms"])


def test_nothing_goes_on_while_nothing_happens() -> None:
    cluster = virtual()
    before, deadlines = end(cluster), len(cluster.state.timers)
    cluster.advance(3_600_000)
    assert end(cluster) == before and len(cluster.state.timers) <= deadlines


def test_a_restart_goes_on_with_it(tmp_path: Path) -> None:
    lives = Lives(tmp_path / "data", journal_topic=DEFAULT_TOPIC)
    lives.cluster.state.events.noted(lives.cluster.now_ms, 0, "broker", {"state": "first"})
    lives.cluster.advance(EVERY_MS)
    lives.crash_and_restart()
    lives.cluster.state.events.noted(lives.cluster.now_ms, 0, "broker", {"state": "second"})
    lives.end()  # with what waits
    cluster = lives.restart()
    cluster.state.events.noted(cluster.now_ms, 0, "broker", {"state": "third"})
    cluster.advance(EVERY_MS)
    assert [one["state"] for one in told(cluster, "broker")] == ["first", "second", "third"]
    lives.end()


def test_a_reset_begins_it_afresh() -> None:
    cluster = virtual()
    cluster.state.events.noted(cluster.now_ms, 0, "broker", {"state": "before"})
    cluster.advance(EVERY_MS)
    cluster.state.reset()
    cluster.run()
    cluster.advance(1000)
    assert "before" not in [one["state"] for one in told(cluster, "broker")]
    cluster.state.events.noted(cluster.now_ms, 0, "broker", {"state": "after"})
    cluster.advance(EVERY_MS)
    assert told(cluster)[-1]["state"] == "after"


def test_unasked_there_is_no_such_topic() -> None:
    cluster = VirtualCluster()
    assert cluster.state.journal_topic is None and DEFAULT_TOPIC not in cluster.state.controller.image.topics


def test_a_name_that_no_topic_can_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="the journal cannot be topic 'a b'"):
        VirtualCluster(journal_topic="a b")


def test_a_served_cluster_under_the_manual_clock_tells_at_exact_times() -> None:
    with served(1, {"t": 1}, clock="manual", journal_topic="told") as c:
        c.run_in_loop(lambda: c.state.events.noted(c.clock.now_ms(), 0, "broker", {"state": "x"}))
        at_ms = c.clock.now_ms()
        c.clock.advance(EVERY_MS - 1)
        assert c.records("told") == []
        c.clock.advance(1)
        assert [(r.timestamp_ms, r.key) for r in c.records("told")] == [(at_ms, b"broker-0")]
