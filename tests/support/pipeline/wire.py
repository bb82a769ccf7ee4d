"""Captures for tests: data of two ends, split into random segments, reordered, repeated, lost or truncated, from a seed."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from random import Random

from kafkaproto.trace.pcap import ACK, FIN, PUSH, SYN, End, file_header, ip_packet, record

CLIENT, SERVER = 0, 1
START_NS = 1_700_000_000_000_000_000


class Wire:
    """All packets of a capture. seed: of the segmentation."""

    def __init__(self, seed: int = 0, largest: int = 1400) -> None:
        self.random = Random(seed)
        self.largest = largest
        self.packets: list[tuple[int, bytes]] = []
        self.now_ns = START_NS

    def connect(
        self,
        port: int = 40_000,
        server: int = 9092,
        *,
        shaken: bool = True,
        first: tuple[int, int] = (7, 9),
        six: bool = False,
    ) -> Line:
        host = IPv6Address("::1") if six else IPv4Address("127.0.0.1")
        return Line(self, End(host, port), End(host, server), first, shaken)

    def add(self, packet: bytes) -> None:
        self.now_ns += 1_000
        self.packets.append((self.now_ns, packet))

    def disorder(self, reach: int = 4) -> None:
        """Swap packets with near ones, except handshakes, and repeat some; times stay in order."""
        times = [at for at, _ in self.packets]
        order = sorted(
            range(len(times)),
            key=lambda i: i - reach if _shakes(self.packets[i][1]) else i + self.random.uniform(0, reach),
        )
        packets = [self.packets[i][1] for i in order]
        again = [i for i in range(len(packets)) if self.random.random() < 0.1]
        for i in reversed(again):
            packets.insert(min(len(packets), i + self.random.randrange(1, reach + 2)), packets[i])
        times += [times[-1] + i for i in range(1, len(packets) - len(times) + 1)]
        self.packets = list(zip(times, packets, strict=True))

    def write(self, path: Path, snap_bytes: int = 1 << 18) -> Path:
        path.write_bytes(file_header() + b"".join(cut(at, data, snap_bytes) for at, data in self.packets))
        return path


def _shakes(packet: bytes) -> bool:
    return bool(packet[(20 if packet[0] >> 4 == 4 else 40) + 13] & SYN)


def cut(at_ns: int, packet: bytes, snap_bytes: int) -> bytes:
    """Return the capture record of a packet that keeps only its first `snap_bytes`."""
    whole = record(at_ns, packet)
    head = packet[:snap_bytes]
    return whole[:8] + struct.pack("<II", len(head), len(packet)) + head


class Line:
    """One connection."""

    def __init__(self, wire: Wire, client: End, server: End, first: tuple[int, int], shaken: bool) -> None:
        self._wire = wire
        self._ends = (client, server)
        self.next = list(first)
        if shaken:
            self.packet(CLIENT, SYN)
            self.packet(SERVER, SYN | ACK)
            self.packet(CLIENT, ACK)

    def says(self, by: int, data: bytes) -> None:
        random = self._wire.random
        while data:
            size = random.randrange(1, self._wire.largest + 1)
            self.packet(by, ACK | PUSH, data[:size])
            data = data[size:]

    def packet(self, by: int, flags: int, data: bytes = b"") -> None:
        acknowledged = self.next[1 - by] if flags & ACK else 0
        self._wire.add(ip_packet(self._ends[by], self._ends[1 - by], self.next[by], acknowledged, flags, data))
        self.next[by] = (self.next[by] + len(data) + bool(flags & (SYN | FIN))) % (1 << 32)

    def lose(self, by: int, data: bytes) -> None:
        """Send data that is received but missing from the capture."""
        self.next[by] = (self.next[by] + len(data)) % (1 << 32)

    def close(self) -> None:
        self.packet(CLIENT, FIN | ACK)
        self.packet(SERVER, FIN | ACK)
        self.packet(CLIENT, ACK)
