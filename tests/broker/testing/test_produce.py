"""`produce` of a test cluster: batches within the topic's limits, and all checks before the first byte is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.testing.threaded import TestCluster
from kafkaproto.records.batch import NewRecord
from kafkaproto.records.compression import Compression
from kafkaproto.testing import cluster

LIMIT_BYTES = 10_000
SMALL_BATCHES = {"t": {"partitions": 2, "configs": {"max.message.bytes": LIMIT_BYTES}}}


def batch_sizes(c: TestCluster, topic: str, index: int) -> list[int]:
    log = c.state.nodes[0].replicas.partitions[topic, index].log
    return c.run_in_loop(lambda: [header.size for _, header in log.batches(0)])


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_method_produce_splits_many_values_into_several_batches_in_order(compression: Compression) -> None:
    values = [b"%d" % i * 700 for i in range(100)]
    with cluster(topics=SMALL_BATCHES) as c:
        places = c.produce("t", values, compression=compression)
        assert places == [(i % 2, i // 2) for i in range(100)]
        assert [record.value for record in c.records("t", 1)] == values[1::2]
        sizes = batch_sizes(c, "t", 0)
        assert max(sizes) <= LIMIT_BYTES
        assert (len(sizes) > 1) == (compression is Compression.NONE)


def test_method_produce_writes_all_values_in_one_batch_if_they_fit() -> None:
    with cluster(topics=SMALL_BATCHES) as c:
        c.produce("t", [b"x" * 9000, b"y" * 900], partition=0)
        assert len(batch_sizes(c, "t", 0)) == 1


def stop_the_leader_of_1(c: TestCluster) -> None:
    c.broker(c.partition("t", 1).leader).stop()


def nothing(c: TestCluster) -> None:
    pass


@pytest.mark.parametrize(
    ("prepare", "values", "partition", "code", "text"),
    [
        (
            nothing,
            ["a", b"x" * LIMIT_BYTES],
            None,
            10,
            "values[1] is 10072 bytes as a batch of its own; max.message.bytes of topic t is 10000",
        ),
        (
            stop_the_leader_of_1,
            ["a", "b"],
            None,
            5,
            "t-1 has no leader, because no in-sync replica is running; start a broker that has one.",
        ),
        (nothing, ["a"], 2, 3, "Topic t has no partition 2: it has 2 partitions."),
        (nothing, ["a"], -1, 3, "Topic t has no partition -1: it has 2 partitions."),
        (
            lambda c: c.alter_topic("t", cleanup_policy="compact"),
            [("k", "a"), ("k", "b"), "c"],
            None,
            87,
            "values[2]: Compacted topic cannot accept message without key",
        ),
        (
            lambda c: c.alter_topic("t", segment_bytes=5000, max_message_bytes=20_000),
            ["a", b"x" * 9000],
            None,
            18,
            "values[1] is 9072 bytes as a batch of its own; segment.bytes of topic t is 5000",
        ),
        (
            lambda c: c.alter_topic("t", message_timestamp_before_max_ms=1000),
            ["a", NewRecord(b"b", timestamp=1)],
            None,
            32,
            "values[1]: Timestamp 1 of message with offset 0 is out of range. The timestamp should be within [",
        ),
    ],
    ids=["large value", "stopped leader", "partition 2", "partition -1", "no key", "small segments", "old timestamp"],
)
def test_method_produce_writes_no_records_if_one_value_or_the_partition_is_invalid(
    prepare: Callable[[TestCluster], None], values: list[Any], partition: int | None, code: int, text: str
) -> None:
    with cluster(
        brokers=2,
        topics={"t": {"partitions": 2, "replication_factor": 1, "configs": {"max.message.bytes": LIMIT_BYTES}}},
    ) as c:
        prepare(c)
        with pytest.raises(KafkaError) as raised:
            c.produce("t", values, partition)
        assert (raised.value.error_code, str(raised.value)[: len(text)]) == (code, text)
        assert c.records("t", 0) == []


def test_method_produce_creates_no_topic_if_a_value_is_too_large() -> None:
    with cluster(config={"message.max.bytes": LIMIT_BYTES}) as c:
        with pytest.raises(KafkaError, match=r"max\.message\.bytes of topic new is 10000"):
            c.produce("new", [b"x" * LIMIT_BYTES])
        with pytest.raises(KafkaError, match="Topic new has no partition 1: it has 1 partition"):
            c.produce("new", ["a"], partition=1)
        assert c.topics() == {}


def test_method_produce_raises_a_kafka_error_if_memory_and_disk_are_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with cluster(topics={"t": 1}, memory_bytes=0) as c:
        monkeypatch.setattr("os.pwrite", no_space)
        with pytest.raises(
            KafkaError, match=r"cannot append .* bytes to the log in memory and temporary files: .*No space left"
        ) as raised:
            c.produce("t", [b"x" * 1_000_000])
        assert raised.value.error_code == 56
        assert c.records("t") == []
