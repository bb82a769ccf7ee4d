"""Frames of both directions of a connection as exchanges of a trace: requests and answers paired by their order.

Where nothing is missing since two were known to belong together, the next answer is that of the oldest request that awaits one, whatever
correlation id it has. Else the id says whose it is, and what is passed over has lost its other half. Must never know packets, nor what
becomes of exchanges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from struct import Struct
from typing import Any, NamedTuple

from kafkaproto.api import ApiKey
from kafkaproto.errors import ProtocolError
from kafkaproto.header import RequestHeader, encode_request_header
from kafkaproto.pipeline.capture.frames import (
    Finder,
    Frame,
    find_request,
    find_response,
    request_begins,
    response_begins,
)
from kafkaproto.pipeline.capture.stream import Stamp
from kafkaproto.trace.format import Entry, Event, Exchange
from kafkaproto.trace.frames import Cut, cut_request, cut_response, is_silent

MOST_WAITING_ANSWERS = 256
MOST_WAITING_BYTES = 16 * 1024 * 1024
SEQ_PER_PACKET = 1 << 20
UNKNOWN_BROKER = -1
NO_ANSWER = "its answer is not in the capture"

_START = Struct(">hhi")
_CORRELATION_ID = Struct(">i")


class Asked(NamedTuple):
    """A request that waits for its answer. header: None for a token of SASL, which has none. stretch: between which two holes among
    the requests it stands, counted from 0. doubtful: it may be one that awaits no answer."""

    seq: int
    header: RequestHeader | None
    cut: Cut
    frame: Frame
    stretch: int
    doubtful: bool = False


class Conversation:
    """The exchanges and events of one connection. connection: its number."""

    def __init__(self, connection: int) -> None:
        self._connection = connection
        self._asked: deque[Asked] = deque()
        self._early: deque[Frame] = deque()
        """Answers that were captured before their requests, or whose requests were not."""
        self._early_bytes = 0
        self._at_packet = 0
        self._in_packet = 0
        self._last_id: int | None = None
        self._client_id: str | None = None
        self._tokens = False
        """A SaslHandshake of version 0 was answered: tokens without headers follow it (KIP-43)."""
        self._stretch = 0
        self._sure_of: int | None = None
        """The stretch of requests whose answers come one by one from here on; None: nobody knows which answer is the next."""
        self.requests = Finder(self._request_begins, self._find_request)
        self.responses = Finder(self._response_begins, self._find_response)

    def begins_whole(self) -> None:
        """The first request, and the first answer, are those of the connection."""
        self._sure_of = self._stretch

    def missed(self, of_requests: bool) -> None:
        """Frames of one direction may be missing here."""
        if of_requests:
            self._stretch += 1
        else:
            self._sure_of = None

    # ---- what is looked for --------------------------------------------------------------------------------------------------

    def _request_begins(self, data: bytes) -> bool:
        return request_begins(data, 0, self._last_id, self._client_id)

    def _find_request(self, data: bytearray) -> int | None:
        return find_request(data, self._last_id, self._client_id)

    def _response_begins(self, data: bytes) -> bool:
        return response_begins(data, {one.header.correlation_id for one in self._asked if one.header is not None})

    def _find_response(self, data: bytearray) -> int | None:
        headers = [one.header for one in self._asked if one.header is not None]
        return find_response(data, {h.correlation_id: (h.api_key, h.api_version) for h in headers})

    # ---- what comes ----------------------------------------------------------------------------------------------------------

    def event(self, kind: str, stamp: Stamp, **facts: Any) -> Event:
        told = {"seq": self._seq(stamp), "clock_ms": 0, "at_ns": stamp.ts_ns, "broker": UNKNOWN_BROKER}
        return Event(kind, {**told, "connection": self._connection, **facts})

    def _seq(self, stamp: Stamp) -> int:
        """Counted by packets, so that connections that know nothing of each other count as one."""
        if stamp.number > self._at_packet:
            self._at_packet, self._in_packet = stamp.number, 0
        self._in_packet += 1
        return self._at_packet * SEQ_PER_PACKET + self._in_packet

    def request(self, frame: Frame) -> Iterator[Entry]:
        try:
            header, cut = _readable(frame)
        except ProtocolError as error:
            if self._tokens:
                self._asked.append(Asked(0, None, Cut(b"", (), None), frame, self._stretch))
            else:
                self.missed(of_requests=True)
                yield self.event("unreadable", frame.last, why=frame.trouble or str(error), bytes=frame.length)
            return
        self._tokens = False
        self._last_id, self._client_id = header.correlation_id, header.client_id
        doubtful = header.api_key == ApiKey.PRODUCE and cut.message is None
        asked = Asked(self._seq(frame.last), header, cut, frame, self._stretch, doubtful)
        if is_silent(header, cut):
            yield from self._unanswered(asked, "", frame.last)
            return
        self._asked.append(asked)
        yield from self._pair_by_id()

    def response(self, frame: Frame) -> Iterator[Entry]:
        self._early.append(frame)
        self._early_bytes += len(frame.data)
        if self._asked and self._is_next(self._asked[0]):
            yield from self._pair(0, len(self._early) - 1)
        else:
            yield from self._pair_by_id()
        while len(self._early) > MOST_WAITING_ANSWERS or self._early_bytes > MOST_WAITING_BYTES:
            yield self._unpaired(self._next_answer())

    def _is_next(self, oldest: Asked) -> bool:
        """Whether the answer that comes now must be its. An answer that was captured before its request is known by its id alone."""
        return oldest.header is None or (oldest.stretch == self._sure_of and not oldest.doubtful)

    def _pair_by_id(self) -> Iterator[Entry]:
        ids = [None if one.header is None else one.header.correlation_id for one in self._asked]
        for answers, frame in enumerate(self._early):
            correlation_id = _correlation_id(frame)
            if correlation_id is not None and correlation_id in ids:
                requests = ids.index(correlation_id)
                self._sure_of = self._asked[requests].stretch
                yield from self._pair(requests, answers)
                return

    def _pair(self, requests: int, answers: int) -> Iterator[Entry]:
        """A request and an answer belong together: so many of each that are older have lost their other half."""
        for _ in range(answers):
            yield self._unpaired(self._next_answer())
        frame = self._next_answer()
        for _ in range(requests):
            yield from self._unanswered(self._asked.popleft(), NO_ANSWER, frame.last)
        asked = self._asked.popleft()
        if asked.header is not None:
            self._tokens |= asked.header.api_key == ApiKey.SASL_HANDSHAKE and asked.header.api_version == 0
            yield from self._answered(asked, frame)

    def end(self, stamp: Stamp) -> Iterator[Entry]:
        """Nothing more comes."""
        while self._asked:
            yield from self._unanswered(self._asked.popleft(), NO_ANSWER, stamp)
        while self._early:
            yield self._unpaired(self._next_answer())

    def _next_answer(self) -> Frame:
        frame = self._early.popleft()
        self._early_bytes -= len(frame.data)
        return frame

    def _unpaired(self, frame: Frame) -> Event:
        return self.event(
            "unreadable", frame.last, why="an answer whose request is not in the capture", bytes=frame.length
        )

    # ---- what is told --------------------------------------------------------------------------------------------------------

    def _answered(self, asked: Asked, frame: Frame) -> Iterator[Entry]:
        header = asked.header
        assert header is not None
        data = frame.data[: _CORRELATION_ID.size] if frame.trouble else frame.data
        cut = cut_response(header.api_key, header.api_version, data)
        trouble = asked.frame.trouble or frame.trouble
        yield from self._exchange(asked, trouble, frame.last, frame, cut)

    def _unanswered(self, asked: Asked, trouble: str, stamp: Stamp) -> Iterator[Entry]:
        if asked.header is not None:
            yield from self._exchange(asked, asked.frame.trouble or trouble, stamp, None, Cut(b"", (), None))

    def _exchange(self, asked: Asked, trouble: str, stamp: Stamp, answer: Frame | None, cut: Cut) -> Iterator[Entry]:
        if trouble:
            yield self.event("trouble", stamp, of=asked.seq, why=trouble)
        received_ns = asked.frame.last.ts_ns
        yield Exchange(
            seq=asked.seq,
            broker=UNKNOWN_BROKER,
            connection=self._connection,
            clock_ms=0,
            received_ns=received_ns,
            handled_ns=0,
            ready_ns=received_ns if answer is None else answer.first_ns,
            sent_ns=0 if answer is None else answer.last.ts_ns,
            throttle_ms=0,
            answered=answer is not None,
            held=False,
            closes=False,
            request_bytes=asked.frame.length,
            response_bytes=0 if answer is None else answer.length,
            request=asked.cut.frame,
            response=cut.frame,
            request_records=asked.cut.records,
            response_records=cut.records,
        )


def _correlation_id(frame: Frame) -> int | None:
    return _CORRELATION_ID.unpack_from(frame.data)[0] if len(frame.data) >= _CORRELATION_ID.size else None


def _readable(frame: Frame) -> tuple[RequestHeader, Cut]:
    """The request, or of one with trouble its header alone, without a client-id if that is not there. Raises ProtocolError."""
    if not frame.trouble:
        return cut_request(frame.data)
    try:
        header, _ = cut_request(frame.data)
    except ProtocolError:
        if len(frame.data) < _START.size:
            raise
        key, version, correlation_id = _START.unpack_from(frame.data)
        header = RequestHeader(key, version, correlation_id, None)
    out = bytearray()
    encode_request_header(header, out)
    return header, Cut(bytes(out), (), None)
