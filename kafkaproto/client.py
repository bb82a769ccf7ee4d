"""A small Kafka client without a socket: encodes requests, decodes responses and negotiates versions. The program sends the bytes.

Two functions handle single frames:

    data = request_frame(MetadataRequest([]), 4, correlation_id=1, client_id="me")      # send these bytes
    response = read_response(ApiKey.METADATA, 4, frame)                                  # the frame without its length

`Client` handles a connection: it counts correlation ids and matches responses to requests. The program that uses `Client` provides the socket, the
timeouts and the retries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kafkaproto.api import APIS, ApiKey, codec
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError, ProtocolError, UnsupportedVersion
from kafkaproto.frame import finish_frame, start_frame, take_frame
from kafkaproto.header import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    response_version,
)
from kafkaproto.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkaproto.versions import NO_VERSIONS, VersionRange

API_VERSIONS_VERSION = 3
"""The version of a client's first ApiVersions request: the lowest version whose request names the client's software (KIP-511)."""
ALWAYS_KNOWN_VERSION = 0
"""The version in which a broker encodes the ApiVersions response if it does not support the version of the request (KIP-511)."""
SOFTWARE = "kafkaproto", "1"
CORRELATION_ID_BYTES = 4
MAX_CORRELATION_ID = 2**31 - 1


class Response(NamedTuple):
    """A decoded response.

    version: the version in which the response is encoded. It is the version of the request, or 0 if the broker does not support the version of an
    ApiVersions request (KIP-511). message: the decoded body. data: the response frame without its length prefix.
    """

    correlation_id: int
    api_key: int
    version: int
    message: Any
    data: bytes | memoryview


class UnexpectedResponse(ProtocolError):
    """Raised for a response whose correlation id belongs to no pending request or, with `Client(in_order=True)`, not to the oldest one."""


class NoCommonVersion(UnsupportedVersion):
    """Raised if client and broker have no version of an API in common, or have not negotiated versions yet."""

    def __init__(self, api_key: int, spoken: VersionRange) -> None:
        super().__init__(api_key)
        name = APIS[api_key].name if api_key in APIS else f"API key {api_key}"
        if spoken:
            text = f"the broker does not offer {name} in a version that this client speaks ({spoken})"
        else:
            text = f"this client speaks no version of {name}"
        self.args = (text,)

    def __str__(self) -> str:
        return str(self.args[0])


_KEYS = {f"{info.name}Request": int(key) for key, info in APIS.items()}


def key_of(request: Any) -> int:
    """Return the API key of a request object, found by its class. Raises UnsupportedVersion if the object is not a request."""
    name = type(request).__name__
    key = _KEYS.get(name)
    if key is None:
        raise UnsupportedVersion(None, name=name)
    return key


def request_frame(request: Any, version: int, correlation_id: int = 1, client_id: str | None = None) -> bytes:
    """Return a complete request frame: length prefix, header and body.

    Raises EncodeError for an invalid value, UnsupportedVersion for a version that the request does not have.
    """
    key = key_of(request)
    out = start_frame()
    encode_request_header(RequestHeader(key, version, correlation_id, client_id), out)
    codec(key, version).encode_request(request, out, None)
    finish_frame(out)
    return bytes(out)


def response_frame(response: Any, api_key: int, version: int, correlation_id: int = 1) -> bytes:
    """Return a complete response frame: length prefix, header and body.

    Raises EncodeError for an invalid value, UnsupportedVersion for an unknown API or version.
    """
    out = start_frame()
    encode_response_header(api_key, version, correlation_id, out)
    codec(api_key, version).encode_response(response, out, None)
    finish_frame(out)
    return bytes(out)


def correlation_id_of(frame: bytes | memoryview) -> int:
    """Return the correlation id of a response frame without its length prefix. Raises DecodeError if the frame is too short."""
    if len(frame) < CORRELATION_ID_BYTES:
        raise DecodeError(
            "ResponseHeader",
            0,
            f"a response header takes at least {CORRELATION_ID_BYTES} bytes, but the frame has only {len(frame)}",
        )
    return int.from_bytes(frame[:CORRELATION_ID_BYTES], "big", signed=True)


def read_response(api_key: int, version: int, frame: bytes | memoryview) -> Response:
    """Decode a response frame without its length prefix. `api_key` and `version` are those of the request.

    Record batches stay slices of the frame. Raises UnsupportedVersion for an unknown API or version, and DecodeError if the frame is damaged or
    longer than its message.
    """
    view = memoryview(frame)
    version = response_version(api_key, version, view)
    header, position = decode_response_header(api_key, version, view, 0, len(view))
    message, end = codec(api_key, version).decode_response(view, position, len(view))
    if end != len(view):
        raise DecodeError(
            type(message).__name__, end, f"the response ends here, but its frame has {len(view) - end} more bytes"
        )
    return Response(header.correlation_id, api_key, version, message, frame)


class Client:
    """The client's side of one connection, without its socket: `send` encodes requests, and `receive` decodes responses.

    The program that uses this class writes the bytes that `send` returns to its socket, and passes the bytes that it reads to `receive`.

    spoken: maps API keys to the range of versions that the program supports. `agree` intersects them with the versions that the broker offers, and
    `send` uses the highest common version. Without `spoken`, each call of `send` must name the version.

    in_order: whether to reject a response to any request but the oldest. Tests that check the order themselves set it to False.
    """

    def __init__(
        self,
        client_id: str | None = "kafkaproto",
        spoken: Mapping[int, VersionRange] | None = None,
        *,
        in_order: bool = True,
    ) -> None:
        self.client_id = client_id
        self._spoken = {} if spoken is None else spoken
        self._agreed: dict[int, VersionRange] = {}
        self._in_order = in_order
        self.next_id = 1
        """The correlation id of the next request."""
        self.sent: dict[int, tuple[int, int]] = {}
        """Maps the correlation ids of pending requests, which have no response yet, to (API key, version), oldest first."""
        self._received = bytearray()
        self._is_second_request_sent = False

    @property
    def pending(self) -> int:
        """Return the number of requests without a response yet."""
        return len(self.sent)

    @property
    def unread_bytes(self) -> int:
        """Return the number of received bytes that belong to an incomplete response."""
        return len(self._received)

    def send(self, request: Any, version: int | None = None) -> bytes:
        """Encode the next request, register that its response is pending, and return the frame. The caller writes the frame to its socket.

        version: that of the request; None for the highest version that both sides support. A Produce request with acks=0 expects no response, so it
        is not registered. Raises EncodeError if a value of the request cannot be encoded, and UnsupportedVersion if the request has no such version,
        or client and broker have no version in common.
        """
        key = key_of(request)
        if version is None:
            version = self.version(key)
        correlation_id = self.next_id
        data = request_frame(request, version, correlation_id, self.client_id)
        self.next_id = 0 if correlation_id == MAX_CORRELATION_ID else correlation_id + 1
        if key != ApiKey.PRODUCE or request.acks != 0:
            self.sent[correlation_id] = key, version
        return data

    def version(self, api_key: int) -> int:
        """Return the highest version of an API that client and broker both support.

        Raises NoCommonVersion if there is none, or if `agree` has not chosen versions yet.
        """
        agreed = self._agreed.get(api_key)
        if not agreed:
            raise NoCommonVersion(api_key, self._spoken.get(api_key, NO_VERSIONS))
        return agreed.highest

    def receive(self, data: bytes | bytearray | memoryview) -> Iterator[Response]:
        """Add bytes that were received from the broker, and yield each response that is complete now, decoded.

        Raises DecodeError if a frame is damaged, and UnexpectedResponse if a response answers no pending request or, with `in_order`, not the oldest.
        """
        self._received += data
        while (frame := take_frame(self._received)) is not None:
            yield self.read(frame)

    def read(self, frame: bytes | memoryview) -> Response:
        """Decode one response frame without its length prefix. The correlation id in the frame selects the pending request.

        Raises DecodeError if the frame is damaged or longer than its message. Raises UnexpectedResponse if no pending request has the correlation id
        or, with `in_order`, if an older request is pending: Kafka sends responses in the order of the requests.
        """
        correlation_id = correlation_id_of(frame)
        expected = next(iter(self.sent), None)
        if correlation_id not in self.sent or (self._in_order and correlation_id != expected):
            oldest_pending_id = "none" if expected is None else str(expected)
            raise UnexpectedResponse(
                f"received a response with the unexpected correlation id {correlation_id} (oldest pending request: {oldest_pending_id})"
            )
        return read_response(*self.sent.pop(correlation_id), frame)

    # Version negotiation

    def ask_versions(self) -> bytes:
        """Encode an ApiVersions request as `send` does, and return its frame. Pass the response to `agree`."""
        return self.send(ApiVersionsRequest(*SOFTWARE), API_VERSIONS_VERSION)

    def agree(self, offered: ApiVersionsResponse) -> bytes | None:
        """Choose versions from an ApiVersions response. Returns the frame of a second ApiVersions request to send if one is needed, else None.

        A second request is needed if the broker did not support the version of the first one (KIP-511). Pass the response to the second request to
        this method as well. The method ignores all other errors in `offered.error_code`, so check for them before the call.
        """
        if offered.error_code == ErrorCode.UNSUPPORTED_VERSION and not self._is_second_request_sent:
            self._is_second_request_sent = True
            return self.send(ApiVersionsRequest(), ALWAYS_KNOWN_VERSION)
        ranges = {api.api_key: VersionRange(api.min_version, api.max_version) for api in offered.api_keys}
        self._agreed = {key: spoken.intersect(ranges[key]) for key, spoken in self._spoken.items() if key in ranges}
        return None
