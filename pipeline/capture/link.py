"""Extraction of the TCP segment from a captured packet.

The packet may be of Ethernet (with VLANs), raw IP, Linux cooked v1 and v2, or loopback, with IPv4 or IPv6. Each packet is
read alone; `stream` and `connections` join the packets of a connection.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10

NULL, ETHERNET, LOOP, SLL, SLL2 = 0, 1, 108, 113, 276
RAW = (12, 14, 101, 228, 229)
_IPV4, _IPV6 = 0x0800, 0x86DD
_VLANS = (0x8100, 0x88A8, 0x9100)
_TCP = 6
_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _DESTINATION = 0, 43, 44, 51, 60
_FRAGMENTED = 0x3FFF
"""Mask for the IPv4 header word with flags and fragment offset. The masked word is not 0 if the packet is a fragment."""

NOT_IP, NOT_TCP, IN_FRAGMENTS, TOO_SHORT = "not IP", "not TCP", "in fragments", "too little captured"


class LeftOut(Exception):
    """Raised for a packet without a usable TCP segment. The message is the reason without details, so that packets can be counted by reason."""


class Segment(NamedTuple):
    """A TCP segment.

    source, to: IP addresses as bytes. data: the captured part of the payload. missing: number of payload bytes after `data` that were not captured.
    """

    source: bytes
    source_port: int
    to: bytes
    to_port: int
    sequence: int
    acknowledged: int
    flags: int
    data: bytes
    missing: int


def segment_of(link: int, data: bytes, length: int) -> Segment:
    """Return the TCP segment in a packet. Raises LeftOut if the packet has no usable TCP segment.

    link: link-layer type as a LINKTYPE_ number of libpcap, such as 1 for Ethernet. data: the captured bytes of the packet. length: size in bytes of
    the whole packet.
    """
    try:
        at = _network_at(link, data)
        return _segment(data, at, length)
    except (IndexError, struct.error):
        raise LeftOut(TOO_SHORT) from None


def _network_at(link: int, data: bytes) -> int:
    """Return the byte position of the IP header in a packet. Raises LeftOut for a packet without one, or an unsupported link-layer type.

    link: link-layer type as a LINKTYPE_ number of libpcap, such as 1 for Ethernet.
    """
    if link in RAW:
        return 0
    if link in (NULL, LOOP):
        return 4
    if link == ETHERNET:
        kind, at = _word(data, 12), 14
    elif link == SLL:
        kind, at = _word(data, 14), 16
    elif link == SLL2:
        kind, at = _word(data, 0), 20
    else:
        raise LeftOut(f"unsupported link type {link}; supported are Ethernet, Linux cooked, loopback and raw IP")
    while kind in _VLANS:
        kind, at = _word(data, at + 2), at + 4
    if kind not in (_IPV4, _IPV6):
        raise LeftOut(NOT_IP)
    return at


def _word(data: bytes, at: int) -> int:
    return int(struct.unpack_from(">H", data, at)[0])


def _segment(data: bytes, at: int, length: int) -> Segment:
    version = data[at] >> 4
    if version == 4:
        source, to, tcp_at, end = _ipv4(data, at, length)
    elif version == 6:
        source, to, tcp_at, end = _ipv6(data, at, length)
    else:
        raise LeftOut(NOT_IP)
    source_port, to_port, sequence, acknowledged, offset, flags = struct.unpack_from(">HHIIBB", data, tcp_at)
    payload_at = tcp_at + (offset >> 4) * 4
    if payload_at < tcp_at + 20 or payload_at > end:
        raise LeftOut(TOO_SHORT)
    payload = data[payload_at:end]
    missing = end - payload_at - len(payload)
    return Segment(source, source_port, to, to_port, sequence, acknowledged, flags, payload, missing)


def _ipv4(data: bytes, at: int, length: int) -> tuple[bytes, bytes, int, int]:
    """Return (source address, destination address, byte position of the TCP header, byte position of the end of the packet).

    data: the captured bytes of the packet. at: byte position of the IPv4 header. length: size in bytes of the whole packet. Raises LeftOut if
    the packet is a fragment, is too short or has no TCP segment. The IPv4 header has a total length of 0 if the network card of the sender splits
    large segments (TSO); the end of the packet is then `length`.
    """
    header = (data[at] & 15) * 4
    total = _word(data, at + 2)
    if data[at + 9] != _TCP:
        raise LeftOut(NOT_TCP)
    if _word(data, at + 6) & _FRAGMENTED:
        raise LeftOut(IN_FRAGMENTS)
    end = at + total if total else length
    if header < 20 or len(data) < at + 20:
        raise LeftOut(TOO_SHORT)
    return data[at + 12 : at + 16], data[at + 16 : at + 20], at + header, end


def _ipv6(data: bytes, at: int, length: int) -> tuple[bytes, bytes, int, int]:
    payload = _word(data, at + 4)
    end = at + 40 + payload if payload else length
    next_header, at_next = data[at + 6], at + 40
    while next_header != _TCP:
        if next_header in (_HOP_BY_HOP, _ROUTING, _DESTINATION):
            size = (data[at_next + 1] + 1) * 8
        elif next_header == _AUTHENTICATION:
            size = (data[at_next + 1] + 2) * 4
        elif next_header == _FRAGMENT:
            if _word(data, at_next + 2) & 0xFFF9:
                raise LeftOut(IN_FRAGMENTS)
            size = 8
        else:
            raise LeftOut(NOT_TCP)
        next_header, at_next = data[at_next], at_next + size
    return data[at + 8 : at + 24], data[at + 24 : at + 40], at_next, end
