"""What goes through a proxied connection: addresses replaced wherever an answer has them, all else byte for byte, secrets not kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkaproto import client
from kafkaproto.addresses import names_brokers
from kafkaproto.api import APIS, ApiKey, codec
from kafkaproto.broker.proxy.connection import UNANSWERED, NotKafka, ProxyConnection
from kafkaproto.frame import frame, split_frames
from kafkaproto.header import RequestHeader, encode_request_header
from kafkaproto.messages import (
    describe_cluster,
    fetch,
    find_coordinator,
    metadata,
    produce,
    share_acknowledge,
    share_fetch,
)
from kafkaproto.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kafkaproto.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkaproto.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkaproto.trace.decoded import Decoded
from tests.support.wire import batch

HOST, PORT = "far.example", 9092
HERE = ("127.0.0.1", 5000)


class Bench:
    def __init__(self) -> None:
        self.told: list[Any] = []
        """Exchanges, and events of those that have no answer."""
        self.asked: list[tuple[int, str, int]] = []
        counted = iter(range(1, 1000))
        self.connection = ProxyConnection(7, lambda: 3, self._replace, lambda: next(counted), self.told.append)

    def _replace(self, node: int, host: str, port: int) -> tuple[str, int]:
        self.asked.append((node, host, port))
        return HERE

    def exchange(self, request: Any, response: Any, key: int, version: int, number: int = 5) -> Any:
        """The answer that the client gets."""
        asked, answer = request_frame(request, key, version, number), response_frame(response, key, version, number)
        assert self.connection.requested(asked, 10) == (asked, b"")
        out = self.connection.answered(answer, 20)
        [one] = split_frames(memoryview(out))
        at = 5 if codec(key, version).response_header_version else 4
        message, end = codec(key, version).decode_response(one, at, len(one))
        assert end == len(one)
        return message


def request_frame(message: Any, key: int, version: int, number: int = 5) -> bytes:
    assert client.key_of(message) == key
    return client.request_frame(message, version, number, "me")


def response_frame(message: Any, key: int, version: int, number: int = 5) -> bytes:
    return client.response_frame(message, key, version, number)


def versions(key: int, first: int = 0) -> list[int]:
    return list(range(max(first, APIS[key].min_version), APIS[key].max_version + 1))


RECORDS = batch(b"x" * 100)


def fetched(host: str, port: int) -> fetch.FetchResponse:
    partitions = [fetch.PartitionData(0, 6, records=RECORDS)]
    topics = [fetch.FetchableTopicResponse(topic_id=bytes(range(16)), partitions=partitions)]
    return fetch.FetchResponse(responses=topics, node_endpoints=[fetch.NodeEndpoint(1, host, port, "a")])


def brokers(host: str, port: int) -> metadata.MetadataResponse:
    return metadata.MetadataResponse(brokers=[metadata.MetadataResponseBroker(1, host, port)])


def coordinators(host: str, port: int) -> find_coordinator.FindCoordinatorResponse:
    return find_coordinator.FindCoordinatorResponse(coordinators=[find_coordinator.Coordinator("g", 1, host, port)])


def described(host: str, port: int) -> describe_cluster.DescribeClusterResponse:
    return describe_cluster.DescribeClusterResponse(brokers=[describe_cluster.DescribeClusterBroker(1, host, port)])


def acknowledged(host: str, port: int) -> share_acknowledge.ShareAcknowledgeResponse:
    return share_acknowledge.ShareAcknowledgeResponse(node_endpoints=[share_acknowledge.NodeEndpoint(1, host, port)])


CASES: list[tuple[int, int, Any, Callable[[str, int], Any]]] = [
    (key, version, request, response)
    for key, first, last, request, response in (
        (ApiKey.METADATA, 0, 99, metadata.MetadataRequest([]), brokers),
        (
            ApiKey.FIND_COORDINATOR,
            0,
            3,
            find_coordinator.FindCoordinatorRequest("g"),
            lambda host, port: find_coordinator.FindCoordinatorResponse(node_id=1, host=host, port=port),
        ),
        (
            ApiKey.FIND_COORDINATOR,
            4,
            99,
            find_coordinator.FindCoordinatorRequest(coordinator_keys=["g"]),
            coordinators,
        ),
        (ApiKey.DESCRIBE_CLUSTER, 0, 99, describe_cluster.DescribeClusterRequest(), described),
        (
            ApiKey.PRODUCE,
            10,
            99,
            produce.ProduceRequest(None, 1),
            lambda host, port: produce.ProduceResponse(node_endpoints=[produce.NodeEndpoint(1, host, port)]),
        ),
        (ApiKey.FETCH, 16, 99, fetch.FetchRequest(), fetched),
        (
            ApiKey.SHARE_FETCH,
            0,
            99,
            share_fetch.ShareFetchRequest(),
            lambda host, port: share_fetch.ShareFetchResponse(node_endpoints=[share_fetch.NodeEndpoint(1, host, port)]),
        ),
        (ApiKey.SHARE_ACKNOWLEDGE, 0, 99, share_acknowledge.ShareAcknowledgeRequest(), acknowledged),
    )
    for version in versions(key, first)
    if version <= last
]


@pytest.mark.parametrize(
    ("key", "version", "request_message", "response"), CASES, ids=[f"{APIS[k].name}-{v}" for k, v, _, _ in CASES]
)
def test_addresses_are_replaced_in_every_version_and_nothing_else_is(
    key: int, version: int, request_message: Any, response: Callable[[str, int], Any]
) -> None:
    bench = Bench()
    bench.connection.requested(request_frame(request_message, key, version), 10)
    told = response_frame(response(HOST, PORT), key, version)
    assert bench.connection.answered(told, 20) == response_frame(response(*HERE), key, version) != told
    assert bench.asked == [(1, HOST, PORT)] and names_brokers(key)
    [one] = bench.told
    assert (one.broker, one.connection, one.response_bytes, one.received_ns, one.ready_ns) == (
        3,
        7,
        len(told) - 4,
        10,
        20,
    )
    assert Decoded(one).trouble == "" and RECORDS[61:] not in one.response


def test_answers_without_addresses_are_not_written_anew() -> None:
    bench = Bench()
    answer = response_frame(
        find_coordinator.FindCoordinatorResponse(error_code=15, node_id=-1, port=-1), ApiKey.FIND_COORDINATOR, 3
    )
    bench.connection.requested(
        request_frame(find_coordinator.FindCoordinatorRequest("g"), ApiKey.FIND_COORDINATOR, 3), 0
    )
    assert bench.connection.answered(answer, 0) == answer and bench.asked == []


@pytest.mark.parametrize("version", versions(ApiKey.API_VERSIONS))
def test_versions_end_where_addresses_can_be_read(version: int) -> None:
    offered = [ApiVersion(3, 0, 99), ApiVersion(0, 3, 5), ApiVersion(11, 0, 99), ApiVersion(999, 0, 4)]
    got = Bench().exchange(ApiVersionsRequest(), ApiVersionsResponse(api_keys=offered), ApiKey.API_VERSIONS, version)
    assert [(one.api_key, one.max_version) for one in got.api_keys] == [
        (3, APIS[3].max_version),
        (0, 5),
        (11, 99),
        (999, 4),
    ]


@pytest.mark.parametrize("version", [0, 2, 4])
def test_versions_that_a_broker_does_not_tell_in_the_asked_version_are_read_in_version_0(version: int) -> None:
    """KIP-511. Also of such an answer the ends of APIs that name brokers are lowered."""
    bench = Bench()
    asked = request_frame(ApiVersionsRequest("its-name", "1.2"), ApiKey.API_VERSIONS, version)
    offered = [ApiVersion(ApiKey.API_VERSIONS, 0, 3), ApiVersion(ApiKey.METADATA, 0, 99)]
    answer = response_frame(ApiVersionsResponse(35, offered), ApiKey.API_VERSIONS, 0)
    bench.connection.requested(asked, 0)
    lowered = ApiVersionsResponse(35, [offered[0], ApiVersion(ApiKey.METADATA, 0, APIS[ApiKey.METADATA].max_version)])
    assert bench.connection.answered(answer, 0) == response_frame(lowered, ApiKey.API_VERSIONS, 0)
    seen = Decoded(bench.told[0])
    assert (seen.trouble, list(seen.errors()), seen.response_version) == ("", [35], 0)
    assert seen.response.api_keys == offered


def test_versions_that_no_broker_is_asked_for_are_told_as_the_answer_that_the_client_gets() -> None:
    """KIP-511: the request of a version that nobody knows stays here; its header is told."""
    bench = Bench()
    out = bytearray()
    encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 99, 5, "me"), out)
    on, back = bench.connection.requested(frame(bytes(out) + b"secret"), 10)
    [one] = bench.told
    assert on == b"" and frame(one.response) == back and one.request == bytes(out)
    seen = Decoded(one)
    assert (list(seen.errors()), one.answered, one.seq, one.received_ns, one.ready_ns) == ([35], True, 1, 10, 10)
    bench.exchange(ApiVersionsRequest(), ApiVersionsResponse(), ApiKey.API_VERSIONS, 0)
    assert [one.seq for one in bench.told] == [1, 2]


def test_tokens_of_sasl_go_through_and_are_not_kept() -> None:
    bench = Bench()
    bench.exchange(SaslHandshakeRequest("PLAIN"), SaslHandshakeResponse(0, ["PLAIN"]), ApiKey.SASL_HANDSHAKE, 0)
    token = frame(b"\0user\0secret")
    assert bench.connection.requested(token, 0) == (token, b"") and bench.connection.answered(frame(b""), 0) == frame(
        b""
    )
    login = SaslAuthenticateRequest(b"\0user\0secret"), SaslAuthenticateResponse(0, None, b"secret")
    got = bench.exchange(*login, ApiKey.SASL_AUTHENTICATE, 1)
    assert got.auth_bytes == b"secret"
    assert len(bench.told) == 2 and not any(b"secret" in one.request + one.response for one in bench.told)
    assert [Decoded(one).trouble for one in bench.told] == ["", ""]


def test_what_went_on_without_an_answer_is_told_when_its_connection_ends() -> None:
    bench = Bench()
    asked = [
        request_frame(one, key, 9, number)
        for number, (one, key) in enumerate([(metadata.MetadataRequest([]), 3), (produce.ProduceRequest(None, 1), 0)])
    ]
    bench.connection.requested(b"".join(asked), 10)
    bench.connection.requested(request_frame(produce.ProduceRequest(None, 0), 0, 9, 7), 15)
    bench.connection.answered(response_frame(brokers(HOST, PORT), 3, 9, 0), 20)
    assert bench.connection.waiting == 1
    for _ in range(2):
        bench.connection.ended(30)
        assert bench.connection.waiting == 0
    without, answered, event, lost = bench.told
    assert (without.seq, answered.seq, lost.seq) == (3, 1, 2) and event.kind == "trouble"
    told = {"seq": 4, "clock_ms": 0, "at_ns": 30, "broker": 3, "connection": 7, "of": 2, "why": UNANSWERED}
    assert event.facts == told
    assert (lost.answered, lost.request, lost.received_ns, lost.ready_ns) == (False, asked[1][4:], 10, 10)


def test_frames_may_come_in_any_pieces() -> None:
    asked = (
        request_frame(metadata.MetadataRequest([]), 3, 9, 5)
        + request_frame(produce.ProduceRequest(None, 0), 0, 9, 6) * 2
    )
    answer = response_frame(brokers(HOST, PORT), 3, 9, 5)
    whole = Bench()
    expected = whole.connection.requested(asked, 0)[0], whole.connection.answered(answer, 0)
    for size in (1, 3, 17):
        bench = Bench()
        on = b"".join(bench.connection.requested(asked[at : at + size], 0)[0] for at in range(0, len(asked), size))
        back = b"".join(bench.connection.answered(answer[at : at + size], 0) for at in range(0, len(answer), size))
        assert (on, back) == expected and [one.seq for one in bench.told] == [2, 3, 1] and bench.connection.waiting == 0


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\x7f\0\0\0", b"GET / HTTP/1.1", b"\x16\x03\x01\x02\x00"])
def test_what_is_not_kafka_is_refused(data: bytes) -> None:
    with pytest.raises(NotKafka):
        Bench().connection.requested(data, 0)
