"""The client without a socket: request frames, responses and version negotiation. `tests/oracle` compares its bytes with kafka-python."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.api import APIS, ApiKey
from kafkaproto.client import (
    Client,
    UnexpectedResponse,
    key_of,
    read_response,
    request_frame,
    response_frame,
)
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError, UnsupportedVersion
from kafkaproto.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kafkaproto.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaproto.messages.metadata import MetadataRequest, MetadataResponse
from kafkaproto.messages.produce import ProduceRequest
from kafkaproto.versions import VersionRange

SPOKEN = {ApiKey.METADATA: VersionRange(4, 12), ApiKey.HEARTBEAT: VersionRange(0, 3)}


def metadata_response(correlation_id: int, version: int = 4) -> bytes:
    return response_frame(MetadataResponse(cluster_id="c"), ApiKey.METADATA, version, correlation_id)


def test_heartbeat_request_frame_equals_a_fixed_byte_string() -> None:
    # length 14; key 12, version 0, correlation id 7, client id "me", then an empty group, generation 1, an empty member
    expected = "00000014000c00000000000700026d650000000000010000"
    assert request_frame(HeartbeatRequest("", 1, ""), 0, 7, "me").hex() == expected


def test_frames_of_flexible_api_versions_have_headers_with_tagged_fields() -> None:
    assert request_frame(MetadataRequest([]), 9, 1, "me")[8:] == b"\0\0\0\1\0\2me\0" + b"\1\1\0\0\0"
    data = response_frame(MetadataResponse(), ApiKey.METADATA, 9, 5)
    assert data[4:9] == b"\0\0\0\5\0"


def test_every_request_class_has_an_api_key() -> None:
    assert key_of(ApiVersionsRequest()) == ApiKey.API_VERSIONS
    for name in (MetadataResponse(), object(), None):
        with pytest.raises(UnsupportedVersion):
            key_of(name)
    assert len({info.name for info in APIS.values()}) == len(APIS)


def test_response_with_extra_bytes_at_its_end_is_rejected() -> None:
    data = metadata_response(3)[4:]
    response = read_response(ApiKey.METADATA, 4, data)
    assert (response.correlation_id, response.version, response.message.cluster_id) == (3, 4, "c")
    with pytest.raises(DecodeError, match="the response ends here, but its frame has 1 more bytes"):
        read_response(ApiKey.METADATA, 4, data + b"\0")


def test_api_versions_response_with_error_unsupported_version_is_decoded_as_v0() -> None:
    refusal = ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(18, 0, 2)])
    response = read_response(ApiKey.API_VERSIONS, 3, response_frame(refusal, ApiKey.API_VERSIONS, 0, 1)[4:])
    assert (response.version, response.message.error_code) == (0, ErrorCode.UNSUPPORTED_VERSION)


@given(st.lists(st.integers(1, 60), max_size=20), st.integers(0, 5))
def test_client_decodes_responses_split_at_any_byte(cuts: list[int], count: int) -> None:
    client = Client("me")
    for _ in range(count):
        client.send(MetadataRequest([]), 4)
    data = b"".join(metadata_response(i + 1) for i in range(count))
    responses = []
    for size in [*cuts, len(data)]:
        responses += client.receive(data[:size])
        data = data[size:]
    assert [response.correlation_id for response in responses] == list(range(1, count + 1)) and client.pending == 0


def test_client_rejects_a_response_that_is_not_for_the_oldest_pending_request() -> None:
    client = Client("me")
    client.send(MetadataRequest([]), 4)
    client.send(HeartbeatRequest(), 0)
    with pytest.raises(UnexpectedResponse, match=r"correlation id 2 \(oldest pending request: 1\)"):
        client.read(response_frame(HeartbeatResponse(), ApiKey.HEARTBEAT, 0, 2)[4:])
    client.read(metadata_response(1)[4:])
    client.read(response_frame(HeartbeatResponse(), ApiKey.HEARTBEAT, 0, 2)[4:])
    with pytest.raises(UnexpectedResponse, match=r"correlation id 3 \(oldest pending request: none\)"):
        client.read(metadata_response(3)[4:])
    with pytest.raises(DecodeError, match="takes at least 4 bytes, but the frame has only"):
        client.read(b"\0\0\0")
    with pytest.raises(DecodeError, match=r"length must not be negative \(got -1\)"):
        list(client.receive(b"\xff\xff\xff\xff"))


def test_client_expects_no_response_to_a_produce_with_acks_0() -> None:
    client = Client("me")
    client.send(ProduceRequest(acks=0), 7)
    assert client.pending == 0
    client.send(ProduceRequest(acks=1), 7)
    assert client.pending == 1


def test_correlation_ids_wrap_from_int32_max_to_zero() -> None:
    client = Client("me")
    client.next_id = 2**31 - 1
    sent = [client.send(MetadataRequest([]), 4) for _ in range(2)]
    assert [data[8:12].hex() for data in sent] == ["7fffffff", "00000000"]
    assert [client.read(metadata_response(i)[4:]).correlation_id for i in (2**31 - 1, 0)] == [2**31 - 1, 0]


def test_client_created_with_in_order_false_accepts_responses_in_any_order() -> None:
    client = Client("me", in_order=False)
    client.send(MetadataRequest([]), 4)
    client.send(HeartbeatRequest(), 0)
    assert client.read(response_frame(HeartbeatResponse(), ApiKey.HEARTBEAT, 0, 2)[4:]).api_key == ApiKey.HEARTBEAT
    assert client.read(metadata_response(1)[4:]).api_key == ApiKey.METADATA
    with pytest.raises(UnexpectedResponse):
        client.read(metadata_response(1)[4:])


def agreed(client: Client, *answers: ApiVersionsResponse) -> list[int]:
    """Let a broker answer the client's ApiVersions requests, and return the requested versions."""
    versions_request, data = [], client.ask_versions()
    for response in answers:
        version = int.from_bytes(data[6:8], "big")
        versions_request.append(version)
        written_in = 0 if response.error_code == ErrorCode.UNSUPPORTED_VERSION else version
        correlation_id = int.from_bytes(data[8:12], "big")
        [received] = client.receive(response_frame(response, ApiKey.API_VERSIONS, written_in, correlation_id))
        more = client.agree(received.message)
        if more is None:
            break
        data = more
    return versions_request


def test_client_sends_the_highest_api_version_that_client_and_broker_support() -> None:
    client = Client("me", SPOKEN)
    offered = [ApiVersion(ApiKey.METADATA, 0, 9), ApiVersion(ApiKey.HEARTBEAT, 4, 4)]
    assert agreed(client, ApiVersionsResponse(api_keys=offered)) == [3]
    assert client.version(ApiKey.METADATA) == 9
    assert client.send(MetadataRequest([]))[6:8] == b"\0\x09"
    with pytest.raises(
        UnsupportedVersion, match=r"does not offer Heartbeat in a version that this client speaks \(0-3\)"
    ):
        client.send(HeartbeatRequest())
    with pytest.raises(UnsupportedVersion, match="this client speaks no version of Fetch"):
        client.version(ApiKey.FETCH)
    with pytest.raises(UnsupportedVersion, match="this client speaks no version of API key 999"):
        client.version(999)


def test_client_retries_api_versions_in_v0_at_most_once_after_unsupported_version() -> None:
    refusal = ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(18, 0, 2)])
    offered = ApiVersionsResponse(api_keys=[ApiVersion(ApiKey.METADATA, 0, 5)])
    client = Client("me", SPOKEN)
    assert agreed(client, refusal, offered) == [3, 0]
    assert client.version(ApiKey.METADATA) == 5
    assert agreed(Client("me", SPOKEN), refusal, refusal) == [3, 0]
