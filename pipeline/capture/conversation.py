"""Pairing of the captured requests and responses of a connection. Each pair, except of SASL tokens, becomes an exchange of a trace.

Brokers respond in the order of the requests. As long as no bytes are missing since the last pair, the next response therefore belongs to the oldest
pending request. After missing bytes, the correlation id decides, and older requests and responses without a match become entries of their own. This
module gets frames from `frames`, and does not process packets.
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

MAX_UNPAIRED_RESPONSES = 256
MAX_UNPAIRED_BYTES = 16 * 1024 * 1024
SEQ_PER_PACKET = 1 << 20
UNKNOWN_BROKER = -1
NO_RESPONSE = "the response is not in the capture"

_START = Struct(">hhi")
_CORRELATION_ID = Struct(">i")


class PendingRequest(NamedTuple):
    """A request whose response has not been captured yet.

    seq: sequence number of its trace entry. header: the decoded header; None for a SASL token, which has neither a header nor a trace entry (its seq
    is 0). cut: the part of the request that the trace stores. frame: the request as captured. stretch: the number of gaps (missing or undecodable
    bytes of the client) before this request. Two requests with the same number have no gap between them, so no request between them is missing.
    doubtful: True for a Produce whose acks cannot be decoded, so that it is unknown whether the broker sends a response (it sends none for acks=0).
    """

    seq: int
    header: RequestHeader | None
    cut: Cut
    frame: Frame
    stretch: int
    doubtful: bool = False


class Conversation:
    """Pairs the requests and responses of one connection, and yields them as the exchanges and events of a trace.

    connection: the number of the connection's first packet, which identifies the connection.
    """

    def __init__(self, connection: int) -> None:
        self._connection = connection
        self._pending: deque[PendingRequest] = deque()
        self._unpaired_responses: deque[Frame] = deque()
        """Responses that were captured before their requests, or whose requests are missing."""
        self._unpaired_bytes = 0
        self._at_packet = 0
        self._in_packet = 0
        self._last_id: int | None = None
        self._client_id: str | None = None
        self._tokens = False
        """True after the response to a SaslHandshake of version 0. SASL tokens without headers follow it (KIP-43)."""
        self._stretch = 0
        self._ordered_stretch: int | None = None
        """The number of gaps in the client's bytes before the requests that are paired by order; None if no request can be paired by order.

        Each request stores the number of gaps before it in its field `stretch`. If the oldest pending request has the same number as this attribute,
        the next response belongs to this request (`_is_next` has the exceptions). Otherwise the next response is paired by its correlation id, and
        this attribute is set to the `stretch` of the request in that pair.
        """
        self.requests = Finder(self._request_begins, self._find_request)
        self.responses = Finder(self._response_begins, self._find_response)

    def starts_complete(self) -> None:
        """Record that this connection was captured from its start: its first request and first response are in the capture."""
        self._ordered_stretch = self._stretch

    def missed(self, of_requests: bool) -> None:
        """Record that bytes of the connection are missing or cannot be decoded, so that whole requests or responses may be missing.

        of_requests: True if the client sent these bytes, False if the broker did.
        """
        if of_requests:
            self._stretch += 1
        else:
            self._ordered_stretch = None

    # ---- search for frames ---------------------------------------------------------------------------------------------------

    def _request_begins(self, data: bytes) -> bool:
        return request_begins(data, 0, self._last_id, self._client_id)

    def _find_request(self, data: bytearray) -> int | None:
        return find_request(data, self._last_id, self._client_id)

    def _response_begins(self, data: bytes) -> bool:
        return response_begins(
            data, {pending.header.correlation_id for pending in self._pending if pending.header is not None}
        )

    def _find_response(self, data: bytearray) -> int | None:
        headers = [pending.header for pending in self._pending if pending.header is not None]
        return find_response(data, {h.correlation_id: (h.api_key, h.api_version) for h in headers})

    # ---- input ---------------------------------------------------------------------------------------------------------------

    def event(self, kind: str, stamp: Stamp, **facts: Any) -> Event:
        common = {"seq": self._seq(stamp), "clock_ms": 0, "at_ns": stamp.ts_ns, "broker": UNKNOWN_BROKER}
        return Event(kind, {**common, "connection": self._connection, **facts})

    def _seq(self, stamp: Stamp) -> int:
        """Return a new sequence number for an entry of the trace. stamp: number and time of the packet that completed the entry.

        The sequence number is derived from the packet number, so that all connections of a capture share one sequence.
        """
        if stamp.number > self._at_packet:
            self._at_packet, self._in_packet = stamp.number, 0
        self._in_packet += 1
        return self._at_packet * SEQ_PER_PACKET + self._in_packet

    def request(self, frame: Frame) -> Iterator[Entry]:
        try:
            header, cut = _decodable_part(frame)
        except ProtocolError as error:
            if self._tokens:
                self._pending.append(PendingRequest(0, None, Cut(b"", (), None), frame, self._stretch))
            else:
                self.missed(of_requests=True)
                yield self.event("unreadable", frame.last, why=frame.problem or str(error), bytes=frame.length)
            return
        self._tokens = False
        self._last_id, self._client_id = header.correlation_id, header.client_id
        doubtful = header.api_key == ApiKey.PRODUCE and cut.message is None
        request = PendingRequest(self._seq(frame.last), header, cut, frame, self._stretch, doubtful)
        if is_silent(header, cut):
            yield from self._unanswered(request, "", frame.last)
            return
        self._pending.append(request)
        yield from self._pair_by_id()

    def response(self, frame: Frame) -> Iterator[Entry]:
        self._unpaired_responses.append(frame)
        self._unpaired_bytes += len(frame.data)
        if self._pending and self._is_next(self._pending[0]):
            yield from self._pair(0, len(self._unpaired_responses) - 1)
        else:
            yield from self._pair_by_id()
        while len(self._unpaired_responses) > MAX_UNPAIRED_RESPONSES or self._unpaired_bytes > MAX_UNPAIRED_BYTES:
            yield self._unpaired_event(self._next_response())

    def _is_next(self, oldest: PendingRequest) -> bool:
        """Return True if the next response must belong to `oldest`, the oldest pending request.

        Returns False if requests before `oldest`, or responses before the next response, may be missing, or if the broker may send no response to
        `oldest` (`doubtful`). In these cases, the correlation id decides. A SASL token has no correlation id, so the next response always counts as
        its response.
        """
        return oldest.header is None or (oldest.stretch == self._ordered_stretch and not oldest.doubtful)

    def _pair_by_id(self) -> Iterator[Entry]:
        ids = [None if pending.header is None else pending.header.correlation_id for pending in self._pending]
        for response_index, frame in enumerate(self._unpaired_responses):
            correlation_id = _correlation_id(frame)
            if correlation_id is not None and correlation_id in ids:
                request_index = ids.index(correlation_id)
                self._ordered_stretch = self._pending[request_index].stretch
                yield from self._pair(request_index, response_index)
                return

    def _pair(self, request_index: int, response_index: int) -> Iterator[Entry]:
        """Pair a request and a response, given by their indexes in the queues of pending requests and unpaired responses.

        Yields the pair as an exchange of the trace; a pair of SASL tokens yields nothing. Frames that precede the pair in the queues stay unpaired.
        Their entries come first: for a request an exchange without a response, for a response an event "unreadable".
        """
        for _ in range(response_index):
            yield self._unpaired_event(self._next_response())
        frame = self._next_response()
        for _ in range(request_index):
            yield from self._unanswered(self._pending.popleft(), NO_RESPONSE, frame.last)
        request = self._pending.popleft()
        if request.header is not None:
            self._tokens |= request.header.api_key == ApiKey.SASL_HANDSHAKE and request.header.api_version == 0
            yield from self._paired(request, frame)

    def end(self, stamp: Stamp) -> Iterator[Entry]:
        """Yield the entries of all frames that are still unpaired at the end of the connection.

        stamp: number and time of the connection's last packet.
        """
        while self._pending:
            yield from self._unanswered(self._pending.popleft(), NO_RESPONSE, stamp)
        while self._unpaired_responses:
            yield self._unpaired_event(self._next_response())

    def _next_response(self) -> Frame:
        frame = self._unpaired_responses.popleft()
        self._unpaired_bytes -= len(frame.data)
        return frame

    def _unpaired_event(self, frame: Frame) -> Event:
        return self.event(
            "unreadable", frame.last, why="a response whose request is not in the capture", bytes=frame.length
        )

    # ---- output --------------------------------------------------------------------------------------------------------------

    def _paired(self, request: PendingRequest, frame: Frame) -> Iterator[Entry]:
        header = request.header
        assert header is not None
        data = frame.data[: _CORRELATION_ID.size] if frame.problem else frame.data
        cut = cut_response(header.api_key, header.api_version, data)
        problem = request.frame.problem or frame.problem
        yield from self._exchange(request, problem, frame.last, frame, cut)

    def _unanswered(self, request: PendingRequest, problem: str, stamp: Stamp) -> Iterator[Entry]:
        if request.header is not None:
            yield from self._exchange(request, request.frame.problem or problem, stamp, None, Cut(b"", (), None))

    def _exchange(
        self, request: PendingRequest, problem: str, stamp: Stamp, response: Frame | None, cut: Cut
    ) -> Iterator[Entry]:
        if problem:
            yield self.event("problem", stamp, of=request.seq, why=problem)
        received_ns = request.frame.last.ts_ns
        yield Exchange(
            seq=request.seq,
            broker=UNKNOWN_BROKER,
            connection=self._connection,
            clock_ms=0,
            received_ns=received_ns,
            handled_ns=0,
            ready_ns=received_ns if response is None else response.first_ns,
            sent_ns=0 if response is None else response.last.ts_ns,
            throttle_ms=0,
            answered=response is not None,
            held=False,
            closes=False,
            request_bytes=request.frame.length,
            response_bytes=0 if response is None else response.length,
            request=request.cut.frame,
            response=cut.frame,
            request_records=request.cut.records,
            response_records=cut.records,
        )


def _correlation_id(frame: Frame) -> int | None:
    return _CORRELATION_ID.unpack_from(frame.data)[0] if len(frame.data) >= _CORRELATION_ID.size else None


def _decodable_part(frame: Frame) -> tuple[RequestHeader, Cut]:
    """Return the header of a request, and the part of the request that the trace stores: only the header if the frame is incomplete.

    If an incomplete frame ends before or within the client id, the client id in the returned header is None. Raises ProtocolError if another part of
    the header cannot be decoded.
    """
    if not frame.problem:
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
