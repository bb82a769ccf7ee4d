"""Which offsets may be read, where, and what is said of those that may not: high watermark, epochs, order of the checks.

The conformance suite has the rest, `test_fetch_visibility`.
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
    offsets_told,
    only,
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


def one(cluster: VirtualCluster, broker_id: int, offset: int, **more: Any) -> Any:
    """The data of `t`-0 in the answer to a fetch at this offset."""
    return only(ask(cluster, broker_id, ("t", 0, offset), **more))


# ---- up to where -----------------------------------------------------------------------------------------------------------------


def base_offsets_of(data: Any) -> list[int]:
    from tests.support.scene import whole_batches

    return [header.base_offset for header in whole_batches(data.records)]


@pytest.mark.rule("F-15")
@BOTH
def test_a_consumer_at_a_follower_sees_up_to_the_followers_high_watermark(semantics: str) -> None:
    cluster = lagging(semantics)
    assert replica(cluster, 1).log.log_end_offset == 5
    assert base_offsets_of(one(cluster, 1, 0)) == [0, 1]


@pytest.mark.rule("F-16", "D3")
@pytest.mark.parametrize("offset", [-1, 6, 100])
def test_out_of_range_tells_the_real_offsets_under_kip_and_none_under_kafka(offset: int) -> None:
    """Scenario 9."""
    for semantics, told in (("kip", (5, 5, 1)), ("kafka", UNKNOWN)):
        cluster = VirtualCluster(semantics=semantics)
        cluster.topic("t")
        fill(cluster, "t", *(batch(b"x") for _ in range(5)))
        replica(cluster, 0).log.raise_log_start(1)
        for version in (4, 11, 12, LATEST):
            data = one(cluster, 0, offset, version=version)
            expected = told if version >= 5 else (*told[:2], -1)
            assert (data.error_code, offsets_told(data), bytes(data.records)) == (1, expected, b"")
            assert data.preferred_read_replica == -1


@pytest.mark.rule("F-16")
def test_below_the_log_start_is_out_of_range_and_the_end_is_not() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    fill(cluster, "t", *(batch(b"x") for _ in range(3)))
    replica(cluster, 0).log.raise_log_start(2)
    assert [one(cluster, 0, offset).error_code for offset in (0, 1, 2, 3, 4)] == [1, 1, 0, 0, 1]
    assert bytes(one(cluster, 0, 3).records) == b""


@pytest.mark.rule("F-17", "D1")
def test_between_high_watermark_and_log_end_is_78_at_once_under_kip() -> None:
    cluster = lagging("kip")
    for broker_id in (0, 1):  # the leader, and a follower that has the records
        for offset in (3, 4, 5):
            data = one(cluster, broker_id, offset, max_wait_ms=5000)
            assert (data.error_code, offsets_told(data), bytes(data.records)) == (78, (2, 2, 0), b"")
        client = cluster.connect(broker_id)
        client.send(fetch(("t", 0, 2), max_wait_ms=700), 12)
        assert client.answers == []  # the high watermark itself: nothing yet, and that is no error
        begun = cluster.now_ms
        cluster.advance(700)
        assert (answered_at(client, begun), errors(client.latest)) == ([700], [0])


@pytest.mark.rule("F-17", "D1")
def test_between_high_watermark_and_log_end_is_empty_at_once_under_kafka() -> None:
    """At the high watermark it waits; beyond it Kafka takes the log for truncated and does not."""
    cluster = lagging("kafka")
    for broker_id in (0, 1):
        for offset in (2, 4, 5):
            client = cluster.connect(broker_id)
            begun = cluster.now_ms
            client.send(fetch(("t", 0, offset), max_wait_ms=700), 12)
            cluster.advance(700)
            assert answered_at(client, begun) == [700 if offset == 2 else 0]
            data = only(client.latest)
            assert (data.error_code, offsets_told(data), bytes(data.records)) == (0, (2, 2, 0), b"")


def _follower_that_heard_of_more_than_it_has(semantics: str) -> VirtualCluster:
    """Broker 2 fell out of the ISR and comes back with the first 2 of 5 committed records."""
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
def test_under_kip_a_follower_knows_of_records_that_it_does_not_have_yet() -> None:
    cluster = _follower_that_heard_of_more_than_it_has("kip")
    seen = {offset: one(cluster, 2, offset) for offset in range(7)}
    assert [data.error_code for data in seen.values()] == [0, 0, 0, 78, 78, 78, 1]
    assert [base_offsets_of(data) for data in seen.values()] == [[0, 1], [1], [], [], [], [], []]
    assert {data.high_watermark for data in seen.values()} == {5}


@pytest.mark.rule("D2")
def test_under_kafka_a_followers_high_watermark_ends_with_its_log() -> None:
    cluster = _follower_that_heard_of_more_than_it_has("kafka")
    seen = {offset: one(cluster, 2, offset) for offset in range(7)}
    assert [data.error_code for data in seen.values()] == [0, 0, 0, 1, 1, 1, 1]
    assert {data.high_watermark for data in seen.values() if not data.error_code} == {2}


# ---- who is served ---------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("F-2")
def test_a_partition_that_moved_tells_its_leader_and_where_it_is_from_version_16_on() -> None:
    cluster = three()
    elect(cluster, 1)
    told = cluster.connect().ask(fetch(("t", 0, 0), replica_id=2, version=16, topic_ids=topic_ids(cluster)), 16)
    data = only(told)
    assert (data.error_code, data.current_leader.leader_id, data.current_leader.leader_epoch) == (6, 1, 1)
    assert [(e.node_id, e.host, e.port) for e in told.node_endpoints] == [(1, "broker1", 9092)]
    fenced = ask(cluster, 1, ("t", 0, 0), epoch=0, version=16)
    assert only(fenced).error_code == 74
    assert [e.node_id for e in fenced.node_endpoints] == [1]
    ahead = ask(cluster, 1, ("t", 0, 0), epoch=9, version=16)
    assert (only(ahead).error_code, only(ahead).current_leader.leader_id, ahead.node_endpoints) == (75, -1, [])
    assert ask(cluster, 0, ("t", 0, 0), replica_id=2, version=15).node_endpoints == []


@pytest.mark.rule("F-23")
def test_what_is_wrong_before_reading_is_answered_after_what_can_be_read() -> None:
    cluster = VirtualCluster()
    cluster.topic("t", 2)
    fill(cluster, "t", batch(b"a"))
    answer = ask(cluster, 0, ("missing", 0, 0), ("t", 0, 0), ("t", 9, 0), ("t", 1, 0))
    told = [(topic, data.partition_index, data.error_code) for topic, data in flat(answer)]
    assert told == [("t", 0, 0), ("t", 1, 0), ("missing", 0, 3), ("t", 9, 3)]
    assert [offsets_told(data) for _, data in flat(answer)[2:]] == [UNKNOWN, UNKNOWN]


@pytest.mark.rule("F-23")
def test_from_version_13_on_an_unknown_topic_is_an_unknown_id() -> None:
    cluster = VirtualCluster()
    cluster.topic("t", 1)
    ids = {**topic_ids(cluster), "missing": bytes(range(16))}
    request = fetch(("missing", 0, 0), ("t", 0, 0), ("t", 5, 0), version=13, topic_ids=ids)
    answer = cluster.connect().ask(request, 13)
    assert [(d.error_code, t.topic_id) for t in answer.responses for d in t.partitions] == [
        (0, ids["t"]),
        (100, ids["missing"]),
        (3, ids["t"]),
    ]


@pytest.mark.rule("F-24")
def test_the_epoch_is_checked_before_leadership_and_leadership_before_the_offset() -> None:
    cluster = three()
    elect(cluster, 1)
    assert one(cluster, 0, 99, epoch=0, version=10).error_code == 74
    assert one(cluster, 0, 99, epoch=2, version=10).error_code == 75
    assert one(cluster, 0, 99, epoch=1, version=10).error_code == 6
    assert one(cluster, 1, 99, epoch=1, version=10).error_code == 1


# ---- epochs ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("F-25")
def test_the_epoch_is_checked_within_a_session_too() -> None:
    """FetchRequestTest.testEpochValidationWithinFetchSession."""
    for broker_id in (1, 2):
        for epoch, expected in ((-1, 0), (1, 0), (0, 74), (2, 75)):
            cluster = three()
            cluster.state.stop_broker(0)
            cluster.run()
            client = cluster.connect(broker_id)
            session = client.ask(fetch(("t", 0, 0), session=(0, 0)), 11).session_id
            assert flat(client.ask(fetch(session=(session, 1)), 11)) == []
            answer = client.ask(fetch(("t", 0, 0), session=(session, 2), epoch=epoch), 11)
            assert (answer.error_code, errors(answer)) == (0, [expected] if expected else [])


def _with_epochs() -> VirtualCluster:
    """PartitionTest.testLastFetchedOffsetValidation: epochs 0:0, 3:2, 4:8, 7:13, 9:14, current epoch 10, log end 17."""
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
def test_where_logs_part_is_told_at_once_and_without_records(version: int) -> None:
    cluster = _with_epochs()

    def parting(last_epoch: int, offset: int) -> Any:
        asked = {"replica_id": 1, "last_epoch": last_epoch, "max_wait_ms": 0, "version": version}
        data = one(cluster, 0, offset, **asked)
        if data.error_code:
            return data.error_code
        found = data.diverging_epoch.epoch, data.diverging_epoch.end_offset
        assert found == (-1, -1) or bytes(data.records) == b""
        return found

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
def test_a_fetch_whose_log_parts_does_not_wait_and_moves_no_follower() -> None:
    cluster = _with_epochs()
    before = replica(cluster, 0).followers[1].log_end_offset
    data = one(cluster, 0, 4, last_epoch=0, replica_id=1, max_wait_ms=20_000)
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 2)
    assert replica(cluster, 0).followers[1].log_end_offset == before


@pytest.mark.rule("F-26")
def test_records_of_an_epoch_that_a_new_leader_never_had() -> None:
    """FetchRequestTest.testLastFetchedEpochValidation: 100 records, the leader goes, 100 more; a consumer believes in more of epoch 0."""
    cluster = three()
    fill(cluster, "t", *(batch(b"x") for _ in range(100)), acks=-1)
    cluster.state.stop_broker(0)
    cluster.run()
    fill(cluster, "t", *(batch(b"y") for _ in range(100)), acks=-1)
    data = one(cluster, 1, 105, last_epoch=0)
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset, bytes(data.records)) == (0, 100, b"")
    assert sizes(ask(cluster, 1, ("t", 0, 100), last_epoch=0))[0] > 0
    assert base_offsets(ask(cluster, 1, ("t", 0, 150), last_epoch=1, partition_max=1)) == [150]


@pytest.mark.rule("F-21", "N-12")
def test_the_leader_is_no_follower_of_its_own() -> None:
    """As a real 3.9.1 answers it; found by seed 200 of the conversations, in which the follower that was played became the leader."""
    cluster = three()
    client = cluster.connect()
    for replica_id, epoch, error in ((0, -1, 6), (0, 0, 75), (1, -1, 0), (7, -1, 6)):
        answer = client.ask(fetch(("t", 0, 0), replica_id=replica_id, epoch=epoch, max_wait_ms=0), 11)
        assert errors(answer) == [error], (replica_id, epoch)
