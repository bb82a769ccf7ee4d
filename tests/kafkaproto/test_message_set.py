"""Messages of magic 0 and 1: bytes, wrappers, offsets, and rejected data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records import message_set
from kafkaproto.records.compression import Compression
from kafkaproto.records.message_set import (
    build_message_set,
    check_crc,
    inner_messages,
    read_header,
    read_message,
    records,
    write_messages,
)
from kafkaproto.records.record import NewRecord, Record
from tests.support.codec.message_sets import with_crc, wrapper

KINDS = [kind for kind in Compression if kind != Compression.ZSTD]
PACKED = KINDS[1:]
SOME = [
    NewRecord(b"one", b"k", 1000),
    NewRecord(None, None, 900),
    NewRecord(b"", b"", 2000),
    NewRecord(b"x" * 300, None, 1500),
]

# key "k", value "v", offset 5; magic 1 with the timestamp 1700000000000
GOLDEN_0 = bytes.fromhex("0000000000000005 00000010 00000000 00 00 00000001 6b 00000001 76".replace(" ", ""))
GOLDEN_1 = bytes.fromhex(
    "0000000000000005 00000018 00000000 01 00 0000018bcfe56800 00000001 6b 00000001 76".replace(" ", "")
)


@pytest.mark.parametrize(("magic", "golden"), [(0, with_crc(GOLDEN_0)), (1, with_crc(GOLDEN_1))])
def test_magic_0_and_1_messages_are_encoded_to_known_bytes_and_decoded_from_them(magic: int, golden: bytes) -> None:
    new_record = NewRecord(b"v", b"k", 1_700_000_000_000)
    assert build_message_set([new_record], magic=magic, base_offset=5) == golden
    assert list(records(golden)) == [Record(5, 1_700_000_000_000 if magic else -1, b"k", b"v", ())]
    assert check_crc(golden) and not check_crc(golden[:-1] + b"w")


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("kind", PACKED, ids=lambda kind: kind.name)
def test_compressed_wrapper_message_has_the_last_offset_and_no_key(magic: int, kind: Compression) -> None:
    data = build_message_set(SOME, magic=magic, base_offset=70, compression=kind)
    outer = read_message(data)
    assert (outer.header.offset, outer.header.last_offset, outer.header.next_offset, outer.key) == (73, 73, 74, None)
    assert outer.header.size == len(data) and outer.header.compression == kind and check_crc(data)
    assert outer.header.timestamp == outer.header.max_timestamp == (2000 if magic else -1)
    inside, positions = inner_messages(outer)
    assert [read_header(inside, pos).offset for pos in positions] == ([0, 1, 2, 3] if magic else [70, 71, 72, 73])
    expected = [Record(70 + i, r.timestamp if magic else -1, r.key, r.value, ()) for i, r in enumerate(SOME)]
    assert list(records(data)) == expected == list(records(memoryview(bytearray(data))))


def test_uncompressed_message_set_has_one_message_per_record() -> None:
    data = build_message_set(SOME, magic=1, base_offset=70)
    offsets = []
    while data:
        header = read_header(data)
        offsets.append(header.offset)
        data = data[header.size :]
    assert offsets == [70, 71, 72, 73]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_log_append_time_is_the_record_timestamp_in_magic_1_but_ignored_in_magic_0(kind: Compression) -> None:
    data = build_message_set(SOME[:1], magic=1, compression=kind, log_append_time_ms=5000)
    assert read_header(data).is_log_append_time
    assert [record.timestamp for record in records(data)] == [5000]
    old = build_message_set(SOME[:1], magic=0, compression=kind, log_append_time_ms=5000)
    assert not read_header(old).is_log_append_time
    assert [record.timestamp for record in records(old)] == [-1]


def test_log_append_time_of_a_wrapper_message_becomes_the_timestamp_of_each_record() -> None:
    inside = build_message_set(SOME, magic=1)
    data = wrapper(inside, magic=1, offset=3, kind=Compression.GZIP, attributes=message_set.LOG_APPEND_TIME)
    assert {record.timestamp for record in records(data)} == {7777}
    plain = wrapper(inside, magic=1, offset=3, kind=Compression.GZIP)
    assert [record.timestamp for record in records(plain)] == [1000, 900, 2000, 1500]


def test_wrong_lz4_header_checksum_is_accepted_in_magic_0_and_rejected_in_magic_1() -> None:
    """The rule is from KIP-57."""
    old, new = (build_message_set(SOME, magic=magic, compression=Compression.LZ4) for magic in (0, 1))
    old_frame, new_frame = read_message(old).value, read_message(new).value
    assert old_frame is not None and new_frame is not None
    assert old_frame[:6] == new_frame[:6] and old_frame[6] != new_frame[6]
    for checksum in (old_frame[6], new_frame[6], 0):
        changed = with_crc(old[:32] + bytes([checksum]) + old[33:])
        assert len(list(records(changed))) == 4
    assert old[26:32] == old_frame[:6]
    broken = with_crc(new[:40] + old_frame[6:7] + new[41:])
    with pytest.raises(DecodeError, match="lz4"):
        list(records(broken))


@pytest.mark.parametrize("magic", [0, 1])
def test_message_set_of_magic_0_or_1_cannot_be_built_with_headers_or_zstd(magic: int) -> None:
    bad: list[tuple[list[NewRecord], dict[str, object], str]] = [
        ([], {}, "at least one"),
        ([NewRecord(b"", headers=[("h", b"")])], {}, "cannot have headers"),
        ([NewRecord(b"", timestamp=-2)], {}, r"at least -1 \(got -2\)"),
        ([NewRecord("text")], {}, "Message"),  # type: ignore[arg-type]
        (SOME, {"compression": Compression.ZSTD}, "zstd"),
        (SOME, {"base_offset": 2**63}, "Message"),
    ]
    for new_records, options, text in bad:
        with pytest.raises(EncodeError, match=text):
            build_message_set(new_records, magic=magic, **options)  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match="must be 0 or 1"):
        build_message_set(SOME, magic=2)


def test_message_set_with_equal_offsets_or_a_gap_above_int32_max_cannot_be_encoded() -> None:
    at = [Record(offset, 0, None, b"", ()) for offset in (5, 5, 2**31 + 5)]
    with pytest.raises(EncodeError, match="offset 5 follows offset 5"):
        write_messages(at[:2], 1, Compression.NONE)
    with pytest.raises(EncodeError, match="differ by at most 2147483647"):
        write_messages(at[1:], 1, Compression.NONE)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("must be 0 or 1", with_crc(GOLDEN_0)[:16] + b"\x02" + GOLDEN_0[17:]),
        ("must be 0 or 1", with_crc(GOLDEN_0)[:16] + b"\xff" + GOLDEN_0[17:]),
        ("at least 14 bytes", GOLDEN_0[:8] + b"\x00\x00\x00\x0d" + GOLDEN_0[12:]),
        ("at least 22 bytes", GOLDEN_1[:8] + b"\x00\x00\x00\x15" + GOLDEN_1[12:]),
        ("at least 14 bytes", GOLDEN_0[:8] + b"\xff\xff\xff\xff" + GOLDEN_0[12:]),
        ("27 are left", GOLDEN_0[:-1]),
        ("Message.timestamp", GOLDEN_1[:20]),
        ("Message.key", GOLDEN_0[:18] + b"\x7f\xff\xff\xff" + GOLDEN_0[22:]),
        ("Message.value", GOLDEN_0[:23] + b"\x7f\xff\xff\xff" + GOLDEN_0[27:]),
        ("Message.value.*length", GOLDEN_0[:18] + b"\x00\x00\x00\x03" + GOLDEN_0[22:]),
        ("must not be null", GOLDEN_0[:17] + b"\x01" + GOLDEN_0[18:23] + b"\xff\xff\xff\xff" + GOLDEN_0[27:]),
    ],
)
def test_invalid_message_of_magic_0_or_1_is_rejected(text: str, data: bytes) -> None:
    with pytest.raises(DecodeError, match=text):
        list(records(data))


def test_decoding_a_zstd_compressed_message_of_magic_1_raises_a_decode_error() -> None:
    data = wrapper(build_message_set(SOME, magic=1), magic=1, offset=3, kind=Compression.ZSTD)
    with pytest.raises(DecodeError, match="zstd"):
        list(records(data))


def test_nested_and_empty_compressed_wrappers_are_rejected() -> None:
    inside = build_message_set(SOME, magic=1, compression=Compression.GZIP)
    with pytest.raises(DecodeError, match="compressed"):
        list(records(wrapper(inside, magic=1, offset=3, kind=Compression.GZIP)))
    for nothing in (b"", b"\x00" * 11, build_message_set(SOME[:1], magic=1)[:-1]):
        with pytest.raises(DecodeError, match="at least one whole message"):
            list(records(wrapper(nothing, magic=1, offset=3, kind=Compression.GZIP)))
    with pytest.raises(DecodeError, match="must have a size of at least"):
        list(records(wrapper(bytes(40), magic=1, offset=3, kind=Compression.GZIP)))


def test_truncated_message_inside_a_wrapper_is_ignored() -> None:
    inside = build_message_set(SOME, magic=1)
    data = wrapper(inside[:-1], magic=1, offset=72, kind=Compression.GZIP)
    assert [record.offset for record in records(data)] == [70, 71, 72]


def test_wrapper_offset_0_in_magic_1_means_that_the_inner_offsets_are_absolute() -> None:
    """Some librdkafka versions sent 0; an offset below the last inner one is invalid."""
    inside = build_message_set(SOME, magic=1)
    for offset, expected in ((0, 0), (3, 0), (10, 7)):
        offsets = [record.offset for record in records(wrapper(inside, magic=1, offset=offset, kind=Compression.GZIP))]
        assert offsets == [expected + i for i in range(4)]
    with pytest.raises(DecodeError, match="must be at least the relative offset of its last inner message, 3"):
        list(records(wrapper(inside, magic=1, offset=2, kind=Compression.GZIP)))


def test_message_set_that_decompresses_to_more_than_the_limit_is_rejected() -> None:
    data = build_message_set([NewRecord(bytes(100_000))], magic=1, compression=Compression.SNAPPY)
    with pytest.raises(DecodeError, match="limit"):
        list(records(data, limit_bytes=100_000))
    assert len(list(records(data, limit_bytes=100_100))) == 1


fields = st.none() | st.binary(max_size=40)
made_records = st.lists(
    st.builds(NewRecord, value=fields, key=fields, timestamp=st.integers(-1, 2**63 - 1), headers=st.just(())),
    min_size=1,
    max_size=20,
)


@given(made_records, st.sampled_from([0, 1]), st.sampled_from(KINDS), st.integers(0, 2**62))
def test_message_set_round_trip_returns_the_records_that_were_built(
    new_records: list[NewRecord], magic: int, kind: Compression, base: int
) -> None:
    data = build_message_set(new_records, magic=magic, base_offset=base, compression=kind)
    decoded_records: list[Record] = []
    while data:
        size = read_header(data).size
        assert check_crc(data[:size])
        decoded_records += records(data[:size])
        data = data[size:]
    assert decoded_records == [
        Record(base + i, r.timestamp if magic else -1, r.key, r.value, ()) for i, r in enumerate(new_records)
    ]
