"""Throttled responses are sent at once and mute the connection afterwards (KIP-219); exact times in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.api import ApiKey, codec
from kafkaproto.broker.network.mute import MuteState
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.fetch import FetchResponse
from kafkaproto.messages.produce import ProduceRequest
from tests.support.wire import (
    batch,
    batch_of_bytes,
    errors,
    fetch,
    flat,
    limit,
    metadata,
    produce,
    produce_of_bytes,
    produced,
    sizes,
)


@pytest.fixture
def cluster() -> VirtualCluster:
    virtual_cluster = VirtualCluster()
    virtual_cluster.topic("t")
    return virtual_cluster


@pytest.mark.rule("T-1", "T-6")
def test_throttled_response_is_sent_immediately_and_then_its_connection_is_muted(
    cluster: VirtualCluster,
) -> None:
    limit(cluster, producer_byte_rate=10_000.0)
    client = cluster.connect()
    response = client.ask(produce_of_bytes(client, "t", 105_000), 9)
    assert response.throttle_time_ms == 500
    assert produced(response).error_code == 0
    assert client.answers[-1].at_ms == cluster.now_ms
    assert client.connection.state is MuteState.MUTED_AND_THROTTLED
    assert not client.reading


@pytest.mark.rule("T-7", "T-8")
def test_requests_sent_during_a_throttle_are_answered_in_order_when_it_ends(
    cluster: VirtualCluster,
) -> None:
    limit(cluster, producer_byte_rate=10_000.0)
    client = cluster.connect()
    client.ask(produce_of_bytes(client, "t", 105_000), 9)
    start_ms = cluster.now_ms
    sent = [client.send(metadata(), 1), client.send(ApiVersionsRequest(), 0), client.send(metadata(), 1)]
    cluster.advance(499)
    assert len(client.answers) == 1
    cluster.advance(1)
    assert [a.correlation_id for a in client.answers[1:]] == sent
    assert {a.at_ms for a in client.answers[1:]} == {start_ms + 500}


@pytest.mark.rule("T-7")
def test_second_connection_of_a_throttled_client_can_produce_but_is_throttled_longer(
    cluster: VirtualCluster,
) -> None:
    limit(cluster, producer_byte_rate=10_000.0)
    first, second = cluster.connect(), cluster.connect()
    assert first.ask(produce_of_bytes(first, "t", 105_000), 9).throttle_time_ms == 500
    assert second.reading
    assert second.ask(produce_of_bytes(second, "t", 10_000), 9).throttle_time_ms == 1500


@pytest.mark.rule("T-9")
def test_throttled_client_that_reconnects_can_produce_but_gets_a_longer_throttle(cluster: VirtualCluster) -> None:
    limit(cluster, producer_byte_rate=1000.0)
    client = cluster.connect()
    assert client.ask(produce_of_bytes(client, "t", 15_000), 9).throttle_time_ms == 5000
    client.connection.close()
    cluster.advance(5000)
    again = cluster.connect()
    assert again.ask(produce_of_bytes(again, "t", 1000), 9).throttle_time_ms == 6000  # no credit for waiting


@pytest.mark.rule("T-1")
@pytest.mark.parametrize("version", [0, 1, 3, 5, 6, 8, 9, 11])
def test_throttled_produce_of_every_version_mutes_its_connection_for_500_ms(
    cluster: VirtualCluster, version: int
) -> None:
    limit(cluster, producer_byte_rate=10_000.0)
    client = cluster.connect()
    response = client.ask(produce_of_bytes(client, "t", 105_000, version), version)
    assert response.throttle_time_ms == (0 if version == 0 else 500)
    client.send(metadata(), 1)
    cluster.advance(499)
    assert len(client.answers) == 1
    cluster.advance(1)
    assert len(client.answers) == 2


@pytest.mark.rule("T-3", "T-8", "Q-11")
def test_acks_0_produce_over_quota_mutes_the_connection_without_a_response(cluster: VirtualCluster) -> None:
    limit(cluster, producer_byte_rate=10_000.0, request_percentage=0.01)
    client = cluster.connect()
    client.send(produce_of_bytes(client, "t", 105_000, acks=0), 9)
    assert client.answers == []
    assert client.connection.state is MuteState.MUTED_AND_THROTTLED
    client.send(metadata(), 1)
    cluster.advance(499)
    assert client.answers == []
    cluster.advance(1)
    assert len(client.answers) == 1


@pytest.mark.rule("P-14")
def test_request_after_an_unthrottled_acks_0_produce_is_answered_immediately(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    client.send(produce("t", batch(b"a"), acks=0), 9)
    client.send(metadata(), 1)
    assert [a.message.__class__.__name__ for a in client.answers] == ["MetadataResponse"]


@pytest.mark.rule("P-14", "T-12")
def test_failed_acks_0_produce_is_charged_before_its_connection_closes(cluster: VirtualCluster) -> None:
    limit(cluster, producer_byte_rate=10_000.0)
    client = cluster.connect()
    client.send(ProduceRequest(None, 0, 1000, produce("missing", batch(b"x" * 105_000)).topic_data), 9)
    assert client.answers == []
    assert client.closed_ms == cluster.now_ms
    other = cluster.connect()
    assert other.ask(produce("t", batch(b"a")), 9).throttle_time_ms > 0


@pytest.mark.rule("T-4", "Q-13")
def test_throttled_fetch_is_empty_and_its_bytes_are_credited_back_to_the_quota(cluster: VirtualCluster) -> None:
    """10050 bytes at 1000 B/s give an empty response with 50 ms of throttle, then the repeated fetch returns the data."""
    _produce_for_an_answer_of(cluster, 10_050)
    limit(cluster, client_id="reader", consumer_byte_rate=1000.0)
    reader = cluster.connect(client_id="reader")
    response = reader.ask(fetch(("t", 0, 0)), 11)
    assert (response.error_code, response.responses, response.session_id) == (0, [], 0)
    assert response.throttle_time_ms == 50
    reader.send(fetch(("t", 0, 0)), 11)
    cluster.advance(50)
    assert sizes(reader.latest) == [10_050 - OVERHEAD_BYTES]
    assert reader.latest.throttle_time_ms == 0


@pytest.mark.rule("T-1", "T-4")
@pytest.mark.parametrize("version", range(18))
def test_throttled_fetch_of_any_version_is_empty_and_mutes_the_connection(
    cluster: VirtualCluster, version: int
) -> None:
    cluster.connect(client_id="writer").ask(produce("t", batch_of_bytes(500)), 9)
    limit(cluster, client_id="reader", request_percentage=0.1)
    cluster.state.request_cost_ms["Fetch"] = 100.0
    reader = cluster.connect(client_id="reader")
    ids = {"t": cluster.state.controller.image.topics["t"].topic_id}
    response = reader.ask(fetch(("t", 0, 0), version=version, topic_ids=ids), version)
    assert (response.error_code, response.responses, response.session_id) == (0, [], 0)
    assert response.throttle_time_ms == (1000 if version >= 1 else 0)
    reader.send(metadata(), 1)
    cluster.advance(999)
    assert len(reader.answers) == 1
    cluster.advance(1)
    assert len(reader.answers) == 2


@pytest.mark.rule("T-4")
@pytest.mark.parametrize("version", range(18))
@pytest.mark.parametrize("record_bytes", [500, 200_000])
def test_throttled_fetch_response_has_exactly_the_bytes_of_an_empty_response(
    cluster: VirtualCluster, version: int, record_bytes: int
) -> None:
    """Records of 500 bytes are copied into the frame and records of 200,000 bytes are not. Neither leaves any bytes."""
    cluster.connect(client_id="writer").ask(produce("t", batch_of_bytes(record_bytes)), 9)
    ids = {"t": cluster.state.controller.image.topics["t"].topic_id}
    reader = cluster.connect(client_id="reader")
    session_id, epochs = 0, (0, -1)
    if version >= 7:
        session_id = reader.ask(fetch(version=version, session=(0, 0)), version).session_id
        epochs = (session_id, 1)
    limit(cluster, client_id="reader", request_percentage=0.1)
    cluster.state.request_cost_ms["Fetch"] = 100.0
    reader.send(fetch(("t", 0, 0), version=version, topic_ids=ids, session=epochs), version)
    response = reader.answers[-1]
    empty = FetchResponse(throttle_time_ms=1000 if version >= 1 else 0, session_id=session_id)
    body = bytearray()
    codec(ApiKey.FETCH, version).encode_response(empty, body, None)
    assert response.message == empty
    assert response.size_bytes == (5 if version >= 12 else 4) + len(body)


@pytest.mark.rule("T-4", "R-5")
@pytest.mark.parametrize("case", ["delivered", "without records", "from a throttled follower"])
def test_fetch_response_is_encoded_once_even_if_fetch_and_replication_quotas_apply(
    cluster: VirtualCluster, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    versioned = codec(ApiKey.FETCH, 11)
    encode, encoded = versioned.encode_response, []

    def counted(message: FetchResponse, out: bytearray, splices: Any) -> None:
        encoded.append(len(message.responses))
        encode(message, out, splices)

    cluster.connect(client_id="writer").ask(produce("t", batch_of_bytes(20_000)), 9)
    limit(cluster, client_id="reader", consumer_byte_rate=1500.0 if case == "without records" else 1e9)
    state = cluster.state
    state.controller.set_topic_configs("t", {"leader.replication.throttled.replicas": "*"})
    state.config.dynamic_all["leader.replication.throttled.rate"] = 1_000_000
    state.setting_changed()
    assert state.nodes[0].replicas.leader_quota.active
    monkeypatch.setitem(versioned.__dict__, "encode_response", counted)
    reader = cluster.connect(client_id="reader")
    response = reader.ask(fetch(("t", 0, 0), replica_id=1 if case == "from a throttled follower" else -1), 11)
    assert encoded == [1]
    assert (response.responses == []) == (case == "without records")


OVERHEAD_BYTES = 67
"""The charged bytes of a fetch response v11 with one partition of topic `t`, besides its records (Q-12)."""


def _produce_for_an_answer_of(cluster: VirtualCluster, size: int) -> None:
    """Produce one batch whose fetch is charged exactly `size` bytes."""
    cluster.connect(client_id="writer").ask(produce("t", batch_of_bytes(size - OVERHEAD_BYTES)), 9)
    free = cluster.connect(client_id="unlimited")
    free.ask(fetch(("t", 0, 0)), 11)
    correlation_id_bytes = 4
    assert free.answers[-1].size_bytes - correlation_id_bytes + 4 == size


@pytest.mark.rule("T-4", "S-10")
def test_next_fetch_of_a_session_returns_the_records_withheld_by_a_throttled_fetch(cluster: VirtualCluster) -> None:
    client = cluster.connect(client_id="reader")
    session = client.ask(fetch(("t", 0, 0), session=(0, 0)), 11).session_id
    assert session > 0
    cluster.connect().ask(produce("t", batch_of_bytes(20_000)), 9)
    limit(cluster, client_id="reader", consumer_byte_rate=1500.0)
    response = client.ask(fetch(session=(session, 1)), 11)
    assert (response.error_code, response.session_id, response.responses) == (0, session, [])
    assert response.throttle_time_ms > 0
    client.send(fetch(session=(session, 2)), 11)
    limit(cluster, client_id="reader", consumer_byte_rate=1_000_000.0)
    cluster.advance(response.throttle_time_ms)
    assert sizes(client.latest) == [20_000]


@pytest.mark.rule("S-10")
def test_throttled_full_fetch_creates_no_fetch_session(cluster: VirtualCluster) -> None:
    cluster.connect().ask(produce("t", batch_of_bytes(20_000)), 9)
    limit(cluster, client_id="reader", consumer_byte_rate=1500.0)
    client = cluster.connect(client_id="reader")
    response = client.ask(fetch(("t", 0, 0), session=(0, 0)), 11)
    assert response.throttle_time_ms > 0
    assert response.session_id == 0
    assert len(cluster.state.nodes[0].sessions) == 0


@pytest.mark.rule("Q-14")
def test_batch_of_4096_bytes_is_never_returned_to_a_reader_at_quota_250_bytes_per_s(cluster: VirtualCluster) -> None:
    """4096 bytes at 250 B/s are throttled for 6384 ms at first, and never returned."""
    _produce_for_an_answer_of(cluster, 4096)
    limit(cluster, client_id="reader", consumer_byte_rate=250.0)
    request = fetch(("t", 0, 0))
    client = cluster.connect(client_id="reader")
    throttles_ms = []
    for _ in range(5):
        client.send(request, 11)
        assert client.latest.responses == []
        throttles_ms.append(client.latest.throttle_time_ms)
        cluster.advance(throttles_ms[-1])
    assert throttles_ms[0] == 6384
    assert all(throttle > 5000 for throttle in throttles_ms)


@pytest.mark.rule("T-5", "Q-16")
def test_follower_fetch_is_neither_charged_nor_throttled_by_client_quotas() -> None:
    cluster = VirtualCluster(2)
    cluster.topic("t", 1, 2)
    for fetcher in cluster.state.nodes[1].replicas.fetchers.values():
        fetcher.cut_link(True, cluster.now_ms)
    limit(cluster, consumer_byte_rate=1.0, request_percentage=0.01)
    cluster.connect(client_id="writer").ask(produce("t", batch_of_bytes(50_000)), 9)
    follower = cluster.connect()
    response = follower.ask(fetch(("t", 0, 0), replica_id=1), 11)
    assert response.throttle_time_ms == 0
    assert sizes(response) == [50_000]
    assert follower.connection.state is MuteState.NOT_MUTED


@pytest.mark.rule("T-4")
def test_parked_fetch_is_throttled_for_records_that_arrive_while_it_waits(cluster: VirtualCluster) -> None:
    limit(cluster, client_id="reader", consumer_byte_rate=100.0)
    client = cluster.connect(client_id="reader")
    client.send(fetch(("t", 0, 0), max_wait_ms=20_000), 11)
    cluster.advance(200)
    assert client.answers == []
    cluster.connect(client_id="writer").ask(produce("t", batch_of_bytes(5000)), 9)
    assert client.answers[-1].at_ms == cluster.now_ms
    assert client.latest.throttle_time_ms > 0
    assert client.latest.responses == []


@pytest.mark.rule("T-11")
def test_idle_timeout_closes_a_muted_connection_without_answering_a_pending_request() -> None:
    cluster = VirtualCluster(config={"connections.max.idle.ms": "500"})
    cluster.topic("t")
    limit(cluster, producer_byte_rate=1000.0)
    client = cluster.connect()
    start_ms = cluster.now_ms
    assert client.ask(produce_of_bytes(client, "t", 13_000), 9).throttle_time_ms == 3000
    client.send(metadata(), 1)
    cluster.advance(5000)
    assert client.closed_ms == start_ms + 500
    assert len(client.answers) == 1


@pytest.mark.rule("T-11")
def test_parked_fetch_does_not_keep_an_idle_connection_open() -> None:
    cluster = VirtualCluster(config={"connections.max.idle.ms": "500"})
    cluster.topic("t")
    client = cluster.connect()
    start_ms = cluster.now_ms
    client.send(fetch(("t", 0, 0), max_wait_ms=20_000), 11)
    cluster.advance(1000)
    assert client.closed_ms == start_ms + 500
    partition = cluster.state.nodes[0].replicas.partitions[("t", 0)]
    assert not partition.watchers


@pytest.mark.rule("T-10")
def test_disconnect_of_a_muted_client_does_not_prevent_fetches_of_another_client(cluster: VirtualCluster) -> None:
    limit(cluster, producer_byte_rate=1000.0)
    client, other = cluster.connect(), cluster.connect(client_id="other")
    client.ask(produce_of_bytes(client, "t", 15_000), 9)
    client.connection.socket_closed()
    cluster.advance(10_000)
    assert errors(other.ask(fetch(("t", 0, 0)), 11)) == [0]


@pytest.mark.rule("Q-11")
def test_failed_produce_requests_are_charged_to_the_byte_quota(cluster: VirtualCluster) -> None:
    limit(cluster, producer_byte_rate=10_000.0)
    client = cluster.connect()
    response = client.ask(produce("missing", batch_of_bytes(105_000)), 9)
    assert produced(response).error_code == 3
    assert response.throttle_time_ms >= 500


@pytest.mark.rule("Q-0")
def test_each_broker_measures_and_throttles_a_client_separately() -> None:
    cluster = VirtualCluster(2)
    cluster.topic("t", 2)
    limit(cluster, producer_byte_rate=10_000.0)
    for broker_id in (0, 1):
        client = cluster.connect(broker_id)
        request = produce_of_bytes(client, "t", 105_000)
        request.topic_data[0].partition_data[0].index = broker_id
        assert client.ask(request, 9).throttle_time_ms == 500


@pytest.mark.rule("F-4")
def test_fetch_at_quota_500_bytes_per_s_returns_at_most_the_5000_bytes_of_10_seconds(cluster: VirtualCluster) -> None:
    writer = cluster.connect(client_id="writer")
    for _ in range(30):
        writer.ask(produce("t", batch_of_bytes(1000)), 9)
    limit(cluster, client_id="reader", consumer_byte_rate=500.0)
    free, limited = cluster.connect(client_id="free"), cluster.connect(client_id="reader")
    assert sizes(free.ask(fetch(("t", 0, 0)), 11)) == [30_000]
    response = limited.ask(fetch(("t", 0, 0)), 11)
    assert response.throttle_time_ms < 200  # 5000 bytes of records and the overhead above them
    cluster.advance(response.throttle_time_ms)
    assert sizes(limited.ask(fetch(("t", 0, 0), partition_max=4000), 11)) == [4000]


@pytest.mark.rule("D9")
@pytest.mark.parametrize("semantics", ["kip", "kafka"])
def test_default_quota_applies_to_an_empty_client_id_only_if_broker_follows_kips(semantics: str) -> None:
    cluster = VirtualCluster(config={"quota.producer.default": "10000"}, semantics=semantics)
    cluster.topic("t")
    client = cluster.connect(client_id="")
    assert client.ask(produce_of_bytes(client, "t", 105_000), 9).throttle_time_ms == (500 if semantics == "kip" else 0)


@pytest.mark.rule("T-2")
def test_metadata_v3_response_contains_the_throttle_time_of_the_request_quota(cluster: VirtualCluster) -> None:
    limit(cluster, request_percentage=1.0)
    cluster.state.request_cost_ms["Metadata"] = 200.0  # 20 percent of a second at once: over 10 s that is 2 percent
    client = cluster.connect()
    response = client.ask(metadata(), 3)
    assert response.throttle_time_ms == 1000  # never more than one window
    client.send(metadata(), 1)
    cluster.advance(999)
    assert len(client.answers) == 1
    cluster.advance(1)
    assert len(client.answers) == 2


@pytest.mark.rule("T-3")
def test_produce_throttle_time_ms_is_the_longer_of_byte_and_request_throttle(cluster: VirtualCluster) -> None:
    limit(cluster, producer_byte_rate=1.0, request_percentage=0.01)
    cluster.state.request_cost_ms["Produce"] = 100.0
    client = cluster.connect()
    response = client.ask(produce_of_bytes(client, "t", 500), 9)
    assert response.throttle_time_ms == 490_000
    assert [throttle.reason.quota for throttle in cluster.state.journal.throttles()] == ["Produce"]


def test_helper_function_named_flat_returns_topic_and_data_of_each_fetched_partition(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    client.ask(produce("t", batch(b"a", b"b")), 9)
    [(topic, data)] = flat(client.ask(fetch(("t", 0, 0)), 11))
    assert (topic, data.high_watermark, data.last_stable_offset, data.log_start_offset) == ("t", 2, 2, 0)
