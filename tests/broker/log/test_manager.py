"""Retention, compaction, segments and idle producers on a cluster in virtual time: when, on which replica, at what cost."""

from __future__ import annotations

import pytest

from kafkaproto.broker.config.values import ClusterConfig
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.files import FileRange
from kafkaproto.broker.log.rolling import SegmentTime
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.records.batch import NewRecord, build_batch
from tests.support.scene import fill, hold, release, replica
from tests.support.wire import batch

HOUR_MS = 3_600_000
CHECK_MS = 300_000
ONE_EACH = "130"


def keyed(cluster: VirtualCluster, key: bytes, value: bytes | None = b"v", **options: int) -> bytes:
    return build_batch([NewRecord(value, key, cluster.now_ms)], **options)


def timed(cluster: VirtualCluster, later_ms: int = 0) -> bytes:
    return batch(b"v" * 50, timestamp=cluster.now_ms + later_ms)


def starts(cluster: VirtualCluster, brokers: int = 3) -> list[int]:
    return [replica(cluster, i).log.log_start_offset for i in range(brokers)]


@pytest.mark.rule("N-15")
def test_what_has_expired_goes_at_the_first_look_after_that() -> None:
    cluster = VirtualCluster(3)
    cluster.topic("t", 1, 3, retention_ms=str(HOUR_MS), segment_bytes=ONE_EACH)
    fill(cluster, "t", timed(cluster), acks=-1)
    cluster.advance(HOUR_MS // 2)
    fill(cluster, "t", timed(cluster), acks=-1)
    cluster.advance(HOUR_MS // 2)
    assert starts(cluster) == [0, 0, 0]  # exactly as old as allowed
    cluster.advance(CHECK_MS)
    assert starts(cluster) == [1, 1, 1]
    cluster.advance(HOUR_MS)
    assert starts(cluster) == [2, 2, 2]
    assert cluster.state.budget.used_bytes == 0  # space came back
    assert len(cluster.state.timers) == 0  # an empty cluster costs no event


@pytest.mark.rule("N-15")
def test_each_replica_deletes_what_it_has_committed() -> None:
    cluster = VirtualCluster(3)
    cluster.topic("t", 1, 3, retention_ms="1000", segment_bytes=ONE_EACH)
    fill(cluster, "t", timed(cluster), acks=-1)
    hold(cluster, 1, 2)
    fill(cluster, "t", timed(cluster))
    cluster.advance(5000)
    cluster.state.log_manager.retention.run(cluster.now_ms)
    assert starts(cluster)[0] == 1  # the second is not committed: the held followers are in sync
    release(cluster, 1, 2)
    cluster.state.log_manager.retention.run(cluster.now_ms)
    cluster.run()
    assert starts(cluster) == [2, 2, 2]


def test_retention_that_is_changed_counts_at_the_next_look() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    fill(cluster, "t", timed(cluster))
    cluster.advance(HOUR_MS)
    assert starts(cluster, 1) == [0]
    cluster.state.controller.set_topic_configs("t", {"retention.ms": "1000"})
    cluster.advance(CHECK_MS)
    assert starts(cluster, 1) == [1]


def test_an_idle_cluster_costs_few_events() -> None:
    cluster = VirtualCluster(3)
    cluster.topic("t", 10, 3)
    for index in range(10):
        fill(cluster, "t", timed(cluster), partition=index, acks=-1)
    cluster.advance(CHECK_MS * 3)
    looks = 0
    deadline = cluster.state.timers.next_deadline_ms()
    while deadline is not None and deadline < cluster.now_ms + 24 * 7 * HOUR_MS:
        looks += 1
        cluster.advance(deadline - cluster.now_ms)
        deadline = cluster.state.timers.next_deadline_ms()
    assert looks <= 3
    assert [replica(cluster, 0, index=i).log.log_start_offset for i in range(10)] == [1] * 10


def test_records_without_a_time_are_as_old_as_their_append() -> None:
    cluster = VirtualCluster()
    cluster.topic("t", retention_ms="1000")
    fill(cluster, "t", batch(b"v", timestamp=-1))
    cluster.advance(900)
    fill(cluster, "t", batch(b"v", timestamp=-1))
    cluster.advance(1000)
    cluster.state.log_manager.retention.run(cluster.now_ms)
    assert starts(cluster, 1) == [0]
    cluster.advance(1)
    cluster.state.log_manager.retention.run(cluster.now_ms)
    assert starts(cluster, 1) == [2]


def test_three_replicas_are_compacted_into_one_copy_and_old_bytes_live_while_they_are_read() -> None:
    cluster = VirtualCluster(3, memory_bytes=0)
    cluster.topic("t", 1, 3, cleanup_policy="compact", segment_bytes="100000")
    for i in range(6):
        fill(cluster, "t", build_batch([NewRecord(b"%d" % i * 70_000, b"k", cluster.now_ms)]), acks=-1)
    log = replica(cluster, 0).log
    read = log.read(0, 70_200, 6, True).records
    assert isinstance(read, FileRange)
    before = read.read()
    end = log.store.end_position
    cluster.state.log_manager.compaction.clean("t", 0, cluster.now_ms)
    for broker_id in range(3):
        assert [h.base_offset for _, h in replica(cluster, broker_id).log.batches(0)] == [4, 5]
    assert log.store.end_position - end < 70_200  # written once
    assert log.store.start_position > 0
    assert read.read() == before


def test_compaction_begins_when_enough_is_dirty_and_not_before() -> None:
    cluster = VirtualCluster()
    cluster.topic("t", cleanup_policy="compact", segment_bytes=ONE_EACH, min_cleanable_dirty_ratio="0.5")
    log = replica(cluster, 0).log
    fill(cluster, "t", *(keyed(cluster, b"%d" % i) for i in range(10)), keyed(cluster, b"x"))
    cluster.advance(15_000)
    assert log.first_dirty_offset == 10
    fill(cluster, "t", *(keyed(cluster, b"9") for _ in range(9)))
    cluster.advance(15_000)
    assert log.first_dirty_offset == 10  # nine of nineteen are dirty
    fill(cluster, "t", keyed(cluster, b"y"), keyed(cluster, b"y"))
    cluster.advance(15_000)
    assert log.first_dirty_offset == 21
    cluster.advance(HOUR_MS)
    assert len(cluster.state.timers) == 0  # nothing more can come due


def test_what_cannot_be_compacted_says_so() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    for topic, code in (("t", 44), ("u", 3)):
        with pytest.raises(KafkaError) as raised:
            cluster.state.log_manager.compaction.clean(topic, 0, cluster.now_ms)
        assert raised.value.error_code == code


@pytest.mark.rule("P-17")
def test_idle_producers_are_forgotten_by_a_timer() -> None:
    cluster = VirtualCluster(config={"producer.id.expiration.ms": str(HOUR_MS)})
    cluster.topic("t")
    made = batch(b"v", timestamp=cluster.now_ms, producer_id=5, producer_epoch=0, base_sequence=3)
    fill(cluster, "t", made)
    known = replica(cluster, 0).log.producers.producers
    cluster.advance(HOUR_MS - 1)
    assert 5 in known
    cluster.advance(1)
    assert 5 not in known


def test_a_segments_jitter_makes_it_end_earlier() -> None:
    time = SegmentTime()
    time.segment_ms, time.jitter_ms, time.draw = 1000, 400, lambda: 0.5
    time.appended(0, 5000, 0)
    assert [time.is_over(0, 5000 + later, 0) for later in (800, 801)] == [False, True]
    assert not time.is_over(1, 90_000, 0)  # nothing is in the next one yet
    time.appended(0, 9000, 0)  # only the first batch counts
    assert time.is_over(0, 5801, 0)


def test_a_segment_whose_first_batch_has_no_time_ends_by_the_brokers() -> None:
    time = SegmentTime()
    time.segment_ms = 1000
    time.appended(0, -1, 70)
    assert [time.is_over(0, 99_999, now_ms) for now_ms in (1070, 1071)] == [False, True]


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({}, 7 * 24 * HOUR_MS),
        ({"log.retention.hours": 2}, 2 * HOUR_MS),
        ({"log.retention.hours": 2, "log.retention.minutes": 3}, 180_000),
        ({"log.retention.hours": 2, "log.retention.minutes": 3, "log.retention.ms": 4}, 4),
        ({"log.retention.hours": -1}, -1),
    ],
)
def test_the_finest_unit_that_is_given_counts(given: dict[str, object], retention_ms: int) -> None:
    config = ClusterConfig(given)
    assert config.topic_value(0, {}, "retention.ms") == retention_ms
    assert config.topic_value(0, {"retention.ms": "9"}, "retention.ms") == 9
