"""Packets of the kernel: what goes over the loopback interface, as `tcpdump -i lo -w` writes it, with the standard library alone.

Only Linux has the sockets for it, and only root may. Packets of chosen TCP ports are kept, by a filter in the kernel, so that what else the
machine does over loopback costs nothing. They wait in the kernel until the end: nothing runs beside the traffic. Must never know what is said.
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
"""A limit; only what waits takes memory, a small packet some hundred bytes more than it has."""
EVERY_PROTOCOL = 3
ETHERNET_BYTES = 14

# Of the headers of Linux, where the standard library has no names.
SOL_PACKET, PACKET_STATISTICS = 263, 6
SO_ATTACH_FILTER, SO_RCVBUFFORCE, SO_TIMESTAMPNS = 26, 33, 35
PACKET_TYPE, OUTGOING = 0xFFFFF004, 4
"""SKF_AD_OFF + SKF_AD_PKTTYPE, and its value for the first of the two times that a packet of loopback comes by."""

Instruction = tuple[int, int, int, int]
"""Of classic BPF: code, how many to pass over if true, if false, constant."""
LOAD_WORD, LOAD_HALF, LOAD_BYTE, LOAD_HALF_BEHIND_IP, IP_BYTES = 0x20, 0x28, 0x30, 0x48, 0xB1
IS_EQUAL, HAS_BITS, RETURN = 0x15, 0x45, 0x06
IPV4, TCP, OFFSET_BITS = 0x0800, 6, 0x1FFF


class Packet(NamedTuple):
    """at_ns: by the kernel's clock, since the epoch. data: with its Ethernet header."""

    at_ns: int
    data: bytes

    @property
    def ports(self) -> tuple[int, int]:
        """Of who sent it, and of whom it goes to."""
        source, to = struct.unpack_from(">HH", self.data, ETHERNET_BYTES + (self.data[ETHERNET_BYTES] & 15) * 4)
        return source, to


class Sniffed:
    """missing: what it would take to have packets, empty if nothing. packets: all of them, once it is over."""

    def __init__(self, missing: str) -> None:
        self.missing = missing
        self.packets: list[Packet] = []

    def or_skip(self) -> None:
        """For a test that is nothing without packets of the kernel."""
        if self.missing:
            pytest.skip(f"not prepared: needs {self.missing}, to capture packets of the kernel")


def written(packets: Iterable[Packet], path: Path) -> Path:
    """As a capture file."""
    path.write_bytes(file_header(ETHERNET) + b"".join(record(*one) for one in packets))
    return path


@contextmanager
def sniffed(*ports: int) -> Iterator[Sniffed]:
    """While it lasts every IPv4 packet of loopback from or to one of these TCP ports is kept. Who cannot or may not capture gets a `missing`
    and goes on; packets that the kernel had to drop fail the test, since nothing could be proved without them."""
    with ExitStack() as stack:
        missing = "" if hasattr(socket, "AF_PACKET") else "AF_PACKET sockets, which only Linux has"
        try:
            if not missing:
                sock = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
                sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        except PermissionError:
            missing = "CAP_NET_RAW and CAP_NET_ADMIN, which root has"
        found = Sniffed(missing)
        if missing:
            yield found
            return
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        _attach(sock, _filter(ports))
        sock.bind((INTERFACE, EVERY_PROTOCOL))
        yield found
        found.packets += _waiting(sock)
        seen, dropped = struct.unpack("II", sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    assert not dropped, f"the kernel dropped {dropped} of {seen} packets: its buffer of {BUFFER_BYTES} bytes was full"


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
    """Packets that come in, of TCP in IPv4, from or to one of the ports; of those in fragments only the first has them."""
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
            # over what is left of the checks, and over the refusal
            program.append((IS_EQUAL, checks - (len(program) - 9), 0, port))
    return [*program, (RETURN, 0, 0, 0), (RETURN, 0, 0, SNAP_BYTES)]


def _attach(sock: socket.socket, program: list[Instruction]) -> None:
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in program))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(program), ctypes.addressof(code)))
