"""Appends of the broker: their results, the order of checks, and the parked requests that an append completes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.errors import InvalidBatch
from kafkaproto.broker.log.old_messages import validate_any_batch
from kafkaproto.broker.observe.journal_topic import DEFAULT_TOPIC, EVERY_MS
from kafkaproto.broker.replication.replica_manager import NOTHING_APPENDED, AppendResult
from kafkaproto.broker.testing import producing
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.records.compression import Compression
from tests.support.scene import hold, release, replica, three
from tests.support.wire import batch, fetch, limit, produce, produce_of_bytes, sizes


def append(cluster: VirtualCluster, data: bytes, *, acks_all: bool = False) -> AppendResult:
    """Append to `t-0` on its leader, broker 0, without a request."""
    produced = memoryview(bytearray(data))
    return cluster.state.nodes[0].replicas.append(replica(cluster, 0), produced, cluster.now_ms, acks_all=acks_all)


# ---- result ------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("P-2")
def test_appends_with_acks_1_get_consecutive_offsets_without_awaiting_replication() -> None:
    cluster = three()
    assert append(cluster, batch(b"a", b"b")) == AppendResult(0, 2, -1, 0, True, None)
    assert append(cluster, batch(b"c")) == AppendResult(2, 3, -1, 0, True, None)


@pytest.mark.rule("P-12")
def test_append_returns_the_append_time_for_a_topic_with_log_append_time() -> None:
    cluster = VirtualCluster()
    cluster.topic("t", **{"message.timestamp.type": "LogAppendTime"})
    assert append(cluster, batch(b"a")).log_append_time_ms == cluster.now_ms


@pytest.mark.rule("P-18")
def test_duplicate_append_returns_the_original_offsets_and_writes_nothing() -> None:
    cluster = three()
    numbered = batch(b"a", b"b", producer_id=1, producer_epoch=0, base_sequence=0)
    original, again = append(cluster, numbered), append(cluster, numbered)
    assert (original.is_new, again.is_new) == (True, False)
    assert (again.base_offset, again.end_offset) == (original.base_offset, original.end_offset) == (0, 2)
    assert replica(cluster, 0).log.log_end_offset == 2


@pytest.mark.rule("P-4")
def test_append_of_an_empty_message_set_writes_nothing() -> None:
    cluster = three()
    partition, empty = replica(cluster, 0), memoryview(b"")
    result = cluster.state.nodes[0].replicas.append(
        partition, empty, cluster.now_ms, acks_all=True, validate=validate_any_batch
    )
    assert result == NOTHING_APPENDED
    assert partition.log.log_end_offset == 0


@pytest.mark.rule("P-13")
def test_append_with_acks_all_waits_until_the_high_watermark_reaches_its_batch_end() -> None:
    cluster = three()
    hold(cluster, 2)
    awaited = append(cluster, batch(b"a", b"b"), acks_all=True).awaited
    assert awaited is not None
    assert awaited.required_offset == 2
    cluster.run()
    assert not awaited.has_come()
    release(cluster, 2)
    assert awaited.has_come()


@pytest.mark.rule("P-15")
def test_append_with_acks_all_does_not_wait_if_the_leader_is_the_only_replica() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    assert append(cluster, batch(b"a"), acks_all=True) == AppendResult(0, 1, -1, 0, True, None)


# ---- checks and consequences -----------------------------------------------------------------------------------------------


@pytest.mark.rule("P-7")
def test_acks_all_append_checks_the_isr_size_before_it_validates_the_batch() -> None:
    cluster = three(**{"min.insync.replicas": "2"})
    for broker_id in (1, 2):
        cluster.state.stop_broker(broker_id)
    cluster.run()
    damaged = batch(b"a")[:-1] + b"?"
    with pytest.raises(KafkaError) as refused:
        append(cluster, damaged, acks_all=True)
    assert refused.value.error_code == 19
    with pytest.raises(InvalidBatch) as invalid:
        append(cluster, damaged)
    assert invalid.value.error_code == 2
    assert append(cluster, batch(b"a")).base_offset == 0


@pytest.mark.rule("F-29")
def test_append_completes_parked_fetches_of_consumers_and_followers() -> None:
    cluster = three()
    reader = cluster.connect()
    reader.send(fetch(("t", 0, 0), max_wait_ms=5000), 12)
    cluster.run()
    assert reader.answers == []
    append(cluster, batch(b"a"))
    cluster.run()
    assert [replica(cluster, broker_id).log.log_end_offset for broker_id in range(3)] == [1, 1, 1]
    assert sizes(reader.answers[0].message) == [len(batch(b"a"))]


# ---- callers ---------------------------------------------------------------------------------------------------------------


def by_request(cluster: VirtualCluster) -> None:
    cluster.connect().ask(produce("t", batch(b"a")), 9)


def by_a_test(cluster: VirtualCluster) -> None:
    producing.produce(cluster.state, "t", ["a"], 0, Compression.NONE)
    cluster.run()


def by_the_journal(cluster: VirtualCluster) -> None:
    """Cause a throttle, which the journal topic records."""
    limit(cluster, producer_byte_rate=1000.0)
    client = cluster.connect()
    client.ask(produce_of_bytes(client, "t", 20_000), 9)
    cluster.advance(EVERY_MS)


@pytest.mark.rule("F-29")
@pytest.mark.parametrize(
    ("topic", "write"),
    [("t", by_request), ("t", by_a_test), (DEFAULT_TOPIC, by_the_journal)],
    ids=["request", "test", "journal"],
)
def test_parked_fetch_returns_records_appended_by_a_client_a_test_or_the_journal(
    topic: str, write: Callable[[VirtualCluster], None]
) -> None:
    cluster = VirtualCluster(2, journal_topic=DEFAULT_TOPIC)
    cluster.topic("t", 1, 2)
    cluster.advance(2 * EVERY_MS)
    leader, _ = cluster.state.controller.image.leader_of(topic, 0)
    end = replica(cluster, leader, topic).log.log_end_offset
    reader = cluster.connect(leader)
    reader.send(fetch((topic, 0, end), max_wait_ms=50 * EVERY_MS), 11)
    cluster.run()
    assert reader.answers == []
    write(cluster)
    assert len(reader.answers) == 1 and sizes(reader.latest)[0] > 0
    replicas = cluster.state.controller.image.topics[topic].partitions[0].replicas
    ends = {replica(cluster, broker_id, topic).log.log_end_offset for broker_id in replicas}
    assert len(ends) == 1 and ends.pop() > end
