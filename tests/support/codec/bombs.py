"""Small inputs that decompress to a gibibyte of zeros, one for each framing, built without compressing a gibibyte.

Run as a program, it decompresses one of them and prints by how many KiB the process grew: ``python -m tests.support.codec.bombs NAME``.
"""

from __future__ import annotations

import resource
import struct
import sys
import zlib

import cramjam

from kafkaproto.errors import DecodeError
from kafkaproto.records import entries
from kafkaproto.records.batch import HEADER_BYTES, PREFIX_BYTES, NewRecord, build_batch
from kafkaproto.records.compression import SNAPPY_HEADER, Compression
from kafkaproto.records.lz4_header import with_right_checksum

GIB = 1 << 30
MIB = 1 << 20
LIMIT_BYTES = 8 * MIB
LZ4_START = bytes.fromhex("04224d18")
ZSTD_START = bytes.fromhex("28b52ffd")


def gzip_bomb() -> bytes:
    packer = zlib.compressobj(wbits=31)
    first = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    more = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + more * (GIB // MIB - 1)


def gzip_members() -> bytes:
    packer = zlib.compressobj(wbits=31)
    member = packer.compress(bytes(MIB)) + packer.flush()
    return member * (GIB // MIB)


def snappy_blocks() -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(MIB)))
    return SNAPPY_HEADER + (struct.pack(">i", len(block)) + block) * (GIB // MIB)


def snappy_raw() -> bytes:
    head = bytes.fromhex("8080808004") + b"\x00\x00"  # 2**30, one zero
    return head + b"\xfe\x01\x00" * ((GIB - 1) // 64)


def snappy_liar() -> bytes:
    """Return snappy blocks that announce 8 MiB of content each but contain almost nothing."""
    block = bytes.fromhex("80808004") + b"\x00\x00"  # 8 MiB
    return SNAPPY_HEADER + (struct.pack(">i", len(block)) + block) * 1000


def lz4_blocks() -> bytes:
    block = bytes(cramjam.lz4.compress_block(bytes(4 * MIB), store_size=False))
    frame = LZ4_START + b"\x60\x70\x00" + (struct.pack("<I", len(block)) + block) * (GIB // (4 * MIB)) + bytes(4)
    return with_right_checksum(frame)


def lz4_liar() -> bytes:
    """Return an lz4 frame that announces four exbibytes of content."""
    block = bytes(cramjam.lz4.compress_block(b"data" * 100, store_size=False))
    frame = LZ4_START + b"\x68\x70" + struct.pack("<Q", 1 << 62) + b"\x00" + struct.pack("<I", len(block)) + block
    return with_right_checksum(frame + bytes(4))


def zstd_blocks(window_log: int = 20) -> bytes:
    zeros = (1 << 17 << 3 | 1 << 1).to_bytes(3, "little") + b"\x00"  # 128 KiB of one byte
    return ZSTD_START + bytes([0x00, window_log - 10 << 3]) + zeros * (GIB >> 17) + b"\x01\x00\x00"


def zstd_largest_window() -> bytes:
    return zstd_blocks(27)


def zstd_too_large_window() -> bytes:
    return zstd_blocks(41)


def zstd_liar() -> bytes:
    """Return a zstd frame of a single segment that announces four exbibytes of content."""
    return ZSTD_START + b"\xe0" + struct.pack("<Q", 1 << 62) + zstd_blocks()[6:]


BOMBS = {
    "gzip_bomb": (Compression.GZIP, gzip_bomb),
    "gzip_members": (Compression.GZIP, gzip_members),
    "snappy_blocks": (Compression.SNAPPY, snappy_blocks),
    "snappy_raw": (Compression.SNAPPY, snappy_raw),
    "snappy_liar": (Compression.SNAPPY, snappy_liar),
    "lz4_blocks": (Compression.LZ4, lz4_blocks),
    "lz4_liar": (Compression.LZ4, lz4_liar),
    "zstd_blocks": (Compression.ZSTD, zstd_blocks),
    "zstd_largest_window": (Compression.ZSTD, zstd_largest_window),
    "zstd_too_large_window": (Compression.ZSTD, zstd_too_large_window),
    "zstd_liar": (Compression.ZSTD, zstd_liar),
}


def in_magic(magic: int, kind: Compression, packed: bytes) -> bytes:
    """Return a batch or wrapper around compressed bytes, with a checksum that decoding does not verify."""
    if magic == 2:
        header = bytearray(build_batch([NewRecord(b"")])[:HEADER_BYTES])
        struct.pack_into(">i", header, 8, HEADER_BYTES - PREFIX_BYTES + len(packed))
        header[22] = kind
        return bytes(header) + packed
    times = bytes(8) if magic else b""
    body = struct.pack(">Ibb", 0, magic, kind) + times + struct.pack(">ii", -1, len(packed)) + packed
    return struct.pack(">qi", 0, len(body)) + body


def main() -> None:
    kind, make = BOMBS[sys.argv[1]]
    bombs = [in_magic(magic, kind, make()) for magic in ((2,) if kind == Compression.ZSTD else (0, 1, 2))]
    list(entries.records(build_batch([NewRecord(b"v")], compression=kind)))  # load the libraries before the measurement
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for bomb in bombs:
        try:
            list(entries.records(bomb, LIMIT_BYTES))
        except DecodeError:
            continue
        raise SystemExit("the bomb was decompressed completely")
    sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))


if __name__ == "__main__":
    main()
