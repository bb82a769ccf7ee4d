"""Capture packets of the loopback interface, as `tcpdump -i lo -w` writes them, with the standard library alone.

Requires Linux and root. A filter in the kernel keeps only packets of chosen TCP ports, so that other traffic costs nothing. Packets stay in
the kernel until the end: nothing runs beside the traffic. Independent of the captured protocol.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from kafkaproto.pipeline.capture.link import ETHERNET
from kafkaproto.trace.pcap import SNAP_BYTES, file_header, record

INTERFACE = "lo"
BUFFER_BYTES = 512 * 1024 * 1024
"""An upper limit: the buffer uses memory only for queued packets, some hundred bytes more than the size of each."""
EVERY_PROTOCOL = 3
ETHERNET_BYTES = 14

# Constants of Linux headers that the standard library does not name.
SOL_PACKET, PACKET_STATISTICS = 263, 6
SO_ATTACH_FILTER, SO_RCVBUFFORCE, SO_TIMESTAMPNS = 26, 33, 35
PACKET_TYPE, OUTGOING = 0xFFFFF004, 4
"""SKF_AD_OFF + SKF_AD_PKTTYPE, and the value for the first of the two times that a loopback packet passes."""

Instruction = tuple[int, int, int, int]
"""A classic BPF instruction: code, instructions to skip if true, if false, constant."""
LOAD_WORD, LOAD_HALF, LOAD_BYTE, LOAD_HALF_BEHIND_IP, IP_BYTES = 0x20, 0x28, 0x30, 0x48, 0xB1
IS_EQUAL, HAS_BITS, RETURN = 0x15, 0x45, 0x06
IPV4, TCP, OFFSET_BITS = 0x0800, 6, 0x1FFF


class Packet(NamedTuple):
    """A captured packet. at_ns: time since the epoch by the kernel's clock. data: includes the Ethernet header."""

    at_ns: int
    data: bytes

    @property
    def ports(self) -> tuple[int, int]:
        """Return the TCP ports of source and destination."""
        source, to = struct.unpack_from(">HH", self.data, ETHERNET_BYTES + (self.data[ETHERNET_BYTES] & 15) * 4)
        return source, to


class Sniffed:
    """The result of a capture. missing: why capturing is impossible, or empty. packets: filled at the end of the capture."""

    def __init__(self, missing: str) -> None:
        self.missing = missing
        self.packets: list[Packet] = []

    def or_skip(self) -> None:
        """Skip the test if packets cannot be captured."""
        if self.missing:
            pytest.skip(f"not prepared: needs {self.missing}, to capture packets of the kernel")


def written(packets: Iterable[Packet], path: Path) -> Path:
    """Write packets as a capture file."""
    path.write_bytes(file_header(ETHERNET) + b"".join(record(*packet) for packet in packets))
    return path


@contextmanager
def sniffed(*ports: int) -> Iterator[Sniffed]:
    """Capture every IPv4 loopback packet from or to these TCP ports during the block.

    Without the capability to capture, the block runs and `missing` says why. Packets dropped by the kernel fail the test, because the
    result would prove nothing.
    """
    with ExitStack() as stack:
        missing = "" if hasattr(socket, "AF_PACKET") else "AF_PACKET sockets, which only Linux has"
        try:
            if not missing:
                sock = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
                sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        except PermissionError:
            missing = "CAP_NET_RAW and CAP_NET_ADMIN, which root has"
        sniffer = Sniffed(missing)
        if missing:
            yield sniffer
            return
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        _attach(sock, _filter(ports))
        sock.bind((INTERFACE, EVERY_PROTOCOL))
        yield sniffer
        sniffer.packets += _waiting(sock)
        total, dropped = struct.unpack("II", sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    assert not dropped, f"the kernel dropped {dropped} of {total} packets: its buffer of {BUFFER_BYTES} bytes was full"


def _waiting(sock: socket.socket) -> Iterator[Packet]:
    while True:
        try:
            data, beside, flags, _ = sock.recvmsg(SNAP_BYTES, socket.CMSG_SPACE(struct.calcsize("ll")))
        except BlockingIOError:
            return
        assert not flags & socket.MSG_TRUNC, f"a packet of more than {SNAP_BYTES} bytes"
        [(_, _, time)] = beside
        seconds, nanoseconds = struct.unpack("ll", time)
        yield Packet(seconds * 1_000_000_000 + nanoseconds, data)


def _filter(ports: tuple[int, ...]) -> list[Instruction]:
    """Return a filter for incoming TCP packets in IPv4 from or to one of the ports. Of fragments, only the first has ports."""
    checks = 2 * (len(ports) + 1)
    program: list[Instruction] = [
        (LOAD_WORD, 0, 0, PACKET_TYPE),
        (IS_EQUAL, checks + 7, 0, OUTGOING),
        (LOAD_HALF, 0, 0, ETHERNET_BYTES - 2),
        (IS_EQUAL, 0, checks + 5, IPV4),
        (LOAD_BYTE, 0, 0, ETHERNET_BYTES + 9),
        (IS_EQUAL, 0, checks + 3, TCP),
        (LOAD_HALF, 0, 0, ETHERNET_BYTES + 6),
        (HAS_BITS, checks + 1, 0, OFFSET_BITS),
        (IP_BYTES, 0, 0, ETHERNET_BYTES),
    ]
    for at in (0, 2):
        program.append((LOAD_HALF_BEHIND_IP, 0, 0, ETHERNET_BYTES + at))
        for port in ports:
            # skip the remaining checks and the rejection
            program.append((IS_EQUAL, checks - (len(program) - 9), 0, port))
    return [*program, (RETURN, 0, 0, 0), (RETURN, 0, 0, SNAP_BYTES)]


def _attach(sock: socket.socket, program: list[Instruction]) -> None:
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in program))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(program), ctypes.addressof(code)))
