"""Compression: the framings of the Java client, size limits and damaged data."""

from __future__ import annotations

import gzip
import random
import tracemalloc

import cramjam
import pytest

from kafkaproto.errors import DecodeError
from kafkaproto.records.compression import SNAPPY_BLOCK_BYTES, Compression, compress, decompress

KINDS = list(Compression)
PACKED = KINDS[1:]
SIZES = [0, 1, 1000, SNAPPY_BLOCK_BYTES - 1, SNAPPY_BLOCK_BYTES, SNAPPY_BLOCK_BYTES + 1, 300_000]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("size", SIZES)
def test_compressed_data_is_decompressed_into_the_original_bytes(kind: Compression, size: int) -> None:
    for data in (random.Random(size).randbytes(size), b"a" * size):
        assert decompress(kind, compress(kind, data)) == data
        assert decompress(kind, memoryview(compress(kind, data))) == data


@pytest.mark.parametrize("kind", PACKED, ids=lambda kind: kind.name)
def test_decompression_beyond_the_size_limit_raises_an_error_and_uses_little_memory(kind: Compression) -> None:
    limit = 200_000
    for size in (limit + 1, 20 * limit):
        bomb = compress(kind, bytes(size))
        tracemalloc.start()
        try:
            with pytest.raises(DecodeError, match="more than the limit"):
                decompress(kind, bomb, limit)
            assert tracemalloc.get_traced_memory()[1] < 4 * limit
        finally:
            tracemalloc.stop()
    assert decompress(kind, compress(kind, bytes(limit)), limit) == bytes(limit)


@pytest.mark.parametrize("kind", PACKED, ids=lambda kind: kind.name)
def test_damaged_compressed_data_raises_only_decode_errors(kind: Compression) -> None:
    chance = random.Random(kind)
    data = compress(kind, chance.randbytes(500) + b"abc" * 300)
    for cut in range(len(data)):
        _decompress_or_refuse(kind, data[:cut])
    for _ in range(500):
        at = chance.randrange(len(data))
        _decompress_or_refuse(kind, data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :])


@pytest.mark.parametrize("size", [0, 1, 50, 65_536, 65_537, 300_000])
@pytest.mark.parametrize("fill", [b"a", None], ids=["even", "random"])
def test_lz4_frame_has_kafkas_header_bytes_and_64_kib_blocks(size: int, fill: bytes | None) -> None:
    data = fill * size if fill is not None else random.Random(size).randbytes(size)
    frame = compress(Compression.LZ4, data)
    assert frame.startswith(bytes.fromhex("04224d18604082")) and frame.endswith(bytes(4))
    if fill is None:
        assert len(frame) == 7 + size + 4 * -(-size // 65_536) + 4  # uncompressed blocks, each with its length
    assert decompress(Compression.LZ4, frame) == data


def _decompress_or_refuse(kind: Compression, data: bytes) -> None:
    try:
        decompress(kind, data, 100_000)
    except DecodeError:
        return


@pytest.mark.parametrize("kind", PACKED, ids=lambda kind: kind.name)
def test_invalid_compressed_data_raises_a_decode_error_that_names_the_compression(kind: Compression) -> None:
    with pytest.raises(DecodeError, match=kind.name.lower()):
        decompress(kind, b"\xff" * 100)


@pytest.mark.parametrize("kind", [5, 6, 7])
def test_decompressing_a_batch_with_an_unknown_compression_type_is_rejected(kind: int) -> None:
    with pytest.raises(DecodeError, match="unknown compression type"):
        decompress(kind, b"data")


def test_snappy_data_without_the_java_stream_header_can_be_decompressed() -> None:
    data = b"some words " * 5000
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data
    with pytest.raises(DecodeError, match="limit"):
        decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(data)), 1000)


def test_invalid_trailing_snappy_blocks_are_rejected() -> None:
    stream = compress(Compression.SNAPPY, b"data" * 100)
    for broken in (stream[:18], stream + b"\x00", stream + b"\x7f\xff\xff\xff", stream + b"\xff\xff\xff\xff"):
        with pytest.raises(DecodeError, match="snappy"):
            decompress(Compression.SNAPPY, broken)


def test_concatenated_gzip_members_are_decompressed_into_one_value() -> None:
    assert decompress(Compression.GZIP, gzip.compress(b"one") + gzip.compress(b"two")) == b"onetwo"


def test_lz4_frames_are_written_with_independent_blocks() -> None:
    """Kafka's reader requires it: bit 5 of the frame's flags."""
    assert compress(Compression.LZ4, b"x" * 100_000)[4] & 0x20


def test_lz4_frames_with_linked_blocks_can_be_decompressed() -> None:
    data = b"words and more words " * 20_000
    assert decompress(Compression.LZ4, bytes(cramjam.lz4.compress(data))) == data
