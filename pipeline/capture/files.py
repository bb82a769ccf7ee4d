"""Reader of capture files: pcap in both byte orders with micro- and nanoseconds, and pcapng, in one pass, one packet at a time.

For any other format or version, it raises an error that names the file and the byte position. This module does not depend on what is in a packet.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kafkaproto.trace.format import TraceError

NAMED = re.compile(r"\.(pcap|pcapng|cap)\d*$")
"""Matches the file names of captures. tcpdump appends a number to the files that it rotates."""
LARGEST_BLOCK_BYTES = 256 * 1024 * 1024
"""Largest plausible size in bytes of a pcapng block or a packet; a larger size shows that the file is damaged."""

_PCAP_MAGICS = {
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
}
"""Maps the first four bytes of a pcap file to (byte order, nanoseconds per unit of the fraction of a timestamp)."""
_SECTION = b"\x0a\x0d\x0d\x0a"
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x42\x5a\x68", b"\x04\x22\x4d\x18")
_BYTE_ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 1, 2, 3, 6
_TIME_RESOLUTION, _TIME_OFFSET = 9, 14
_LINK_MASK = 0xFFFF
"""Mask for the link type in the file header; the upper bits contain checksum information."""
NS_PER_S = 1_000_000_000


class CaptureError(TraceError):
    """Raised for a file that is not a capture, or that cannot be read beyond some position. The message names the file and the position."""


class Packet(NamedTuple):
    """A packet of a capture.

    number: 1 for the first packet of the file, 2 for the second, and so on. ts_ns: time since the epoch. link: link-layer type as a LINKTYPE_
    number of libpcap, such as 1 for Ethernet. data: the captured bytes of the packet. length: size in bytes of the whole packet.
    """

    number: int
    ts_ns: int
    link: int
    data: bytes
    length: int


class _Interface(NamedTuple):
    """An interface of a pcapng file.

    link: link-layer type as a LINKTYPE_ number of libpcap, such as 1 for Ethernet. snap_bytes: largest captured part of a packet. unit: timestamp
    units per second. offset_s: seconds to add to each timestamp.
    """

    link: int
    snap_bytes: int
    unit: int
    offset_s: int


class Capture:
    """A capture file, read from its start. Raises CaptureError if the file is not a capture.

    After reading, `torn` describes an incomplete packet at the end; it is empty if there is none. `read_bytes` is the current byte position.
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
            is_compressed = any(start.startswith(magic) for magic in _COMPRESSED)
            compressed_or_first_bytes = (
                "it is compressed: unpack it first"
                if is_compressed
                else f"it starts with the bytes {start.hex(' ') or '(none)'}"
            )
            raise CaptureError(f"{path} is not a capture file (pcap or pcapng): {compressed_or_first_bytes}")

    def packets(self) -> Iterator[Packet]:
        """Yield every whole packet. If the last packet is incomplete, `torn` describes it. Raises CaptureError if the file is damaged."""
        with self.path.open("rb", buffering=1 << 20) as file:
            for number, (ts_ns, link, data, length) in enumerate(self._read(file), 1):
                self.read_bytes = file.tell()
                yield Packet(number, ts_ns, link, data, max(length, len(data)))

    # ---- pcap ----------------------------------------------------------------------------------------------------------------

    def _pcap(self, file: BinaryIO) -> Iterator[tuple[int, int, bytes, int]]:
        order, ns = _PCAP_MAGICS[file.read(4)]
        header = file.read(20)
        if len(header) < 20:
            self._ends_at(file, len(header))
            return
        major, minor, _, _, _, network = struct.unpack(order + "HHiIII", header)
        if major != 2:
            raise CaptureError(f"{self.path} is a pcap file of version {major}.{minor}; only version 2 is supported")
        head = struct.Struct(order + "IIII")
        while start := file.read(head.size):
            if len(start) < head.size:
                self._ends_at(file, len(start))
                return
            seconds, fraction, captured, length = head.unpack(start)
            if captured > LARGEST_BLOCK_BYTES:
                raise self._error(
                    file,
                    len(start),
                    f"a packet has an invalid length of {captured} bytes; at most {LARGEST_BLOCK_BYTES} are allowed",
                )
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
                raise self._error(
                    file,
                    len(start),
                    f"a pcapng block has an invalid length of {size} bytes; allowed are multiples of 4 "
                    f"from {len(start) + 4} to {LARGEST_BLOCK_BYTES}",
                )
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
                    packet = _packet(kind, body[:-4], order, interfaces, last_ns)
                    last_ns = packet[0]
                    yield packet
            except CaptureError:
                raise
            except (struct.error, IndexError, ValueError) as error:
                raise self._error(file, size, f"a pcapng block of type {kind} cannot be decoded: {error}") from None

    def _byte_order(self, file: BinaryIO, start: bytes) -> str:
        order = _BYTE_ORDERS.get(start[8:12])
        if order is None:
            raise self._error(
                file,
                len(start),
                f"the byte-order mark of a pcapng section must be 1a2b3c4d or 4d3c2b1a (got {start[8:12].hex()})",
            )
        return order

    def _section(self, file: BinaryIO, size: int, body: bytes, order: str) -> None:
        major, minor = struct.unpack_from(order + "HH", body)
        if major != 1:
            raise self._error(file, size, f"a section has pcapng version {major}.{minor}; only version 1 is supported")

    def _ends_at(self, file: BinaryIO, byte_count: int) -> None:
        self.torn = (
            f"{self.path}: {byte_count} bytes at byte {file.tell() - byte_count} are no whole packet and are left out"
        )

    def _error(self, file: BinaryIO, back: int, why: str) -> CaptureError:
        return CaptureError(f"{self.path}: at byte {file.tell() - back}: {why}; everything before it is used")


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
    """Return (ts_ns, link, data, length) of a packet block in a pcapng file: the fields of `Packet` without the number.

    kind: type of the block. body: content of the block. order: byte order for `struct`. interfaces: the interfaces that the current section of the
    file has described so far; the block names one by its index. last_ns: time of the previous packet, which is also used for a "simple packet" block,
    because that block has no time.
    """
    if kind == _SIMPLE_PACKET:
        (length,) = struct.unpack_from(order + "I", body)
        interface = interfaces[0]
        captured = min(length, interface.snap_bytes or length, len(body) - 4)
        return last_ns, interface.link, body[4 : 4 + captured], length
    layout = "IIIII" if kind == _PACKET else "HHIIII"
    first, *rest = struct.unpack_from(order + layout, body)
    high, low, captured, length = rest[-4:]
    if captured > len(body) - 20:
        raise ValueError(
            f"the captured length of the packet is {captured} bytes, but the block has only {len(body) - 20} bytes of packet data"
        )
    interface = interfaces[first]
    ticks = high << 32 | low
    ts_ns = interface.offset_s * NS_PER_S + ticks * NS_PER_S // interface.unit
    return ts_ns, interface.link, body[20 : 20 + captured], length
