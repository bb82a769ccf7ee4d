"""The pieces of a message cover all of its bytes, one behind the other."""

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
def test_every_byte_has_its_place(entry: Entry) -> None:
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


def test_paths_and_values() -> None:
    request = FETCH_REQUEST_V12.cls(cluster_id="c", unknown_tagged_fields=[(9, b"\xff")])
    found: list[Any] = list(places(FETCH_REQUEST_V12, FETCH_REQUEST_V12.encode(request)))
    assert found[0] == Place("replicaId", 0, 4, -1)
    assert [(place.path, place.size, place.value) for place in found[-7:]] == [
        ("forgottenTopicsData", 1, "(0 items)"),
        ("rackId", 1, ""),
        ("(tags)", 1, "(2 tags)"),
        ("(tag 0)", 2, "(2 bytes)"),
        ("clusterId", 2, "c"),
        ("(tag 9)", 2, "(1 bytes)"),
        ("(tag 9)", 1, "ff"),
    ]


def test_a_damaged_message_gives_the_pieces_before_the_damage() -> None:
    data = FETCH_REQUEST_V12.encode(FETCH_REQUEST_V12.cls())
    found = []
    with pytest.raises(DecodeError) as error:
        found.extend(places(FETCH_REQUEST_V12, data[:6]))
    assert error.value.offset == 4
    with pytest.raises(DecodeError, match="does not fill"):
        list(places(FETCH_REQUEST_V12, data[:-1] + b"\x01\x00\x03\x02c\x00"))


@pytest.mark.parametrize("entry", [*LATEST, *EXAMPLE_ENTRIES], ids=lambda entry: entry.id)
def test_damage_is_where_decoding_finds_it(entry: Entry) -> None:
    values = Values(f"damaged places {entry.id}")
    obj = values.object(entry.layout, "small")
    values.add_unknown_tags(entry.layout, obj)
    data = entry.layout.encode(obj)
    for length in range(0, len(data), 1 + len(data) // 50):
        with pytest.raises(DecodeError) as of_decode:
            entry.layout.decode(data[:length])
        found = []
        with pytest.raises(DecodeError) as of_places:
            found.extend(places(entry.layout, data[:length]))
        assert (of_places.value.path, of_places.value.offset) == (of_decode.value.path, of_decode.value.offset)
        assert sum(place.size for place in found) <= length
