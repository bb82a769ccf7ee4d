"""Compression: the framings of the Java client, limits, damage."""

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
def test_data_survives(kind: Compression, size: int) -> None:
    for data in (random.Random(size).randbytes(size), b"a" * size):
        assert decompress(kind, compress(kind, data)) == data
        assert decompress(kind, memoryview(compress(kind, data))) == data


@pytest.mark.parametrize("kind", PACKED, ids=lambda kind: kind.name)
def test_a_bomb_stops_at_the_limit(kind: Compression) -> None:
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
def test_damaged_data_is_refused_or_read_but_nothing_else(kind: Compression) -> None:
    chance = random.Random(kind)
    data = compress(kind, chance.randbytes(500) + b"abc" * 300)
    for cut in range(len(data)):
        _decompress_or_refuse(kind, data[:cut])
    for _ in range(500):
        at = chance.randrange(len(data))
        _decompress_or_refuse(kind, data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :])


@pytest.mark.parametrize("size", [0, 1, 50, 65_536, 65_537, 300_000])
@pytest.mark.parametrize("fill", [b"a", None], ids=["even", "random"])
def test_an_lz4_frame_has_the_header_and_the_size_of_kafkas(size: int, fill: bytes | None) -> None:
    data = fill * size if fill is not None else random.Random(size).randbytes(size)
    frame = compress(Compression.LZ4, data)
    assert frame.startswith(bytes.fromhex("04224d18604082")) and frame.endswith(bytes(4))
    if fill is None:
        assert len(frame) == 7 + size + 4 * -(-size // 65_536) + 4  # blocks as they are, each with its length
    assert decompress(Compression.LZ4, frame) == data


def _decompress_or_refuse(kind: Compression, data: bytes) -> None:
    try:
        decompress(kind, data, 100_000)
    except DecodeError:
        return


@pytest.mark.parametrize("kind", PACKED, ids=lambda kind: kind.name)
def test_what_is_not_compressed_is_refused(kind: Compression) -> None:
    with pytest.raises(DecodeError, match=kind.name.lower()):
        decompress(kind, b"\xff" * 100)


@pytest.mark.parametrize("kind", [5, 6, 7])
def test_kinds_that_do_not_exist_are_refused(kind: int) -> None:
    with pytest.raises(DecodeError, match="unknown compression kind"):
        decompress(kind, b"data")


def test_snappy_without_javas_stream_around_it_is_read_too() -> None:
    data = b"some words " * 5000
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data
    with pytest.raises(DecodeError, match="limit"):
        decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(data)), 1000)


def test_snappy_blocks_behind_the_end_are_refused() -> None:
    stream = compress(Compression.SNAPPY, b"data" * 100)
    for broken in (stream[:18], stream + b"\x00", stream + b"\x7f\xff\xff\xff", stream + b"\xff\xff\xff\xff"):
        with pytest.raises(DecodeError, match="snappy"):
            decompress(Compression.SNAPPY, broken)


def test_gzip_members_one_after_the_other_are_one() -> None:
    assert decompress(Compression.GZIP, gzip.compress(b"one") + gzip.compress(b"two")) == b"onetwo"


def test_lz4_blocks_do_not_depend_on_each_other() -> None:
    """Kafka's reader wants it so: bit 5 of the frame's flags."""
    assert compress(Compression.LZ4, b"x" * 100_000)[4] & 0x20


def test_linked_lz4_blocks_of_others_are_read() -> None:
    data = b"words and more words " * 20_000
    assert decompress(Compression.LZ4, bytes(cramjam.lz4.compress(data))) == data
