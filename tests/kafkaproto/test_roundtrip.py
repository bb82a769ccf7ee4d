"""Round trips of every message in every version, with the generated and the readable codec."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kafkaproto.errors import EncodeError
from kafkaproto.messages.fetch import FETCH_REQUEST_V6, FETCH_REQUEST_V7, FetchRequest, ForgottenTopic
from kafkaproto.messages.metadata import METADATA_REQUEST_V1, MetadataRequest, MetadataRequestTopic
from tests.support.codec.catalogue import DATA_ENTRIES, ENTRIES, Entry, core_first
from tests.support.codec.example import EXAMPLE, EXAMPLE_ENTRIES
from tests.support.codec.values import Values

ALL = [*ENTRIES, *DATA_ENTRIES, *EXAMPLE_ENTRIES]


@core_first(ALL)
def test_messages_survive_an_encode_decode_round_trip(entry: Entry) -> None:
    values = Values(entry.id)
    for obj in values.objects(entry.layout):
        data = entry.layout.encode(obj)
        assert entry.layout.decode(data) == obj
        values.add_unknown_tags(entry.layout, obj)
        assert entry.layout.decode(entry.layout.encode(obj)) == obj


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_decoder_stops_at_the_end_of_a_message_that_is_inside_a_larger_buffer(entry: Entry) -> None:
    obj = Values(entry.id).object(entry.layout)
    data = entry.layout.encode(obj)
    buffer = memoryview(b"\xff" * 7 + data + b"\xff" * 50)
    assert entry.layout.decode_flat(buffer, 7, 7 + len(data)) == (obj, 7 + len(data))
    assert entry.layout.decode_flat(buffer, 7, len(buffer)) == (obj, 7 + len(data))


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_encoding_a_message_appends_to_the_output_buffer(entry: Entry) -> None:
    obj = Values(entry.id).object(entry.layout)
    out = bytearray(b"header")
    entry.layout.encode_flat(obj, out, [])
    assert out == b"header" + entry.layout.encode(obj)


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.id)
def test_fields_missing_in_a_version_are_decoded_as_their_defaults(entry: Entry) -> None:
    default = entry.layout.cls()
    read = entry.layout.decode(entry.layout.encode(Values(entry.id).object(entry.layout, "small")))
    present = {name for name, _ in entry.layout.fields}
    present |= {field.name for field in entry.layout.tags.fields} if entry.layout.tags else set()
    others = [field.name for field in dataclasses.fields(default) if field.name not in present]
    assert {name: getattr(read, name) for name in others} == {name: getattr(default, name) for name in others}


def test_encode_error_for_a_non_ignorable_field_names_the_field_and_the_versions() -> None:
    request = FetchRequest(forgotten_topics_data=[ForgottenTopic("t", partitions=[1])])
    assert FETCH_REQUEST_V7.decode(FETCH_REQUEST_V7.encode(request)) == request
    with pytest.raises(
        EncodeError, match=r"FetchRequest\.forgotten_topics_data in v5-6: this version has no such field"
    ):
        FETCH_REQUEST_V6.encode(request)
    with pytest.raises(EncodeError, match="forgotten_topics_data"):
        FETCH_REQUEST_V6.build(request)


def test_ignorable_field_is_dropped_when_encoding_an_older_version() -> None:
    assert FETCH_REQUEST_V7.encode(FetchRequest(rack_id="b")) == FETCH_REQUEST_V7.encode(FetchRequest())


def precious_values() -> dict[str, Any]:
    """Return the fields of the example that must not be lost, each with the smallest difference from its default."""
    inner, innermost, point = EXAMPLE.Inner, EXAMPLE.Innermost, EXAMPLE.Point
    return {
        "precious": 0,
        "precious_list": [1],
        "precious_struct": inner(innermost=innermost(match=True)),
        "tagged_number": 11,
        "tagged_struct": point(label="other"),
        "tagged_uuid": b"\x01" * 16,
        "tagged_bytes": b"x",
    }


@pytest.mark.parametrize("version", EXAMPLE.REQUESTS)
def test_non_ignorable_field_of_any_type_cannot_be_encoded_in_a_version_without_it(version: int) -> None:
    layout = EXAMPLE.REQUESTS[version]
    first_versions = {"precious": 3, "precious_list": 3, "precious_struct": 3, "tagged_number": 2, "tagged_struct": 2}
    first_versions.update(tagged_uuid=4, tagged_bytes=4)
    assert set(layout.absent) == {name for name, first in first_versions.items() if version < first}
    for name in layout.absent:
        obj = Values(version).object(layout, "small")
        setattr(obj, name, precious_values()[name])
        for encode in (layout.encode, layout.build):
            with pytest.raises(EncodeError, match=name):
                encode(obj)


def test_null_in_a_field_that_is_not_nullable_raises_an_encode_error() -> None:
    with pytest.raises(EncodeError, match=r"MetadataRequest\.topics\[0\]\.name"):
        METADATA_REQUEST_V1.encode(MetadataRequest(topics=[MetadataRequestTopic(name=None)]))


def test_failed_encoding_leaves_the_output_buffer_unchanged() -> None:
    out, splices = bytearray(b"kept"), [(1, b"kept")]
    with pytest.raises(EncodeError):
        FETCH_REQUEST_V7.encode_flat(FetchRequest(rack_id="", max_bytes=2**31), out, splices)
    assert out == b"kept" and splices == [(1, b"kept")]


def test_message_repr_omits_default_values_and_equal_messages_compare_as_equal() -> None:
    request = FetchRequest(max_wait_ms=500, forgotten_topics_data=[ForgottenTopic("t", partitions=[1])])
    text = "FetchRequest(max_wait_ms=500, forgotten_topics_data=[ForgottenTopic(topic='t', partitions=[1])])"
    assert repr(request) == text
    assert request == eval(text) and request != FetchRequest() and request != 5
    assert dataclasses.is_dataclass(request) and not hasattr(request, "__dict__")
