"""One direction of a TCP connection, put together: what was reordered, repeated or overlaps becomes one run of bytes, with holes told.

Memory is bounded: who waits too long for a segment gets a hole. Must never know what the bytes are.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from typing import NamedTuple

WINDOW_BYTES = 4 * 1024 * 1024
WINDOW_SEGMENTS = 2048
PATIENCE_PACKETS = 32
"""So many packets later a segment that the other end has acknowledged is not going to be seen."""
FARTHEST_BACK_BYTES = 1 << 30
"""The largest window of TCP: what is farther back is no repetition."""
LOST, CUT_SHORT = "packets are missing in the capture", "the capture has only the beginning of packets"


class Stamp(NamedTuple):
    """number: of the packet with which this became known. ts_ns: when the last byte of it was there."""

    number: int
    ts_ns: int


class Data(NamedTuple):
    data: bytes
    stamp: Stamp


class Hole(NamedTuple):
    """length: how many bytes are unknown, -1: nobody knows."""

    length: int
    why: str
    stamp: Stamp


Piece = Data | Hole


class _Waiting(NamedTuple):
    start: int
    number: int
    ts_ns: int
    data: bytes
    missing: int


class Stream:
    """`take` segments as they were captured, and be told of acknowledgements; what is whole comes out in order."""

    def __init__(self) -> None:
        self._expected: int | None = None
        self._acknowledged = 0
        self._waiting: list[_Waiting] = []
        self._waiting_bytes = 0
        self._since = 0
        self._last_ns = 0
        self.ends_at: int | None = None

    def begin(self, sequence: int) -> None:
        """The handshake told with which number the first byte comes."""
        self._expected = sequence

    @property
    def ended(self) -> bool:
        """Whether its end was told, and all before it is out."""
        return self.ends_at is not None and (self._expected is None or self._expected >= self.ends_at)

    def end(self, sequence: int) -> None:
        """A FIN stands at this number."""
        self.ends_at = self._position(sequence)

    def _position(self, sequence: int) -> int:
        """The number without its wrapping, near what is expected."""
        if self._expected is None:
            return sequence
        distance = (sequence - self._expected) & 0xFFFFFFFF
        return self._expected + (distance - (1 << 32) if distance >= 1 << 31 else distance)

    def take(self, sequence: int, data: bytes, missing: int, stamp: Stamp) -> Iterator[Piece]:
        """A segment: `data`, and `missing` bytes behind it that were not captured."""
        if self._expected is None:
            self._expected = sequence
        start = self._position(sequence)
        if start - self._expected < -FARTHEST_BACK_BYTES:
            yield from self.flush(stamp)
            yield Hole(-1, LOST, stamp)
            self._expected = start
        if start == self._expected and not self._waiting and not missing:  # as nearly always
            self._expected += len(data)
            self._last_ns = max(self._last_ns, stamp.ts_ns)
            yield Data(data, Stamp(stamp.number, self._last_ns))
            return
        if start + len(data) + missing > self._expected:
            insort(self._waiting, _Waiting(start, stamp.number, stamp.ts_ns, data, missing))
            self._waiting_bytes += len(data)
            yield from self._in_order(stamp)
        while self._waiting_bytes > WINDOW_BYTES or len(self._waiting) > WINDOW_SEGMENTS:
            yield from self._give_up(stamp)

    def acknowledged(self, sequence: int, stamp: Stamp) -> Iterator[Piece]:
        """The other end has everything before this number. Called for each of its packets."""
        if self._expected is None:
            return
        self._acknowledged = max(self._acknowledged, self._position(sequence))
        if not self._waiting or self._acknowledged < self._waiting[0].start:
            self._since = 0
            return
        self._since += 1
        if self._since > PATIENCE_PACKETS:
            yield from self._give_up(stamp)

    def flush(self, stamp: Stamp) -> Iterator[Piece]:
        """Nothing more comes: what waits, with holes before it."""
        while self._waiting:
            yield from self._give_up(stamp)

    def _give_up(self, stamp: Stamp) -> Iterator[Piece]:
        assert self._expected is not None
        self._since = 0
        length = self._waiting[0].start - self._expected
        self._expected += length
        yield Hole(length, LOST, stamp)
        yield from self._in_order(stamp)

    def _in_order(self, stamp: Stamp) -> Iterator[Piece]:
        """What waits and begins at or before the expected number, without what was out already."""
        while self._waiting and self._expected is not None and self._waiting[0].start <= self._expected:
            start, _, ts_ns, data, missing = self._waiting.pop(0)
            self._waiting_bytes -= len(data)
            self._last_ns = max(self._last_ns, ts_ns)
            now = Stamp(stamp.number, self._last_ns)
            known = self._expected - start
            end = start + len(data) + missing
            if end <= self._expected:
                continue
            self._expected = end
            if known < len(data):
                yield Data(data[known:] if known else data, now)
                known = len(data)
            if missing:
                yield Hole(end - start - known, CUT_SHORT, now)
