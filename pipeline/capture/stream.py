"""Reassembly of one direction of a TCP connection from captured segments.

Reordered, repeated and overlapping segments become one byte stream, in which missing bytes are explicit holes. Memory is bounded: a segment that is
missing for too long becomes a hole. This module does not depend on what the bytes mean.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from typing import NamedTuple

WINDOW_BYTES = 4 * 1024 * 1024
WINDOW_SEGMENTS = 2048
PATIENCE_PACKETS = 32
"""How many packets to wait for a segment that its receiver has acknowledged, but that the capture has not shown yet.

Only packets from the receiver count. After this number, the capture is assumed to lack the segment.
"""
FARTHEST_BACK_BYTES = 1 << 30
"""The largest TCP window in bytes. A segment that starts more than this before the next expected byte cannot be a retransmission."""
LOST, CUT_SHORT = "packets are missing in the capture", "the capture has only the beginning of packets"


class Stamp(NamedTuple):
    """The packet that completed a piece of a stream (data or a gap), and the time.

    number: number of the packet in the capture. ts_ns: time at which the piece was complete, in ns since the epoch.
    """

    number: int
    ts_ns: int


class Data(NamedTuple):
    data: bytes
    stamp: Stamp


class Hole(NamedTuple):
    """A gap in a captured stream. length: number of missing bytes, -1 if unknown. why: the reason. stamp: packet and time of its detection."""

    length: int
    why: str
    stamp: Stamp


Piece = Data | Hole


class _BufferedSegment(NamedTuple):
    start: int
    number: int
    ts_ns: int
    data: bytes
    missing: int


class Stream:
    """One direction of a connection, reassembled into pieces: data, and holes for missing bytes.

    `take` receives the captured segments of this direction, `acknowledged` the acknowledgements of the receiving end. Both methods yield pieces in
    the order of the stream.
    """

    def __init__(self) -> None:
        self._expected: int | None = None
        self._acknowledged = 0
        self._pending: list[_BufferedSegment] = []
        self._pending_bytes = 0
        self._packets_since_ack = 0
        self._last_ns = 0
        self.ends_at: int | None = None

    def begin(self, sequence: int) -> None:
        """Start the stream. sequence: TCP sequence number of the first byte, which is the sequence number of the SYN plus one."""
        self._expected = sequence

    @property
    def ended(self) -> bool:
        """Return True if the segment with the FIN was captured and everything before it was yielded."""
        return self.ends_at is not None and (self._expected is None or self._expected >= self.ends_at)

    def end(self, sequence: int) -> None:
        """Record that a FIN ends the stream. sequence: sequence number after the last byte."""
        self.ends_at = self._position(sequence)

    def _position(self, sequence: int) -> int:
        """Return the position of a byte in the stream, given its 32-bit TCP sequence number, which wraps around.

        The stream position does not wrap around. Of the possible positions, the method returns the nearest to the next expected byte.
        """
        if self._expected is None:
            return sequence
        distance = (sequence - self._expected) & 0xFFFFFFFF
        return self._expected + (distance - (1 << 32) if distance >= 1 << 31 else distance)

    def take(self, sequence: int, data: bytes, missing: int, stamp: Stamp) -> Iterator[Piece]:
        """Yield the pieces (data and holes) that a segment completes. stamp: number and time of its packet.

        sequence: sequence number of the first byte of `data`. missing: number of bytes after `data` that were not captured.
        """
        if self._expected is None:
            self._expected = sequence
        start = self._position(sequence)
        if start - self._expected < -FARTHEST_BACK_BYTES:
            yield from self.flush(stamp)
            yield Hole(-1, LOST, stamp)
            self._expected = start
        if start == self._expected and not self._pending and not missing:  # the usual case
            self._expected += len(data)
            self._last_ns = max(self._last_ns, stamp.ts_ns)
            yield Data(data, Stamp(stamp.number, self._last_ns))
            return
        if start + len(data) + missing > self._expected:
            insort(self._pending, _BufferedSegment(start, stamp.number, stamp.ts_ns, data, missing))
            self._pending_bytes += len(data)
            yield from self._in_order(stamp)
        while self._pending_bytes > WINDOW_BYTES or len(self._pending) > WINDOW_SEGMENTS:
            yield from self._give_up(stamp)

    def acknowledged(self, sequence: int, stamp: Stamp) -> Iterator[Piece]:
        """Yield the pieces (data and holes) that an acknowledgement completes. Must be called for each packet of the receiving end.

        sequence: the receiving end has received everything before this sequence number. stamp: number and time of the packet with the
        acknowledgement.
        """
        if self._expected is None:
            return
        self._acknowledged = max(self._acknowledged, self._position(sequence))
        if not self._pending or self._acknowledged < self._pending[0].start:
            self._packets_since_ack = 0
            return
        self._packets_since_ack += 1
        if self._packets_since_ack > PATIENCE_PACKETS:
            yield from self._give_up(stamp)

    def flush(self, stamp: Stamp) -> Iterator[Piece]:
        """Yield all buffered data, with a `Hole` wherever bytes are missing before the data. Afterwards nothing is buffered.

        stamp: number and time of the packet after which no missing bytes are expected, such as the last packet of the connection.
        """
        while self._pending:
            yield from self._give_up(stamp)

    def _give_up(self, stamp: Stamp) -> Iterator[Piece]:
        assert self._expected is not None
        self._packets_since_ack = 0
        length = self._pending[0].start - self._expected
        self._expected += length
        yield Hole(length, LOST, stamp)
        yield from self._in_order(stamp)

    def _in_order(self, stamp: Stamp) -> Iterator[Piece]:
        """Yield the buffered segments that directly continue what was yielded before: their data, and a `Hole` for bytes that were not captured.

        Bytes that were already yielded are left out. stamp: number and time of the packet that is being processed. The stamp of each piece has the
        number of this packet, and the latest time of all segments yielded so far.
        """
        while self._pending and self._expected is not None and self._pending[0].start <= self._expected:
            start, _, ts_ns, data, missing = self._pending.pop(0)
            self._pending_bytes -= len(data)
            self._last_ns = max(self._last_ns, ts_ns)
            piece_stamp = Stamp(stamp.number, self._last_ns)
            old_bytes = self._expected - start
            end = start + len(data) + missing
            if end <= self._expected:
                continue
            self._expected = end
            if old_bytes < len(data):
                yield Data(data[old_bytes:] if old_bytes else data, piece_stamp)
                old_bytes = len(data)
            if missing:
                yield Hole(end - start - old_bytes, CUT_SHORT, piece_stamp)
