"""One connection between a client and a broker, seen by who stands in between: frames go through, addresses are replaced, exchanges told.

Answers come in the order of requests. What cannot be read goes through as it is. Must never know sockets or files.
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
"""socket.request.max.bytes of Kafka; answers have no limit."""
logger = logging.getLogger("kafkaproto.proxy")

_START = Struct(">hhi")
_CORRELATION_ID = Struct(">i")


class NotKafka(ValueError):
    """What the client sends is no request: the text says what it looks like."""


class _Asked(NamedTuple):
    """A request that waits for its answer. cut: as a trace keeps it."""

    seq: int
    key: int
    version: int
    correlation_id: int
    received_ns: int
    size_bytes: int
    cut: Cut


class ProxyConnection:
    """Bytes of both ends in, bytes for both out.

    number, broker: whose connection it is. replace: addresses for this client. next_seq, tell: a count and a place for entries of a trace.
    """

    def __init__(
        self,
        number: int,
        broker: Callable[[], int],
        replace: Replace,
        next_seq: Callable[[], int],
        tell: Callable[[Entry], None],
    ) -> None:
        self._number = number
        self._broker = broker
        self._replace = replace
        self._next_seq = next_seq
        self._tell = tell
        self._from_client = bytearray()
        self._from_broker = bytearray()
        self._asked: deque[_Asked | None] = deque()
        """None: a token of SASL, which has no header."""
        self._tokens = False

    def requested(self, data: bytes, now_ns: int) -> tuple[bytes, bytes]:
        """Bytes from the client: (what goes to the broker, what goes back at once). Raises NotKafka."""
        self._from_client += data
        if self._from_client[:2] == b"\x16\x03":
            raise NotKafka("the client speaks TLS, which this proxy does not: use a listener without it")
        on, back = bytearray(), bytearray()
        for one in _frames(self._from_client, LARGEST_FRAME_BYTES):
            answer = self._request(memoryview(one), now_ns)
            if answer is None:
                on += frame(one)
            else:
                back += answer
        return bytes(on), bytes(back)

    def answered(self, data: bytes, now_ns: int) -> bytes:
        """Bytes from the broker: what goes to the client. Raises NotKafka."""
        self._from_broker += data
        return b"".join(frame(self._answer(one, now_ns)) for one in _frames(self._from_broker, None))

    def ended(self, now_ns: int) -> None:
        """Nothing more goes through. What went on without an answer is told too: the broker may have done it all the same."""
        while self._asked:
            asked = self._asked.popleft()
            if asked is not None:
                at = {"seq": self._next_seq(), "clock_ms": 0, "at_ns": now_ns, "broker": self._broker()}
                self._tell(Event("trouble", {**at, "connection": self._number, "of": asked.seq, "why": UNANSWERED}))
                self._exchange(asked, None, asked.received_ns)

    @property
    def waiting(self) -> int:
        """How many requests have no answer yet."""
        return len(self._asked)

    # ---- requests ------------------------------------------------------------------------------------------------------------

    def _request(self, one: memoryview, now_ns: int) -> bytes | None:
        """Note a request. An answer, if it must not go on."""
        if len(one) < _START.size or (self._tokens and not _is_request(one)):
            self._asked.append(None)
            return None
        key, version, correlation_id = _START.unpack_from(one)
        if key == ApiKey.API_VERSIONS and version > APIS[key].max_version:
            answer = _unsupported(correlation_id)
            asked = _Asked(
                self._next_seq(), key, version, correlation_id, now_ns, len(one), Cut(*cut_unhandled(one), None)
            )
            self._exchange(asked, answer[LENGTH_BYTES:], now_ns)
            return answer
        self._tokens = False
        cut, silent = Cut(bytes(one[: _START.size]), (), None), False
        try:
            header, cut = cut_request(one)
            silent = is_silent(header, cut)
        except ProtocolError as error:
            logger.info("connection %d: a request goes through unread: %s", self._number, error)
        asked = _Asked(self._next_seq(), key, version, correlation_id, now_ns, len(one), cut)
        if silent:
            self._exchange(asked, None, now_ns)
        else:
            self._asked.append(asked)
        return None

    # ---- answers -------------------------------------------------------------------------------------------------------------

    def _answer(self, one: bytes, now_ns: int) -> bytes:
        asked = self._asked.popleft() if self._asked else None
        if asked is None:
            return one
        if asked.key == ApiKey.SASL_HANDSHAKE and asked.version == 0:
            self._tokens = True
        self._exchange(asked, one, now_ns)
        view = memoryview(one)
        if one[: _CORRELATION_ID.size] != _CORRELATION_ID.pack(asked.correlation_id):
            return one
        try:
            if asked.key == ApiKey.API_VERSIONS:
                return capped(asked.version, view) or one
            return replaced(asked.key, asked.version, view, self._replace) or one
        except ProtocolError as error:
            if names_brokers(asked.key):
                logger.warning("connection %d: an answer goes through with its addresses: %s", self._number, error)
            return one

    def _exchange(self, asked: _Asked, answer: bytes | None, now_ns: int) -> None:
        cut = None if answer is None else cut_response(asked.key, asked.version, answer)
        self._tell(
            Exchange(
                seq=asked.seq,
                broker=self._broker(),
                connection=self._number,
                clock_ms=0,
                received_ns=asked.received_ns,
                handled_ns=0,
                ready_ns=now_ns,
                sent_ns=0,
                throttle_ms=0,
                answered=answer is not None,
                held=False,
                closes=False,
                request_bytes=asked.size_bytes,
                response_bytes=0 if answer is None else len(answer),
                request=asked.cut.frame,
                response=b"" if cut is None else cut.frame,
                request_records=asked.cut.records,
                response_records=() if cut is None else cut.records,
            )
        )


def _frames(received: bytearray, max_bytes: int | None) -> Iterator[bytes]:
    """Remove the whole frames at the beginning of a buffer, and yield them without their lengths. Raises NotKafka."""
    try:
        while (length := frame_length(received)) is not None:
            if max_bytes is not None and length > max_bytes:
                raise NotKafka(f"a request of {length} bytes is announced: this is not Kafka's protocol")
            whole = take_frame(received)
            if whole is None:
                return
            yield whole
    except DecodeError as error:
        raise NotKafka(f"{error}: this is not Kafka's protocol") from None


def _is_request(one: memoryview) -> bool:
    try:
        header, _ = cut_request(one)
    except ProtocolError:
        return False
    return header.api_version <= APIS[header.api_key].max_version


def _unsupported(correlation_id: int) -> bytes:
    """As a broker answers who asks for its versions in one that it does not know (KIP-511)."""
    known = APIS[ApiKey.API_VERSIONS]
    ranges = [ApiVersion(known.key, known.min_version, known.max_version)]
    refusal = ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, ranges)
    return response_frame(refusal, ApiKey.API_VERSIONS, ALWAYS_KNOWN_VERSION, correlation_id)
