"""Retention, compaction, segment rolling and producer expiration of a cluster in virtual time."""

from __future__ import annotations

import pytest

from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.files import FileRange
from kafkaproto.broker.log.rolling import RollConditions
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
def test_expired_segments_are_deleted_at_the_next_retention_check() -> None:
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
    assert cluster.state.budget.used_bytes == 0  # the space was freed
    assert len(cluster.state.timers) == 0  # an empty cluster causes no timer events


@pytest.mark.rule("N-15")
def test_first_retention_check_is_log_initial_task_delay_ms_after_the_start() -> None:
    for delay, deleted_ms in ((None, 1_000), (10_000, 10_000)):
        delay_settings = {} if delay is None else {"log.initial.task.delay.ms": delay}
        cluster = VirtualCluster(config={"log.retention.check.interval.ms": 500, **delay_settings})
        started_ms = cluster.now_ms
        cluster.topic("t", retention_ms="500")
        fill(cluster, "t", timed(cluster))
        cluster.advance(deleted_ms - 1)
        assert starts(cluster, 1) == [0]
        cluster.advance(1)
        assert starts(cluster, 1) == [1] and cluster.now_ms - started_ms == deleted_ms
        fill(cluster, "t", timed(cluster))
        cluster.advance(1_000)
        assert starts(cluster, 1) == [2]  # later checks come every 500 ms


@pytest.mark.rule("N-15")
def test_retention_does_not_delete_records_above_the_high_watermark() -> None:
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


def test_lowered_retention_ms_deletes_old_records_at_the_next_retention_check() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    fill(cluster, "t", timed(cluster))
    cluster.advance(HOUR_MS)
    assert starts(cluster, 1) == [0]
    cluster.state.controller.set_topic_configs("t", {"retention.ms": "1000"})
    cluster.advance(CHECK_MS)
    assert starts(cluster, 1) == [1]


def test_cluster_without_new_records_runs_at_most_three_retention_checks_in_a_week() -> None:
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


def test_retention_uses_the_append_time_of_records_without_a_timestamp() -> None:
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


def test_compaction_of_three_replicas_writes_shared_records_to_storage_only_once() -> None:
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


def test_compaction_starts_only_when_the_minimum_dirty_ratio_is_reached() -> None:
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
    assert len(cluster.state.timers) == 0  # nothing can become due


def test_compaction_of_unknown_topics_and_topics_without_compact_policy_is_rejected() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    for topic, code in (("t", 44), ("u", 3)):
        with pytest.raises(KafkaError) as raised:
            cluster.state.log_manager.compaction.clean(topic, 0, cluster.now_ms)
        assert raised.value.error_code == code


@pytest.mark.rule("P-17")
def test_idle_producer_ids_expire_after_producer_id_expiration_ms() -> None:
    cluster = VirtualCluster(config={"producer.id.expiration.ms": str(HOUR_MS)})
    cluster.topic("t")
    producer_batch = batch(b"v", timestamp=cluster.now_ms, producer_id=5, producer_epoch=0, base_sequence=3)
    fill(cluster, "t", producer_batch)
    producers = replica(cluster, 0).log.producers.producers
    cluster.advance(HOUR_MS - 1)
    assert 5 in producers
    cluster.advance(1)
    assert 5 not in producers


def test_segment_rolls_before_segment_ms_has_passed_if_segment_jitter_ms_is_set() -> None:
    conditions = RollConditions()
    conditions.segment_ms, conditions.jitter_ms, conditions.draw = 1000, 400, lambda: 0.5
    conditions.appended(0, 5000, 0)
    assert [conditions.must_roll(0, 5000 + later, 0) for later in (800, 801)] == [False, True]
    assert not conditions.must_roll(1, 90_000, 0)  # the next segment is still empty
    conditions.appended(0, 9000, 0)  # only the first batch counts
    assert conditions.must_roll(0, 5801, 0)


def test_segment_whose_first_batch_has_no_timestamp_rolls_by_broker_time() -> None:
    conditions = RollConditions()
    conditions.segment_ms = 1000
    conditions.appended(0, -1, 70)
    assert [conditions.must_roll(0, 99_999, now_ms) for now_ms in (1070, 1071)] == [False, True]


@pytest.mark.parametrize(
    ("retention_settings", "retention_ms"),
    [
        ({}, 7 * 24 * HOUR_MS),
        ({"log.retention.hours": 2}, 2 * HOUR_MS),
        ({"log.retention.hours": 2, "log.retention.minutes": 3}, 180_000),
        ({"log.retention.hours": 2, "log.retention.minutes": 3, "log.retention.ms": 4}, 4),
        ({"log.retention.hours": -1}, -1),
    ],
)
def test_log_retention_ms_overrides_log_retention_minutes_which_overrides_hours(
    retention_settings: dict[str, object], retention_ms: int
) -> None:
    config = ClusterConfig(retention_settings)
    assert config.topic_value(0, {}, "retention.ms") == retention_ms
    assert config.topic_value(0, {"retention.ms": "9"}, "retention.ms") == 9
