"""What some broker settings change: those of cleaning, timestamps, longest timeouts and regular expressions."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.records.batch import NewRecord, build_batch
from tests.support.scene import fill, replica
from tests.support.wire import batch, produce, produced

HOUR_MS = 3_600_000
CLEANING_MS = 15_000
ONE_EACH = "130"


def made(**config: Any) -> VirtualCluster:
    """Return a cluster with these broker settings and the topic "t"."""
    cluster = VirtualCluster(config={name.replace("_", "."): str(value) for name, value in config.items()})
    cluster.topic("t")
    return cluster


def produce_at(cluster: VirtualCluster, later_ms: int) -> Any:
    data = batch(b"v", timestamp=cluster.now_ms + later_ms)
    return produced(cluster.connect().ask(produce("t", data), 9))


@pytest.mark.parametrize(("kind", "is_stamped"), [("CreateTime", False), ("LogAppendTime", True)])
def test_broker_stamps_records_only_if_log_message_timestamp_type_is_log_append_time(
    kind: str, is_stamped: bool
) -> None:
    cluster = made(log_message_timestamp_type=kind)
    assert produce_at(cluster, -HOUR_MS).log_append_time_ms == (cluster.now_ms if is_stamped else -1)


@pytest.mark.parametrize(("side", "sign"), [("before", -1), ("after", 1)])
def test_records_too_far_from_the_time_of_the_broker_are_rejected(side: str, sign: int) -> None:
    cluster = VirtualCluster(config={f"log.message.timestamp.{side}.max.ms": "1000"})
    cluster.topic("t")
    assert produce_at(cluster, sign * 1_000).error_code == 0
    assert produce_at(cluster, sign * 1_001).error_code == 32
    assert produce_at(cluster, -sign * 1_001).error_code == 0


def compact(config: dict[str, str], waits_ms: int) -> list[int]:
    """Write a deleted key, wait, write to another key until it can be compacted, and return the offsets of the batches that remain."""
    cluster = VirtualCluster(config=config)
    cluster.topic("t", cleanup_policy="compact", segment_bytes=ONE_EACH, min_cleanable_dirty_ratio="0")
    for key, value in ((b"a", b"1"), (b"a", None), (b"b", b"1"), (b"b", b"2")):
        fill(cluster, "t", build_batch([NewRecord(value, key, cluster.now_ms)]))
    cluster.advance(waits_ms)
    for _ in range(2):
        fill(cluster, "t", build_batch([NewRecord(b"3", b"c", cluster.now_ms)]))
        cluster.advance(CLEANING_MS)
    return [header.base_offset for _, header in replica(cluster, 0).log.batches(0)]


def test_compacted_topic_keeps_all_records_if_log_cleaner_enable_is_false() -> None:
    assert compact({"log.cleaner.enable": "false"}, HOUR_MS) == [0, 1, 2, 3, 4, 5]
    assert compact({"log.cleaner.enable": "true"}, HOUR_MS) == [1, 3, 4, 5]


def test_records_are_not_compacted_before_log_cleaner_min_compaction_lag_ms() -> None:
    lag = {"log.cleaner.min.compaction.lag.ms": str(HOUR_MS)}
    assert compact(lag, HOUR_MS // 2) == [0, 1, 2, 3, 4, 5]
    assert compact(lag, HOUR_MS) == [1, 3, 4, 5]


def test_tombstones_are_removed_after_log_cleaner_delete_retention_ms() -> None:
    retention = {"log.cleaner.delete.retention.ms": str(10 * HOUR_MS)}
    assert 1 in compact(retention, 9 * HOUR_MS)
    assert 1 not in compact(retention, 11 * HOUR_MS)


def test_log_roll_jitter_hours_sets_the_default_segment_jitter_ms_of_topics() -> None:
    config = ClusterConfig({"log.roll.jitter.hours": "2"})
    assert config.for_broker(0).topic({}, "segment.jitter.ms") == 2 * HOUR_MS


def test_session_timeout_above_group_max_session_timeout_ms_is_rejected() -> None:
    client = made(group_max_session_timeout_ms=10_000).connect()
    protocols = [JoinGroupRequestProtocol("range", b"")]
    for timeout_ms, error_code in ((10_000, 79), (10_001, 26)):
        request = JoinGroupRequest(
            "g", session_timeout_ms=timeout_ms, rebalance_timeout_ms=1, protocol_type="consumer", protocols=protocols
        )
        assert client.ask(request, 5).error_code == error_code


def test_transaction_timeout_above_transaction_max_timeout_ms_is_rejected() -> None:
    client = made(transaction_max_timeout_ms=10_000).connect()
    for timeout_ms, error_code in ((10_000, 0), (10_001, 50)):
        assert client.ask(InitProducerIdRequest("shop", timeout_ms), 3).error_code == error_code


@pytest.mark.rule("GN-52")
@pytest.mark.parametrize(("refresh_ms", "resolutions"), [(20_000, 2), (600_000, 0)])
def test_subscribed_topic_regex_is_resolved_at_every_regex_refresh_interval(refresh_ms: int, resolutions: int) -> None:
    """Each match of a pattern with the topics writes one record (GN-51)."""
    cluster = VirtualCluster(
        config={"group.consumer.regex.refresh.interval.ms": str(refresh_ms), "offsets.topic.num.partitions": "1"},
        release_name="4.2",
    )
    cluster.topic("t")
    client = cluster.connect()

    def beat(epoch: int, **fields: Any) -> int:
        return int(client.ask(ConsumerGroupHeartbeatRequest("g", "m", epoch, **fields), 1).member_epoch)

    epoch = beat(0, rebalance_timeout_ms=60_000, subscribed_topic_regex="t.*", topic_partitions=[])
    for _ in range(3):
        cluster.advance(4_000)
        epoch = beat(epoch)
    log = replica(cluster, 0, "__consumer_offsets").log
    end = log.log_end_offset
    for _ in range(11):
        cluster.advance(4_000)
        assert beat(epoch) == epoch
    assert log.log_end_offset - end == resolutions
