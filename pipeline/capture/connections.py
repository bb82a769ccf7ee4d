"""Segments between two ends as connections: who is the client, where one begins and ends, and whether it speaks Kafka at all.

A new handshake is a new connection, also between the same ends. State of a connection goes when it ends. Must never know frames' contents.
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

HELD_BYTES = 64 * 1024
HELD_PIECES = 128
"""So much is kept of a connection until it is known who is the client."""
PLAUSIBLE_FROM_BYTES = 14
TLS, NO_KAFKA, NO_CONNECTION = "TLS", "not Kafka", "of a connection that is over"
CAPTURE_ENDS = "the capture ends"


class End(NamedTuple):
    """address: packed."""

    address: bytes
    port: int

    def __str__(self) -> str:
        host = str(ip_address(self.address))
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


class Seen(NamedTuple):
    """A segment between the two ends of a `Pair`. by: 0 or 1, which of them sent it."""

    stamp: Stamp
    by: int
    sequence: int
    acknowledged: int
    flags: int
    data: bytes
    missing: int


class Told(NamedTuple):
    """What a connection tells. number: of the connection. server: its address."""

    number: int
    server: str
    entry: Entry


class Pair:
    """All connections between two ends, one after the other. ports: those of servers, empty: whoever speaks Kafka."""

    def __init__(self, ends: tuple[End, End], ports: frozenset[int]) -> None:
        self._ends = ends
        served = [by for by in (0, 1) if ends[by].port in ports]
        self._client = 1 - served[0] if len(served) == 1 else None
        self._given = bool(ports)
        self._connection: Connection | None = None
        self._over = False
        self._over_as = ""
        """Why the last one that is over was left out, if it was."""
        self._last = Stamp(0, 0)
        self.left_out: Counter[str] = Counter()
        """Why, and how many packets."""

    def take(self, seen: Seen) -> Iterator[Told]:
        one = self._connection
        if seen.flags & SYN and (one is None or not one.is_shaken_by(seen)):
            yield from self.end()
            one = self._connection = Connection(self._ends, seen.stamp.number, self._client, self._given)
        elif one is None:
            if self._over:
                why = NO_CONNECTION if seen.data else self._over_as
                if why:
                    self.left_out[why] += 1
                return
            if not seen.data and not seen.missing:
                self.left_out[NO_KAFKA] += 1
                return
            one = self._connection = Connection(self._ends, seen.stamp.number, self._client, self._given)
        self._last = seen.stamp
        yield from one.take(seen)
        if one.over:
            yield from self._forget("RST" if seen.flags & RST else "FIN")

    def end(self) -> Iterator[Told]:
        """Nothing more comes of what is open."""
        yield from self._forget(CAPTURE_ENDS)

    def _forget(self, why: str) -> Iterator[Told]:
        one, self._connection, self._over = self._connection, None, True
        if one is not None:
            yield from one.end(self._last, why)
            self._over_as = one.left_out_as
            if one.left_out_as:
                self.left_out[one.left_out_as] += one.packets


class Connection:
    """One connection, from its handshake or from where the capture met it."""

    def __init__(self, ends: tuple[End, End], number: int, client: int | None, given: bool) -> None:
        self._ends = ends
        self._number = number
        self._client = client
        self._given = given
        self._server_name = ""
        self._streams = (Stream(), Stream())
        self._begun: dict[int, int] = {}
        """Who has shaken hands, with which number."""
        self._held: list[tuple[int, Piece]] = []
        self._held_bytes = 0
        self._passed_over = False
        """What was held in mid-stream showed no request and is gone; nothing is held until a segment begins as one does."""
        self._looked: list[RequestHeader | None] = [None, None]
        """Of each end with what its last segment begins that looks like a request."""
        self._asks: int | None = None
        """Who is the client, by looks."""
        self._cutters: tuple[Cutter, Cutter] | None = None
        self._conversation = Conversation(number)
        self.left_out_as = ""
        self.packets = 0
        self.over = False

    def is_shaken_by(self, seen: Seen) -> bool:
        """Whether this SYN belongs to it: its own again, or the answer to it."""
        if seen.by in self._begun:
            return self._begun[seen.by] == seen.sequence
        return bool(seen.flags & ACK) and (1 - seen.by) in self._begun

    def take(self, seen: Seen) -> Iterator[Told]:
        self.packets += 1
        stream, other = self._streams[seen.by], self._streams[1 - seen.by]
        sequence = seen.sequence
        if seen.flags & SYN:
            sequence = (sequence + 1) & 0xFFFFFFFF
            if seen.by not in self._begun:
                self._begun[seen.by] = seen.sequence
                stream.begin(sequence)
                self._client = 1 - seen.by if seen.flags & ACK else seen.by
        if seen.data or seen.missing:
            for piece in stream.take(sequence, seen.data, seen.missing, seen.stamp):
                yield from self._piece(seen.by, piece)
        if seen.flags & ACK:
            for piece in other.acknowledged(seen.acknowledged, seen.stamp):
                yield from self._piece(1 - seen.by, piece)
        if seen.flags & FIN:
            stream.end(sequence + len(seen.data) + seen.missing)
        self.over = bool(seen.flags & RST) or (stream.ended and other.ended)

    def end(self, stamp: Stamp, why: str) -> Iterator[Told]:
        for by, stream in enumerate(self._streams):
            for piece in stream.flush(stamp):
                yield from self._piece(by, piece)
        if self._cutters is None:
            if not self.left_out_as:
                yield from self._no_kafka(stamp, told=self._passed_over)
            return
        assert self._client is not None
        for by in (self._client, 1 - self._client):
            yield from self._frames(by, self._cutters[by].end(stamp, why))
        yield from self._told(self._conversation.end(stamp))
        if why != CAPTURE_ENDS:
            yield from self._told([self._conversation.event("closed", stamp, why=why)])

    # ---- whose bytes ---------------------------------------------------------------------------------------------------------

    def _piece(self, by: int, piece: Piece) -> Iterator[Told]:
        if self.left_out_as:
            return
        if self._cutters is not None:
            yield from self._cut(by, piece)
            return
        looks = isinstance(piece, Data) and self._looks(by, piece.data)
        if self._passed_over and not self._held and not looks:
            return
        self._held.append((by, piece))
        self._held_bytes += len(piece.data) if isinstance(piece, Data) else 0
        yield from self._decide(piece.stamp)

    def _decide(self, stamp: Stamp) -> Iterator[Told]:
        """Once enough is there: does it speak Kafka, and who is the client?"""
        heads = [self._head(by) for by in (0, 1)]
        if any(_is_tls(head) for head in heads):
            self._leave_out(TLS)
            yield from self._told([self._conversation.event("unreadable", stamp, why=TLS, server=str(self._server()))])
            return
        client = self._who_asks(heads)
        if client is not None:
            yield from self._speaks(client)
        elif self._client is not None and self._begins_whole():
            if self._is_full() or len(heads[self._client]) >= PLAUSIBLE_FROM_BYTES:
                yield from self._no_kafka(stamp, told=True)
        elif self._is_full():
            self._passed_over = True
            self._let_go()

    def _who_asks(self, heads: list[bytearray]) -> int | None:
        """The client, if what it sent says so: the first bytes behind a handshake, else any that can be decoded."""
        if self._client is not None and self._begins_whole():
            return self._client if request_begins(heads[self._client], 0, None, None) else None
        candidates = (0, 1) if self._client is None else (self._client,)
        found = next((by for by in candidates if find_request(heads[by], None, None) is not None), None)
        return self._asks if found is None and self._is_full() else found

    def _looks(self, by: int, data: bytes) -> bool:
        """Whether these bytes of a segment begin as a request does. They tell of requests too large to be seen whole; but an answer with a low
        correlation id looks like one of Produce, so where nobody knows who is the client the same end must have asked before."""
        header = header_of(data)
        if header is None or self._client not in (None, by):
            return False
        before, self._looked[by] = self._looked[by], header
        goes_on = before is not None and request_begins(data, 0, before.correlation_id, before.client_id)
        if self._asks is None and (goes_on or by == self._client):
            self._asks = by
        return True

    def _begins_whole(self) -> bool:
        """Whether the first byte of the client is held, and known to be that."""
        first = next((piece for by, piece in self._held if by == self._client), None)
        return self._client in self._begun and not self._passed_over and isinstance(first, Data)

    def _head(self, by: int) -> bytearray:
        out = bytearray()
        for whose, piece in self._held:
            if whose == by and isinstance(piece, Data):
                out += piece.data
        return out

    def _is_full(self) -> bool:
        return self._held_bytes > HELD_BYTES or len(self._held) > HELD_PIECES

    def _leave_out(self, why: str) -> None:
        self.left_out_as = why
        self._let_go()

    def _let_go(self) -> None:
        self._held.clear()
        self._held_bytes = 0

    def _no_kafka(self, stamp: Stamp, told: bool) -> Iterator[Told]:
        """told: whether enough was seen to wonder at it, where somebody has said that this port is a broker's."""
        self._leave_out(NO_KAFKA)
        if told and self._given:
            why = "this is not how a request begins"
            yield from self._told([self._conversation.event("unreadable", stamp, why=why)])

    def _server(self) -> End:
        """The other end than the client; where nobody knows, that with the lower port."""
        if self._client is not None:
            return self._ends[1 - self._client]
        return min(self._ends, key=lambda end: end.port)

    def _speaks(self, client: int) -> Iterator[Told]:
        self._client = client
        self._server_name = str(self._server())
        held, self._held = self._held, []
        talk = self._conversation
        finders: tuple[Finder, Finder] = (talk.requests, talk.responses)
        cutters = [Cutter(finders[by != client], by in self._begun and not self._passed_over) for by in (0, 1)]
        self._cutters = (cutters[0], cutters[1])
        if all(by in self._begun for by in (0, 1)) and not self._passed_over:
            talk.begins_whole()
        peer = self._ends[client]
        facts = {"peer": str(ip_address(peer.address)), "port": peer.port, "server": str(self._server())}
        yield from self._told([talk.event("opened", held[0][1].stamp, **facts, whole=client in self._begun)])
        for by, piece in held:
            yield from self._cut(by, piece)

    def _cut(self, by: int, piece: Piece) -> Iterator[Told]:
        assert self._cutters is not None
        if isinstance(piece, Hole) and piece.why == LOST:
            of = "requests" if by == self._client else "answers"
            yield from self._told([self._conversation.event("lost", piece.stamp, of_stream=of, bytes=piece.length)])
        cutter = self._cutters[by]
        yield from self._frames(by, cutter.take(piece))
        if not cutter.in_step:
            self._conversation.missed(of_requests=by == self._client)

    def _frames(self, by: int, found: Iterator[Frame | Lost] | Iterator[Frame]) -> Iterator[Told]:
        talk = self._conversation
        take: Callable[[Frame], Iterator[Entry]] = talk.request if by == self._client else talk.response
        for one in found:
            if isinstance(one, Frame):
                yield from self._told(take(one))
            else:
                yield from self._told([talk.event("unreadable", one.stamp, why=one.why)])

    def _told(self, entries: Iterator[Entry] | list[Entry]) -> Iterator[Told]:
        server = self._server_name or str(self._server())
        for entry in entries:
            yield Told(self._number, server, entry)


def _is_tls(head: bytearray) -> bool:
    """A record of TLS 1.0 to 1.3: its type, then its version. As a length of Kafka it would be above 300 MB."""
    return len(head) >= 3 and 0x14 <= head[0] <= 0x17 and head[1] == 3 and head[2] <= 4
