"""Record batches: headers, patching, records, and rejected bytes."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest
from crc32c import crc32c

from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records.batch import (
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    NewRecord,
    Record,
    batches,
    build_batch,
    check_crc,
    complete_bytes,
    patch_log_append_time,
    patch_offset_and_epoch,
    read_header,
    records,
)
from kafkaproto.records.compression import Compression
from kafkaproto.records.varint import read_varint, varint

KINDS = list(Compression)
SOME = [
    NewRecord(b"one", key=b"k", timestamp=1000, headers=[("h", b"v"), ("null", None), ("", b"")]),
    NewRecord(None, timestamp=900),
    NewRecord(b"", key=b"", timestamp=2000),
    NewRecord(b"x" * 1000, timestamp=1000),
]

# One record, key "k", value "v", one header, written byte by byte.
GOLDEN = bytes.fromhex(
    "0000000000000005 0000003e 00000002 02 00806fa9 0000 00000000"
    "0000018bcfe56800 0000018bcfe56800 ffffffffffffffff ffff ffffffff 00000001"
    "18 00 00 00 02 6b 02 76 02 02 68 02 77".replace(" ", "")
)


def test_record_batch_is_encoded_to_known_bytes_and_decoded_from_them() -> None:
    record = NewRecord(b"v", key=b"k", timestamp=1_700_000_000_000, headers=[("h", b"w")])
    assert build_batch([record], base_offset=5, leader_epoch=2) == GOLDEN
    assert list(records(GOLDEN)) == [Record(5, 1_700_000_000_000, b"k", b"v", (("h", b"w"),))]
    assert struct.unpack_from(">I", GOLDEN, 17)[0] == crc32c(GOLDEN[21:]) and check_crc(GOLDEN)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_records_survive_a_round_trip_in_every_compression(kind: Compression) -> None:
    data = build_batch(SOME, base_offset=70, compression=kind)
    assert read_header(data).compression == kind and check_crc(data)
    expected = [Record(70 + i, r.timestamp, r.key, r.value, tuple(r.headers)) for i, r in enumerate(SOME)]
    assert list(records(data)) == expected
    assert list(records(memoryview(bytearray(data)))) == expected


def test_header_fields_of_a_built_batch_are_read_back_unchanged() -> None:
    data = build_batch(
        SOME,
        base_offset=70,
        leader_epoch=3,
        producer_id=9,
        producer_epoch=1,
        base_sequence=40,
        attributes=TRANSACTIONAL | CONTROL,
    )
    header = read_header(b"before" + data, 6)
    assert (header.base_offset, header.last_offset, header.next_offset) == (70, 73, 74)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, 40)
    assert (header.base_timestamp, header.max_timestamp, header.record_count) == (1000, 2000, 4)
    assert (header.size, header.partition_leader_epoch, header.magic) == (len(data), 3, 2)
    assert header.is_transactional and header.is_control and header.has_producer_id and not header.is_log_append_time
    plain = read_header(build_batch([NewRecord(b"")]))
    assert (plain.producer_id, plain.producer_epoch, plain.base_sequence) == (-1, -1, -1)
    assert not (plain.is_transactional or plain.is_control or plain.has_producer_id)


def test_patching_base_offset_and_leader_epoch_keeps_the_checksum_valid() -> None:
    data = bytearray(b"??" + build_batch(SOME) + b"??")
    patch_offset_and_epoch(data, 2, 2**50, 77)
    batch = memoryview(data)[2:-2]
    header = read_header(batch)
    assert (header.base_offset, header.partition_leader_epoch) == (2**50, 77)
    assert check_crc(batch) and data.startswith(b"??") and data.endswith(b"??")
    assert next(records(batch)).offset == 2**50


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_patching_log_append_time_sets_all_record_timestamps_and_a_new_checksum(kind: Compression) -> None:
    data = bytearray(build_batch(SOME, compression=kind))
    before = read_header(data).crc
    patch_log_append_time(memoryview(data), 5_000)
    header = read_header(data)
    assert header.is_log_append_time and header.max_timestamp == 5_000 and header.crc != before and check_crc(data)
    assert {record.timestamp for record in records(data)} == {5_000}
    assert header.compression == kind


def test_batch_checksum_detects_a_change_of_any_byte_from_the_attributes_to_the_end() -> None:
    data = build_batch(SOME)
    for at in range(len(data)):
        damaged = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
        assert check_crc(damaged) == (at < 17)


def test_batches_function_returns_memoryviews_of_the_buffer_and_copies_no_bytes() -> None:
    parts = [build_batch(SOME[:n], base_offset=n, compression=kind) for n, kind in zip((1, 2, 3), KINDS, strict=False)]
    buffer = bytearray(b"".join(parts))
    batch_views = list(batches(buffer))
    assert [bytes(batch.view) for batch in batch_views] == parts
    assert [batch.position for batch in batch_views] == [0, len(parts[0]), len(parts[0] + parts[1])]
    assert all(batch.view.obj is buffer for batch in batch_views)
    assert list(batches(b"")) == []


def test_incomplete_last_batch_raises_a_decode_error_after_the_complete_batch() -> None:
    whole = build_batch(SOME) + build_batch(SOME)
    for cut in range(1, len(whole) // 2):
        assert complete_bytes(whole[:-cut]) == len(whole) // 2
        whole_batches = batches(whole[:-cut])
        next(whole_batches)
        with pytest.raises(DecodeError, match="RecordBatch"):
            next(whole_batches)
    assert complete_bytes(whole) == len(whole) and complete_bytes(b"") == 0


@pytest.mark.parametrize(
    ("path", "damage"),
    [
        ("RecordBatch.magic", lambda data: data[:16] + b"\x01" + data[17:]),
        ("RecordBatch.magic", lambda data: data[:16] + b"\x00" + data[17:]),
        ("RecordBatch.magic", lambda data: data[:16] + b"\xff" + data[17:]),
        ("RecordBatch.batch_length", lambda data: data[:8] + b"\x00\x00\x00\x30" + data[12:]),
        ("RecordBatch.batch_length", lambda data: data[:8] + b"\xff\xff\xff\xff" + data[12:]),
        ("RecordBatch", lambda data: data[:60]),
        ("RecordBatch", lambda data: b""),
    ],
)
def test_invalid_batch_header_is_rejected(path: str, damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(DecodeError) as error:
        read_header(damage(build_batch(SOME)))
    assert error.value.path == path


@pytest.mark.parametrize(
    ("count", "text"),
    [(3, "must end after 3 records"), (5, r"records\[4\]"), (-1, "must end after"), (2**31 - 1, r"\[4\]")],
)
def test_wrong_record_count_in_a_batch_is_rejected(count: int, text: str) -> None:
    data = bytearray(build_batch(SOME))
    struct.pack_into(">i", data, 57, count)
    with pytest.raises(DecodeError, match=text):
        list(records(data))


@pytest.mark.parametrize(
    ("text", "payload"),
    [
        ("the record takes 70 bytes", b"\x8c\x01" + b"\x00" * 12),
        ("the record takes -1 bytes", b"\x01"),
        ("is cut off", b"\x0c\x00\x00\x00\x64\x00\x00"),
        (
            "has no header count: it ends at byte 7, but the count would begin at byte 8",
            b"\x0c\x00\x00\x00\x01\x04\x00\x00\x00\x00",
        ),
        ("32 bits", b"\x18\x00\x00\x80\x80\x80\x80\x10\x01\x01\x00\x00\x00"),
        ("headers", b"\x0c\x00\x00\x00\x01\x01\x7e"),
        ("headers", b"\x0c\x00\x00\x00\x01\x01\x01"),
        ("key of header 0 must not be null", b"\x0e\x00\x00\x00\x01\x01\x02\x01"),
        (
            "must end at byte 8, as its length says, but its last field ends at byte 7",
            b"\x0e\x00\x00\x00\x01\x01\x00\x00",
        ),
        ("at most 10 bytes", b"\x40\x00" + b"\xff" * 31),
        ("64 bits", b"\x40\x00" + b"\xff" * 9 + b"\x7f" + b"\x00" * 21),
    ],
)
def test_error_for_a_damaged_record_in_a_batch_contains_the_index_of_the_record(text: str, payload: bytes) -> None:
    with pytest.raises(DecodeError, match=text) as error:
        list(records(with_payload(payload)))
    assert "RecordBatch.records[0]" in str(error.value)


def with_payload(payload: bytes, count: int = 1) -> bytes:
    """Return a batch around bytes that need not be valid records."""
    header = bytearray(build_batch([NewRecord(b"")])[:HEADER_BYTES])
    struct.pack_into(">i", header, 8, HEADER_BYTES - 12 + len(payload))  # batchLength
    struct.pack_into(">i", header, HEADER_BYTES - 4, count)  # recordsCount
    return bytes(header) + payload


def test_records_before_a_damaged_record_are_decoded_before_the_error_is_raised() -> None:
    good = build_batch(SOME[:1])[HEADER_BYTES:]
    decoded_records = records(with_payload(good + b"\x01", count=2))
    assert next(decoded_records).value == b"one"
    with pytest.raises(DecodeError, match=r"records\[1\]"):
        next(decoded_records)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_damaged_batches_raise_only_decode_errors(kind: Compression) -> None:
    chance = random.Random(kind)
    data = build_batch(SOME * 3, compression=kind)
    for _ in range(400):
        at = chance.randrange(len(data))
        damaged = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        read_or_refuse(damaged if chance.random() < 0.8 else damaged[:at])


def read_or_refuse(data: bytes) -> None:
    try:
        for batch in batches(data):
            list(records(batch.view, limit_bytes=100_000))
    except DecodeError:
        return


def test_invalid_records_cannot_be_built_into_a_batch() -> None:
    for bad in ([], [NewRecord("text")], [NewRecord(b"", timestamp=2**63)], [NewRecord(b"", headers=[(b"k", b"")])]):
        with pytest.raises(EncodeError):
            build_batch(bad)  # type: ignore[arg-type]
    with pytest.raises(EncodeError):
        build_batch(SOME, base_offset=2**63)
    with pytest.raises(EncodeError):
        build_batch([NewRecord(b"", timestamp=0), NewRecord(b"", timestamp=-(2**70))])


def test_control_and_log_append_time_flags_are_stored_in_batch_attributes() -> None:
    header = read_header(build_batch(SOME, attributes=CONTROL | LOG_APPEND_TIME, compression=Compression.ZSTD))
    assert header.attributes == CONTROL | LOG_APPEND_TIME | Compression.ZSTD


@pytest.mark.parametrize("value", [0, -1, 1, 63, 64, -64, -65, 2**31, -(2**31), 2**63 - 1, -(2**63)])
def test_varints_use_zigzag_encoding(value: int) -> None:
    assert read_varint(varint(value) + b"\xff", 0) == (value, len(varint(value)))
    assert varint(value)[0] & 1 == (value < 0)
