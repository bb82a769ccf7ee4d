"""Request and response headers, and the header version of each API version."""

from __future__ import annotations

import tracemalloc

import pytest

from kafkaproto.api import APIS, ApiKey, codec, request_header_version, response_header_version
from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.header import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)


def decoded(data: bytes) -> tuple[RequestHeader, int]:
    return decode_request_header(memoryview(data), 0, len(data))


@pytest.mark.rule("W-2")
def test_flexible_request_header_has_tagged_fields_but_a_non_compact_client_id() -> None:
    plain = bytes.fromhex("0003 0008 00000007 0002 6d65".replace(" ", ""))
    assert decoded(plain + b"body") == (RequestHeader(3, 8, 7, "me"), len(plain))
    flexible = bytes.fromhex("0003 0009 00000007 0002 6d65 01 05 01 ff".replace(" ", ""))
    assert decoded(flexible + b"body") == (RequestHeader(3, 9, 7, "me", [(5, b"\xff")]), len(flexible))


@pytest.mark.rule("W-2")
@pytest.mark.parametrize("api_key", APIS)
def test_every_api_version_uses_the_header_versions_that_kafka_defines(api_key: int) -> None:
    info = APIS[api_key]
    for version in range(info.min_version, info.max_version + 1):
        flexible = info.first_flexible is not None and version >= info.first_flexible
        assert codec(api_key, version).flexible == flexible == (codec(api_key, version).request.tags is not None)
        assert request_header_version(api_key, version) == (2 if flexible else 1)
        assert response_header_version(api_key, version) == (1 if flexible and api_key != 18 else 0)


@pytest.mark.rule("W-2")
def test_api_versions_response_always_has_response_header_version_0() -> None:
    out = bytearray()
    encode_response_header(18, 4, 9, out)
    assert out == b"\x00\x00\x00\x09"
    encode_response_header(3, 9, 9, out)
    assert out == b"\x00\x00\x00\x09" + b"\x00\x00\x00\x09\x00"
    assert decode_response_header(3, 9, memoryview(out), 4, 9)[0].correlation_id == 9


@pytest.mark.rule("W-3")
def test_request_header_with_api_version_99_is_decoded_in_the_newest_header_format() -> None:
    data = bytes.fromhex("0012 0063 00000007 ffff 00".replace(" ", ""))
    assert decoded(data) == (RequestHeader(18, 99, 7, None), len(data))


@pytest.mark.rule("W-3")
@pytest.mark.parametrize("api_key", [-1, 4, 999, 32767])
def test_request_header_of_an_unknown_api_is_rejected(api_key: int) -> None:
    with pytest.raises(DecodeError, match="api_key"):
        decoded(api_key.to_bytes(2, "big", signed=True) + bytes(30))


@pytest.mark.rule("W-6")
def test_truncated_request_header_raises_an_error() -> None:
    out = bytearray()
    encode_request_header(RequestHeader(3, 9, 7, "client", [(1, b"x")]), out)
    for end in range(len(out)):
        with pytest.raises(DecodeError):
            decode_request_header(memoryview(out), 0, end)
    with pytest.raises(DecodeError):
        decoded(bytes.fromhex("00030009000000077fff00"))


def test_decoding_a_request_header_does_not_copy_the_frame() -> None:
    out = bytearray()
    encode_request_header(RequestHeader(0, 9, 7, ""), out)
    frame = memoryview(bytes(out) + bytes(10_000_000))
    decode_request_header(frame, 0, len(out))  # generates the flat code, outside the measurement
    tracemalloc.start()
    try:
        header, end = decode_request_header(frame, 0, len(frame))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (header.client_id, end) == ("", len(out))
    assert peak < 100_000


def test_correlation_id_outside_int32_is_rejected() -> None:
    out = bytearray(b"before")
    with pytest.raises(EncodeError, match=r"ResponseHeader\.correlation_id"):
        encode_response_header(ApiKey.FETCH, 12, 2**40, out)
    assert out == b"before"
