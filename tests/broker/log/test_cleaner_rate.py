"""The limit of the rate of compaction, `log.cleaner.io.max.bytes.per.second`, in virtual time."""

from __future__ import annotations

import pytest

from kafkaproto.broker.config.dynamic import BrokerResource, Change, change
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.records.batch import NewRecord, build_batch
from tests.support.scene import fill, replica

RATE = "log.cleaner.io.max.bytes.per.second"
BACKOFF_MS = 500
ONE_EACH = "130"
SIZE = len(build_batch([NewRecord(b"v" * 60, b"k", 0)]))
CLEANING_BYTES = 3 * SIZE + 3 * SIZE + SIZE
"""The bytes that a cleaning reads and writes after `dirty`: three segments for their keys, the same three for their batches, and the last batch."""

pytestmark = pytest.mark.rule("CF-30")


def started(brokers: int = 1, **rates: str) -> VirtualCluster:
    """Return a cluster that looks for logs to compact every 500 ms. rates: the rate limits: `every` for all brokers, `broker_1` for broker 1."""
    limits = {
        RATE if name == "every" else f"{name.removeprefix('broker_')}.{RATE}": rate for name, rate in rates.items()
    }
    common = {"log.cleaner.backoff.ms": str(BACKOFF_MS), "log.cleaner.min.cleanable.ratio": "0.01"}
    return VirtualCluster(brokers, common | limits)


def dirty(cluster: VirtualCluster, *names: str) -> None:
    """Fill compacted topics, creating missing ones, so that each has three further segments to clean."""
    for name in names:
        if name not in cluster.state.controller.image.topics:
            cluster.topic(name, cleanup_policy="compact", segment_bytes=ONE_EACH)
        records = [NewRecord(b"v" * 60, b"k", cluster.now_ms)]
        fill(cluster, name, *[build_batch(records) for _ in range(4)])


def cleaned(cluster: VirtualCluster) -> list[str]:
    """Return the names of the topics whose first three batches have been cleaned."""
    topics = cluster.state.controller.image.topics
    leaders = {name: cluster.state.controller.image.leader_of(name, 0)[0] for name in topics}
    return [name for name in topics if replica(cluster, leaders[name], name).log.first_dirty_offset >= 3]


def set_rate(cluster: VirtualCluster, rate: str) -> None:
    change(BrokerResource(cluster.state, -1), [Change(RATE, 0, rate)], strict_kip=True)
    cluster.run()


def test_after_compacting_n_bytes_the_next_log_is_compacted_n_divided_by_rate_later() -> None:
    cluster = started(every="1000")  # 1 byte per ms
    dirty(cluster, "a", "b", "c")
    cluster.advance(BACKOFF_MS)
    assert cleaned(cluster) == ["a"]
    for expected in (["a", "b"], ["a", "b", "c"]):
        before = cleaned(cluster)
        cluster.advance(CLEANING_BYTES - 1)
        assert cleaned(cluster) == before
        cluster.advance(1)
        assert cleaned(cluster) == expected


def test_one_check_compacts_all_dirty_logs_if_the_compaction_rate_is_not_limited() -> None:
    cluster = started()
    dirty(cluster, "a", "b", "c")
    cluster.advance(BACKOFF_MS)
    assert cleaned(cluster) == ["a", "b", "c"]


def test_negative_compaction_rate_is_no_limit_and_rate_0_stops_after_one_log() -> None:
    negative, zero = started(every="-1"), started(every="0")
    for cluster in (negative, zero):
        dirty(cluster, "a", "b", "c")
        cluster.advance(BACKOFF_MS)
    assert cleaned(negative) == ["a", "b", "c"]
    zero.advance(3_600_000)
    assert cleaned(zero) == ["a"]


def test_raised_rate_limit_of_compaction_applies_at_the_next_check() -> None:
    cluster = started(every="1")
    dirty(cluster, "a", "b", "c")
    cluster.advance(BACKOFF_MS)
    set_rate(cluster, "10000")
    cluster.advance(BACKOFF_MS)
    assert cleaned(cluster) == ["a", "b"]
    set_rate(cluster, "1")
    cluster.advance(3_600_000 // 2)
    assert cleaned(cluster) == ["a", "b", "c"]


def test_lowered_compaction_rate_lengthens_the_wait_after_the_previous_cleaning() -> None:
    cluster = started(every="1000")
    dirty(cluster, "a", "b")
    cluster.advance(BACKOFF_MS)
    set_rate(cluster, "500")
    cluster.advance(2 * CLEANING_BYTES - 1)
    assert cleaned(cluster) == ["a"]
    cluster.advance(1)
    assert cleaned(cluster) == ["a", "b"]


def test_rate_limit_of_one_broker_does_not_delay_compaction_on_another_broker() -> None:
    cluster = started(2, every="1", broker_1="1000")
    controller = cluster.state.controller
    for name, broker_id in (("a", 0), ("b", 1), ("c", 0), ("d", 1)):
        settings = {"cleanup.policy": "compact", "segment.bytes": ONE_EACH}
        controller.put_topic(controller.plan_topic(name, -1, -1, {0: [broker_id]}, settings))
        dirty(cluster, name)
    cluster.advance(BACKOFF_MS)
    assert cleaned(cluster) == ["a", "b"]
    cluster.advance(CLEANING_BYTES)
    assert cleaned(cluster) == ["a", "b", "d"]


def test_dirtiest_log_is_compacted_first_if_the_compaction_rate_is_limited() -> None:
    cluster = started()
    dirty(cluster, "a")
    cluster.advance(BACKOFF_MS)
    set_rate(cluster, "1")
    dirty(cluster, "a", "b")  # one of four closed segments of "a" is clean
    log = replica(cluster, 0, "a").log
    before = log.first_dirty_offset
    cluster.advance(BACKOFF_MS)
    assert cleaned(cluster) == ["a", "b"]
    assert log.first_dirty_offset == before


def test_cluster_reset_ends_the_wait_that_the_compaction_rate_limit_demands() -> None:
    cluster = started(every="1")
    dirty(cluster, "a")
    cluster.advance(BACKOFF_MS)
    cluster.state.reset()
    dirty(cluster, "a")
    cluster.advance(BACKOFF_MS)
    assert cleaned(cluster) == ["a"]
