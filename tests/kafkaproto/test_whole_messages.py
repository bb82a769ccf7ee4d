"""Message classes: encode, decode and JSON; and the record types of coordinators."""

from __future__ import annotations

import pytest

from kafkaproto.coordinator_records import read_record, write_key, write_value
from kafkaproto.data.group_metadata_key import GroupMetadataKey
from kafkaproto.data.offset_commit_key import OffsetCommitKey
from kafkaproto.data.offset_commit_value import OffsetCommitValue
from kafkaproto.errors import DecodeError, EncodeError, UnsupportedVersion
from kafkaproto.messages.fetch import FetchRequest, FetchResponse
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaproto.structs import Whole
from tests.support.codec.catalogue import DATA_ENTRIES, ENTRIES, Entry


def test_message_class_encodes_and_decodes_the_version_given_as_an_argument() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    data = request.encode(9)
    assert MetadataRequest.decode(data + b"more", 9) == (request, len(data))
    assert MetadataRequest.from_json(request.to_json(9), 9) == request
    assert data != request.encode(8)


@pytest.mark.parametrize("entry", [*ENTRIES, *DATA_ENTRIES], ids=lambda entry: entry.id)
def test_every_message_class_returns_its_field_layout_for_each_version(entry: Entry) -> None:
    assert issubclass(entry.layout.cls, Whole)
    assert entry.layout.cls.layout(entry.version) is entry.layout


@pytest.mark.parametrize("version", [-1, 19, 2**40])
def test_error_for_an_unknown_message_version_lists_the_known_versions(version: int) -> None:
    for call in (lambda: FetchRequest().encode(version), lambda: FetchResponse.decode(b"", version)):
        with pytest.raises(UnsupportedVersion, match=rf"Fetch\w+ has no v{version}, only v0 to v18"):
            call()


def test_message_class_raises_errors_that_name_the_invalid_field() -> None:
    with pytest.raises(EncodeError, match="rack_id"):
        FetchRequest(rack_id=7).encode(11)  # type: ignore[arg-type]
    with pytest.raises(DecodeError, match="session_id"):
        FetchResponse.decode(b"\x00" * 7, 11)


def test_consumer_offsets_records_are_decoded_by_their_version_prefix() -> None:
    key, value = OffsetCommitKey("g", "t", 3), OffsetCommitValue(42, 1, "note", 1000)
    assert write_key(key, 1)[:2] == b"\x00\x01" and write_value(value, 3)[:2] == b"\x00\x03"
    assert read_record("__consumer_offsets", write_key(key, 1), write_value(value, 3)) == (key, value)
    assert read_record("__consumer_offsets", write_key(GroupMetadataKey("g"), 2), None) == (GroupMetadataKey("g"), None)


def test_unknown_or_damaged_coordinator_records_are_rejected() -> None:
    key = write_key(OffsetCommitKey("g", "t", 3), 1)
    with pytest.raises(UnsupportedVersion, match="a key of __consumer_offsets has no v99"):
        read_record("__consumer_offsets", b"\x00\x63", None)
    with pytest.raises(UnsupportedVersion, match="OffsetCommitValue has no v9, only v0 to v4"):
        read_record("__consumer_offsets", key, b"\x00\x09")
    with pytest.raises(ValueError, match="topic 'orders' contains no records of a coordinator"):
        read_record("orders", key, None)
    for data in (b"", b"\x00", key[:-1]):
        with pytest.raises(DecodeError):
            read_record("__consumer_offsets", data, None)
