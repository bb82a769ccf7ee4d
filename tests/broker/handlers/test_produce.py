"""Produce requests: accepted batches, the order of checks, the time of the response, and producer sequences."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.metadata.image import COORDINATOR_TOPICS, INTERNAL_TOPICS
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.records.batch import NewRecord, build_batch, read_header, records
from kafkaproto.records.compression import Compression
from tests.support.scene import answered_at, elect, fetchers, fill, hold, only, release, replica, three
from tests.support.wire import batch, batch_of_bytes, fetch, metadata, produce, produced

LATEST = 11
FIRST_WITH_ONE_BATCH = 3
HOUR_MS = 3_600_000


@pytest.fixture
def cluster() -> VirtualCluster:
    virtual_cluster = VirtualCluster()
    virtual_cluster.topic("t", 2)
    return virtual_cluster


@pytest.fixture
def client(cluster: VirtualCluster) -> MemoryClient:
    return cluster.connect()


def ask(client: MemoryClient, data: bytes | None, version: int = LATEST, topic: str = "t", **more: Any) -> Any:
    """Produce to one partition and return the partition response."""
    return produced(client.ask(produce(topic, data, **more), version))  # type: ignore[arg-type]


def result_of(answer: Any) -> tuple[int, int, int, int]:
    """Return (error code, base offset, log append time, log start offset) of a partition response."""
    return answer.error_code, answer.base_offset, answer.log_append_time_ms, answer.log_start_offset


def corrupt(data: bytes) -> bytes:
    """Return the batch with its last byte flipped, so that the checksum is wrong."""
    return data[:-1] + bytes([data[-1] ^ 1])


def end(cluster: VirtualCluster) -> int:
    return replica(cluster, 0).log.log_end_offset


def numbered(first: int, count: int = 1, *, producer: int = 7, epoch: int = 0) -> bytes:
    """Return a batch of an idempotent producer with sequences from `first` on."""
    new_records = [NewRecord(b"x", None, 1_700_000_000_000)] * count
    return build_batch(new_records, producer_id=producer, producer_epoch=epoch, base_sequence=first)


# ---- the response ----------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("P-2")
def test_produce_response_returns_log_start_offset_and_log_append_time(cluster: VirtualCluster) -> None:
    cluster.topic("timed", message_timestamp_type="LogAppendTime")
    client = cluster.connect()
    assert result_of(ask(client, batch(b"a"), topic="timed")) == (0, 0, cluster.now_ms, 0)
    replica(cluster, 0, "timed").log.raise_log_start(1)
    assert result_of(ask(client, batch(b"a"), topic="timed")) == (0, 1, cluster.now_ms, 1)
    assert ask(client, batch(b"a"), 1, topic="timed").log_append_time_ms == -1  # the field exists from version 2


@pytest.mark.rule("P-2")
def test_produce_error_detected_while_appending_contains_the_log_start_offset() -> None:
    cluster = VirtualCluster(2)
    cluster.topic("t", max_message_bytes="200", message_timestamp_before_max_ms="1000")
    fill(cluster, "t", *(batch(b"x", timestamp=cluster.now_ms) for _ in range(2)))
    replica(cluster, 0).log.raise_log_start(1)
    client = cluster.connect()
    fresh = cluster.now_ms
    assert result_of(ask(client, corrupt(batch(b"a", timestamp=fresh)))) == (2, -1, -1, -1)
    assert result_of(ask(client, batch_of_bytes(201))) == (10, -1, -1, -1)
    assert result_of(ask(client, batch(b"a") * 2)) == (87, -1, -1, -1)
    assert result_of(ask(client, batch(b"a", timestamp=fresh - HOUR_MS))) == (32, -1, -1, 1)
    assert result_of(ask(client, batch(b"a", timestamp=fresh, base_offset=4))) == (87, -1, -1, 1)
    assert result_of(ask(client, batch(b"a"), topic="missing")) == (3, -1, -1, -1)
    assert result_of(ask(cluster.connect(1), batch(b"a"))) == (6, -1, -1, -1)


# ---- contents of a request -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("P-4")
@pytest.mark.parametrize(
    ("data", "error"),
    [(None, 87), (b"", 87), (batch(b"a")[:-1], 87), (batch(b"a") * 2, 87), (b"\x00" * 11, 87)],
    ids=["null", "nothing", "incomplete", "two", "no prefix"],
)
def test_produce_rejects_partition_data_that_is_not_exactly_one_complete_batch(
    cluster: VirtualCluster, client: MemoryClient, data: bytes | None, error: int
) -> None:
    for version in range(FIRST_WITH_ONE_BATCH, LATEST + 1):
        assert result_of(ask(client, data, version)) == (error, -1, -1, -1)
    assert end(cluster) == 0


@pytest.mark.rule("P-4", "P-6", "P-7")
def test_produce_with_two_batches_and_too_few_replicas_gets_error_invalid_record() -> None:
    cluster = VirtualCluster(2)
    cluster.topic("t", 1, 2, min_insync_replicas="2")
    cluster.state.controller.ensure_internal("__consumer_offsets")
    cluster.state.stop_broker(1)
    cluster.run()
    client = cluster.connect()
    two = batch(b"a") * 2
    assert ask(client, two, topic="missing").error_code == 3
    assert ask(client, two, topic="__consumer_offsets").error_code == 87
    assert ask(client, two, acks=-1).error_code == 87
    assert ask(client, batch(b"a"), acks=-1).error_code == 19
    assert ask(client, corrupt(batch(b"a")), acks=-1).error_code == 19  # the batch itself is checked last
    assert ask(client, corrupt(batch(b"a"))).error_code == 2


@pytest.mark.rule("P-6")
@pytest.mark.parametrize("topic", sorted(INTERNAL_TOPICS))
def test_produce_to_internal_topics_succeeds_only_with_client_id_admin_client(topic: str) -> None:
    cluster = VirtualCluster(2)
    if topic in COORDINATOR_TOPICS:
        cluster.state.controller.ensure_internal(topic)
        cluster.run()
    else:
        cluster.topic(topic)
    keyed = build_batch([NewRecord(b"v", b"k", 1)])
    assert result_of(ask(cluster.connect(), keyed, topic=topic)) == (17, -1, -1, -1)
    assert ask(cluster.connect(1), keyed, topic=topic).error_code == 17  # checked before leadership
    assert ask(cluster.connect(client_id="__admin_client"), keyed, topic=topic).error_code == 0


@pytest.mark.rule("P-2", "P-7")
def test_acks_all_produce_below_min_insync_replicas_fails_but_acks_1_succeeds() -> None:
    cluster = three()
    cluster.topic("safe", 1, 3, min_insync_replicas="3")
    fill(cluster, "safe", batch(b"x"))
    replica(cluster, 0, "safe").log.raise_log_start(1)
    cluster.state.stop_broker(2)
    cluster.run()
    client = cluster.connect()
    assert result_of(ask(client, batch(b"a"), topic="safe", acks=-1)) == (19, -1, -1, 1)
    assert replica(cluster, 0, "safe").log.log_end_offset == 1
    assert ask(client, batch(b"a"), topic="safe", acks=1).error_code == 0


# ---- contents of a batch ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("P-12")
def test_produce_rewrites_batches_to_apply_the_topic_codec_and_log_append_time() -> None:
    cluster = VirtualCluster()
    cluster.topic("t", compression_type="lz4", message_timestamp_type="LogAppendTime")
    fill(cluster, "t", batch(b"a" * 100, b"b" * 100, timestamp=5, compression=Compression.GZIP))
    stored = bytes(only(cluster.connect().ask(fetch(("t", 0, 0)), 11)).records)
    header = read_header(stored)
    assert (header.compression, header.is_log_append_time) == (Compression.LZ4, True)
    assert [(r.timestamp, r.value) for r in records(stored)] == [
        (cluster.now_ms, b"a" * 100),
        (cluster.now_ms, b"b" * 100),
    ]


# ---- acks ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("P-13")
def test_produce_response_waits_for_the_slowest_partition_even_if_another_has_failed() -> None:
    cluster = VirtualCluster(2)
    cluster.topic("quick", 1, 1)
    cluster.topic("slow", 1, 2)
    hold(cluster, 1, topic="slow")
    client = cluster.connect()
    request = produce("quick", batch(b"a"), acks=-1, timeout_ms=400)
    request.topic_data += produce("slow", batch(b"b")).topic_data + produce("missing", batch(b"c")).topic_data
    start_ms = cluster.now_ms
    client.send(request, LATEST)
    cluster.advance(1000)
    assert answered_at(client, start_ms) == [400]
    results = {t.name: (p.error_code, p.base_offset) for t in client.latest.responses for p in t.partition_responses}
    assert results == {"quick": (0, 0), "slow": (7, 0), "missing": (3, -1)}
    assert replica(cluster, 0, "slow").log.log_end_offset == 1


@pytest.mark.rule("P-13")
def test_produce_gets_error_not_enough_replicas_after_append_if_the_isr_shrinks() -> None:
    cluster = three()
    hold(cluster, 2)
    client = cluster.connect()
    client.send(produce("t", batch(b"a"), acks=-1, timeout_ms=60_000), LATEST)
    cluster.state.stop_broker(1)
    for fetcher in fetchers(cluster, 2):
        fetcher.release("t", 0)
    # In the same turn: broker 2 fetches, and before the next check three in-sync replicas are required.
    needed = {"min.insync.replicas": "3"}
    cluster.state.actions.soon(lambda _: cluster.state.controller.set_topic_configs("t", needed))
    cluster.run()
    assert result_of(produced(client.latest)) == (20, 0, -1, 0)
    assert replica(cluster, 0).log.high_watermark == 1


@pytest.mark.rule("P-13", "P-18")
def test_duplicate_produce_with_acks_all_is_answered_only_after_replication() -> None:
    cluster = three()
    hold(cluster, 2)
    first, again = cluster.connect(), cluster.connect()
    for client in (first, again):
        client.send(produce("t", numbered(0), acks=-1, timeout_ms=5000), LATEST)
        assert client.answers == []
    cluster.advance(100)
    release(cluster, 2)
    assert [result_of(produced(c.latest))[:2] for c in (first, again)] == [(0, 0), (0, 0)]
    assert end(cluster) == 1


@pytest.mark.rule("P-13")
def test_parked_produce_gets_an_unknown_topic_error_when_its_topic_is_deleted() -> None:
    cluster = three()
    hold(cluster, 2)
    client = cluster.connect()
    client.send(produce("t", batch(b"a"), acks=-1, timeout_ms=9000), LATEST)
    cluster.state.controller.delete_topic("t")
    cluster.run()
    assert produced(client.latest).error_code == 3


@pytest.mark.rule("P-14")
def test_acks_0_produces_can_be_pipelined_and_an_error_closes_the_connection(cluster: VirtualCluster) -> None:
    """Kafka's SocketServerTest.testNoOpAction and testGracefulClose: ten requests in a row are all appended."""
    client = cluster.connect()
    client.send_bytes(b"".join(client.frame(produce("t", batch(b"a"), acks=0), LATEST) for _ in range(10)))
    assert (end(cluster), client.answers, client.closed_ms) == (10, [], None)
    request = produce("t", batch(b"a"), acks=0)
    request.topic_data += produce("missing", batch(b"a")).topic_data
    client.send(request, LATEST)
    assert (end(cluster), client.answers) == (11, [])
    assert client.closed_ms == cluster.now_ms
    client.send(metadata(), 1)
    assert client.answers == []


@pytest.mark.rule("P-15")
def test_acks_all_produce_to_a_topic_with_replication_factor_1_succeeds() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    client = cluster.connect()
    assert ask(client, batch(b"a"), acks=-1).error_code == 0
    assert replica(cluster, 0).log.high_watermark == 1


@pytest.mark.rule("P-16", "W-7")
@pytest.mark.parametrize("version", [0, 3, LATEST])
def test_exception_in_the_produce_handler_returns_an_error_for_every_partition(
    cluster: VirtualCluster, client: MemoryClient, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: Any, **__: Any) -> None:
        raise RuntimeError("as bugs do")

    monkeypatch.setattr(cluster.state.nodes[0].replicas, "append", breaks)
    assert result_of(ask(client, batch(b"a"), version)) == (-1, -1, -1, -1)
    monkeypatch.undo()
    assert ask(client, batch(b"b"), version).error_code == 0


@pytest.mark.rule("P-16")
def test_exception_in_a_produce_with_acks_0_closes_the_connection(
    cluster: VirtualCluster, client: MemoryClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.state.nodes[0].replicas, "append", None)
    client.send(produce("t", batch(b"a"), acks=0), LATEST)
    assert client.answers == []
    assert client.closed_ms is not None


# ---- sequences -------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("P-17")
def test_producer_sequence_numbers_are_tracked_per_partition(client: MemoryClient) -> None:
    assert ask(client, numbered(5), partition=0).error_code == 0
    assert ask(client, numbered(9), partition=1).error_code == 0
    assert ask(client, numbered(6), partition=0).error_code == 0
    assert ask(client, numbered(6), partition=1).error_code == 45


@pytest.mark.rule("P-17", "P-18")
def test_new_leader_recognises_duplicates_of_producer_batches_that_it_replicated() -> None:
    cluster = three()
    client = cluster.connect()
    assert ask(client, numbered(0, 3), acks=-1).error_code == 0
    elect(cluster, 1)
    other = cluster.connect(1)
    assert result_of(ask(other, numbered(0, 3), acks=-1))[:2] == (0, 0)
    assert result_of(ask(other, numbered(5), acks=-1))[:2] == (45, -1)
    assert result_of(ask(other, numbered(3), acks=-1))[:2] == (0, 3)
