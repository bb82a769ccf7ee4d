"""Values of unexpected types: the codec still raises EncodeError or DecodeError with the path of the field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkaproto.coordinator_records import read_record, write_key, write_value
from kafkaproto.data.offset_commit_key import OffsetCommitKey
from kafkaproto.data.offset_commit_value import OffsetCommitValue
from kafkaproto.errors import LONGEST_SHOWN, DecodeError, EncodeError, UnsupportedVersion
from kafkaproto.json_form import from_json, to_json
from kafkaproto.messages.alter_client_quotas import AlterClientQuotasRequest, OpData
from kafkaproto.messages.alter_client_quotas import AlterClientQuotasRequestEntryData as EntryData
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from kafkaproto.records.batch import NewRecord, build_batch, build_empty_batch, read_header
from kafkaproto.records.compression import Compression
from kafkaproto.records.control import read_end_txn_marker
from kafkaproto.records.message_set import build_message_set
from kafkaproto.records.record import Record

WITHOUT_TEXT = 10**5000
"""An int with too many digits for Python to convert to text."""
V5 = SyncGroupRequest.layout(5)
QUOTAS = AlterClientQuotasRequest.layout(1)
STRIDED = memoryview(b"abcdef")[::2]


def without_group_id() -> SyncGroupRequest:
    request = SyncGroupRequest()
    del request.group_id
    return request


def quotas(value: Any) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest([EntryData(ops=[OpData("rate", value)])])


ODD: list[Any] = [
    SyncGroupRequest(generation_id=WITHOUT_TEXT),
    SyncGroupRequest(group_id=WITHOUT_TEXT),  # type: ignore[arg-type]
    SyncGroupRequest(assignments=WITHOUT_TEXT),  # type: ignore[arg-type]
    SyncGroupRequest(assignments=[WITHOUT_TEXT]),  # type: ignore[list-item]
    SyncGroupRequest(assignments=[SyncGroupResponse()]),  # type: ignore[list-item]
    SyncGroupRequest(assignments=[SyncGroupRequestAssignment("m", STRIDED)]),  # type: ignore[arg-type]
    SyncGroupRequest(unknown_tagged_fields=[(2**32, b"")]),
    SyncGroupRequest(unknown_tagged_fields=[(WITHOUT_TEXT, b"")]),
    without_group_id(),
]


@pytest.mark.parametrize("number", range(len(ODD)))
def test_generated_code_and_construct_library_raise_equal_errors_for_a_wrong_value(number: int) -> None:
    with pytest.raises(EncodeError) as flat:
        V5.encode(ODD[number])
    with pytest.raises(EncodeError) as readable:
        V5.build(ODD[number])
    assert str(flat.value) == str(readable.value)
    assert flat.value.versions == "5"


def test_encode_error_shows_only_the_beginning_of_a_large_value() -> None:
    with pytest.raises(EncodeError) as error:
        V5.encode(SyncGroupRequest(assignments=b"x" * 10**6))  # type: ignore[arg-type]
    assert "b'xxx" in str(error.value) and len(str(error.value)) < LONGEST_SHOWN + 100


def test_generated_code_and_construct_library_encode_a_uuid_given_as_bytearray() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=bytearray(range(16)), name=None)])  # type: ignore[arg-type]
    layout = MetadataRequest.layout(12)
    assert layout.encode(request) == layout.build(request)


@pytest.mark.parametrize(
    ("to_json", "path"),
    [
        (lambda: to_json(V5, 5), "SyncGroupRequest"),  # type: ignore[arg-type]
        (lambda: to_json(V5, SyncGroupRequest(group_id=None)), "SyncGroupRequest.group_id"),  # type: ignore[arg-type]
        (lambda: to_json(V5, SyncGroupRequest(group_id=5)), "SyncGroupRequest.group_id"),  # type: ignore[arg-type]
        (lambda: to_json(V5, ODD[2]), "SyncGroupRequest.assignments"),
        (lambda: to_json(V5, ODD[3]), "SyncGroupRequest.assignments[0]"),
        (lambda: to_json(V5, ODD[5]), "SyncGroupRequest.assignments[0].assignment"),
        (lambda: to_json(V5, without_group_id()), "SyncGroupRequest"),
        (lambda: to_json(QUOTAS, quotas("x")), "AlterClientQuotasRequest.entries[0].ops[0].value"),
        (lambda: to_json(QUOTAS, quotas(10**400)), "AlterClientQuotasRequest.entries[0].ops[0].value"),
        (
            lambda: MetadataRequest([MetadataRequestTopic(topic_id="x")]).to_json(12),  # type: ignore[arg-type]
            "MetadataRequest.topics[0].topic_id",
        ),
    ],
)
def test_json_conversion_rejects_a_field_value_of_a_wrong_type(to_json: Callable[[], Any], path: str) -> None:
    with pytest.raises(EncodeError) as error:
        to_json()
    assert error.value.path == path


@pytest.mark.parametrize("number", [10**400, WITHOUT_TEXT], ids=["large", "without text"])
def test_error_for_a_json_number_that_is_too_large_contains_the_path_of_its_field(number: int) -> None:
    data = to_json(QUOTAS, quotas(1.5))
    data["entries"][0]["ops"][0]["value"] = number
    with pytest.raises(EncodeError) as error:
        from_json(QUOTAS, data)
    assert error.value.path == "AlterClientQuotasRequest.entries[0].ops[0].value"


def test_error_for_a_coordinator_record_of_an_unknown_version_names_the_record_class() -> None:
    with pytest.raises(UnsupportedVersion, match="OffsetCommitKey has no v99999"):
        write_key(OffsetCommitKey(), 99999)
    with pytest.raises(UnsupportedVersion, match="OffsetCommitValue has no v99999"):
        write_value(OffsetCommitValue(), 99999)


def test_byte_offset_in_a_record_decode_error_includes_the_two_byte_version_prefix() -> None:
    with pytest.raises(DecodeError, match=r"OffsetCommitKey\.group at byte 2"):
        read_record("__consumer_offsets", b"\x00\x01\x00\x05a", None)
    with pytest.raises(DecodeError, match=r"EndTxnMarker\.coordinator_epoch at byte 2"):
        read_end_txn_marker(Record(0, 0, bytes(4), b"\x00\x00\x00", ()))


@pytest.mark.parametrize(
    "build",
    [
        lambda: build_batch([1]),  # type: ignore[list-item]
        lambda: build_batch([NewRecord(STRIDED)]),  # type: ignore[arg-type]
        lambda: build_empty_batch(read_header(build_batch([NewRecord(b"")]))._replace(base_offset=2**70)),
        lambda: build_message_set([1], magic=1),  # type: ignore[list-item]
        lambda: build_message_set([NewRecord(b"", timestamp=None)], magic=1),  # type: ignore[arg-type]
        lambda: build_message_set([NewRecord(b"")], magic=0, base_offset=None),  # type: ignore[arg-type]
        lambda: build_message_set([NewRecord(b"")], magic=1, compression=9),  # type: ignore[arg-type]
        lambda: build_message_set([NewRecord(b"")], magic=1, compression=Compression.ZSTD),
    ],
)
def test_building_a_batch_or_message_set_with_an_invalid_argument_raises_an_error(build: Callable[[], bytes]) -> None:
    with pytest.raises(EncodeError):
        build()
