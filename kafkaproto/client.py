"""A small Kafka client without a socket: requests become frames, frames become responses, versions are agreed on.

Two functions for single frames:

    data = request_frame(MetadataRequest([]), 4, correlation_id=1, client_id="me")      # send these bytes
    response = read_response(ApiKey.METADATA, 4, frame)                                  # the frame without its length

and `Client` for a connection, which counts correlation ids and knows which response belongs to which request. Its user owns the socket,
the timeouts and the retries.
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

FIRST_ASKED_VERSION = 3
"""Of ApiVersions: the first that names the client's software (KIP-511)."""
ALWAYS_KNOWN_VERSION = 0
"""Of ApiVersions: a broker responds in this version if it does not support the version of the request."""
SOFTWARE = "kafkaproto", "1"
CORRELATION_ID_BYTES = 4
MAX_CORRELATION_ID = 2**31 - 1


class Response(NamedTuple):
    """One response. version: in which it is written, that of its request but for KIP-511. data: its frame without the length."""

    correlation_id: int
    api_key: int
    version: int
    message: Any
    data: bytes | memoryview


class UnexpectedResponse(ProtocolError):
    """A response to no request, or to another request than the one whose turn it is."""


class NoCommonVersion(UnsupportedVersion):
    """An API that the broker does not offer in a version that the client speaks, as far as they have agreed on versions."""

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
    """Return the API key of a request object, by its class. Raises UnsupportedVersion if it is not a request."""
    name = type(request).__name__
    key = _KEYS.get(name)
    if key is None:
        raise UnsupportedVersion(None, name=name)
    return key


def request_frame(request: Any, version: int, correlation_id: int = 1, client_id: str | None = None) -> bytes:
    """Return a whole request frame: length, header and body. Raises EncodeError, UnsupportedVersion."""
    key = key_of(request)
    out = start_frame()
    encode_request_header(RequestHeader(key, version, correlation_id, client_id), out)
    codec(key, version).encode_request(request, out, None)
    finish_frame(out)
    return bytes(out)


def response_frame(response: Any, api_key: int, version: int, correlation_id: int = 1) -> bytes:
    """Return a whole response frame: length, header and body. Raises EncodeError, UnsupportedVersion."""
    out = start_frame()
    encode_response_header(api_key, version, correlation_id, out)
    codec(api_key, version).encode_response(response, out, None)
    finish_frame(out)
    return bytes(out)


def correlation_id_of(frame: bytes | memoryview) -> int:
    """Return the correlation id of a response frame, given without its length. Raises DecodeError if it is too short."""
    if len(frame) < CORRELATION_ID_BYTES:
        raise DecodeError("ResponseHeader", 0, f"a frame of {len(frame)} bytes holds no response header")
    return int.from_bytes(frame[:CORRELATION_ID_BYTES], "big", signed=True)


def read_response(api_key: int, version: int, frame: bytes | memoryview) -> Response:
    """Read a whole response frame, given without its length, to a request of this key and version.

    Records stay slices of the frame. Raises DecodeError, also for bytes that are left behind the message, and UnsupportedVersion.
    """
    view = memoryview(frame)
    version = response_version(api_key, version, view)
    header, position = decode_response_header(api_key, version, view, 0, len(view))
    message, end = codec(api_key, version).decode_response(view, position, len(view))
    if end != len(view):
        raise DecodeError(type(message).__name__, end, f"{len(view) - end} bytes are left behind the response")
    return Response(header.correlation_id, api_key, version, message, frame)


class Client:
    """The client's side of one connection: `send` gives the bytes of a request, `receive` takes bytes and gives responses.

    spoken: the versions that the user of the client understands, by API key; together with what the broker offers (`agree`) they decide in
    which version `send` sends. Without it each `send` names its version.

    in_order: whether a response to any but the oldest request is refused. A test that judges the order itself turns it off.
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
        """The requests that have no response yet: correlation id to (API key, version), the oldest first."""
        self._received = bytearray()
        self._asked_again = False

    @property
    def pending(self) -> int:
        """How many requests have no response yet."""
        return len(self.sent)

    def send(self, request: Any, version: int | None = None) -> bytes:
        """Return the frame of the next request. version: the highest that both sides speak if it is None.

        A Produce with acks=0 awaits no response. Raises UnsupportedVersion if the two sides have no version in common, EncodeError.
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
        """Return the version in which requests of this API are sent. Raises UnsupportedVersion if there is none."""
        agreed = self._agreed.get(api_key)
        if not agreed:
            raise NoCommonVersion(api_key, self._spoken.get(api_key, NO_VERSIONS))
        return agreed.highest

    def receive(self, data: bytes | bytearray | memoryview) -> Iterator[Response]:
        """Take bytes as they come and yield the responses that are whole. Raises DecodeError, UnexpectedResponse."""
        self._received += data
        while (frame := take_frame(self._received)) is not None:
            yield self.read(frame)

    def read(self, frame: bytes | memoryview) -> Response:
        """Read one whole frame, given without its length. Responses come in the order of their requests, as Kafka promises.

        Raises DecodeError, and UnexpectedResponse for one that belongs to no request or, with `in_order`, to another one.
        """
        correlation_id = correlation_id_of(frame)
        expected = next(iter(self.sent), None)
        if correlation_id not in self.sent or (self._in_order and correlation_id != expected):
            instead = "where no request waits for one" if expected is None else f"instead of {expected}"
            raise UnexpectedResponse(f"a response to request {correlation_id} {instead}")
        return read_response(*self.sent.pop(correlation_id), frame)

    # ---- versions ------------------------------------------------------------------------------------------------------------------

    def ask_versions(self) -> bytes:
        """Return the frame of an ApiVersions request, whose response goes to `agree`."""
        return self.send(ApiVersionsRequest(*SOFTWARE), FIRST_ASKED_VERSION)

    def agree(self, offered: ApiVersionsResponse) -> bytes | None:
        """Take what a broker answers to ApiVersions. Returns the next frame to send if it must be asked again (KIP-511), else None.

        Its error code is for the caller to look at; with an error nothing is agreed on.
        """
        if offered.error_code == ErrorCode.UNSUPPORTED_VERSION and not self._asked_again:
            self._asked_again = True
            return self.send(ApiVersionsRequest(), ALWAYS_KNOWN_VERSION)
        ranges = {api.api_key: VersionRange(api.min_version, api.max_version) for api in offered.api_keys}
        self._agreed = {key: spoken.intersect(ranges[key]) for key, spoken in self._spoken.items() if key in ranges}
        return None
