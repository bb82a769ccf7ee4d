"""One pass over a capture file: yields every TCP segment with its two endpoints, and counts the packets that are left out.

This module does not depend on connections or Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kafkaproto.pipeline.capture.connections import DirectedSegment, Endpoint
from kafkaproto.pipeline.capture.files import Capture
from kafkaproto.pipeline.capture.link import LeftOut, segment_of
from kafkaproto.pipeline.capture.stream import Stamp
from kafkaproto.pipeline.trace.runs import Notice
from kafkaproto.trace.format import TraceError

OTHER_PORT = "other port"
_PORT_BYTES = 2

Endpoints = tuple[Endpoint, Endpoint]
"""Both endpoints of a connection, sorted by (address, port), so that packets of both directions have the same value."""


class CapturePass:
    """One pass over a capture file, made by a single call of `segments()`.

    After the call, `left_out` maps each reason for leaving out a packet to the number of such packets, and `notices` has the problems of the file.
    ports: the TCP ports whose segments to yield; if it is empty, all segments are yielded.
    """

    def __init__(self, run: str, path: Path, ports: frozenset[int]) -> None:
        self._run = run
        self._path = path
        self.ports = ports
        self.left_out: Counter[str] = Counter()
        self.notices: list[Notice] = []
        self._capture: Capture | None = None

    @property
    def read_bytes(self) -> int:
        """Return the number of bytes of the file that `segments` has read so far."""
        return 0 if self._capture is None else self._capture.read_bytes

    def segments(self) -> Iterator[tuple[Endpoints, DirectedSegment]]:
        try:
            capture = self._capture = Capture(self._path)
            for packet in capture.packets():
                try:
                    segment = segment_of(packet.link, packet.data, packet.length)
                except LeftOut as why:
                    self.left_out[str(why)] += 1
                    continue
                if self.ports and not self.ports & {segment.source_port, segment.to_port}:
                    self.left_out[OTHER_PORT] += 1
                    continue
                source, to = Endpoint(segment.source, segment.source_port), Endpoint(segment.to, segment.to_port)
                by = int(to < source)
                stamp = Stamp(packet.number, packet.ts_ns)
                directed = DirectedSegment(
                    stamp, by, segment.sequence, segment.acknowledged, segment.flags, segment.data, segment.missing
                )
                yield (to, source) if by else (source, to), directed
            if capture.torn:
                self.notices.append(Notice(self._run, capture.torn, True))
        except (TraceError, OSError) as error:
            self.notices.append(Notice(self._run, str(error), False))


def key_of(ends: Endpoints) -> bytes:
    """Encode both endpoints as one value, by which the rows of a connection can be grouped and sorted."""
    return b"".join(bytes((len(end.address),)) + end.address + end.port.to_bytes(_PORT_BYTES, "big") for end in ends)


def ends_of(key: bytes) -> Endpoints:
    """Return both endpoints of a connection (address and port), decoded from a value that `key_of` returned."""
    first, at = _end(key, 0)
    second, _ = _end(key, at)
    return first, second


def _end(key: bytes, at: int) -> tuple[Endpoint, int]:
    port_at = at + 1 + key[at]
    port = int.from_bytes(key[port_at : port_at + _PORT_BYTES], "big")
    return Endpoint(key[at + 1 : port_at], port), port_at + _PORT_BYTES
