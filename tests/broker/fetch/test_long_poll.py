"""Parked fetches (`DelayedFetch`): when a fetch is parked, what completes the fetch, and its response; exact times in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from tests.support.scene import (
    answered_at,
    base_offsets,
    elect,
    fetchers,
    fill,
    hold,
    only,
    release,
    replica,
    three,
    topic_ids,
)
from tests.support.wire import batch, batch_of_bytes, errors, fetch, limit, produce, sizes

BOTH = pytest.mark.parametrize("semantics", ["kip", "kafka"])


@pytest.fixture
def cluster() -> VirtualCluster:
    virtual_cluster = VirtualCluster()
    virtual_cluster.topic("t", 2)
    return virtual_cluster


def send(cluster: VirtualCluster, *partitions: tuple[str, int, int], broker_id: int = 0, **more: Any) -> MemoryClient:
    """Return a client that has sent this fetch."""
    version = more.setdefault("version", 12)
    client = cluster.connect(broker_id)
    client.send(fetch(*partitions, topic_ids=topic_ids(cluster), **more), version)
    return client


# ---- answered at once ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("F-28")
def test_fetch_with_an_unknown_topic_id_still_waits_for_records_of_known_topics(cluster: VirtualCluster) -> None:
    ids = {**topic_ids(cluster), "missing": bytes(range(16))}
    client = cluster.connect()
    client.send(fetch(("missing", 0, 0), ("t", 0, 0), max_wait_ms=500, version=13, topic_ids=ids), 13)
    assert client.answers == []
    fill(cluster, "t", batch(b"a"))
    assert errors(client.latest) == [0, 100]


@pytest.mark.rule("F-28")
def test_fetch_with_a_diverging_epoch_or_a_preferred_replica_is_answered_immediately() -> None:
    selector = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    cluster = three(**selector, **{"1.broker.rack": "b"})
    fill(cluster, "t", batch(b"a"), acks=-1)
    assert only(send(cluster, ("t", 0, 1), max_wait_ms=9000, rack="b").latest).preferred_read_replica == 1
    elect(cluster, 1)
    fill(cluster, "t", batch(b"b"), acks=-1)
    parted = only(send(cluster, ("t", 0, 2), broker_id=1, last_epoch=0, max_wait_ms=9000).latest)
    assert (parted.diverging_epoch.epoch, parted.diverging_epoch.end_offset) == (0, 1)


# ---- what completes a parked fetch -----------------------------------------------------------------------------------------------


@pytest.mark.rule("F-29")
def test_records_before_the_fetch_offset_do_not_count_towards_fetch_min_bytes(cluster: VirtualCluster) -> None:
    """Kafka's ReplicaManagerQuotasTest.testCompleteInDelayedFetchConsumerFetch, between positions 250 and 500."""
    fill(cluster, "t", *(batch_of_bytes(125) for _ in range(2)))
    client = send(cluster, ("t", 0, 1), max_wait_ms=20_000, min_bytes=126)
    assert client.answers == []
    fill(cluster, "t", batch_of_bytes(125))
    assert base_offsets(client.latest) == [1, 2]


@pytest.mark.rule("F-29")
def test_parked_fetch_returns_all_records_that_were_appended_while_it_waited(cluster: VirtualCluster) -> None:
    client = send(cluster, ("t", 0, 0), max_wait_ms=20_000, min_bytes=150)
    fill(cluster, "t", batch_of_bytes(100), batch_of_bytes(100))
    assert (only(client.latest).high_watermark, sizes(client.latest)) == (2, [200])


@pytest.mark.rule("F-29")
def test_truncation_below_the_fetch_offset_completes_a_parked_fetch() -> None:
    """The fetch offset is beyond the log end after the follower has truncated its log to that of an uncleanly elected leader."""
    cluster = three("kafka", **{"replica.lag.time.max.ms": "1000"})
    fill(cluster, "t", batch(b"a"), acks=-1)
    hold(cluster, 1)
    fill(cluster, "t", batch(b"b"), batch(b"c"))
    cluster.advance(3000)  # broker 1 leaves the ISR, so all three records are committed
    hold(cluster, 2)
    fill(cluster, "t", batch(b"d"))
    cluster.advance(3000)  # broker 2 leaves the ISR
    client = send(cluster, ("t", 0, 3), max_wait_ms=20_000, broker_id=2)
    assert client.answers == []
    cluster.state.stop_broker(0)
    cluster.state.controller.elect_unclean("t", 0)
    assert cluster.state.controller.image.leader_of("t", 0)[0] == 1
    assert replica(cluster, 2).log.log_end_offset == 1
    release(cluster, 2)
    fill(cluster, "t", batch(b"e"))
    cluster.advance(1000)
    assert errors(client.latest) == [1]


@pytest.mark.rule("F-29")
@BOTH
def test_leader_election_completes_parked_fetches_that_name_the_old_leader_epoch(semantics: str) -> None:
    """Kafka's DelayedFetchTest.testFetchWithFencedEpoch and testNotLeaderOrFollower."""
    cluster = three(semantics)
    named = send(cluster, ("t", 0, 0), max_wait_ms=20_000, epoch=0)
    old = send(cluster, ("t", 0, 0), max_wait_ms=20_000, version=10)
    anywhere = send(cluster, ("t", 0, 0), max_wait_ms=20_000)
    elect(cluster, 1)
    assert errors(named.latest) == [74]
    assert errors(old.latest) == [6]
    assert anywhere.answers == []  # a follower serves this fetch too


@pytest.mark.rule("F-29")
def test_one_append_completes_all_parked_fetches_in_the_order_in_which_they_arrived(
    cluster: VirtualCluster,
) -> None:
    clients = [send(cluster, ("t", 0, 0), max_wait_ms=20_000) for _ in range(20)]
    fill(cluster, "t", batch(b"a"))
    assert [len(client.answers) for client in clients] == [1] * 20
    connection_ids = [request.connection_id for request in cluster.state.journal.requests("Fetch")]
    assert connection_ids == [client.connection.connection_id for client in clients]
    assert not replica(cluster, 0).watchers


@pytest.mark.rule("F-29")
def test_disconnect_of_a_client_drops_only_its_own_parked_fetch(cluster: VirtualCluster) -> None:
    disconnected, connected = (send(cluster, ("t", 0, 0), max_wait_ms=20_000) for _ in range(2))
    disconnected.connection.socket_closed()
    assert len(replica(cluster, 0).watchers) == 1
    fill(cluster, "t", batch(b"a"))
    assert (len(disconnected.answers), len(connected.answers)) == (0, 1)


# ---- what does not complete a parked fetch ---------------------------------------------------------------------------------------


@pytest.mark.rule("F-30")
def test_fetch_waits_max_wait_ms_if_its_partition_limits_sum_to_less_than_min_bytes(cluster: VirtualCluster) -> None:
    start_ms = cluster.now_ms
    limits: dict[str, Any] = {"min_bytes": 10_000, "partition_max": 1000}
    client = send(cluster, ("t", 0, 0), max_wait_ms=700, **limits)
    fill(cluster, "t", *(batch_of_bytes(1000) for _ in range(12)))  # 12000 bytes are available, 1000 of them count
    assert client.answers == []
    cluster.advance(1000)
    assert (answered_at(client, start_ms), sizes(client.latest)) == ([700], [1000])
    assert sizes(send(cluster, ("t", 0, 0), max_wait_ms=700, min_bytes=0, partition_max=1000).latest) == [1000]


@pytest.mark.rule("F-30")
def test_parked_fetch_counts_bytes_beyond_its_response_limit_towards_min_bytes(cluster: VirtualCluster) -> None:
    """More bytes are appended than the request's limit allows: they complete the fetch, whose response is cut to the limit."""
    client = send(cluster, ("t", 0, 0), ("t", 1, 0), max_wait_ms=20_000, max_bytes=300, min_bytes=300)
    fill(cluster, "t", batch_of_bytes(200), partition=0)
    assert client.answers == []
    fill(cluster, "t", batch_of_bytes(250), partition=1)
    assert sizes(client.latest) == [200, 0]


@pytest.mark.rule("F-30")
def test_unreplicated_append_completes_parked_follower_fetches_but_no_consumer_fetch() -> None:
    """An append that does not move the high watermark."""
    cluster = three()
    hold(cluster, 1, 2)
    follower = send(cluster, ("t", 0, 0), replica_id=1, max_wait_ms=20_000)
    consumer = send(cluster, ("t", 0, 0), max_wait_ms=20_000)
    assert (follower.answers, consumer.answers) == ([], [])
    fill(cluster, "t", batch_of_bytes(120))
    assert sizes(follower.latest) == [120]
    assert consumer.answers == []
    send(cluster, ("t", 0, 1), replica_id=1)
    assert consumer.answers == []  # broker 2 still has no new records
    cluster.advance(300)
    start_ms = cluster.now_ms
    release(cluster, 2)
    assert (answered_at(consumer, start_ms), sizes(consumer.latest)) == ([0], [120])


@pytest.mark.rule("F-30")
def test_parked_fetch_delays_later_requests_on_its_connection(cluster: VirtualCluster) -> None:
    client = send(cluster, ("t", 0, 0), max_wait_ms=700)
    client.send(produce("t", batch(b"a")), 9)
    assert client.answers == []  # not even its own produce completes it
    cluster.advance(700)
    assert [type(a.message).__name__ for a in client.answers] == ["FetchResponse", "ProduceResponse"]


@pytest.mark.rule("F-29")
def test_fetch_parked_on_a_follower_completes_within_500_ms_of_a_produce() -> None:
    """Kafka's FetchFromFollowerIntegrationTest.testFollowerCompleteDelayedFetchesOnReplication: well before 15 of 20 s."""
    for semantics, longest_ms in (("kip", 0), ("kafka", 500)):
        cluster = three(semantics)
        client = send(cluster, ("t", 0, 0), broker_id=1, max_wait_ms=20_000)
        start_ms = cluster.now_ms
        fill(cluster, "t", batch(b"a"))
        cluster.advance(15_000)
        [waited_ms] = answered_at(client, start_ms)
        assert waited_ms <= longest_ms
        assert sizes(client.latest)[0] > 0


# ---- followers -------------------------------------------------------------------------------------------------------------------


def _fake_follower(semantics: str) -> tuple[VirtualCluster, MemoryClient]:
    """Return a cluster whose broker 1 is cut off, and a raw client that fetches in its name (N-12)."""
    cluster = VirtualCluster(2, semantics=semantics)
    cluster.topic("t", 1, 2)
    for fetcher in fetchers(cluster, 1):
        fetcher.cut_link(True, cluster.now_ms)
    return cluster, cluster.connect()


@pytest.mark.rule("D5")
def test_first_fetch_of_a_follower_session_is_parked_if_broker_follows_kafka_code() -> None:
    for semantics, answered in (("kip", 1), ("kafka", 0)):
        cluster, follower = _fake_follower(semantics)
        follower.send(fetch(("t", 0, 0), replica_id=1, session=(0, 0), max_wait_ms=500), 12)
        assert len(follower.answers) == answered
        cluster.advance(500)
        assert len(follower.answers) == 1
        assert follower.latest.session_id > 0


@pytest.mark.rule("D5")
def test_follower_fetch_gets_a_new_high_watermark_at_once_if_broker_follows_kips() -> None:
    for semantics, answered in (("kip", 1), ("kafka", 0)):
        cluster, follower = _fake_follower(semantics)
        fill(cluster, "t", batch(b"a"))
        session = follower.ask(fetch(("t", 0, 0), replica_id=1, session=(0, 0), max_wait_ms=0), 12).session_id
        assert only(follower.latest).high_watermark == 0
        follower.answers.clear()
        start_ms = cluster.now_ms
        follower.send(fetch(("t", 0, 1), replica_id=1, session=(session, 1), max_wait_ms=500), 12)
        assert replica(cluster, 0).log.high_watermark == 1
        assert len(follower.answers) == answered
        cluster.advance(500)
        assert answered_at(follower, start_ms) == ([0] if semantics == "kip" else [500])
        assert only(follower.latest).high_watermark == 1


@pytest.mark.rule("T-4", "F-28")
def test_parked_fetch_that_exceeds_its_quota_when_it_completes_returns_no_records(cluster: VirtualCluster) -> None:
    limit(cluster, consumer_byte_rate=10.0)
    start_ms = cluster.now_ms
    client = send(cluster, ("t", 0, 0), max_wait_ms=700)
    cluster.advance(100)
    fill(cluster, "t", batch_of_bytes(5000))
    assert answered_at(client, start_ms) == [100]
    assert client.latest.responses == [] and client.latest.throttle_time_ms > 0
