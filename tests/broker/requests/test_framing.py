"""Frames, headers, versions, order and invalid bytes (W-1 to W-11), without sockets and in virtual time."""

from __future__ import annotations

import logging
import random
import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkaproto.api import APIS, ApiKey
from kafkaproto.broker.network.connection import FRAMES_PER_TURN
from kafkaproto.broker.network.mute import MuteState
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import REGISTRY
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from kafkaproto.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from tests.support.wire import batch, errors, fetch, metadata, produce, produced

LIMIT = 104857600


@pytest.fixture
def cluster() -> VirtualCluster:
    virtual_cluster = VirtualCluster()
    virtual_cluster.topic("t")
    return virtual_cluster


def header(key: int, version: int, correlation_id: int = 7, client_id: bytes | None = b"x") -> bytes:
    length = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", key, version, correlation_id, length) + (client_id or b"")


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


@pytest.mark.rule("W-1")
@pytest.mark.parametrize("length", [-1, -(2**31), LIMIT + 1, 2**30, 2**31 - 1])
def test_connection_closes_when_all_4_bytes_of_an_invalid_frame_length_have_arrived(
    cluster: VirtualCluster, length: int
) -> None:
    client = cluster.connect()
    client.send_bytes(struct.pack(">i", length)[:3])
    assert client.closed_ms is None
    client.send_bytes(struct.pack(">i", length)[3:])
    assert client.closed_ms is not None
    assert client.answers == []


@pytest.mark.rule("W-1")
def test_empty_frame_closes_the_connection_but_a_partial_frame_keeps_it_open(cluster: VirtualCluster) -> None:
    empty, patient = cluster.connect(), cluster.connect()
    empty.send_bytes(framed(b""))
    assert empty.closed_ms is not None
    patient.send_bytes(struct.pack(">i", 1000) + b"abc")
    cluster.advance(500_000)
    assert patient.closed_ms is None


@pytest.mark.rule("W-1")
def test_frame_of_101_bytes_closes_the_connection_if_socket_request_max_bytes_is_100() -> None:
    cluster = VirtualCluster(config={"socket.request.max.bytes": "100"})
    client = cluster.connect()
    client.send_bytes(struct.pack(">i", 101))
    assert client.closed_ms is not None


@pytest.mark.rule("W-1")
@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 7, 64])
def test_request_can_arrive_in_pieces_of_any_size(cluster: VirtualCluster, chunk: int) -> None:
    client = cluster.connect()
    data = client.next_frame(metadata(), 1) + client.next_frame(ApiVersionsRequest(), 0)
    for at in range(0, len(data), chunk):
        client.send_bytes(data[at : at + chunk])
    assert [a.correlation_id for a in client.answers] == [1, 2]


@pytest.mark.rule("W-3")
@pytest.mark.parametrize("key", [-1, 4, 5, 6, 7, 52, 58, 62, 63, 70, 999, 32767])
def test_unsupported_api_key_closes_the_connection_without_a_response(cluster: VirtualCluster, key: int) -> None:
    client = cluster.connect()
    client.send_bytes(framed(header(key, 0) + bytes(20)))
    assert client.closed_ms is not None
    assert client.received_bytes == 0


@pytest.mark.rule("W-3")
@pytest.mark.parametrize("key", sorted(int(k) for k in APIS if k != 18))
@pytest.mark.parametrize("version", [-1, 99])
def test_unsupported_version_closes_the_connection_without_a_response(
    cluster: VirtualCluster, key: int, version: int
) -> None:
    client = cluster.connect()
    client.send_bytes(framed(header(key, version) + bytes(50)))
    assert client.closed_ms is not None
    assert client.received_bytes == 0


@pytest.mark.rule("W-3", "W-2")
@pytest.mark.parametrize("version", [5, 6, 99, 32767])
def test_api_versions_request_above_the_latest_version_is_answered_in_version_0(
    cluster: VirtualCluster, version: int
) -> None:
    client = cluster.connect()
    client.expect(7, ApiKey.API_VERSIONS, 0)
    client.send_bytes(framed(header(18, version) + b"\0anything"))
    [response] = client.answers
    assert (response.correlation_id, response.message.error_code) == (7, 35)
    assert [(a.api_key, a.min_version, a.max_version) for a in response.message.api_keys] == [(18, 0, 4)]
    client.send(metadata(), 1)  # the connection stays open
    assert len(client.answers) == 2


@pytest.mark.rule("W-3")
@pytest.mark.parametrize(
    ("release", "listed"),
    [("0.11", []), ("2.3", []), ("2.4", [(18, 0, 3)]), ("2.8", [(18, 0, 3)]), ("4.2", [(18, 0, 4)])],
)
def test_api_versions_v99_error_lists_valid_versions_only_from_emulated_kafka_2_4_on(
    release: str, listed: list[tuple[int, int, int]]
) -> None:
    client = VirtualCluster(release_name=release).connect()
    client.expect(7, ApiKey.API_VERSIONS, 0)
    client.send_bytes(framed(header(18, 99) + b"\0"))
    [response] = client.answers
    assert response.message.error_code == 35
    assert [(a.api_key, a.min_version, a.max_version) for a in response.message.api_keys] == listed


@pytest.mark.rule("W-3", "W-2")
def test_api_versions_request_with_a_negative_version_gets_error_unsupported_version(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    client.expect(7, ApiKey.API_VERSIONS, 0)
    client.send_bytes(framed(header(18, -1)))
    assert [(a.correlation_id, a.message.error_code) for a in client.answers] == [(7, 35)]


@pytest.mark.rule("W-3")
@pytest.mark.parametrize(
    "payload",
    [header(18, 99), header(18, 99)[:-1], header(18, 99)[:8], header(18, 99) + b"\xff" * 6, header(18, -1)[:-1]],
    ids=["no tags", "half a client id", "no client id", "tags without end", "half a client id below 0"],
)
def test_unsupported_api_versions_request_with_incomplete_header_closes_connection(
    cluster: VirtualCluster, payload: bytes
) -> None:
    client = cluster.connect()
    client.send_bytes(framed(payload))
    assert client.closed_ms is not None
    assert client.received_bytes == 0


@pytest.mark.rule("W-4")
@pytest.mark.parametrize(
    ("name", "version", "error"),
    [
        ("librdkafka", "2.3.0", 0),
        ("a", "1", 0),
        ("apache-kafka.java", "3.9.1-rc2", 0),
        ("", "1.0", 42),
        ("name", "", 42),
        ("-name", "1.0", 42),
        ("name-", "1.0", 42),
        ("na me", "1.0", 42),
        ("näme", "1.0", 42),
        ("name\n", "1.0", 42),
    ],
)
def test_api_versions_request_with_an_invalid_client_software_name_is_rejected(
    cluster: VirtualCluster, name: str, version: str, error: int
) -> None:
    response = cluster.connect().ask(ApiVersionsRequest(name, version), 3)
    assert response.error_code == error
    assert bool(response.api_keys) == (error == 0)


def bad_bodies() -> list[tuple[str, bytes]]:
    count_bomb = struct.pack(">i", 2**31 - 1)
    return [
        ("an array longer than the frame", header(3, 1) + count_bomb + bytes(8)),
        ("a null array where none may be", header(3, 0) + struct.pack(">i", -1)),
        ("a string longer than the frame", header(3, 1) + struct.pack(">ih", 1, 500) + b"ab"),
        ("a null string where none may be", header(3, 1) + struct.pack(">ih", 1, -1)),
        ("no body", header(3, 1)),
        ("a header cut in the client id", header(3, 1)[:-1] + b""),
        ("a header of four bytes", struct.pack(">hh", 3, 1)),
        ("a varint without end", header(3, 9) + b"\0" + b"\xff" * 20),
        ("records longer than the frame", header(0, 3) + struct.pack(">hhiihiii", -1, 1, 0, 1, 0, 1, 0, 99)),
    ]


@pytest.mark.rule("W-5", "W-6")
@pytest.mark.parametrize("payload", [p for _, p in bad_bodies()], ids=[name for name, _ in bad_bodies()])
def test_malformed_request_body_closes_the_connection_without_a_response(
    cluster: VirtualCluster, payload: bytes
) -> None:
    client, other = cluster.connect(), cluster.connect()
    client.send_bytes(framed(payload))
    assert client.closed_ms is not None
    assert client.received_bytes == 0
    assert other.ask(metadata(), 1).brokers


@pytest.mark.rule("W-5")
def test_extra_bytes_after_a_complete_request_body_are_ignored(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    client.send(metadata(), 1, trailing=b"and something else")
    assert client.latest.brokers


@pytest.mark.rule("W-6")
@pytest.mark.parametrize("client_id", [None, "", "x" * 32767])
def test_client_ids_of_any_length_are_accepted(cluster: VirtualCluster, client_id: str | None) -> None:
    assert cluster.connect(client_id=client_id).ask(metadata(), 1).brokers


@pytest.mark.rule("W-7")
def test_exception_in_a_handler_returns_an_error_and_keeps_the_connection_open(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("a bug of ours")

    node = cluster.state.nodes[0]
    broken = {key: replace(r, handler=fail) if key in (0, 1) else r for key, r in REGISTRY.items()}
    monkeypatch.setattr(node, "apis", broken)
    client = cluster.connect()
    assert produced(client.ask(produce("t", batch(b"v")), 9)).error_code == -1
    assert errors(client.ask(fetch(("t", 0, 0)), 11)) == [-1]
    assert client.ask(metadata(), 1).brokers
    client.send(produce("t", batch(b"v"), acks=0), 9)
    assert client.closed_ms is not None


@pytest.mark.rule("W-7")
@pytest.mark.parametrize("waits", [False, True])
def test_response_that_cannot_be_encoded_becomes_an_error_response(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture, waits: bool
) -> None:
    """waits: whether the request completes only after its handler has returned."""
    delayed = Delayed()
    too_long = Reply(DescribeGroupsResponse(groups=[DescribedGroup(group_id="g" * 40_000)]))
    node = cluster.state.nodes[0]
    broken = replace(REGISTRY[ApiKey.DESCRIBE_GROUPS], handler=lambda *_: delayed if waits else too_long)
    node.apis = {**node.apis, ApiKey.DESCRIBE_GROUPS: broken}
    client = cluster.connect()
    client.send(DescribeGroupsRequest(["g", "h"]), 5)
    if waits:
        assert client.answers == []
        delayed.complete(lambda: too_long, cluster.now_ms)
    assert [(group.group_id, group.error_code) for group in client.latest.groups] == [("g", -1), ("h", -1)]
    assert client.ask(metadata(), 1).brokers
    [logged] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert logged.levelno == logging.ERROR and "group_id" in logged.getMessage()


@pytest.mark.rule("W-8")
@pytest.mark.parametrize("waits", [False, True])
def test_connection_closes_if_the_error_response_cannot_be_encoded_either(cluster: VirtualCluster, waits: bool) -> None:
    """waits: whether the request completes only after its handler has returned."""
    delayed = Delayed()
    too_long = Reply(ListGroupsResponse(groups=[ListedGroup("g" * 40_000)]))
    node = cluster.state.nodes[0]
    broken = replace(
        REGISTRY[ApiKey.LIST_GROUPS], handler=lambda *_: delayed if waits else too_long, failed=lambda *_: too_long
    )
    node.apis = {**node.apis, ApiKey.LIST_GROUPS: broken}
    client, other = cluster.connect(), cluster.connect()
    client.send(ListGroupsRequest(), 4)
    delayed.complete(lambda: too_long, cluster.now_ms)
    assert client.closed_ms is not None and client.answers == []
    assert other.ask(metadata(), 1).brokers


@pytest.mark.rule("W-8")
def test_client_can_produce_while_50_other_connections_send_random_bytes(cluster: VirtualCluster) -> None:
    chance = random.Random(5)
    worker = cluster.connect(client_id="worker")
    for round_ in range(50):
        noisy = cluster.connect()
        for _ in range(5):
            noisy.send_bytes(chance.randbytes(chance.randrange(1, 400)))
        base = produced(worker.ask(produce("t", batch(b"v")), 9)).base_offset
        assert base == round_
    assert len(cluster.state.nodes[0].connections) <= 51


@pytest.mark.rule("W-9")
def test_responses_behind_a_parked_fetch_are_sent_in_order(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    sent = [client.send(metadata(), 1) for _ in range(3)]
    sent.append(client.send(fetch(("t", 0, 0), max_wait_ms=300), 11))
    sent += [client.send(metadata(), 1) for _ in range(6)]
    assert len(client.answers) == 3
    assert client.connection.state is MuteState.MUTED_AND_RESPONSE_PENDING
    assert not client.reading  # one whole frame waits
    cluster.advance(300)
    assert [a.correlation_id for a in client.answers] == sent


@pytest.mark.rule("W-9")
def test_193_pipelined_requests_sent_together_are_all_answered_in_order(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    count = FRAMES_PER_TURN * 3 + 1
    data = b"".join(client.next_frame(metadata(), 1) for _ in range(count))
    client.send_bytes(data)
    assert [a.correlation_id for a in client.answers] == list(range(1, count + 1))


@pytest.mark.rule("W-9", "W-10")
def test_ten_acks_0_produces_followed_by_a_close_are_all_appended(cluster: VirtualCluster) -> None:
    """Kafka's SocketServerTest.testGracefulClose."""
    client = cluster.connect()
    for _ in range(10):
        client.send(produce("t", batch(b"v"), acks=0), 9)
    client.finish()
    assert client.closed_ms is not None
    assert cluster.state.nodes[0].replicas.partitions[("t", 0)].log.log_end_offset == 10


@pytest.mark.rule("W-10")
def test_requests_received_completely_before_a_half_close_are_answered(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=300), 11)
    client.send(metadata(), 1)
    client.send_bytes(client.frame(metadata(), 1, 99)[:-1])
    client.finish()
    assert client.answers == []
    cluster.advance(300)
    assert [type(a.message).__name__ for a in client.answers] == ["FetchResponse", "MetadataResponse"]
    assert client.closed_ms is not None


@pytest.mark.rule("W-11")
def test_idle_connection_is_closed_after_its_timeout_and_a_busy_connection_is_not() -> None:
    cluster = VirtualCluster(config={"connections.max.idle.ms": "1000"})
    idle, busy = cluster.connect(), cluster.connect()
    start_ms = cluster.now_ms
    for _ in range(4):
        cluster.advance(400)
        busy.ask(metadata(), 1)
    assert idle.closed_ms == start_ms + 1000
    assert busy.closed_ms is None
    cluster.advance(1000)
    assert busy.closed_ms == cluster.now_ms


@pytest.mark.rule("W-8", "W-5")
@given(st.lists(st.binary(max_size=200), max_size=6))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_arbitrary_bytes_never_raise_an_exception_in_the_broker(cluster: VirtualCluster, chunks: list[bytes]) -> None:
    client = cluster.connect()
    for chunk in chunks:
        client.send_bytes(framed(chunk))
    client.finish()
    assert client.closed_ms is not None or client.connection.parked is not None
