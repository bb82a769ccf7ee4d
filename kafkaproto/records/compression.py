"""The compression kinds of record batches, in the framings that Kafka's Java client writes.

Decompressing stops at a limit, because a few kilobytes on the wire can expand to gigabytes. This module does not
depend on the format of records.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from mmap import mmap

from kafkaproto.errors import DecodeError

Buffer = bytes | bytearray | memoryview

DEFAULT_LIMIT_BYTES = 128 * 1024 * 1024
"""The default limit on decompressed bytes, larger than any batch that a broker with usual settings accepts."""

LZ4_DEFAULT_LEVEL, LZ4_LEAST_HC_LEVEL = 9, 3
"""Two levels of lz4 in Kafka (KIP-390): the default level, which selects the fast compressor, and the lowest level of the slow one.

The slow compressor has high compression. It serves all levels except 9, the default; it treats levels 1 and 2 as level 3.
"""
ZSTD_DEFAULT_LEVEL = 3
GZIP_WINDOW = 31  # zlib's `wbits` for a gzip header and the largest window
GZIP_FIRST_PIECE_BYTES = 16 * 1024

# snappy-java's stream: a magic, two version numbers, then blocks, each preceded by its length.
SNAPPY_MAGIC = b"\x82SNAPPY\x00"
SNAPPY_HEADER = SNAPPY_MAGIC + struct.pack(">ii", 1, 1)
SNAPPY_BLOCK_BYTES = 32 * 1024
LZ4_HEADER = bytes.fromhex("04224d18604082")
"""The header of an lz4 frame of independent blocks of at most 64 KiB, without checksums."""


class Compression(IntEnum):
    """The compression kind of a batch: the lowest three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(kind: Compression, data: bytes, level: int | None = None) -> bytes:
    """Return the compressed records of a batch.

    level: the compression level of gzip (1 to 9, -1 for zlib's default), lz4 (1 to 17) or zstd (-131072 to 22); None for Kafka's default level. Other
    kinds have no levels.
    """
    match kind:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            packer = zlib.compressobj(level=zlib.Z_DEFAULT_COMPRESSION if level is None else level, wbits=GZIP_WINDOW)
            return packer.compress(data) + packer.flush()
        case Compression.SNAPPY:
            return _compress_snappy(data)
        case Compression.LZ4:
            return _compress_lz4(data, level)
        case Compression.ZSTD:
            import cramjam

            return bytes(cramjam.zstd.compress(data, level=ZSTD_DEFAULT_LEVEL if level is None else level))


def decompress(kind: int, data: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """Return the decompressed records of a batch.

    Raises DecodeError if the kind is unknown, or if the data is damaged or expands to more than ``limit_bytes``. The limit does not apply to
    uncompressed data.
    """
    match kind:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            return _decompress_gzip(bytes(data), limit_bytes)
        case Compression.SNAPPY:
            return _decompress_snappy(bytes(data), limit_bytes)
        case Compression.LZ4:
            import cramjam

            return _decompress_into(cramjam.lz4.decompress_into, bytes(data), limit_bytes, "lz4")
        case Compression.ZSTD:
            import cramjam

            return _decompress_into(cramjam.zstd.decompress_into, bytes(data), limit_bytes, "zstd")
    raise DecodeError(
        "RecordBatch.attributes", 0, f"unknown compression type {kind}; known types are 0 (none) to 4 (zstd)"
    )


def _compress_lz4(data: bytes, level: int | None) -> bytes:
    import cramjam

    library_level = 1 if level is None or level == LZ4_DEFAULT_LEVEL else max(level, LZ4_LEAST_HC_LEVEL)

    # Kafka's reader rejects frames whose blocks depend on each other (KafkaLZ4BlockInputStream)
    packer = cramjam.lz4.Compressor(level=library_level, content_checksum=False, block_linked=False)
    packer.compress(data)
    return _without_block_checksums(bytes(packer.finish()))


def _without_block_checksums(frame: bytes) -> bytes:
    """Return an lz4 frame without its block checksums, because Kafka's frames have none.

    frame: a frame made by the package cramjam, which always adds a checksum of four bytes to each block.
    """
    out = bytearray(LZ4_HEADER)
    at = len(LZ4_HEADER)
    while size := int.from_bytes(frame[at : at + 4], "little") & 0x7FFFFFFF:
        out += frame[at : at + 4 + size]
        at += 4 + size + 4
    return bytes(out + bytes(4))


def _compress_snappy(data: bytes) -> bytes:
    import cramjam

    out = bytearray(SNAPPY_HEADER)
    for start in range(0, len(data), SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + SNAPPY_BLOCK_BYTES]))
        out += struct.pack(">i", len(block)) + block
    return bytes(out)


def _decompress_snappy(data: bytes, limit_bytes: int) -> bytes:
    if not data.startswith(SNAPPY_MAGIC):
        return _snappy_block(data, limit_bytes)
    out = bytearray()
    pos = 0
    while pos < len(data):
        if data.startswith(SNAPPY_MAGIC, pos):  # Java's reader accepts concatenated streams, too
            if len(data) - pos < len(SNAPPY_HEADER):
                raise _damaged(
                    "snappy",
                    f"the header of a stream takes {len(SNAPPY_HEADER)} bytes, but only {len(data) - pos} are left",
                )
            pos += len(SNAPPY_HEADER)
            continue
        if len(data) - pos < 4:
            raise _damaged("snappy", f"the length of a block takes 4 bytes, but only {len(data) - pos} are left")
        (size,) = struct.unpack_from(">i", data, pos)
        pos += 4
        if not 0 <= size <= len(data) - pos:
            raise _damaged("snappy", f"a block announces {size} bytes, but only {len(data) - pos} are left")
        out += _snappy_block(data[pos : pos + size], limit_bytes - len(out))
        pos += size
    return bytes(out)


def _snappy_block(block: bytes, limit_bytes: int) -> bytes:
    import cramjam

    try:
        if cramjam.snappy.decompress_raw_len(block) > limit_bytes:
            raise _too_large("snappy")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise _damaged("snappy", error) from None


def _decompress_gzip(data: bytes, limit_bytes: int) -> bytes:
    """Decompress all gzip members in order, as Java's reader does.

    The input is passed in pieces that double in size. A `decompressobj` copies all input after the end of its member: if it received the whole input,
    many small members would take quadratic time. Raises DecodeError if the data is damaged or larger than `limit_bytes` after decompression.
    """
    out = bytearray()
    pos = 0
    while pos < len(data):
        unpacker = zlib.decompressobj(wbits=GZIP_WINDOW)
        piece_bytes = GZIP_FIRST_PIECE_BYTES
        while not unpacker.eof:
            piece = data[pos : pos + piece_bytes]
            if not piece:
                raise _damaged("gzip", "the data ends in the middle of a gzip stream, so bytes are missing")
            try:
                out += unpacker.decompress(piece, limit_bytes - len(out) + 1)
            except zlib.error as error:
                raise _damaged("gzip", error) from None
            if len(out) > limit_bytes:
                raise _too_large("gzip")
            pos += len(piece) - len(unpacker.unused_data)
            piece_bytes *= 2
    return bytes(out)


def _decompress_into(unpack: Callable[[bytes, mmap], int], data: bytes, limit_bytes: int, name: str) -> bytes:
    """Decompress `data` with `unpack` into a memory mapping of fixed size, so that damaged data cannot take more memory.

    The mapping has `limit_bytes` bytes, but the kernel allocates a page of it only when the page is first written. So a high limit takes no memory
    for small data. Raises DecodeError if the data is damaged or larger than `limit_bytes` after decompression.

    unpack: a function that decompresses its first argument into the second, and returns the number of decompressed bytes. name: the compression
    kind, for errors.
    """
    import cramjam

    with mmap(-1, max(1, limit_bytes)) as buffer:
        try:
            return buffer[: unpack(data, buffer)]
        except cramjam.DecompressionError as error:
            reason = f"the data cannot be decompressed, or it takes more than the limit of {limit_bytes} bytes: {error}"
    raise _damaged(name, reason)


def _too_large(name: str) -> DecodeError:
    return DecodeError("RecordBatch.records", 0, f"the {name} data decompresses to more than the limit")


def _damaged(name: str, reason: object) -> DecodeError:
    return DecodeError("RecordBatch.records", 0, f"the {name} data is damaged: {reason}")
