"""Readable offsets and the errors for unreadable ones: high watermark, leader epochs, and the order of checks.

The conformance suite tests all other cases: `test_fetch_visibility`.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.scene import (
    answered_at,
    base_offsets,
    elect,
    fetchers,
    fill,
    hold,
    lagging,
    only,
    partition_offsets,
    replica,
    three,
    topic_ids,
)
from tests.support.wire import batch, errors, fetch, flat, sizes

BOTH = pytest.mark.parametrize("semantics", ["kip", "kafka"])
UNKNOWN = (-1, -1, -1)
LATEST = 17


def ask(cluster: VirtualCluster, broker_id: int, *partitions: tuple[str, int, int], **more: Any) -> Any:
    version = more.setdefault("version", 12)
    return cluster.connect(broker_id).ask(fetch(*partitions, topic_ids=topic_ids(cluster), **more), version)


def fetch_one(cluster: VirtualCluster, broker_id: int, offset: int, **more: Any) -> Any:
    """Fetch `t-0` at this offset and return the partition data."""
    return only(ask(cluster, broker_id, ("t", 0, offset), **more))


# ---- the last readable offset ----------------------------------------------------------------------------------------------------


def base_offsets_of(data: Any) -> list[int]:
    from tests.support.scene import whole_batches

    return [header.base_offset for header in whole_batches(data.records)]


@pytest.mark.rule("F-15")
@BOTH
def test_consumer_on_a_follower_reads_up_to_the_high_watermark_of_that_follower(semantics: str) -> None:
    cluster = lagging(semantics)
    assert replica(cluster, 1).log.log_end_offset == 5
    assert base_offsets_of(fetch_one(cluster, 1, 0)) == [0, 1]


@pytest.mark.rule("F-16", "D3")
@pytest.mark.parametrize("offset", [-1, 6, 100])
def test_out_of_range_error_has_watermark_and_log_start_with_semantics_kip(offset: int) -> None:
    for semantics, offsets in (("kip", (5, 5, 1)), ("kafka", UNKNOWN)):
        cluster = VirtualCluster(semantics=semantics)
        cluster.topic("t")
        fill(cluster, "t", *(batch(b"x") for _ in range(5)))
        replica(cluster, 0).log.raise_log_start(1)
        for version in (4, 11, 12, LATEST):
            data = fetch_one(cluster, 0, offset, version=version)
            expected = offsets if version >= 5 else (*offsets[:2], -1)
            assert (data.error_code, partition_offsets(data), bytes(data.records)) == (1, expected, b"")
            assert data.preferred_read_replica == -1


@pytest.mark.rule("F-16")
def test_fetch_below_log_start_is_out_of_range_and_at_log_end_returns_no_records() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    fill(cluster, "t", *(batch(b"x") for _ in range(3)))
    replica(cluster, 0).log.raise_log_start(2)
    assert [fetch_one(cluster, 0, offset).error_code for offset in (0, 1, 2, 3, 4)] == [1, 1, 0, 0, 1]
    assert bytes(fetch_one(cluster, 0, 3).records) == b""


@pytest.mark.rule("F-17", "D1")
def test_fetch_above_high_watermark_is_out_of_range_if_broker_follows_kips() -> None:
    cluster = lagging("kip")
    for broker_id in (0, 1):  # the leader, and a follower that has the records
        for offset in (3, 4, 5):
            data = fetch_one(cluster, broker_id, offset, max_wait_ms=5000)
            assert (data.error_code, partition_offsets(data), bytes(data.records)) == (78, (2, 2, 0), b"")
        client = cluster.connect(broker_id)
        client.send(fetch(("t", 0, 2), max_wait_ms=700), 12)
        assert client.answers == []  # a fetch at the high watermark is parked without an error
        start_ms = cluster.now_ms
        cluster.advance(700)
        assert (answered_at(client, start_ms), errors(client.latest)) == ([700], [0])


@pytest.mark.rule("F-17", "D1")
def test_fetch_above_high_watermark_returns_no_records_if_broker_follows_kafka_code() -> None:
    """At the high watermark the fetch is parked; above it Kafka assumes that the log was truncated and answers at once."""
    cluster = lagging("kafka")
    for broker_id in (0, 1):
        for offset in (2, 4, 5):
            client = cluster.connect(broker_id)
            start_ms = cluster.now_ms
            client.send(fetch(("t", 0, offset), max_wait_ms=700), 12)
            cluster.advance(700)
            assert answered_at(client, start_ms) == [700 if offset == 2 else 0]
            data = only(client.latest)
            assert (data.error_code, partition_offsets(data), bytes(data.records)) == (0, (2, 2, 0), b"")


def _follower_behind_the_high_watermark(semantics: str) -> VirtualCluster:
    """Return a cluster whose broker 2 was out of the ISR and has the first 2 of 5 committed records."""
    cluster = three(semantics, **{"replica.lag.time.max.ms": "1000"})
    hold(cluster, 2)
    fill(cluster, "t", *(batch(b"%d" % i) for i in range(5)))
    cluster.advance(3000)
    assert replica(cluster, 0).log.high_watermark == 5
    for fetcher in fetchers(cluster, 2):
        fetcher.release("t", 0)
        fetcher.hold("t", 0, 2, cluster.now_ms)
    cluster.run()
    assert replica(cluster, 2).log.log_end_offset == 2
    return cluster


@pytest.mark.rule("D2")
def test_lagging_follower_returns_leader_high_watermark_if_broker_follows_kips() -> None:
    cluster = _follower_behind_the_high_watermark("kip")
    data_by_offset = {offset: fetch_one(cluster, 2, offset) for offset in range(7)}
    assert [data.error_code for data in data_by_offset.values()] == [0, 0, 0, 78, 78, 78, 1]
    assert [base_offsets_of(data) for data in data_by_offset.values()] == [[0, 1], [1], [], [], [], [], []]
    assert {data.high_watermark for data in data_by_offset.values()} == {5}


@pytest.mark.rule("D2")
def test_slow_follower_returns_its_log_end_as_watermark_if_broker_follows_kafka_code() -> None:
    cluster = _follower_behind_the_high_watermark("kafka")
    data_by_offset = {offset: fetch_one(cluster, 2, offset) for offset in range(7)}
    assert [data.error_code for data in data_by_offset.values()] == [0, 0, 0, 1, 1, 1, 1]
    assert {data.high_watermark for data in data_by_offset.values() if not data.error_code} == {2}


# ---- which replicas serve fetches ------------------------------------------------------------------------------------------------


@pytest.mark.rule("F-2")
def test_fetch_v16_returns_the_new_leader_and_its_address_for_a_moved_partition() -> None:
    cluster = three()
    elect(cluster, 1)
    response = cluster.connect().ask(fetch(("t", 0, 0), replica_id=2, version=16, topic_ids=topic_ids(cluster)), 16)
    data = only(response)
    assert (data.error_code, data.current_leader.leader_id, data.current_leader.leader_epoch) == (6, 1, 1)
    assert [(e.node_id, e.host, e.port) for e in response.node_endpoints] == [(1, "broker1", 9092)]
    fenced = ask(cluster, 1, ("t", 0, 0), epoch=0, version=16)
    assert only(fenced).error_code == 74
    assert [e.node_id for e in fenced.node_endpoints] == [1]
    ahead = ask(cluster, 1, ("t", 0, 0), epoch=9, version=16)
    assert (only(ahead).error_code, only(ahead).current_leader.leader_id, ahead.node_endpoints) == (75, -1, [])
    assert ask(cluster, 0, ("t", 0, 0), replica_id=2, version=15).node_endpoints == []


@pytest.mark.rule("F-23")
def test_fetch_lists_partitions_with_errors_after_readable_partitions() -> None:
    cluster = VirtualCluster()
    cluster.topic("t", 2)
    fill(cluster, "t", batch(b"a"))
    response = ask(cluster, 0, ("missing", 0, 0), ("t", 0, 0), ("t", 9, 0), ("t", 1, 0))
    partition_errors = [(topic, data.partition_index, data.error_code) for topic, data in flat(response)]
    assert partition_errors == [("t", 0, 0), ("t", 1, 0), ("missing", 0, 3), ("t", 9, 3)]
    assert [partition_offsets(data) for _, data in flat(response)[2:]] == [UNKNOWN, UNKNOWN]


@pytest.mark.rule("F-23")
def test_fetch_v13_returns_error_unknown_topic_id_for_an_unknown_topic() -> None:
    cluster = VirtualCluster()
    cluster.topic("t", 1)
    ids = {**topic_ids(cluster), "missing": bytes(range(16))}
    request = fetch(("missing", 0, 0), ("t", 0, 0), ("t", 5, 0), version=13, topic_ids=ids)
    response = cluster.connect().ask(request, 13)
    assert [(d.error_code, t.topic_id) for t in response.responses for d in t.partitions] == [
        (0, ids["t"]),
        (100, ids["missing"]),
        (3, ids["t"]),
    ]


@pytest.mark.rule("F-24")
def test_fetch_checks_the_leader_epoch_before_leadership_and_the_fetch_offset() -> None:
    cluster = three()
    elect(cluster, 1)
    assert fetch_one(cluster, 0, 99, epoch=0, version=10).error_code == 74
    assert fetch_one(cluster, 0, 99, epoch=2, version=10).error_code == 75
    assert fetch_one(cluster, 0, 99, epoch=1, version=10).error_code == 6
    assert fetch_one(cluster, 1, 99, epoch=1, version=10).error_code == 1


# ---- epochs ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("F-25")
def test_fetch_session_rejects_a_leader_epoch_that_is_too_old_or_too_new() -> None:
    """Kafka's FetchRequestTest.testEpochValidationWithinFetchSession."""
    for broker_id in (1, 2):
        for epoch, expected in ((-1, 0), (1, 0), (0, 74), (2, 75)):
            cluster = three()
            cluster.state.stop_broker(0)
            cluster.run()
            client = cluster.connect(broker_id)
            session = client.ask(fetch(("t", 0, 0), session=(0, 0)), 11).session_id
            assert flat(client.ask(fetch(session=(session, 1)), 11)) == []
            response = client.ask(fetch(("t", 0, 0), session=(session, 2), epoch=epoch), 11)
            assert (response.error_code, errors(response)) == (0, [expected] if expected else [])


def _with_epochs() -> VirtualCluster:
    """Return a cluster as in Kafka's PartitionTest.testLastFetchedOffsetValidation.

    The epochs start at 0:0, 3:2, 4:8, 7:13 and 9:14; the current epoch is 10 and the log end offset 17.
    """
    cluster = VirtualCluster(2)
    cluster.topic("t", 1, 2)
    records_in = {0: 2, 3: 6, 4: 5, 7: 1, 9: 3}
    for epoch in range(11):
        if epoch:
            elect(cluster, epoch % 2)
        fill(cluster, "t", *(batch(b"x") for _ in range(records_in.get(epoch, 0))))
    log = replica(cluster, 0).log
    entries = [(e.epoch, e.start_offset) for e in log.epochs.entries()]
    assert entries == [(0, 0), (3, 2), (4, 8), (7, 13), (9, 14), (10, 17)]
    assert (replica(cluster, 0).leader_epoch, log.log_end_offset) == (10, 17)
    for fetcher in fetchers(cluster, 1):
        fetcher.cut_link(True, cluster.now_ms)
    return cluster


@pytest.mark.rule("F-26")
@pytest.mark.parametrize("version", [12, LATEST])
def test_fetch_with_a_diverging_epoch_returns_the_divergence_point_immediately(version: int) -> None:
    cluster = _with_epochs()

    def parting(last_epoch: int, offset: int) -> Any:
        options = {"replica_id": 1, "last_epoch": last_epoch, "max_wait_ms": 0, "version": version}
        data = fetch_one(cluster, 0, offset, **options)
        if data.error_code:
            return data.error_code
        divergence = data.diverging_epoch.epoch, data.diverging_epoch.end_offset
        assert divergence == (-1, -1) or bytes(data.records) == b""
        return divergence

    none = (-1, -1)
    cases = {
        (2, 5): (0, 2),
        (0, 4): (0, 2),
        (6, 6): (4, 13),
        (5, 9): (4, 13),
        (10, 18): (10, 17),
        (0, 2): none,
        (7, 14): none,
        (9, 17): none,
        (10, 17): none,
        (11, 5): 1,
    }
    assert {case: parting(*case) for case in cases} == cases
    replica(cluster, 0).log.raise_log_start(5)
    later = {(2, 8): (2, 5), (0, 5): none, (3, 5): none, (0, 0): 1}
    assert {case: parting(*case) for case in later} == later


@pytest.mark.rule("F-26")
def test_diverging_follower_fetch_does_not_change_the_follower_offset_on_the_leader() -> None:
    cluster = _with_epochs()
    before = replica(cluster, 0).followers[1].log_end_offset
    data = fetch_one(cluster, 0, 4, last_epoch=0, replica_id=1, max_wait_ms=20_000)
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 2)
    assert replica(cluster, 0).followers[1].log_end_offset == before


@pytest.mark.rule("F-26")
def test_fetch_at_an_offset_missing_on_the_new_leader_returns_the_diverging_epoch() -> None:
    """Kafka's FetchRequestTest.testLastFetchedEpochValidation: 100 records, a leader change, 100 more records.

    The consumer assumes more records of epoch 0 than the new leader has.
    """
    cluster = three()
    fill(cluster, "t", *(batch(b"x") for _ in range(100)), acks=-1)
    cluster.state.stop_broker(0)
    cluster.run()
    fill(cluster, "t", *(batch(b"y") for _ in range(100)), acks=-1)
    data = fetch_one(cluster, 1, 105, last_epoch=0)
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset, bytes(data.records)) == (0, 100, b"")
    assert sizes(ask(cluster, 1, ("t", 0, 100), last_epoch=0))[0] > 0
    assert base_offsets(ask(cluster, 1, ("t", 0, 150), last_epoch=1, partition_max=1)) == [150]


@pytest.mark.rule("F-21", "N-12")
def test_fetch_with_the_replica_id_of_the_leader_itself_is_rejected() -> None:
    """Kafka 3.9.1 responds like this. Found by seed 200 of the comparison with a real broker, where the simulated follower became leader."""
    cluster = three()
    client = cluster.connect()
    for replica_id, epoch, error in ((0, -1, 6), (0, 0, 75), (1, -1, 0), (7, -1, 6)):
        response = client.ask(fetch(("t", 0, 0), replica_id=replica_id, epoch=epoch, max_wait_ms=0), 11)
        assert errors(response) == [error], (replica_id, epoch)
