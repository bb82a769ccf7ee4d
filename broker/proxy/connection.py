"""One proxied connection between a client and a broker: forwards frames, replaces brokers' addresses, and records requests with their responses.

Frames that cannot be decoded are forwarded unchanged. The module relies on the broker to send responses in the order of the requests. It
does not depend on sockets or files.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from struct import Struct
from typing import NamedTuple

from kafkaproto.addresses import Replace, capped, names_brokers, replaced
from kafkaproto.api import APIS, ApiKey
from kafkaproto.client import ALWAYS_KNOWN_VERSION, response_frame
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError, ProtocolError
from kafkaproto.frame import LENGTH_BYTES, frame, frame_length, take_frame
from kafkaproto.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafkaproto.trace.format import UNANSWERED, Entry, Event, Exchange
from kafkaproto.trace.frames import Cut, cut_request, cut_response, cut_unhandled, is_silent

LARGEST_FRAME_BYTES = 100 * 1024 * 1024
"""The maximum size of a request's frame in bytes, the default of Kafka's `socket.request.max.bytes`. Responses have no limit."""
logger = logging.getLogger("kafkaproto.proxy")

_START = Struct(">hhi")
_CORRELATION_ID = Struct(">i")


class NotKafka(ValueError):
    """Raised if bytes from the client or the broker are not Kafka's protocol. The message says which protocol the bytes look like."""


class _Pending(NamedTuple):
    """A forwarded request whose response has not arrived yet.

    seq: the sequence number of the request's entry in the trace. key: the API key. version: the API version. received_ns: when the proxy received the
    request, in ns of the monotonic clock. size_bytes: the size of its frame without the length. cut: the frame without records, for the trace.
    """

    seq: int
    key: int
    version: int
    correlation_id: int
    received_ns: int
    size_bytes: int
    cut: Cut


class ProxyConnection:
    """Processes the bytes that client and broker send, and returns the bytes to forward.

    - number: the number of the connection.
    - broker: a function that returns the broker's id, -1 while the id is unknown.
    - replace: a function called with (broker id, host, port) of each broker in a response; it returns the (host, port) of the proxy for that broker,
      which the client gets instead.
    - next_seq: a function that returns the next sequence number of the trace.
    - tell: a function that stores an entry in the trace.
    """

    def __init__(
        self,
        number: int,
        broker: Callable[[], int],
        replace: Replace,
        next_seq: Callable[[], int],
        record: Callable[[Entry], None],
    ) -> None:
        self._number = number
        self._broker = broker
        self._replace = replace
        self._next_seq = next_seq
        self._record = record
        self._from_client = bytearray()
        self._from_broker = bytearray()
        self._pending: deque[_Pending | None] = deque()
        """The requests whose response has not arrived, in order; None stands for a frame without a request header, such as a SASL token."""
        self._tokens = False
        self.broken: NotKafka | None = None
        """The error for bytes of the client that are not Kafka's protocol, if complete requests preceded them; None if there are no such bytes.

        The preceding requests are still forwarded. Then the error is raised.
        """

    def requested(self, data: bytes, now_ns: int) -> tuple[bytes, bytes]:
        """Process bytes from the client. Returns (bytes for the broker, bytes to send back to the client at once).

        now_ns: the time in ns of the monotonic clock. If the bytes are not Kafka's protocol, raises NotKafka or, if complete requests precede the
        wrong bytes, returns these requests and sets `broken`.
        """
        self._from_client += data
        if self._from_client[:2] == b"\x16\x03":
            raise NotKafka("the client speaks TLS, which this proxy does not support; use a listener without TLS")
        to_broker, to_client = bytearray(), bytearray()
        try:
            for message in _frames(self._from_client, LARGEST_FRAME_BYTES):
                response = self._request(memoryview(message), now_ns)
                if response is None:
                    to_broker += frame(message)
                else:
                    to_client += response
        except NotKafka as error:
            if not to_broker and not to_client:
                raise
            self.broken = error
        return bytes(to_broker), bytes(to_client)

    def responded(self, data: bytes, now_ns: int) -> bytes:
        """Process bytes from the broker. Returns the bytes for the client.

        now_ns: the time in ns of the monotonic clock. Raises NotKafka if the bytes are not Kafka's protocol.
        """
        self._from_broker += data
        return b"".join(frame(self._response_of(message, now_ns)) for message in _frames(self._from_broker, None))

    def ended(self, now_ns: int) -> None:
        """Record the requests without a response when the connection ends. The broker may have executed these requests nevertheless.

        now_ns: the time in ns of the monotonic clock.
        """
        while self._pending:
            pending = self._pending.popleft()
            if pending is not None:
                at = {"seq": self._next_seq(), "clock_ms": 0, "at_ns": now_ns, "broker": self._broker()}
                self._record(Event("problem", {**at, "connection": self._number, "of": pending.seq, "why": UNANSWERED}))
                self._exchange(pending, None, pending.received_ns)

    @property
    def waiting(self) -> int:
        """Return the number of requests whose response has not arrived yet."""
        return len(self._pending)

    # ---- requests ------------------------------------------------------------------------------------------------------------

    def _request(self, message: memoryview, now_ns: int) -> bytes | None:
        """Record a request from the client. Returns a response if the proxy responds itself, or None to forward the request.

        message: the request's frame without its length. now_ns: the time in ns of the monotonic clock.
        """
        if len(message) < _START.size or (self._tokens and not _is_request(message)):
            self._pending.append(None)
            return None
        key, version, correlation_id = _START.unpack_from(message)
        if key == ApiKey.API_VERSIONS and version > APIS[key].max_version:
            response = _unsupported(correlation_id)
            pending = _Pending(
                self._next_seq(), key, version, correlation_id, now_ns, len(message), Cut(*cut_unhandled(message), None)
            )
            self._exchange(pending, response[LENGTH_BYTES:], now_ns)
            return response
        self._tokens = False
        cut, silent = Cut(bytes(message[: _START.size]), (), None), False
        try:
            header, cut = cut_request(message)
            silent = is_silent(header, cut)
        except ProtocolError as error:
            logger.info(
                "connection %d: a request was forwarded unchanged, but could not be decoded, so the trace has only its start: %s",
                self._number,
                error,
            )
        pending = _Pending(self._next_seq(), key, version, correlation_id, now_ns, len(message), cut)
        if silent:
            self._exchange(pending, None, now_ns)
        else:
            self._pending.append(pending)
        return None

    # ---- responses -----------------------------------------------------------------------------------------------------------

    def _response_of(self, message: bytes, now_ns: int) -> bytes:
        pending = self._pending.popleft() if self._pending else None
        if pending is None:
            return message
        if pending.key == ApiKey.SASL_HANDSHAKE and pending.version == 0:
            self._tokens = True
        self._exchange(pending, message, now_ns)
        view = memoryview(message)
        if message[: _CORRELATION_ID.size] != _CORRELATION_ID.pack(pending.correlation_id):
            return message
        try:
            if pending.key == ApiKey.API_VERSIONS:
                return capped(pending.version, view) or message
            return replaced(pending.key, pending.version, view, self._replace) or message
        except ProtocolError as error:
            if names_brokers(pending.key):
                logger.warning(
                    "connection %d: the brokers' addresses in a response could not be replaced, so the client may bypass the proxy: %s",
                    self._number,
                    error,
                )
            return message

    def _exchange(self, pending: _Pending, response: bytes | None, now_ns: int) -> None:
        cut = None if response is None else cut_response(pending.key, pending.version, response)
        self._record(
            Exchange(
                seq=pending.seq,
                broker=self._broker(),
                connection=self._number,
                clock_ms=0,
                received_ns=pending.received_ns,
                handled_ns=0,
                ready_ns=now_ns,
                sent_ns=0,
                throttle_ms=0,
                answered=response is not None,
                held=False,
                closes=False,
                request_bytes=pending.size_bytes,
                response_bytes=0 if response is None else len(response),
                request=pending.cut.frame,
                response=b"" if cut is None else cut.frame,
                request_records=pending.cut.records,
                response_records=() if cut is None else cut.records,
            )
        )


def _frames(received: bytearray, max_bytes: int | None) -> Iterator[bytes]:
    """Remove the whole frames at the beginning of the buffer `received`, and yield them without their lengths.

    max_bytes: the maximum size of a frame, None for no limit. Raises NotKafka if a length is negative or above this limit.
    """
    try:
        while (length := frame_length(received)) is not None:
            if max_bytes is not None and length > max_bytes:
                raise NotKafka(
                    f"a frame announces {length} bytes, but the proxy accepts at most {max_bytes}: "
                    "the client does not use Kafka's protocol, or it must send smaller requests"
                )
            whole_frame = take_frame(received)
            if whole_frame is None:
                return
            yield whole_frame
    except DecodeError as error:
        raise NotKafka(
            f"the received bytes are not Kafka's protocol: {error}; use the proxy only for Kafka clients and brokers"
        ) from None


def _is_request(message: memoryview) -> bool:
    try:
        header, _ = cut_request(message)
    except ProtocolError:
        return False
    return header.api_version <= APIS[header.api_key].max_version


def _unsupported(correlation_id: int) -> bytes:
    """Return the response with which a broker rejects an ApiVersions request of an unsupported version (KIP-511)."""
    api_info = APIS[ApiKey.API_VERSIONS]
    ranges = [ApiVersion(api_info.key, api_info.min_version, api_info.max_version)]
    refusal = ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, ranges)
    return response_frame(refusal, ApiKey.API_VERSIONS, ALWAYS_KNOWN_VERSION, correlation_id)
