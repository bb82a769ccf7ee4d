"""Capture files as packets: pcap in both byte orders with micro- and nanoseconds, and pcapng, in one pass, a packet at a time.

A file that is none, or of a version that is not known, is refused by name and place. Must never know what is in a packet.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kafkaproto.trace.format import TraceError

NAMED = re.compile(r"\.(pcap|pcapng|cap)\d*$")
"""tcpdump numbers files at their ends."""
LARGEST_BLOCK_BYTES = 256 * 1024 * 1024
"""No packet is as long: who says so has lost its way."""

_PCAP_MAGICS = {
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
}
"""First four bytes to byte order and how many nanoseconds a fraction counts."""
_SECTION = b"\x0a\x0d\x0d\x0a"
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x42\x5a\x68", b"\x04\x22\x4d\x18")
_BYTE_ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 1, 2, 3, 6
_TIME_RESOLUTION, _TIME_OFFSET = 9, 14
_LINK_MASK = 0xFFFF
"""Above it the word has something about checksums."""
NS_PER_S = 1_000_000_000


class CaptureError(TraceError):
    """A file that is no capture, or not one that can be read from here on: the message names the file and the place."""


class Packet(NamedTuple):
    """number: in the file, from 1. ts_ns: since the epoch. link: its LINKTYPE. data: what was captured of it; length: what it had."""

    number: int
    ts_ns: int
    link: int
    data: bytes
    length: int


class _Interface(NamedTuple):
    """unit: fractions in a second. offset_s: what is added to times."""

    link: int
    snap_bytes: int
    unit: int
    offset_s: int


class Capture:
    """One file, read from its beginning. `torn` tells afterwards what was left at its end; `read_bytes` how far it is.

    Raises CaptureError for a file that is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = ""
        self.read_bytes = 0
        with path.open("rb") as file:
            start = file.read(4)
        if start in _PCAP_MAGICS:
            self._read = self._pcap
        elif start == _SECTION:
            self._read = self._pcapng
        else:
            packed = any(start.startswith(magic) for magic in _COMPRESSED)
            why = "it is compressed: unpack it first" if packed else f"it begins with {start.hex(' ') or 'nothing'}"
            raise CaptureError(f"{path} is no capture file: {why}")

    def packets(self) -> Iterator[Packet]:
        """Every whole packet. An end in the middle of one is noted in `torn`; what cannot be one raises CaptureError."""
        with self.path.open("rb", buffering=1 << 20) as file:
            for number, (ts_ns, link, data, length) in enumerate(self._read(file), 1):
                self.read_bytes = file.tell()
                yield Packet(number, ts_ns, link, data, max(length, len(data)))

    # ---- pcap ----------------------------------------------------------------------------------------------------------------

    def _pcap(self, file: BinaryIO) -> Iterator[tuple[int, int, bytes, int]]:
        order, ns = _PCAP_MAGICS[file.read(4)]
        told = file.read(20)
        if len(told) < 20:
            self._ends_at(file, len(told))
            return
        major, minor, _, _, _, network = struct.unpack(order + "HHiIII", told)
        if major != 2:
            raise CaptureError(f"{self.path} is a pcap file of version {major}.{minor}, and only 2 is known")
        head = struct.Struct(order + "IIII")
        while start := file.read(head.size):
            if len(start) < head.size:
                self._ends_at(file, len(start))
                return
            seconds, fraction, captured, length = head.unpack(start)
            if captured > LARGEST_BLOCK_BYTES:
                raise self._error(file, len(start), f"a packet of {captured} bytes is announced")
            data = file.read(captured)
            if len(data) < captured:
                self._ends_at(file, len(start) + len(data))
                return
            yield seconds * NS_PER_S + fraction * ns, network & _LINK_MASK, data, length

    # ---- pcapng --------------------------------------------------------------------------------------------------------------

    def _pcapng(self, file: BinaryIO) -> Iterator[tuple[int, int, bytes, int]]:
        order = "<"
        interfaces: list[_Interface] = []
        last_ns = 0
        while start := file.read(8):
            if start[:4] == _SECTION:
                start += file.read(4)
                if len(start) == 12:
                    order = self._byte_order(file, start)
                    interfaces = []
            if len(start) < 8 or (start[:4] == _SECTION and len(start) < 12):
                self._ends_at(file, len(start))
                return
            kind, size = struct.unpack_from(order + "II", start)
            if size < len(start) + 4 or size % 4 or size > LARGEST_BLOCK_BYTES:
                raise self._error(file, len(start), f"a block of {size} bytes is announced")
            body = file.read(size - len(start))
            if len(body) < size - len(start):
                self._ends_at(file, len(start) + len(body))
                return
            try:
                if start[:4] == _SECTION:
                    self._section(file, size, body, order)
                elif kind == _INTERFACE:
                    interfaces.append(_interface(body[:-4], order))
                elif kind in (_PACKET, _OLD_PACKET, _SIMPLE_PACKET):
                    found = _packet(kind, body[:-4], order, interfaces, last_ns)
                    last_ns = found[0]
                    yield found
            except CaptureError:
                raise
            except (struct.error, IndexError, ValueError) as error:
                raise self._error(file, size, f"a block of type {kind} cannot be read: {error}") from None

    def _byte_order(self, file: BinaryIO, start: bytes) -> str:
        order = _BYTE_ORDERS.get(start[8:12])
        if order is None:
            raise self._error(file, len(start), "a section without a byte order begins")
        return order

    def _section(self, file: BinaryIO, size: int, body: bytes, order: str) -> None:
        major, minor = struct.unpack_from(order + "HH", body)
        if major != 1:
            raise self._error(file, size, f"a section of pcapng version {major}.{minor} begins, and only 1 is known")

    def _ends_at(self, file: BinaryIO, left: int) -> None:
        self.torn = f"{self.path}: {left} bytes at byte {file.tell() - left} are no whole packet, and are left out"

    def _error(self, file: BinaryIO, back: int, why: str) -> CaptureError:
        return CaptureError(f"{self.path}: at byte {file.tell() - back}: {why}; what comes before it is used")


def _interface(body: bytes, order: str) -> _Interface:
    link, _, snap_bytes = struct.unpack_from(order + "HHI", body)
    unit, offset_s = 1_000_000, 0
    for code, value in _options(body[8:], order):
        if code == _TIME_RESOLUTION and value:
            unit = 2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** min(value[0], 30)
        elif code == _TIME_OFFSET and len(value) == 8:
            (offset_s,) = struct.unpack(order + "q", value)
    return _Interface(link, snap_bytes, unit, offset_s)


def _options(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        code, length = struct.unpack_from(order + "HH", data, at)
        if not code:
            return
        yield code, data[at + 4 : at + 4 + length]
        at += 4 + length + -length % 4


def _packet(
    kind: int, body: bytes, order: str, interfaces: list[_Interface], last_ns: int
) -> tuple[int, int, bytes, int]:
    """A simple packet has no time: it gets that of the one before."""
    if kind == _SIMPLE_PACKET:
        (length,) = struct.unpack_from(order + "I", body)
        of = interfaces[0]
        captured = min(length, of.snap_bytes or length, len(body) - 4)
        return last_ns, of.link, body[4 : 4 + captured], length
    layout = "IIIII" if kind == _PACKET else "HHIIII"
    first, *rest = struct.unpack_from(order + layout, body)
    high, low, captured, length = rest[-4:]
    if captured > len(body) - 20:
        raise ValueError(f"{captured} bytes in a block of {len(body)}")
    of = interfaces[first]
    ticks = high << 32 | low
    ts_ns = of.offset_s * NS_PER_S + ticks * NS_PER_S // of.unit
    return ts_ns, of.link, body[20 : 20 + captured], length
