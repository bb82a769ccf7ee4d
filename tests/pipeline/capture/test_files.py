"""Capture files of every kind and packets of every link type; other files are rejected with name and position."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest

from kafkaproto.pipeline.capture.files import Capture, CaptureError, Packet
from kafkaproto.pipeline.capture.link import ETHERNET, LOOP, NULL, SLL, SLL2, LeftOut, segment_of
from kafkaproto.trace.pcap import ACK, End, ip_packet

A, B = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")
SIX = IPv6Address("fe80::1")
HELLO = ip_packet(End(A, 1), End(B, 2), 5, 6, ACK, b"hello")
HELLO_SIX = ip_packet(End(SIX, 1), End(SIX, 2), 5, 6, ACK, b"hello")


def read(path: Path, data: bytes) -> list[Packet]:
    path.write_bytes(data)
    return list(Capture(path).packets())


def pcap(order: str, magic: int, version: int = 2, link: int = 1) -> bytes:
    return struct.pack(order + "IHHiIII", magic, version, 4, 0, 0, 65535, link)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "ns"), [(0xA1B2C3D4, 1000), (0xA1B23C4D, 1)])
def test_pcap_files_of_both_byte_orders_and_time_units_are_read(
    tmp_path: Path, order: str, magic: int, ns: int
) -> None:
    body = struct.pack(order + "IIII", 7, 8, 3, 9) + b"abc"
    assert read(tmp_path / "a.pcap", pcap(order, magic) + body * 2) == [
        Packet(1, 7_000_000_000 + 8 * ns, 1, b"abc", 9),
        Packet(2, 7_000_000_000 + 8 * ns, 1, b"abc", 9),
    ]


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def section(order: str, major: int = 1) -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, major, 0, -1))


def interface(order: str, link: int, *options: tuple[int, bytes]) -> bytes:
    option_bytes = b"".join(
        struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4) for code, value in options
    )
    return block(order, 1, struct.pack(order + "HHI", link, 0, 4) + option_bytes)


def enhanced(order: str, of: int, ticks: int, data: bytes, length: int) -> bytes:
    return block(order, 6, struct.pack(order + "IIIII", of, ticks >> 32, ticks & 0xFFFFFFFF, len(data), length) + data)


def test_pcapng_files_with_several_sections_and_unknown_blocks_are_read(tmp_path: Path) -> None:
    data = section("<") + interface("<", 1) + interface("<", 113, (9, b"\x09"), (14, struct.pack("<q", 100)))
    data += enhanced("<", 0, 5_000_001, b"abcde", 5) + block("<", 0xBAD, b"xxxx") + enhanced("<", 1, 7, b"fg", 20)
    data += block("<", 3, struct.pack("<I", 9) + b"simp")
    data += section(">") + interface(">", 101, (9, b"\x8a")) + enhanced(">", 0, 1536, b"z", 1)
    data += block(">", 2, struct.pack(">HHIIII", 0, 0, 0, 1024, 2, 2) + b"ol")
    assert read(tmp_path / "a.pcapng", data) == [
        Packet(1, 5_000_001_000, 1, b"abcde", 5),
        Packet(2, 100_000_000_007, 113, b"fg", 20),
        Packet(3, 100_000_000_007, 1, b"simp", 9),
        Packet(4, 1_500_000_000, 101, b"z", 1),
        Packet(5, 1_000_000_000, 101, b"ol", 2),
    ]


@pytest.mark.parametrize(
    ("data", "error_text"),
    [
        (b"", "starts with the bytes \\(none\\)"),
        (b"hello world", "starts with the bytes 68 65 6c 6c"),
        (b"\x1f\x8b\x08\x00", "compressed"),
        (pcap("<", 0xA1B2C3D4, version=3), "version 3.4; only version 2 is supported"),
        (section("<", 2), "at byte 0: a section has pcapng version 2.0; only version 1 is supported"),
        (
            pcap("<", 0xA1B2C3D4) + struct.pack("<IIII", 0, 0, 1 << 30, 1),
            "at byte 24: a packet has an invalid length of 1073741824 bytes",
        ),
        (section("<") + struct.pack("<II", 6, 5), "at byte 28: a pcapng block has an invalid length of 5 bytes"),
        (section("<") + enhanced("<", 3, 0, b"", 0), "at byte 28: a pcapng block of type 6"),
        (
            section("<")[:8] + b"oops" + section("<")[12:],
            "the byte-order mark of a pcapng section must be 1a2b3c4d or 4d3c2b1a .got 6f6f7073.",
        ),
    ],
)
def test_error_for_an_invalid_packet_capture_file_contains_the_file_name(
    tmp_path: Path, data: bytes, error_text: str
) -> None:
    with pytest.raises(CaptureError, match=error_text) as raised:
        read(tmp_path / "named.pcap", data)
    assert str(tmp_path / "named.pcap") in str(raised.value)


@pytest.mark.parametrize("data", [
    pcap("<", 0xA1B2C3D4) + struct.pack("<IIII", 0, 0, 3, 3) + b"abc",
    section("<") + interface("<", 1) + enhanced("<", 0, 0, b"abc", 3),
])  # fmt: skip
def test_capture_file_truncated_in_its_first_packet_has_no_packets_but_an_error_text(
    tmp_path: Path, data: bytes
) -> None:
    path = tmp_path / "a.pcap"
    for end in range(4, len(data)):
        path.write_bytes(data[:end])
        capture = Capture(path)
        assert list(capture.packets()) == []
        torn = capture.torn
        assert (str(path) in torn and "no whole packet" in torn) or end in (24, 28, 48), end


VLAN = b"\x81\x00\x00\x05"
LINKS = [
    (ETHERNET, bytes(12) + b"\x08\x00" + HELLO + b"padding"),
    (ETHERNET, bytes(12) + b"\x88\xa8\x00\x01" + VLAN + b"\x08\x00" + HELLO),
    (ETHERNET, bytes(12) + b"\x86\xdd" + HELLO_SIX),
    (101, HELLO),
    (12, HELLO_SIX),
    (229, HELLO_SIX),
    (NULL, struct.pack("<I", 2) + HELLO),
    (LOOP, struct.pack(">I", 30) + HELLO_SIX),
    (SLL, bytes(14) + b"\x08\x00" + HELLO),
    (SLL2, b"\x86\xdd" + bytes(18) + HELLO_SIX),
    (101, HELLO_SIX[:6] + b"\x00" + HELLO_SIX[7:40] + b"\x06" + bytes(7) + HELLO_SIX[40:]),
]


@pytest.mark.parametrize(("link", "data"), LINKS)
def test_tcp_segment_is_extracted_from_captured_packets_of_every_link_type(link: int, data: bytes) -> None:
    if data[6:7] == b"\x00" and data[:1] == b"\x60":  # an extension header counts as payload
        data = data[:4] + (int.from_bytes(data[4:6], "big") + 8).to_bytes(2, "big") + data[6:]
    segment = segment_of(link, data, len(data))
    assert (segment.data, segment.missing, segment.sequence, segment.acknowledged, segment.flags) == (
        b"hello",
        0,
        5,
        6,
        ACK,
    )
    assert (segment.source_port, segment.to_port) == (1, 2) and segment.source in (A.packed, SIX.packed)


def test_tcp_segment_of_a_truncated_packet_contains_the_number_of_missing_bytes() -> None:
    segment = segment_of(101, HELLO[:-2], len(HELLO))
    assert (segment.data, segment.missing) == (b"hel", 2)
    assert segment_of(101, HELLO[:34], len(HELLO)).missing == 5
    for end in range(34):
        with pytest.raises(LeftOut, match="too little captured"):
            segment_of(101, HELLO[:end], len(HELLO))


def test_captured_packet_whose_ip_length_field_is_zero_yields_all_its_data() -> None:
    assert segment_of(101, HELLO[:2] + bytes(2) + HELLO[4:], len(HELLO)).data == b"hello"


@pytest.mark.parametrize(
    ("link", "data", "why"),
    [
        (ETHERNET, bytes(12) + b"\x08\x06" + HELLO, "not IP"),
        (101, HELLO[:9] + b"\x11" + HELLO[10:], "not TCP"),
        (101, HELLO[:6] + b"\x20\x00" + HELLO[8:], "in fragments"),
        (105, HELLO, "unsupported link type 105"),
        (101, b"\x50" + HELLO[1:], "not IP"),
    ],
)
def test_error_for_a_captured_packet_without_a_tcp_segment_contains_the_reason(
    link: int, data: bytes, why: str
) -> None:
    with pytest.raises(LeftOut, match=why):
        segment_of(link, data, len(data))
