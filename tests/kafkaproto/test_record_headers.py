"""Scanning batches by their headers finds all complete batches and reads no more than needed."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.errors import DecodeError
from kafkaproto.records import entries
from kafkaproto.records.batch import NewRecord, batches, build_batch, complete_bytes
from kafkaproto.records.compression import Compression
from kafkaproto.records.headers import BATCHES, ENTRIES, HEADER_BYTES, MESSAGES, batch_bytes, in_memory, walk_headers
from kafkaproto.records.message_set import build_message_set
from kafkaproto.trace.cutting import batch_heads


def batch(value_bytes: int) -> bytes:
    return build_batch([NewRecord(b"v" * value_bytes, timestamp=1)])


def message(magic: int) -> bytes:
    return build_message_set([NewRecord(b"value", timestamp=1)], magic=magic, compression=Compression.NONE)


def whole_batches(data: bytes, kinds: dict[int, int]) -> list[tuple[int, int]]:
    """Return position and size of each batch, found by a simple loop."""
    complete, at = [], 0
    while len(data) - at >= 17:
        size = struct.unpack_from(">i", data, at + 8)[0] + 12
        if data[at + 16] not in kinds or size < kinds[data[at + 16]] or size > len(data) - at:
            break
        complete.append((at, size))
        at += size
    return complete


SOUND = [batch(0), batch(1), batch(100), batch(9000), message(0), message(1)]
PIECES = st.one_of(
    st.sampled_from(SOUND),
    st.binary(max_size=80),
    # a header with a length and any magic, followed by some bytes
    st.builds(
        lambda length, magic, rest: struct.pack(">qiiB", 0, length, 0, magic) + rest,
        st.integers(-20, 90),
        st.integers(0, 3),
        st.binary(max_size=100),
    ),
)


@given(st.lists(PIECES, max_size=6), st.integers(0, 200), st.sampled_from([BATCHES, MESSAGES, ENTRIES]))
def test_batch_header_reader_finds_all_complete_batches_in_memory_and_in_files(
    pieces: list[bytes], cut_off: int, kinds: dict[int, int]
) -> None:
    data = b"".join(pieces)
    data = data[: max(0, len(data) - cut_off)]
    expected = whole_batches(data, kinds)
    assert [(at, size) for at, size, _, _ in walk_headers(in_memory(data), 0, len(data), kinds)] == expected
    before = b"front"

    def read(position: int, size: int) -> bytes:
        return (before + data + b"behind" * 20)[position : position + size]

    for first_read_bytes in (HEADER_BYTES, 1000):
        heads = list(walk_headers(read, 5, 5 + len(data), kinds, first_read_bytes))
        assert [(at - 5, size) for at, size, _, _ in heads] == expected
        for position, _, buffer, at in heads:
            head = data[position - 5 :][: kinds[data[position - 5 + 16]]]
            assert bytes(buffer[at : at + len(head)]) == head
    first = expected[0][1] if expected else None
    assert batch_bytes(data, 0, len(data), kinds) == first


def test_batch_header_scan_reads_only_the_headers_of_large_batches() -> None:
    data = b"".join([batch(20_000)] * 50)
    read_bytes = 0

    def read(position: int, size: int) -> bytes:
        nonlocal read_bytes
        read_bytes += size
        return data[position : position + size]

    assert len(list(walk_headers(read, 0, len(data)))) == 50
    assert read_bytes == 50 * HEADER_BYTES


def test_batch_header_scan_of_small_batches_reads_about_60_kb_at_a_time() -> None:
    data = b"".join([batch(10)] * 5000)
    reads = 0

    def read(position: int, size: int) -> bytes:
        nonlocal reads
        reads += 1
        return data[position : position + size]

    assert len(list(walk_headers(read, 0, len(data)))) == 5000
    assert reads <= 2 + len(data) // 60_000


def test_batch_header_scan_stops_at_the_end_of_a_truncated_file() -> None:
    data = batch(10) * 3
    truncated = data[: len(data) - len(batch(10)) - 30]
    heads = list(walk_headers(lambda position, size: truncated[position : position + size], 0, len(data)))
    assert [at for at, _, _, _ in heads] == [0]


@given(st.lists(PIECES, max_size=5), st.integers(0, 100))
def test_batch_header_scan_rejects_damaged_batches_instead_of_skipping_them(pieces: list[bytes], cut_off: int) -> None:
    """A complete but damaged batch must not be mistaken for a truncated one."""
    data = b"".join(pieces)
    data = data[: max(0, len(data) - cut_off)]
    for complete, walked, kinds in (
        (complete_bytes, batches, BATCHES),
        (entries.complete_bytes, entries.batches, ENTRIES),
    ):
        try:
            end = complete(data)
        except DecodeError:
            with pytest.raises(DecodeError):
                list(walked(data))
            continue
        heads = list(walked(data[:end]))
        assert sum(head.header.size for head in heads) == end
        size = batch_bytes(data, end, 1 << 31, kinds)
        assert len(data) - end < HEADER_BYTES or size is None or size > len(data) - end


def test_headers_of_record_batches_and_legacy_messages_are_returned_without_records() -> None:
    data = batch(10) + batch(9000) + message(1) + message(0)
    heads = batch_heads(data + batch(10)[:70])
    assert heads.startswith(batch(10)[:HEADER_BYTES] + batch(9000)[:HEADER_BYTES] + message(1)[:26])
    assert batch_heads(message(1) + batch(10)) == message(1)[:26]
