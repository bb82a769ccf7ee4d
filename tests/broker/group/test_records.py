"""The records of `__consumer_offsets`: their bytes, and what reading them back gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.broker.group.offsets import NO_TOPIC_ID, CommittedOffset
from kafkaproto.broker.group.records import (
    KAFKA_3_9,
    KAFKA_4_1,
    GroupRecord,
    OffsetRecord,
    RecordVersions,
    StoredGroup,
    StoredMember,
    group_entry,
    offset_entry,
    parse,
)
from kafkaproto.coordinator_records import write_key, write_value
from kafkaproto.data.share_group_metadata_key import ShareGroupMetadataKey
from kafkaproto.data.share_group_metadata_value import ShareGroupMetadataValue
from kafkaproto.errors import DecodeError

TIME_MS = 0x0102030405060708
KEY = bytes.fromhex("0001 0001 67 0001 74 00000000")

names = st.text(st.characters(codec="utf-8"), max_size=20)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(0, 2**63 - 1)
offsets = st.builds(CommittedOffset, int64, int32, names, int64, st.none(), st.binary(min_size=16, max_size=16))
members = st.builds(
    StoredMember,
    names,
    st.none() | names,
    names,
    names,
    st.integers(0, 2**31 - 1),
    int32,
    st.binary(max_size=20),
    st.binary(max_size=20),
)
groups = st.builds(
    StoredGroup, names, int32, st.none() | names, st.none() | names, int64, st.lists(members, max_size=3).map(tuple)
)


@pytest.mark.rule("GO-5", "GO-6", "SN-25")
@pytest.mark.parametrize(
    ("versions", "value"),
    [
        (KAFKA_3_9, "0003 0000000000000005 ffffffff 0001 6d 0102030405060708"),
        (KAFKA_4_1, "0004 0000000000000005 ffffffff 02 6d 0102030405060708 00"),
    ],
    ids=["3.9", "4.1"],
)
def test_stored_offset_has_record_version_3_in_kafka_3_9_and_version_4_in_kafka_4_1(
    versions: RecordVersions, value: str
) -> None:
    committed = CommittedOffset(5, -1, "m", TIME_MS)
    assert offset_entry("g", ("t", 0), committed, versions) == (KEY, bytes.fromhex(value))
    assert offset_entry("g", ("t", 0), None, versions) == (KEY, None)
    assert parse(KEY, None) == OffsetRecord("g", ("t", 0), None)


@pytest.mark.rule("GO-6", "GO-34")
def test_topic_id_of_a_committed_offset_is_stored_only_in_record_version_4() -> None:
    committed = CommittedOffset(5, -1, "m", TIME_MS, None, bytes(range(16)))
    key, value = offset_entry("g", ("t", 0), committed, KAFKA_4_1)
    assert value == bytes.fromhex("0004 0000000000000005 ffffffff 02 6d 0102030405060708 01 00 10") + bytes(range(16))
    assert parse(key, value) == OffsetRecord("g", ("t", 0), committed)
    assert parse(*offset_entry("g", ("t", 0), committed, KAFKA_3_9)) == OffsetRecord(
        "g", ("t", 0), committed._replace(topic_id=NO_TOPIC_ID)
    )


def test_committed_offset_with_its_own_expiry_time_is_stored_as_record_version_1() -> None:
    committed = CommittedOffset(5, 7, "m", TIME_MS, TIME_MS + 1)
    key, value = offset_entry("g", ("t", 0), committed, KAFKA_3_9)
    assert value is not None
    assert value.hex() == "0001000000000000000500016d01020304050607080102030405060709"
    assert parse(key, value) == OffsetRecord("g", ("t", 0), committed._replace(leader_epoch=-1))


@given(names, names, st.integers(0, 2**31 - 1), offsets, st.sampled_from([KAFKA_3_9, KAFKA_4_1]))
def test_record_of_a_committed_offset_is_unchanged_after_encoding_and_decoding(
    group: str, topic: str, index: int, committed: CommittedOffset, versions: RecordVersions
) -> None:
    entry = offset_entry(group, (topic, index), committed, versions)
    stored = committed if versions == KAFKA_4_1 else committed._replace(topic_id=NO_TOPIC_ID)
    assert parse(*entry) == OffsetRecord(group, (topic, index), stored)


@given(names, groups, st.sampled_from([3, 4]))
def test_record_of_a_classic_group_is_unchanged_after_encoding_and_decoding(
    group_id: str, group: StoredGroup, version: int
) -> None:
    entry = group_entry(group_id, group, RecordVersions(3, version))
    assert parse(*entry) == GroupRecord(group_id, group)


@pytest.mark.rule("GO-7")
def test_empty_classic_group_is_stored_with_null_protocol_and_leader() -> None:
    key, value = group_entry("g", StoredGroup("consumer", 2, None, None, TIME_MS), KAFKA_3_9)
    assert key == bytes.fromhex("0002 0001 67")
    assert value is not None
    assert value.hex() == "00030008" + b"consumer".hex() + "00000002ffffffff010203040506070800000000"


def test_stored_member_without_rebalance_timeout_uses_the_session_timeout_instead() -> None:
    member = StoredMember("m", None, "c", "/h", -1, 9000, b"s", b"a")
    group = StoredGroup("consumer", 1, "range", "m", -1, (member,))
    _, value = group_entry("g", group, RecordVersions(3, 0))
    parsed = parse(write_key_of("g"), value)
    assert isinstance(parsed, GroupRecord) and parsed.group is not None
    assert parsed.group.members[0].rebalance_timeout_ms == 9000


def write_key_of(group_id: str) -> bytes:
    return group_entry(group_id, None, KAFKA_3_9)[0]


def test_group_records_of_unknown_types_and_newer_versions_are_skipped() -> None:
    key = write_key(ShareGroupMetadataKey("g"), 11)
    assert parse(key, write_value(ShareGroupMetadataValue(epoch=1), 0)) is None
    assert parse(b"\x7f\xff", b"\x00\x00") is None
    assert parse(KEY, b"\x7f\xff") is None


@pytest.mark.parametrize("key", [b"", b"\x00", KEY[:-1], KEY[:5]])
def test_decoding_a_damaged_group_record_raises_a_decode_error(key: bytes) -> None:
    with pytest.raises(DecodeError):
        parse(key, None)
