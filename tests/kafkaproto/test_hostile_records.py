"""Hostile record batches: truncated, changed, with wrong sizes or huge when decompressed. Only DecodeError is raised."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator

import pytest

from kafkaproto.errors import DecodeError
from kafkaproto.records import batch, entries, message_set
from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.records.columns import columns, keys
from kafkaproto.records.compression import Compression, decompress
from kafkaproto.records.message_set import build_message_set
from kafkaproto.records.verify import problems
from tests.support.codec.bombs import BOMBS, LIMIT_BYTES

MADE = [
    NewRecord(b"one", b"k", 1000, [("h", b"v"), ("null", None)]),
    NewRecord(None, None, 900),
    *(NewRecord(b"value", b"key", 1000) for _ in range(5)),
    NewRecord(b"x" * 70, None, 10**6),
]
SAMPLES = {
    (magic, kind): build_batch(MADE, base_offset=5, compression=kind)
    if magic == 2
    else build_message_set([r._replace(headers=()) for r in MADE], magic=magic, base_offset=5, compression=kind)
    for magic in (0, 1, 2)
    for kind in Compression
    if (magic, kind) not in ((0, Compression.ZSTD), (1, Compression.ZSTD))
}
sample = pytest.mark.parametrize("which", SAMPLES, ids=lambda which: f"magic{which[0]}-{which[1].name}")


def read_in_every_way(data: bytes) -> None:
    for read in (entries.entries, entries.batches):
        try:
            list(read(data))
        except DecodeError:
            continue
    problems(data)  # must not raise
    entries_of = []
    for look in (lambda: [record.key for record in entries.records(data, 10**5)], lambda: keys(data, 10**5)):
        try:
            entries_of.append(look())
        except DecodeError:
            entries_of.append(None)
    if data[16:17] == b"\x02":
        assert entries_of[0] == entries_of[1]
        try:
            column_set = columns(data, 10**5)
        except DecodeError:
            return
        assert len(column_set.offsets) == len(entries_of[0] or [])


@sample
def test_record_batch_truncated_at_any_byte_is_decoded_or_raises_a_decode_error(which: tuple[int, Compression]) -> None:
    data = SAMPLES[which]
    for cut in range(len(data)):
        read_in_every_way(data[:cut])


def test_checksum_check_fails_for_data_too_short_to_contain_a_checksum() -> None:
    for size in range(26):
        assert not message_set.check_crc(bytes(size)) and not batch.check_crc(bytes(size))
        with pytest.raises(DecodeError):
            entries.check_crc(bytes(size))


@sample
def test_bit_flips_and_boundary_values_in_a_batch_are_decoded_or_rejected(which: tuple[int, Compression]) -> None:
    for data in changed(SAMPLES[which], lambda byte: {byte ^ 1 << bit for bit in range(8)} | {0, 0x7F, 0x80, 0xFF}):
        read_in_every_way(data)


@pytest.mark.slow
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_record_data_with_any_byte_changed_is_decoded_or_raises_a_decode_error(magic: int) -> None:
    for data in changed(SAMPLES[magic, Compression.NONE], lambda byte: range(256)):
        try:
            list(entries.entries(data))
        except DecodeError:
            continue


def changed(data: bytes, values: Callable[[int], Iterable[int]]) -> Iterator[bytes]:
    for at, byte in enumerate(data):
        for value in values(byte):
            yield data[:at] + bytes([value]) + data[at + 1 :]


@pytest.mark.parametrize("name", BOMBS)
def test_batch_that_expands_to_a_gibibyte_is_rejected_in_bounded_memory(name: str) -> None:
    """The test runs in a separate process, because Python does not measure the memory of C libraries."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.support.codec.bombs", name], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) * 1024 < 4 * LIMIT_BYTES


def test_generated_decompression_bombs_begin_with_valid_compressed_data() -> None:
    """Otherwise rejecting them would prove nothing: each bomb without its last part is valid and decompresses to zeros."""
    kind, make = BOMBS["zstd_blocks"]
    bomb = make()
    short = bomb[:6] + bomb[6:10] * 8 + bomb[-3:]
    assert decompress(kind, short) == bytes(1 << 20)
    kind, make = BOMBS["lz4_blocks"]
    bomb = make()
    size = int.from_bytes(bomb[7:11], "little")
    assert decompress(kind, bomb[: 11 + size] + bytes(4)) == bytes(1 << 22)
    kind, make = BOMBS["snappy_blocks"]
    bomb = make()
    size = int.from_bytes(bomb[16:20], "big")
    assert decompress(kind, bomb[: 20 + size]) == bytes(1 << 20)
    assert zlib.decompressobj(wbits=31).decompress(BOMBS["gzip_bomb"][1](), 1 << 21) == bytes(1 << 21)


def test_many_small_gzip_members_are_decompressed_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest after each member is copied, so it must not be the whole remaining input."""
    packer = zlib.compressobj(wbits=31)
    member = packer.compress(b"x") + packer.flush()
    copied = 0
    real = zlib.decompressobj

    class Counted:
        def __init__(self, wbits: int) -> None:
            self.real = real(wbits=wbits)

        def decompress(self, data: bytes, limit: int) -> bytes:
            nonlocal copied
            copied += len(data)
            return self.real.decompress(data, limit)

        def __getattr__(self, name: str) -> object:
            return getattr(self.real, name)

    monkeypatch.setattr(zlib, "decompressobj", Counted)
    work = []
    for count in (4000, 8000):
        copied = 0
        assert decompress(Compression.GZIP, member * count) == b"x" * count
        work.append(copied)
    assert work[1] < 2.5 * work[0]
