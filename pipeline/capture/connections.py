"""Finds the TCP connections between two endpoints in captured segments, and for each connection its client and whether it speaks Kafka.

Each handshake starts a new connection, also between the same endpoints. The state of a connection is dropped when the connection ends. The module
`frames` decides whether bytes look like a request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import NamedTuple

from kafkaproto.header import RequestHeader
from kafkaproto.pipeline.capture.conversation import Conversation
from kafkaproto.pipeline.capture.frames import Cutter, Finder, Frame, Lost, find_request, header_of, request_begins
from kafkaproto.pipeline.capture.link import ACK, FIN, RST, SYN
from kafkaproto.pipeline.capture.stream import LOST, Data, Hole, Piece, Stamp, Stream
from kafkaproto.trace.format import Entry

MAX_BUFFERED_BYTES = 64 * 1024
MAX_BUFFERED_PIECES = 128
"""Largest number of pieces (captured data and gaps) that are buffered for a connection while it is unknown which end is the client."""
PLAUSIBLE_FROM_BYTES = 14
TLS, NO_KAFKA, NO_CONNECTION = "TLS", "not Kafka", "connection already closed"
CAPTURE_ENDS = "the capture ends"


class Endpoint(NamedTuple):
    """One end of a connection. address: IP address as bytes."""

    address: bytes
    port: int

    def __str__(self) -> str:
        host = str(ip_address(self.address))
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


class DirectedSegment(NamedTuple):
    """A TCP segment between the two endpoints of a `Pair`.

    stamp: number and time of its packet. by: index (0 or 1) of the endpoint that sent it. data: the captured part of the payload. missing: number of
    payload bytes after `data` that were not captured.
    """

    stamp: Stamp
    by: int
    sequence: int
    acknowledged: int
    flags: int
    data: bytes
    missing: int


class ConnectionEntry(NamedTuple):
    """An entry of a trace, with the connection that it belongs to.

    number: number of the connection's first packet, which identifies the connection. server: address of the server as host:port.
    """

    number: int
    server: str
    entry: Entry


class Pair:
    """Splits the captured segments between two endpoints into TCP connections, one after the other.

    ports: ports on which brokers listen; empty if they are unknown.
    """

    def __init__(self, ends: tuple[Endpoint, Endpoint], ports: frozenset[int]) -> None:
        self._ends = ends
        served = [by for by in (0, 1) if ends[by].port in ports]
        self._client = 1 - served[0] if len(served) == 1 else None
        self._ports_given = bool(ports)
        self._connection: Connection | None = None
        self._closed = False
        self._closed_as = ""
        """Why the trace lacks the last closed connection between the two endpoints; empty if the trace contains this connection."""
        self._last = Stamp(0, 0)
        self.left_out: Counter[str] = Counter()
        """Maps each reason for leaving out a packet to the number of packets that were left out for this reason."""

    def take(self, segment: DirectedSegment) -> Iterator[ConnectionEntry]:
        connection = self._connection
        if segment.flags & SYN and (connection is None or not connection.is_own_syn(segment)):
            yield from self.end()
            connection = self._connection = Connection(
                self._ends, segment.stamp.number, self._client, self._ports_given
            )
        elif connection is None:
            if self._closed:
                why = NO_CONNECTION if segment.data else self._closed_as
                if why:
                    self.left_out[why] += 1
                return
            if not segment.data and not segment.missing:
                self.left_out[NO_KAFKA] += 1
                return
            connection = self._connection = Connection(
                self._ends, segment.stamp.number, self._client, self._ports_given
            )
        self._last = segment.stamp
        yield from connection.take(segment)
        if connection.closed:
            yield from self._forget("RST" if segment.flags & RST else "FIN")

    def end(self) -> Iterator[ConnectionEntry]:
        """Yield the remaining trace entries of the connection that is open between the two endpoints, and treat it as closed.

        Call it when the capture ends or a new handshake follows.
        """
        yield from self._forget(CAPTURE_ENDS)

    def _forget(self, why: str) -> Iterator[ConnectionEntry]:
        connection, self._connection, self._closed = self._connection, None, True
        if connection is not None:
            yield from connection.end(self._last, why)
            self._closed_as = connection.left_out_as
            if connection.left_out_as:
                self.left_out[connection.left_out_as] += connection.packets


class Connection:
    """A TCP connection between the endpoints `ends`, from its handshake or from its first captured packet.

    number: number of its first packet. client: index (0 or 1) of the client in `ends`, None if unknown. ports_given: whether the user has named the
    brokers' ports.
    """

    def __init__(self, ends: tuple[Endpoint, Endpoint], number: int, client: int | None, ports_given: bool) -> None:
        self._ends = ends
        self._number = number
        self._client = client
        self._ports_given = ports_given
        self._server_name = ""
        self._streams = (Stream(), Stream())
        self._syn_sequences: dict[int, int] = {}
        """Maps the index of an endpoint to the sequence number of its SYN."""
        self._buffered: list[tuple[int, Piece]] = []
        self._buffered_bytes = 0
        self._dropped_buffer = False
        """True if the buffer became full without a request in it, and was cleared.

        Buffering resumes at a segment that starts like a request. The connection then counts as captured from the middle of its stream.
        """
        self._likely_headers: list[RequestHeader | None] = [None, None]
        """For each endpoint, the request header at the start of its last segment that looked like a request; None if there was none."""
        self._likely_client: int | None = None
        """Index of the endpoint whose segments look like requests; None if unknown."""
        self._cutters: tuple[Cutter, Cutter] | None = None
        self._conversation = Conversation(number)
        self.left_out_as = ""
        self.packets = 0
        self.closed = False

    def is_own_syn(self, segment: DirectedSegment) -> bool:
        """Return True if `segment`, which has the SYN flag, is a repeated SYN of this connection or its SYN-ACK, so it opens no new connection."""
        if segment.by in self._syn_sequences:
            return self._syn_sequences[segment.by] == segment.sequence
        return bool(segment.flags & ACK) and (1 - segment.by) in self._syn_sequences

    def take(self, segment: DirectedSegment) -> Iterator[ConnectionEntry]:
        self.packets += 1
        stream, other_stream = self._streams[segment.by], self._streams[1 - segment.by]
        sequence = segment.sequence
        if segment.flags & SYN:
            sequence = (sequence + 1) & 0xFFFFFFFF
            if segment.by not in self._syn_sequences:
                self._syn_sequences[segment.by] = segment.sequence
                stream.begin(sequence)
                self._client = 1 - segment.by if segment.flags & ACK else segment.by
        if segment.data or segment.missing:
            for piece in stream.take(sequence, segment.data, segment.missing, segment.stamp):
                yield from self._piece(segment.by, piece)
        if segment.flags & ACK:
            for piece in other_stream.acknowledged(segment.acknowledged, segment.stamp):
                yield from self._piece(1 - segment.by, piece)
        if segment.flags & FIN:
            stream.end(sequence + len(segment.data) + segment.missing)
        self.closed = bool(segment.flags & RST) or (stream.ended and other_stream.ended)

    def end(self, stamp: Stamp, why: str) -> Iterator[ConnectionEntry]:
        for by, stream in enumerate(self._streams):
            for piece in stream.flush(stamp):
                yield from self._piece(by, piece)
        if self._cutters is None:
            if not self.left_out_as:
                yield from self._no_kafka(stamp, report=self._dropped_buffer)
            return
        assert self._client is not None
        for by in (self._client, 1 - self._client):
            yield from self._frames(by, self._cutters[by].end(stamp, why))
        yield from self._entries(self._conversation.end(stamp))
        if why != CAPTURE_ENDS:
            yield from self._entries([self._conversation.event("closed", stamp, why=why)])

    # ---- detection of the protocol -------------------------------------------------------------------------------------------

    def _piece(self, by: int, piece: Piece) -> Iterator[ConnectionEntry]:
        if self.left_out_as:
            return
        if self._cutters is not None:
            yield from self._cut(by, piece)
            return
        is_like_request = isinstance(piece, Data) and self._looks_like_request(by, piece.data)
        if self._dropped_buffer and not self._buffered and not is_like_request:
            return
        self._buffered.append((by, piece))
        self._buffered_bytes += len(piece.data) if isinstance(piece, Data) else 0
        yield from self._decide(piece.stamp)

    def _decide(self, stamp: Stamp) -> Iterator[ConnectionEntry]:
        """Decide whether the connection speaks Kafka and which endpoint is the client, once enough data is buffered.

        stamp: number and time of the packet with the newest data, for the events that are yielded.
        """
        heads = [self._head(by) for by in (0, 1)]
        if any(_is_tls(head) for head in heads):
            self._leave_out(TLS)
            yield from self._entries(
                [self._conversation.event("unreadable", stamp, why=TLS, server=str(self._server()))]
            )
            return
        client = self._find_client(heads)
        if client is not None:
            yield from self._start_exchanges(client)
        elif self._client is not None and self._begins_whole():
            if self._is_full() or len(heads[self._client]) >= PLAUSIBLE_FROM_BYTES:
                yield from self._no_kafka(stamp, report=True)
        elif self._is_full():
            self._dropped_buffer = True
            self._drop_buffer()

    def _find_client(self, heads: list[bytearray]) -> int | None:
        """Return the index (0 or 1) of the endpoint that sends requests; None if unknown. heads: the buffered bytes of each endpoint.

        If the client is known from the handshake and its first bytes are in the buffer, these bytes must look like a request. Otherwise the client is
        the endpoint whose buffer has a request that can be decoded. If neither buffer has one and the buffer is full, the probable client is
        returned: the endpoint whose segments look like requests.
        """
        if self._client is not None and self._begins_whole():
            return self._client if request_begins(heads[self._client], 0, None, None) else None
        candidates = (0, 1) if self._client is None else (self._client,)
        client = next((by for by in candidates if find_request(heads[by], None, None) is not None), None)
        return self._likely_client if client is None and self._is_full() else client

    def _looks_like_request(self, by: int, data: bytes) -> bool:
        """Return True if a segment starts like a request and comes from an endpoint that may be the client. Also updates the probable client.

        by: index of the endpoint that sent `data`. A request that is too large for the buffer cannot be decoded, so only its header is checked. A
        response with a low correlation id can look like the header of a Produce request. One match is therefore not sufficient: if the client is
        unknown, an endpoint becomes the probable client only after two headers that can belong to successive requests.
        """
        header = header_of(data)
        if header is None or self._client not in (None, by):
            return False
        previous_header, self._likely_headers[by] = self._likely_headers[by], header
        is_next_request = previous_header is not None and request_begins(
            data, 0, previous_header.correlation_id, previous_header.client_id
        )
        if self._likely_client is None and (is_next_request or by == self._client):
            self._likely_client = by
        return True

    def _begins_whole(self) -> bool:
        """Return True if the client's first bytes on this connection were captured and are still in the buffer."""
        first = next((piece for by, piece in self._buffered if by == self._client), None)
        return self._client in self._syn_sequences and not self._dropped_buffer and isinstance(first, Data)

    def _head(self, by: int) -> bytearray:
        out = bytearray()
        for sender, piece in self._buffered:
            if sender == by and isinstance(piece, Data):
                out += piece.data
        return out

    def _is_full(self) -> bool:
        return self._buffered_bytes > MAX_BUFFERED_BYTES or len(self._buffered) > MAX_BUFFERED_PIECES

    def _leave_out(self, why: str) -> None:
        self.left_out_as = why
        self._drop_buffer()

    def _drop_buffer(self) -> None:
        self._buffered.clear()
        self._buffered_bytes = 0

    def _no_kafka(self, stamp: Stamp, report: bool) -> Iterator[ConnectionEntry]:
        """Leave the connection out of the trace because it does not speak Kafka.

        stamp: number and time of the packet that showed this. report: whether to yield an event "unreadable" for the trace; it is yielded only if the
        user named the brokers' ports.
        """
        self._leave_out(NO_KAFKA)
        if report and self._ports_given:
            why = "this is not how a request begins"
            yield from self._entries([self._conversation.event("unreadable", stamp, why=why)])

    def _server(self) -> Endpoint:
        """Return the server's endpoint. If it is unknown which end is the client, return the endpoint with the lower port."""
        if self._client is not None:
            return self._ends[1 - self._client]
        return min(self._ends, key=lambda end: end.port)

    def _start_exchanges(self, client: int) -> Iterator[ConnectionEntry]:
        self._client = client
        self._server_name = str(self._server())
        buffered, self._buffered = self._buffered, []
        conversation = self._conversation
        finders: tuple[Finder, Finder] = (conversation.requests, conversation.responses)
        cutters = [
            Cutter(finders[by != client], by in self._syn_sequences and not self._dropped_buffer) for by in (0, 1)
        ]
        self._cutters = (cutters[0], cutters[1])
        if all(by in self._syn_sequences for by in (0, 1)) and not self._dropped_buffer:
            conversation.starts_complete()
        peer = self._ends[client]
        facts = {"peer": str(ip_address(peer.address)), "port": peer.port, "server": str(self._server())}
        yield from self._entries(
            [conversation.event("opened", buffered[0][1].stamp, **facts, whole=client in self._syn_sequences)]
        )
        for by, piece in buffered:
            yield from self._cut(by, piece)

    def _cut(self, by: int, piece: Piece) -> Iterator[ConnectionEntry]:
        assert self._cutters is not None
        if isinstance(piece, Hole) and piece.why == LOST:
            stream_name = "requests" if by == self._client else "answers"
            yield from self._entries(
                [self._conversation.event("lost", piece.stamp, of_stream=stream_name, bytes=piece.length)]
            )
        cutter = self._cutters[by]
        yield from self._frames(by, cutter.take(piece))
        if not cutter.in_step:
            self._conversation.missed(of_requests=by == self._client)

    def _frames(self, by: int, frames: Iterator[Frame | Lost] | Iterator[Frame]) -> Iterator[ConnectionEntry]:
        conversation = self._conversation
        take: Callable[[Frame], Iterator[Entry]] = conversation.request if by == self._client else conversation.response
        for item in frames:
            if isinstance(item, Frame):
                yield from self._entries(take(item))
            else:
                yield from self._entries([conversation.event("unreadable", item.stamp, why=item.why)])

    def _entries(self, entries: Iterator[Entry] | list[Entry]) -> Iterator[ConnectionEntry]:
        server = self._server_name or str(self._server())
        for entry in entries:
            yield ConnectionEntry(self._number, server, entry)


def _is_tls(head: bytearray) -> bool:
    """Return True if the first bytes of a connection, `head`, start like a TLS record (type, version 1.0 to 1.3).

    A Kafka connection cannot start like this: these bytes would be the length prefix of a frame of more than 300 MB.
    """
    return len(head) >= 3 and 0x14 <= head[0] <= 0x17 and head[1] == 3 and head[2] <= 4
