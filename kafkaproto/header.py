"""Request and response headers, which come before every message.

Which version a header has follows from key and version of the API (`kafkaproto.api`); the client id is never compact,
so that any broker can read the header of a request that it does not know.
"""

from __future__ import annotations

import struct

from kafkaproto.api import ApiKey, request_header_version, response_header_version
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError, UnsupportedVersion
from kafkaproto.messages.request_header import LAYOUTS as REQUEST_HEADERS
from kafkaproto.messages.request_header import RequestHeader
from kafkaproto.messages.response_header import LAYOUTS as RESPONSE_HEADERS
from kafkaproto.messages.response_header import ResponseHeader

__all__ = [
    "REQUEST_HEADERS",
    "RequestHeader",
    "ResponseHeader",
    "decode_request_header",
    "decode_response_header",
    "encode_request_header",
    "encode_response_header",
    "response_version",
    "start_response",
]

_KEY_AND_VERSION = struct.Struct(">hh")


def decode_request_header(view: memoryview, pos: int, end: int) -> tuple[RequestHeader, int]:
    """The header and the position behind it.

    Raises DecodeError, also for an API key that nobody knows: its header version cannot be told. A version that is not
    known is no error here, and is read as the newest known one would be.
    """
    if end - pos < 4:
        raise DecodeError("RequestHeader", pos, f"needs 4 bytes for key and version, {end - pos} are left")
    api_key, api_version = _KEY_AND_VERSION.unpack_from(view, pos)
    try:
        layout = REQUEST_HEADERS[request_header_version(api_key, api_version)]
    except UnsupportedVersion as unknown:
        raise DecodeError("RequestHeader.api_key", pos, str(unknown)) from None
    return layout.decode_flat(view, pos, end)


def encode_request_header(header: RequestHeader, out: bytearray) -> None:
    """Append a header in the version that its key and version ask for. Raises UnsupportedVersion, EncodeError."""
    REQUEST_HEADERS[request_header_version(header.api_key, header.api_version)].encode_flat(header, out, None)


_START_V0 = struct.Struct(">ii")
_START_V1 = struct.Struct(">iib")


def start_response(correlation_id: int, header_version: int) -> bytearray:
    """A frame begun: room for its length, and the response header without tags. What `start_frame` and `encode_response_header`
    write, in one step, because every answer pays for it.
    """
    return bytearray((_START_V1.pack(0, correlation_id, 0)) if header_version else _START_V0.pack(0, correlation_id))


def decode_response_header(
    api_key: int, api_version: int, view: memoryview, pos: int, end: int
) -> tuple[ResponseHeader, int]:
    """The header of an answer to that API and version, and the position behind it. Raises DecodeError, UnsupportedVersion."""
    return RESPONSE_HEADERS[response_header_version(api_key, api_version)].decode_flat(view, pos, end)


_CORRELATION_ID_AND_ERROR = struct.Struct(">ih")


def response_version(api_key: int, api_version: int, frame: memoryview) -> int:
    """The version that an answer is written in, `frame` being it with its header: that of its request, but for ApiVersions.

    A broker that does not know the version that it is asked for its versions in says so (error 35) in version 0 (KIP-511).
    """
    if api_key != ApiKey.API_VERSIONS or len(frame) < _CORRELATION_ID_AND_ERROR.size:
        return api_version
    _, error = _CORRELATION_ID_AND_ERROR.unpack_from(frame)
    return 0 if error == ErrorCode.UNSUPPORTED_VERSION else api_version


def encode_response_header(api_key: int, api_version: int, correlation_id: int, out: bytearray) -> None:
    """Append the header of an answer to that API and version. Raises UnsupportedVersion, EncodeError."""
    layout = RESPONSE_HEADERS[response_header_version(api_key, api_version)]
    layout.encode_flat(ResponseHeader(correlation_id), out, None)
