"""Releases before 2.0 delay throttled responses (D9b, T-1; KIP-219), in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.config.release import RELEASES, delays_responses
from kafkaproto.broker.network.mute import MuteState
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from tests.support.wire import batch, errors, fetch, limit, metadata, produce, produce_of_bytes, produced, sizes


@pytest.fixture
def cluster() -> VirtualCluster:
    virtual_cluster = VirtualCluster(release_name="1.1")
    virtual_cluster.topic("t")
    return virtual_cluster


@pytest.mark.rule("T-1", "D9b")
def test_only_emulated_releases_before_2_0_delay_throttled_responses() -> None:
    assert [r for r in RELEASES if delays_responses(r)] == [r for r in RELEASES if r.startswith(("0.", "1."))]
    assert delays_responses("1.1") and not delays_responses("2.0")


def after(cluster: VirtualCluster, client: MemoryClient, wait_ms: int) -> Any:
    """Return the response that arrives after exactly `wait_ms`."""
    count = len(client.answers)
    cluster.advance(wait_ms - 1)
    assert len(client.answers) == count
    cluster.advance(1)
    assert len(client.answers) == count + 1
    return client.latest


@pytest.mark.rule("D9b")
def test_emulated_kafka_1_1_appends_a_throttled_produce_at_once_but_answers_it_late(cluster: VirtualCluster) -> None:
    limit(cluster, producer_byte_rate=10_000.0)
    client = cluster.connect()
    client.send(produce_of_bytes(client, "t", 105_000, version=5), 5)
    assert client.connection.state is MuteState.MUTED_AND_RESPONSE_PENDING
    reader = cluster.connect(client_id="reader")
    assert sizes(reader.ask(fetch(("t", 0, 0)), 6))[0] > 100_000
    response = after(cluster, client, 500)
    assert (produced(response).error_code, response.throttle_time_ms) == (0, 500)
    # Not muted afterwards: the next request is handled at once and charged on its own.
    assert client.connection.state is MuteState.NOT_MUTED
    client.ask(metadata(), 4)
    [throttle] = cluster.state.journal.throttles()
    assert (throttle.held, throttle.throttle_time_ms, throttle.ended_ms) == (True, 500, throttle.at_ms + 500)


@pytest.mark.rule("D9b")
def test_emulated_kafka_1_1_withholds_fetched_records_until_the_fetch_throttle_ends(cluster: VirtualCluster) -> None:
    writer = cluster.connect(client_id="writer")
    for _ in range(2):
        writer.ask(produce("t", batch(b"v" * 4000)), 5)
    limit(cluster, client_id="test", consumer_byte_rate=1000.0)
    client = cluster.connect()
    client.send(fetch(("t", 0, 0), version=6), 6)
    [usage] = list(cluster.state.nodes[0].quotas.fetch.metrics(cluster.now_ms))
    paid = round(usage.rate * 10)
    assert paid > 8000
    assert paid < 10_000
    assert errors(client.latest) == [0] and sizes(client.latest)[0] > 8000
    client.send(fetch(("t", 0, 0), partition_max=4500, version=6), 6)
    [usage] = list(cluster.state.nodes[0].quotas.fetch.metrics(cluster.now_ms))
    total = round(usage.rate * 10)
    assert total > 12_000
    response = after(cluster, client, cluster.state.journal.throttles("Fetch")[-1].throttle_time_ms)
    assert sizes(response)[0] > 4000
    assert response.throttle_time_ms == cluster.state.journal.throttles("Fetch")[-1].throttle_time_ms > 0


@pytest.mark.rule("D9b")
def test_emulated_kafka_1_1_delays_a_response_by_sum_of_byte_and_request_throttle(cluster: VirtualCluster) -> None:
    limit(cluster, producer_byte_rate=10_000.0, request_percentage=1.0)
    cluster.state.request_cost_ms["Produce"] = (
        110.0  # 11 percent of a second, 10 of which are free: 1 s over the window
    )
    client = cluster.connect()
    client.send(produce_of_bytes(client, "t", 105_000, version=5), 5)
    response = after(cluster, client, 1500)
    assert response.throttle_time_ms == 1500
    assert [(s.reason.quota, s.throttle_time_ms) for s in cluster.state.journal.throttles()] == [  # type: ignore[union-attr]
        ("Produce", 500),
        ("Request", 1000),
    ]


@pytest.mark.rule("D9b")
def test_throttled_acks_0_produce_delays_the_next_response_of_emulated_kafka_1_1(cluster: VirtualCluster) -> None:
    limit(cluster, producer_byte_rate=10_000.0, request_percentage=1.0)
    cluster.state.request_cost_ms["Produce"] = 1000.0  # exempt: no client waits for the response
    client = cluster.connect()
    client.send(produce_of_bytes(client, "t", 105_000, acks=0, version=5), 5)
    client.send(metadata(), 1)
    after(cluster, client, 500)


@pytest.mark.rule("D9b")
def test_emulated_kafka_1_1_answers_produce_and_next_request_when_the_throttle_ends(cluster: VirtualCluster) -> None:
    for version in range(3, 6):
        limit(cluster, client_id=f"v{version}", producer_byte_rate=10_000.0)
        client = cluster.connect(client_id=f"v{version}")
        client.send(produce_of_bytes(client, "t", 100_100, version=version), version)
        client.send(metadata(), 1)
        assert client.answers == []
        cluster.advance(10)
        assert len(client.answers) == 2, version


@pytest.mark.rule("T-10", "T-11")
@pytest.mark.parametrize("way", ["closed", "idle", "reset"])
def test_connection_closed_while_its_response_is_delayed_leaves_no_timers(way: str) -> None:
    cluster = VirtualCluster(release_name="1.1", config={"connections.max.idle.ms": "3000"})
    cluster.topic("t")
    limit(cluster, producer_byte_rate=1000.0)
    client = cluster.connect()
    client.ask(produce("t", batch(b"log maintenance and the sensors have their timers now")), 5)
    timers = len(cluster.state.timers)
    client.send(produce_of_bytes(client, "t", 100_000, version=5), 5)
    if way == "idle":
        cluster.advance(3000)
        assert client.closed_ms == cluster.now_ms
    elif way == "closed":
        client.connection.close()
    else:
        client.connection.socket_closed()
    assert len(cluster.state.timers) == timers - 1  # the remaining one checks for idle connections
    cluster.advance(200_000)
    assert len(client.answers) == 1
    [throttle] = cluster.state.journal.throttles()
    assert throttle.ended_ms == throttle.at_ms + (3000 if way == "idle" else 0)


def test_forced_700_ms_throttle_delays_one_metadata_response_of_emulated_kafka_1_1(cluster: VirtualCluster) -> None:
    rule = cluster.state.forced_throttles.add(ForcedThrottle(700, api="Metadata", times=1))
    client = cluster.connect()
    client.send(metadata(), 4)
    assert after(cluster, client, 700).throttle_time_ms == 700
    assert rule.hits == 1 and client.ask(metadata(), 4).throttle_time_ms == 0


@pytest.mark.rule("W-8")
def test_delayed_response_that_cannot_be_sent_closes_only_its_own_connection(cluster: VirtualCluster) -> None:
    limit(cluster, producer_byte_rate=10_000.0)
    client, other = cluster.connect(), cluster.connect(client_id="other")
    client.send(produce_of_bytes(client, "t", 105_000, version=5), 5)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    client.connection.respond = fail  # type: ignore[assignment, method-assign]
    cluster.advance(500)
    assert client.closed_ms == cluster.now_ms
    other.ask(metadata(), 4)


@pytest.mark.rule("D9b")
def test_throttle_time_ms_is_int32_max_if_the_sum_of_two_throttles_exceeds_int32() -> None:
    cluster = VirtualCluster(release_name="1.1", config={"connections.max.idle.ms": "-1"})
    cluster.topic("t")
    limit(cluster, producer_byte_rate=1.0, request_percentage=1e-9)
    cluster.state.request_cost_ms["Produce"] = 1.0
    clients = [cluster.connect() for _ in range(3)]
    for client in clients:
        client.send(produce("t", batch(b"x" * 1_000_000)), 5)
    assert cluster.state.journal.throttles()[-1].throttle_time_ms == 2**31 - 1
    cluster.advance(2**31 - 1 + 1000)
    assert [client.latest.throttle_time_ms for client in clients][-1] == 2**31 - 1
