"""Rolling of a log whose segment has a full offset index or time index, compared with a model of Kafka's `LogSegment`."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kafkaproto.broker.config.dynamic import BrokerResource, Change, change
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.log.rolling import IndexLimits
from kafkaproto.broker.log.store import MemoryBudget, Store
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.records.batch import read_header
from tests.support.broker.batches import NOW_MS, batch
from tests.support.broker.processes import Processes, write
from tests.support.scene import fill, replica

EVERY_BATCH = {"segment_index_bytes": "36", "index_interval_bytes": "0"}
"""Topic settings with which a segment has three batches: the second and the third get an entry, and the time index has room for three."""


@dataclass
class KafkaSegment:
    """A segment with its two indexes, written like `LogSegment` in Kafka: lists of entries, and sizes in bytes."""

    limits: IndexLimits
    sizes_bytes: list[int] = field(default_factory=list)
    offset_index: list[int] = field(default_factory=list)
    time_index: list[int] = field(default_factory=list)
    bytes_since_last_entry: int = 0
    max_timestamp: int = -1

    def should_roll(self, batch_bytes: int, segment_bytes: int) -> bool:
        size_bytes = sum(self.sizes_bytes)
        offset_index_is_full = len(self.offset_index) >= self.limits.size_bytes // 8
        time_index_is_full = len(self.time_index) >= self.limits.size_bytes // 12 - 1
        return size_bytes > segment_bytes - batch_bytes or offset_index_is_full or time_index_is_full

    def append(self, batch_bytes: int, timestamp: int) -> None:
        self.max_timestamp = max(self.max_timestamp, timestamp)
        if self.bytes_since_last_entry > self.limits.interval_bytes:
            self.offset_index.append(sum(self.sizes_bytes))
            if not self.time_index or self.max_timestamp > self.time_index[-1]:
                self.time_index.append(self.max_timestamp)
            self.bytes_since_last_entry = 0
        self.sizes_bytes.append(batch_bytes)
        self.bytes_since_last_entry += batch_bytes


@pytest.mark.rule("CF-28")
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("memory_bytes", [0, 3000, 1 << 30])
def test_segments_with_full_indexes_roll_at_the_batches_predicted_by_a_kafka_model(
    seed: int, memory_bytes: int
) -> None:
    draw = random.Random(seed)
    segment_bytes = draw.choice([2000, 1 << 30])
    store = Store(MemoryBudget(memory_bytes), segment_bytes)
    log = ReplicaLog(store)
    limits = IndexLimits(draw.randrange(24, 100), draw.choice([0, 100, 700, 4096]))
    store.roll_conditions.index_limits = limits
    store.roll_conditions.start_segment()
    expected = [KafkaSegment(limits)]
    for _ in range(150):
        timestamp = NOW_MS + draw.randrange(6)
        data = batch(1, draw.randrange(900), timestamps=[timestamp])
        if expected[-1].sizes_bytes and expected[-1].should_roll(len(data), segment_bytes):
            expected.append(KafkaSegment(limits))
        expected[-1].append(len(data), timestamp)
        log.append(memoryview(data), read_header(data), 0, NOW_MS)
        if draw.random() < 0.05:
            with store.compaction_output():  # what a compaction appends is not part of the active segment
                store.append(bytes(1000))
        if draw.random() < 0.1:
            limits = IndexLimits(draw.randrange(24, 100), draw.choice([0, 100, 700, 4096]))
            store.roll_conditions.index_limits = limits
    assert [segment.size_bytes for segment in log.runs.segments()] == [sum(s.sizes_bytes) for s in expected]
    assert len(expected) >= 3


def test_log_does_not_track_index_sizes_if_index_settings_have_default_values() -> None:
    cluster = VirtualCluster(1)
    cluster.topic("t")
    assert replica(cluster, 0).log.store.roll_conditions.indexes is None


def segment_sizes(cluster: VirtualCluster) -> list[int]:
    """Return the number of records in each segment of partition t-0."""
    return [s.end_offset - s.first_offset for s in replica(cluster, 0).log.runs.segments()]


@pytest.mark.rule("CF-28")
def test_topic_without_index_settings_uses_those_of_the_broker() -> None:
    cluster = VirtualCluster(1, config={"log.index.size.max.bytes": "36", "log.index.interval.bytes": "0"})
    cluster.topic("t")
    fill(cluster, "t", *(batch(timestamps=[NOW_MS + i]) for i in range(4)))
    assert segment_sizes(cluster) == [3, 1]
    changes = [Change("log.index.size.max.bytes", 0, "24")]
    change(BrokerResource(cluster.state, -1), changes, strict_kip=True)
    fill(cluster, "t", *(batch(timestamps=[NOW_MS + i]) for i in range(4, 10)))
    assert segment_sizes(cluster) == [3, 3, 2, 2]


@pytest.mark.rule("CF-28")
@pytest.mark.parametrize("crashes", [False, True])
def test_broker_restarts_do_not_change_where_a_segment_with_a_full_index_rolls(tmp_path: Path, crashes: bool) -> None:
    processes = Processes(tmp_path)
    cluster = processes.cluster
    cluster.topic("t", **EVERY_BATCH)
    for i in range(8):
        write(cluster, "t", b"v", timestamp=NOW_MS + i)
        if crashes:
            cluster = processes.crash_and_restart()
        else:
            processes.end()
            cluster = processes.restart()
    assert segment_sizes(cluster) == [3, 3, 2]
    assert len(list((tmp_path / "topics").glob("*/*.log"))) == 3
