"""Writer of capture files with synthetic TCP connections: classic pcap format with nanoseconds and raw IP packets.

Every packet has correct lengths and checksums, and a connection starts with its handshake. The transferred data may be any bytes.
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address
from typing import BinaryIO, NamedTuple

MAGIC_NS = 0xA1B23C4D
LINKTYPE_RAW = 101
SNAP_BYTES = 262_144
SEGMENT_BYTES = 16 * 1024

FIN, SYN, RST, PUSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
_WINDOW = 0xFFFF
_HOPS = 64
_TCP = 6

Address = IPv4Address | IPv6Address


class End(NamedTuple):
    """One end of a TCP connection: address and port. Both ends of a connection have the same address family."""

    address: Address
    port: int


def file_header(link: int = LINKTYPE_RAW) -> bytes:
    """Return the header of a capture file. link: the LINKTYPE of its packets."""
    return struct.pack("<IHHiIII", MAGIC_NS, 2, 4, 0, 0, SNAP_BYTES, link)


def record(at_ns: int, packet: bytes) -> bytes:
    """Return a packet as a record of the capture file. at_ns: its time in ns since the epoch."""
    return struct.pack("<IIII", *divmod(at_ns, 1_000_000_000), len(packet), len(packet)) + packet


class Talk:
    """A TCP connection in a capture file, written packet by packet. Each packet acknowledges all data that the other end has sent before.

    Times are in ns since the epoch.
    """

    def __init__(self, file: BinaryIO, client: End, server: End) -> None:
        self._file = file
        self._ends = (client, server)
        self._next = [0, 0]

    def open(self, at_ns: int) -> None:
        """Write to the capture file the three packets of the connection's handshake. at_ns: their time in ns since the epoch."""
        self._packet(at_ns, 0, SYN)
        self._packet(at_ns, 1, SYN | ACK)
        self._packet(at_ns, 0, ACK)

    def client_sends(self, at_ns: int, data: bytes) -> None:
        self._send(at_ns, 0, data)

    def server_sends(self, at_ns: int, data: bytes) -> None:
        self._send(at_ns, 1, data)

    def close(self, at_ns: int) -> None:
        """Write to the capture file the packets by which both ends close the connection. at_ns: their time in ns since the epoch."""
        self._packet(at_ns, 0, FIN | ACK)
        self._packet(at_ns, 1, FIN | ACK)
        self._packet(at_ns, 0, ACK)

    def _send(self, at_ns: int, by: int, data: bytes) -> None:
        for at in range(0, len(data), SEGMENT_BYTES):
            last = at + SEGMENT_BYTES >= len(data)
            self._packet(at_ns, by, ACK | (PUSH if last else 0), data[at : at + SEGMENT_BYTES])

    def _packet(self, at_ns: int, by: int, flags: int, data: bytes = b"") -> None:
        acknowledged = self._next[1 - by] if flags & ACK else 0
        self._file.write(
            record(at_ns, ip_packet(self._ends[by], self._ends[1 - by], self._next[by], acknowledged, flags, data))
        )
        self._next[by] = (self._next[by] + len(data) + bool(flags & (SYN | FIN))) % (1 << 32)


def ip_packet(source: End, to: End, sequence: int, acknowledged: int, flags: int, data: bytes) -> bytes:
    """Return an IPv4 or IPv6 packet with one TCP segment from `source` to `to`.

    sequence, acknowledged: the sequence number and the acknowledgment number in the TCP header. flags: the TCP flags, such as SYN, as bits.
    """
    header = struct.pack(">HHIIBBHHH", source.port, to.port, sequence, acknowledged, 5 << 4, flags, _WINDOW, 0, 0)
    segment = header + data
    address_bytes = source.address.packed + to.address.packed
    pseudo = address_bytes + (
        struct.pack(">II", len(segment), _TCP) if len(address_bytes) > 8 else struct.pack(">HH", _TCP, len(segment))
    )
    segment = segment[:16] + _checksum(pseudo + segment) + segment[18:]
    if len(address_bytes) > 8:
        return struct.pack(">IHBB", 6 << 28, len(segment), _TCP, _HOPS) + address_bytes + segment
    front = struct.pack(">BBHHHBB", 0x45, 0, 20 + len(segment), 0, 0, _HOPS, _TCP)
    return front + _checksum(front + bytes(2) + address_bytes) + address_bytes + segment


def _checksum(data: bytes) -> bytes:
    """Return the Internet checksum (RFC 1071) of the data."""
    if len(data) % 2:
        data += b"\0"
    # 2**16 is 1 modulo 0xFFFF, so the sum of all words with carry is the number itself modulo 0xFFFF
    total = int.from_bytes(data, "big") % 0xFFFF
    return (0xFFFF - total).to_bytes(2, "big")
