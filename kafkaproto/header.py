"""Request and response headers, which precede every message.

The header's version follows from the API key and version (`kafkaproto.api`). The client id is never compact,
so that any broker can decode the header of a request that it does not know.
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
    """Return the request header at index ``pos`` of the buffer ``view``, and the index after the header.

    Raises DecodeError if the header is damaged, and for an unknown API key, whose header version is unknown. For an unknown API version, the header
    is decoded as in the newest known version. end: the index at which the frame ends.
    """
    if end - pos < 4:
        raise DecodeError("RequestHeader", pos, f"API key and version take 4 bytes, but only {end - pos} are left")
    api_key, api_version = _KEY_AND_VERSION.unpack_from(view, pos)
    try:
        layout = REQUEST_HEADERS[request_header_version(api_key, api_version)]
    except UnsupportedVersion as unsupported_version:
        raise DecodeError("RequestHeader.api_key", pos, str(unsupported_version)) from None
    return layout.decode_flat(view, pos, end)


def encode_request_header(header: RequestHeader, out: bytearray) -> None:
    """Append a request header to ``out``, in the header version that the API key and version in the header require.

    Raises UnsupportedVersion for an unknown API key, and EncodeError for a value that cannot be encoded.
    """
    REQUEST_HEADERS[request_header_version(header.api_key, header.api_version)].encode_flat(header, out, None)


_START_V0 = struct.Struct(">ii")
_START_V1 = struct.Struct(">iib")


def start_response(correlation_id: int, header_version: int) -> bytearray:
    """Return a new response frame: 4 bytes reserved for its length, then the response header without tagged fields.

    header_version: the version of the response header; version 1 ends with an empty tag section, version 0 has no tag section. Calls of
    `start_frame` and `encode_response_header` make the same bytes, but take longer.
    """
    return bytearray((_START_V1.pack(0, correlation_id, 0)) if header_version else _START_V0.pack(0, correlation_id))


def decode_response_header(
    api_key: int, api_version: int, view: memoryview, pos: int, end: int
) -> tuple[ResponseHeader, int]:
    """Return the header of a response to this API and version, and the byte position after the header.

    pos: the byte position of the header in ``view``. end: the byte position after the whole response. Raises UnsupportedVersion for an unknown API
    key, and DecodeError for a damaged header.
    """
    return RESPONSE_HEADERS[response_header_version(api_key, api_version)].decode_flat(view, pos, end)


_CORRELATION_ID_AND_ERROR = struct.Struct(">ih")


def response_version(api_key: int, api_version: int, frame: memoryview) -> int:
    """Return the version in which a response is encoded. Only for ApiVersions can it differ from the version of the request.

    frame: the response with its header, without its length. A broker that does not support the version of an ApiVersions request
    responds with UNSUPPORTED_VERSION (35) in version 0 (KIP-511).
    """
    if api_key != ApiKey.API_VERSIONS or len(frame) < _CORRELATION_ID_AND_ERROR.size:
        return api_version
    _, error = _CORRELATION_ID_AND_ERROR.unpack_from(frame)
    return 0 if error == ErrorCode.UNSUPPORTED_VERSION else api_version


def encode_response_header(api_key: int, api_version: int, correlation_id: int, out: bytearray) -> None:
    """Append the header of a response to this API and version to ``out``.

    Raises UnsupportedVersion for an unknown API key, and EncodeError if the correlation id is not an int32.
    """
    layout = RESPONSE_HEADERS[response_header_version(api_key, api_version)]
    layout.encode_flat(ResponseHeader(correlation_id), out, None)
