"""Messages of magic 0 and 1 built by hand."""

from __future__ import annotations

import struct
import zlib

from kafkaproto.records.compression import Compression, compress


def with_crc(data: bytes) -> bytes:
    return data[:12] + struct.pack(">I", zlib.crc32(data[16:])) + data[16:]


def wrapper(inside: bytes, *, magic: int, offset: int, kind: Compression, attributes: int = 0) -> bytes:
    """Return a wrapper message around bytes that need not be valid messages."""
    packed = compress(kind, inside)
    body = struct.pack(">bb", magic, attributes | kind) + (struct.pack(">q", 7777) if magic else b"")
    body += struct.pack(">ii", -1, len(packed)) + packed
    return with_crc(struct.pack(">qiI", offset, len(body) + 4, 0) + body)
