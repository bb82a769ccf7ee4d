"""One pass over a capture file: every segment with the two ends that it goes between, and a count of what is left out.

Must never know connections, nor Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kafkaproto.pipeline.capture.connections import End, Seen
from kafkaproto.pipeline.capture.files import Capture
from kafkaproto.pipeline.capture.link import LeftOut, segment_of
from kafkaproto.pipeline.capture.stream import Stamp
from kafkaproto.pipeline.trace.runs import Told
from kafkaproto.trace.format import TraceError

ANOTHER_PORT = "of another port"
_PORT_BYTES = 2

Ends = tuple[End, End]
"""In the order of their bytes: the same for both directions."""


class Pass:
    """`segments()` once; then `left_out` has why and how many packets are not among them, and `told` what has to be said of the file.

    ports: only segments from or to one of these; empty: all.
    """

    def __init__(self, run: str, path: Path, ports: frozenset[int]) -> None:
        self._run = run
        self._path = path
        self.ports = ports
        self.left_out: Counter[str] = Counter()
        self.told: list[Told] = []
        self._capture: Capture | None = None

    @property
    def read_bytes(self) -> int:
        """How far `segments` is."""
        return 0 if self._capture is None else self._capture.read_bytes

    def segments(self) -> Iterator[tuple[Ends, Seen]]:
        try:
            capture = self._capture = Capture(self._path)
            for packet in capture.packets():
                try:
                    one = segment_of(packet.link, packet.data, packet.length)
                except LeftOut as why:
                    self.left_out[str(why)] += 1
                    continue
                if self.ports and not self.ports & {one.source_port, one.to_port}:
                    self.left_out[ANOTHER_PORT] += 1
                    continue
                source, to = End(one.source, one.source_port), End(one.to, one.to_port)
                by = int(to < source)
                stamp = Stamp(packet.number, packet.ts_ns)
                seen = Seen(stamp, by, one.sequence, one.acknowledged, one.flags, one.data, one.missing)
                yield (to, source) if by else (source, to), seen
            if capture.torn:
                self.told.append(Told(self._run, capture.torn, True))
        except (TraceError, OSError) as error:
            self.told.append(Told(self._run, str(error), False))


def key_of(ends: Ends) -> bytes:
    """Both ends as one value, for whoever sorts by it."""
    return b"".join(bytes((len(end.address),)) + end.address + end.port.to_bytes(_PORT_BYTES, "big") for end in ends)


def ends_of(key: bytes) -> Ends:
    """What `key_of` had."""
    first, at = _end(key, 0)
    second, _ = _end(key, at)
    return first, second


def _end(key: bytes, at: int) -> tuple[End, int]:
    port_at = at + 1 + key[at]
    port = int.from_bytes(key[port_at : port_at + _PORT_BYTES], "big")
    return End(key[at + 1 : port_at], port), port_at + _PORT_BYTES
