"""Records fields of mixed magics: reading, verification, control batches and conversion."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records import entries
from kafkaproto.records.batch import (
    CONTROL,
    DELETE_HORIZON,
    NewRecord,
    build_batch,
    patch_log_append_time,
    patch_offset_and_epoch,
    read_header,
)
from kafkaproto.records.compression import Compression
from kafkaproto.records.control import (
    ControlRecordType,
    EndOfTransaction,
    build_end_txn_marker,
    control_type,
    read_end_txn_marker,
)
from kafkaproto.records.convert import UnsupportedCompression, down_convert, down_converted, up_convert
from kafkaproto.records.message_set import build_message_set
from kafkaproto.records.record import Record
from kafkaproto.records.verify import problems

MADE = [NewRecord(b"value %d" % i, b"key", 1000 + i) for i in range(3)]


def of_magic(magic: int, base_offset: int, kind: Compression = Compression.NONE) -> bytes:
    if magic == 2:
        return build_batch(MADE, base_offset=base_offset, compression=kind)
    return build_message_set(MADE, magic=magic, base_offset=base_offset, compression=kind)


MIXED = of_magic(0, 0) + of_magic(1, 3, Compression.GZIP) + of_magic(2, 6) + of_magic(1, 9) + of_magic(2, 12)


def marker(offset: int = 0, *, committed: bool = True) -> bytes:
    return build_end_txn_marker(
        committed, producer_id=1, producer_epoch=0, coordinator_epoch=5, timestamp=9, base_offset=offset
    )


def test_buffer_with_batches_of_magic_0_1_and_2_is_decoded_completely() -> None:
    decoded_batches = list(entries.batches(MIXED))
    assert [entry.header.magic for entry in decoded_batches] == [0, 0, 0, 1, 2, 1, 1, 1, 2]
    assert [entry.header.last_offset for entry in decoded_batches] == [0, 1, 2, 5, 8, 9, 10, 11, 14]
    assert b"".join(entry.view for entry in decoded_batches) == MIXED
    assert all(entries.check_crc(entry.view) and not problems(entry.view) for entry in decoded_batches)
    assert [record.offset for record in entries.entries(MIXED)] == list(range(15))


def test_transaction_markers_are_not_returned_as_records() -> None:
    assert [record.offset for record in entries.entries(of_magic(2, 0) + marker(3) + of_magic(0, 4))] == [
        0,
        1,
        2,
        4,
        5,
        6,
    ]


def test_truncated_last_batch_raises_an_error_and_is_not_counted_by_complete_bytes() -> None:
    edges = [0, *(entry.position + entry.header.size for entry in entries.batches(MIXED))]
    for cut in range(len(MIXED) + 1):
        whole = max(edge for edge in edges if edge <= cut)
        assert entries.complete_bytes(MIXED[:cut]) == whole
        if cut != whole:
            with pytest.raises(DecodeError):
                list(entries.batches(MIXED[:cut]))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:16] + b"\x03" + data[17:],
        lambda data: data[:8] + b"\x00\x00\x00\x0d" + data[12:],
        lambda data: data[:8] + b"\xff\xff\xff\xff" + data[12:],
    ],
)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_invalid_magic_values_and_batch_sizes_are_rejected(magic: int, damage: Callable[[bytes], bytes]) -> None:
    damaged = of_magic(1, 0) + damage(of_magic(magic, 3))
    with pytest.raises(DecodeError):
        entries.complete_bytes(damaged)
    with pytest.raises(DecodeError):
        list(entries.batches(damaged))


def test_check_of_a_record_batch_returns_the_path_of_each_invalid_field() -> None:
    good = bytearray(build_batch(MADE, producer_id=1, producer_epoch=0, base_sequence=0))

    def fields_of(data: bytes) -> list[str]:
        return [problem.field for problem in problems(data)]

    def with_field(layout: str, at: int, value: int) -> bytearray:
        changed = bytearray(good)
        struct.pack_into(layout, changed, at, value)
        patch_log_append_time(changed, 5)  # makes the checksum correct again
        return changed

    assert fields_of(good) == []
    assert fields_of(good[:-1] + b"\xff") == ["RecordBatch.crc", "RecordBatch.records[2]"]
    assert fields_of(with_field(">i", 23, 7)) == ["RecordBatch.record_count"]
    assert fields_of(with_field(">i", 23, -1))[:1] == ["RecordBatch.last_offset_delta"]
    assert fields_of(with_field(">i", 53, -1)) == ["RecordBatch.base_sequence"]
    assert fields_of(with_field(">i", 57, 0)) == ["RecordBatch.record_count"] * 2
    assert fields_of(build_batch(MADE, offset_deltas=[0, 2, 3])) == [
        "RecordBatch.record_count",
        "RecordBatch.records[1].offset_delta",
    ]
    assert fields_of(good + b"x") == ["RecordBatch.batch_length"]
    assert fields_of(good[:20]) == ["RecordBatch"]
    many = build_batch(MADE * 100, offset_deltas=[*range(250), *range(251, 301)])
    assert "RecordBatch.records[250].offset_delta" in fields_of(many)
    assert fields_of(marker()) == []


@pytest.mark.parametrize("magic", [0, 1])
def test_check_of_a_compressed_message_set_returns_the_path_of_each_invalid_field(magic: int) -> None:
    from tests.support.codec.message_sets import wrapper

    plain = build_message_set(MADE, magic=magic)

    def fields_of(inside: bytes) -> list[str]:
        return [problem.field for problem in problems(wrapper(inside, magic=magic, offset=2, kind=Compression.GZIP))]

    assert fields_of(plain) == []
    assert fields_of(plain[:-1] + b"?") == ["Message.messages[2].crc"]
    assert fields_of(plain[:7] + b"\x05" + plain[8:])[-1].endswith("offset_delta")
    assert fields_of(build_message_set(MADE, magic=1 - magic))[0] == "Message.messages[0].magic"
    damaged = bytearray(build_message_set(MADE, magic=magic, compression=Compression.GZIP))
    damaged[12] ^= 1
    assert [problem.field for problem in problems(damaged)] == ["Message.crc"]


def test_delete_horizon_replaces_the_base_timestamp_but_no_record_timestamp() -> None:
    """The rule is from KIP-534."""
    data = build_batch(MADE, delete_horizon_ms=50_000)
    header = read_header(data)
    assert header.delete_horizon_ms == header.base_timestamp == 50_000 and header.attributes & DELETE_HORIZON
    assert (header.max_timestamp, [record.timestamp for record in entries.records(data)]) == (1002, [1000, 1001, 1002])
    assert read_header(build_batch(MADE)).delete_horizon_ms is None


@pytest.mark.parametrize("committed", [True, False])
def test_built_transaction_marker_is_decoded_as_commit_or_abort(committed: bool) -> None:
    data = marker(7, committed=committed)
    (record,) = entries.records(data)
    assert read_header(data).is_control and record.offset == 7 and record.timestamp == 9
    assert control_type(record.key) == (ControlRecordType.COMMIT if committed else ControlRecordType.ABORT)
    assert read_end_txn_marker(record) == EndOfTransaction(committed, 5)


def test_invalid_control_records_raise_errors_and_unknown_types_are_read_as_unknown() -> None:
    assert control_type(b"\x00\x00\x00\x63") is ControlRecordType.UNKNOWN
    assert control_type(b"\x00\x07\x00\x01more") is ControlRecordType.COMMIT
    for key in (None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00"):
        with pytest.raises(DecodeError, match="key"):
            control_type(key)
    (record,) = entries.records(marker())
    for changed in (
        record._replace(key=b"\x00\x00\x00\x02"),
        record._replace(value=None),
        record._replace(value=b"\xff\xff\x00\x00\x00\x00"),
        record._replace(value=b"\x00\x00\x00\x00\x00"),
    ):
        with pytest.raises(DecodeError):
            read_end_txn_marker(changed)
    with pytest.raises(EncodeError, match="producer_id"):
        build_end_txn_marker(True, producer_id=-1, producer_epoch=0, coordinator_epoch=0, timestamp=0)


def test_down_conversion_drops_record_headers_and_transaction_markers() -> None:
    new_records = [NewRecord(b"v", b"k", 5, [("h", b"x")])]
    batch = build_batch(new_records, base_offset=9, producer_id=4, producer_epoch=0, base_sequence=0)
    for magic in (0, 1):
        down = down_convert(batch + marker(10), magic)
        assert list(entries.entries(down)) == [Record(9, 5 if magic else -1, b"k", b"v", ())]
    assert down_convert(batch + marker(10), 2) == batch + marker(10)
    assert all(isinstance(piece, memoryview) for piece in down_converted(batch, 2))


def test_down_conversion_drops_uncompressed_records_below_the_fetch_offset() -> None:
    first = build_batch([NewRecord(b"")] * 10)
    second = build_batch([NewRecord(b"")] * 15, base_offset=10)
    for magic in (0, 1):
        offsets = [record.offset for record in entries.entries(down_convert(first + second, magic, 3))]
        assert offsets == list(range(3, 25))
        assert len(list(entries.batches(down_convert(second, magic, 15)))) == 10
        packed = build_batch([NewRecord(b"")] * 10, compression=Compression.GZIP)
        assert len(list(entries.entries(down_convert(packed, magic, 3)))) == 10
        assert down_convert(first, magic, 10) == b""


def test_down_conversion_returns_batches_before_a_zstd_batch_and_then_raises_error() -> None:
    data = of_magic(2, 0, Compression.GZIP) + of_magic(2, 3, Compression.ZSTD)
    pieces = down_converted(data, 1)
    assert len(list(entries.entries(next(pieces)))) == 3
    with pytest.raises(UnsupportedCompression):
        next(pieces)
    assert down_convert(data, 2) == data


def test_up_conversion_assigns_new_offsets_only_if_a_base_offset_is_given() -> None:
    gaps = of_magic(1, 5) + of_magic(1, 20)
    assert [record.offset for record in entries.entries(up_convert(gaps))] == [5, 6, 7, 20, 21, 22]
    converted = up_convert(gaps, base_offset=100)
    assert [record.offset for record in entries.entries(converted)] == list(range(100, 106))
    assert not problems(converted)
    packed = up_convert(of_magic(0, 5, Compression.LZ4))
    assert read_header(packed).compression == Compression.LZ4
    assert list(entries.entries(packed)) == [Record(5 + i, -1, r.key, r.value, ()) for i, r in enumerate(MADE)]


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("at least one message", b""),
        ("only if none of them is compressed", of_magic(1, 0, Compression.GZIP) + of_magic(1, 3)),
        ("must have one magic", of_magic(0, 0) + of_magic(1, 3)),
        ("offsets must increase", of_magic(1, 5) + of_magic(1, 0)),
        ("must be 0 or 1", of_magic(2, 0)),
    ],
)
def test_up_conversion_rejects_empty_unordered_and_mixed_magic_message_sets(text: str, data: bytes) -> None:
    with pytest.raises((EncodeError, DecodeError), match=text):
        up_convert(data)


def test_record_offsets_start_at_40_if_the_base_offset_of_a_batch_is_changed_to_40() -> None:
    data = bytearray(of_magic(2, 0))
    patch_offset_and_epoch(data, 0, 40, 3)
    assert [record.offset for record in entries.entries(data)] == [40, 41, 42]
    assert read_header(data).attributes & CONTROL == 0
