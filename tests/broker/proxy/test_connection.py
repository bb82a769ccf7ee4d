"""A proxied connection: broker addresses are replaced, other bytes are forwarded unchanged, and secrets are not recorded."""

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
        self.recorded: list[Any] = []
        """Recorded exchanges, and events of requests without a response."""
        self.replaced: list[tuple[int, str, int]] = []
        counted = iter(range(1, 1000))
        self.connection = ProxyConnection(7, lambda: 3, self._replace, lambda: next(counted), self.recorded.append)

    def _replace(self, node: int, host: str, port: int) -> tuple[str, int]:
        self.replaced.append((node, host, port))
        return HERE

    def exchange(self, request: Any, response: Any, key: int, version: int, number: int = 5) -> Any:
        """Send a request and a response through the proxy and return the response that the client gets."""
        request_bytes, response_bytes = (
            request_frame(request, key, version, number),
            response_frame(response, key, version, number),
        )
        assert self.connection.requested(request_bytes, 10) == (request_bytes, b"")
        out = self.connection.responded(response_bytes, 20)
        [split_frame] = split_frames(memoryview(out))
        at = 5 if codec(key, version).response_header_version else 4
        message, end = codec(key, version).decode_response(split_frame, at, len(split_frame))
        assert end == len(split_frame)
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
def test_proxy_changes_only_the_broker_addresses_in_responses_of_every_api_version(
    key: int, version: int, request_message: Any, response: Callable[[str, int], Any]
) -> None:
    bench = Bench()
    bench.connection.requested(request_frame(request_message, key, version), 10)
    response_bytes = response_frame(response(HOST, PORT), key, version)
    assert (
        bench.connection.responded(response_bytes, 20)
        == response_frame(response(*HERE), key, version)
        != response_bytes
    )
    assert bench.replaced == [(1, HOST, PORT)] and names_brokers(key)
    [exchange] = bench.recorded
    assert (exchange.broker, exchange.connection, exchange.response_bytes, exchange.received_ns, exchange.ready_ns) == (
        3,
        7,
        len(response_bytes) - 4,
        10,
        20,
    )
    assert Decoded(exchange).problem == "" and RECORDS[61:] not in exchange.response


def test_proxy_changes_no_bytes_of_responses_that_contain_no_broker_addresses() -> None:
    bench = Bench()
    response_bytes = response_frame(
        find_coordinator.FindCoordinatorResponse(error_code=15, node_id=-1, port=-1), ApiKey.FIND_COORDINATOR, 3
    )
    bench.connection.requested(
        request_frame(find_coordinator.FindCoordinatorRequest("g"), ApiKey.FIND_COORDINATOR, 3), 0
    )
    assert bench.connection.responded(response_bytes, 0) == response_bytes and bench.replaced == []


@pytest.mark.parametrize("version", versions(ApiKey.API_VERSIONS))
def test_proxy_lowers_maximum_versions_only_of_apis_that_return_broker_addresses(version: int) -> None:
    offered = [ApiVersion(3, 0, 99), ApiVersion(0, 3, 5), ApiVersion(11, 0, 99), ApiVersion(999, 0, 4)]
    forwarded = Bench().exchange(
        ApiVersionsRequest(), ApiVersionsResponse(api_keys=offered), ApiKey.API_VERSIONS, version
    )
    assert [(api_key.api_key, api_key.max_version) for api_key in forwarded.api_keys] == [
        (3, APIS[3].max_version),
        (0, 5),
        (11, 99),
        (999, 4),
    ]


@pytest.mark.parametrize("version", [0, 2, 4])
def test_proxy_decodes_api_versions_response_with_error_unsupported_version_as_v0(version: int) -> None:
    """KIP-511. In such a response too, the highest versions of APIs with broker addresses are lowered."""
    bench = Bench()
    request_bytes = request_frame(ApiVersionsRequest("its-name", "1.2"), ApiKey.API_VERSIONS, version)
    offered = [ApiVersion(ApiKey.API_VERSIONS, 0, 3), ApiVersion(ApiKey.METADATA, 0, 99)]
    response_bytes = response_frame(ApiVersionsResponse(35, offered), ApiKey.API_VERSIONS, 0)
    bench.connection.requested(request_bytes, 0)
    lowered = ApiVersionsResponse(35, [offered[0], ApiVersion(ApiKey.METADATA, 0, APIS[ApiKey.METADATA].max_version)])
    assert bench.connection.responded(response_bytes, 0) == response_frame(lowered, ApiKey.API_VERSIONS, 0)
    decoded_exchange = Decoded(bench.recorded[0])
    assert (decoded_exchange.problem, list(decoded_exchange.errors()), decoded_exchange.response_version) == (
        "",
        [35],
        0,
    )
    assert decoded_exchange.response.api_keys == offered


def test_proxy_itself_answers_and_records_api_versions_requests_of_unknown_versions() -> None:
    """KIP-511: a request in an unknown version is not forwarded; its header is recorded."""
    bench = Bench()
    out = bytearray()
    encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 99, 5, "me"), out)
    to_broker, to_client = bench.connection.requested(frame(bytes(out) + b"secret"), 10)
    [exchange] = bench.recorded
    assert to_broker == b"" and frame(exchange.response) == to_client and exchange.request == bytes(out)
    decoded_exchange = Decoded(exchange)
    assert (
        list(decoded_exchange.errors()),
        exchange.answered,
        exchange.seq,
        exchange.received_ns,
        exchange.ready_ns,
    ) == (
        [35],
        True,
        1,
        10,
        10,
    )
    bench.exchange(ApiVersionsRequest(), ApiVersionsResponse(), ApiKey.API_VERSIONS, 0)
    assert [exchange.seq for exchange in bench.recorded] == [1, 2]


def test_proxy_forwards_sasl_tokens_but_does_not_record_them() -> None:
    bench = Bench()
    bench.exchange(SaslHandshakeRequest("PLAIN"), SaslHandshakeResponse(0, ["PLAIN"]), ApiKey.SASL_HANDSHAKE, 0)
    token = frame(b"\0user\0secret")
    assert bench.connection.requested(token, 0) == (token, b"") and bench.connection.responded(frame(b""), 0) == frame(
        b""
    )
    login = SaslAuthenticateRequest(b"\0user\0secret"), SaslAuthenticateResponse(0, None, b"secret")
    forwarded = bench.exchange(*login, ApiKey.SASL_AUTHENTICATE, 1)
    assert forwarded.auth_bytes == b"secret"
    assert len(bench.recorded) == 2 and not any(
        b"secret" in exchange.request + exchange.response for exchange in bench.recorded
    )
    assert [Decoded(exchange).problem for exchange in bench.recorded] == ["", ""]


def test_proxy_records_unanswered_requests_when_their_connection_closes() -> None:
    bench = Bench()
    requests = [
        request_frame(request, key, 9, number)
        for number, (request, key) in enumerate(
            [(metadata.MetadataRequest([]), 3), (produce.ProduceRequest(None, 1), 0)]
        )
    ]
    bench.connection.requested(b"".join(requests), 10)
    bench.connection.requested(request_frame(produce.ProduceRequest(None, 0), 0, 9, 7), 15)
    bench.connection.responded(response_frame(brokers(HOST, PORT), 3, 9, 0), 20)
    assert bench.connection.waiting == 1
    for _ in range(2):
        bench.connection.ended(30)
        assert bench.connection.waiting == 0
    without, answered, event, lost = bench.recorded
    assert (without.seq, answered.seq, lost.seq) == (3, 1, 2) and event.kind == "problem"
    expected_event = {"seq": 4, "clock_ms": 0, "at_ns": 30, "broker": 3, "connection": 7, "of": 2, "why": UNANSWERED}
    assert event.facts == expected_event
    assert (lost.answered, lost.request, lost.received_ns, lost.ready_ns) == (False, requests[1][4:], 10, 10)


def test_proxy_forwards_and_records_frames_that_arrive_in_pieces_of_any_size() -> None:
    requests = (
        request_frame(metadata.MetadataRequest([]), 3, 9, 5)
        + request_frame(produce.ProduceRequest(None, 0), 0, 9, 6) * 2
    )
    response_bytes = response_frame(brokers(HOST, PORT), 3, 9, 5)
    whole = Bench()
    expected = whole.connection.requested(requests, 0)[0], whole.connection.responded(response_bytes, 0)
    for size in (1, 3, 17):
        bench = Bench()
        to_broker = b"".join(
            bench.connection.requested(requests[at : at + size], 0)[0] for at in range(0, len(requests), size)
        )
        to_client = b"".join(
            bench.connection.responded(response_bytes[at : at + size], 0) for at in range(0, len(response_bytes), size)
        )
        assert (
            (to_broker, to_client) == expected
            and [exchange.seq for exchange in bench.recorded] == [2, 3, 1]
            and bench.connection.waiting == 0
        )


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\x7f\0\0\0", b"GET / HTTP/1.1", b"\x16\x03\x01\x02\x00"])
def test_proxy_closes_connections_that_do_not_use_the_kafka_protocol(data: bytes) -> None:
    with pytest.raises(NotKafka):
        Bench().connection.requested(data, 0)


def test_proxy_forwards_valid_requests_before_an_invalid_frame() -> None:
    bench = Bench()
    good = request_frame(ApiVersionsRequest(), 18, 0)
    assert bench.connection.requested(good + b"\x7f\xff\xff\xff", 10) == (good, b"")
    assert isinstance(bench.connection.broken, NotKafka)
    with pytest.raises(NotKafka):
        bench.connection.requested(b"", 20)
