"""Field positions cover all bytes of a message in order."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.errors import DecodeError
from kafkaproto.messages.fetch import FETCH_REQUEST_V12
from kafkaproto.places import Place, places
from tests.support.codec.catalogue import ENTRIES, LATEST, Entry
from tests.support.codec.example import EXAMPLE_ENTRIES
from tests.support.codec.values import Values


@pytest.mark.parametrize("entry", [*ENTRIES, *EXAMPLE_ENTRIES], ids=lambda entry: entry.id)
def test_field_positions_cover_every_byte_of_a_message_exactly_once(entry: Entry) -> None:
    values = Values(f"places {entry.id}")
    for shape in ("small", "null", "random", "highest"):
        obj = values.object(entry.layout, shape)
        values.add_unknown_tags(entry.layout, obj)
        data = entry.layout.encode(obj)
        position = 5
        for place in places(entry.layout, b"front" + data + b"behind", 5):
            assert place.offset == position, place
            position += place.size
        assert position == 5 + len(data)


def test_field_positions_contain_the_path_size_and_value_of_each_field() -> None:
    request = FETCH_REQUEST_V12.cls(cluster_id="c", unknown_tagged_fields=[(9, b"\xff")])
    positions: list[Any] = list(places(FETCH_REQUEST_V12, FETCH_REQUEST_V12.encode(request)))
    assert positions[0] == Place("replicaId", 0, 4, -1)
    assert [(place.path, place.size, place.value) for place in positions[-7:]] == [
        ("forgottenTopicsData", 1, "(0 items)"),
        ("rackId", 1, ""),
        ("(tags)", 1, "(2 tags)"),
        ("(tag 0)", 2, "(2 bytes)"),
        ("clusterId", 2, "c"),
        ("(tag 9)", 2, "(1 bytes)"),
        ("(tag 9)", 1, "ff"),
    ]


def test_listing_fields_of_a_damaged_message_raises_a_decode_error_with_the_offset() -> None:
    data = FETCH_REQUEST_V12.encode(FETCH_REQUEST_V12.cls())
    paths = []
    with pytest.raises(DecodeError) as error:
        paths.extend(places(FETCH_REQUEST_V12, data[:6]))
    assert error.value.offset == 4
    with pytest.raises(DecodeError, match="does not fill"):
        list(places(FETCH_REQUEST_V12, data[:-1] + b"\x01\x00\x03\x02c\x00"))


@pytest.mark.parametrize("entry", [*LATEST, *EXAMPLE_ENTRIES], ids=lambda entry: entry.id)
def test_field_position_listing_and_decoder_report_equal_offsets_for_truncated_data(entry: Entry) -> None:
    values = Values(f"damaged places {entry.id}")
    obj = values.object(entry.layout, "small")
    values.add_unknown_tags(entry.layout, obj)
    data = entry.layout.encode(obj)
    for length in range(0, len(data), 1 + len(data) // 50):
        with pytest.raises(DecodeError) as of_decode:
            entry.layout.decode(data[:length])
        positions = []
        with pytest.raises(DecodeError) as of_places:
            positions.extend(places(entry.layout, data[:length]))
        assert (of_places.value.path, of_places.value.offset) == (of_decode.value.path, of_decode.value.offset)
        assert sum(place.size for place in positions) <= length
