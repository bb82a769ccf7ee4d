"""The sizes that `kafkaproto.memory` counts with are those of this Python, and never below them."""

from __future__ import annotations

import sys
from itertools import product

import pytest

from kafkaproto import memory
from kafkaproto.arrays import ArrayType
from kafkaproto.errors import DecodeError
from kafkaproto.flat import uvarint
from kafkaproto.message import parts
from kafkaproto.messages.delete_topics import DELETE_TOPICS_REQUEST_V4, DeleteTopicsRequest
from kafkaproto.struct_types import StructType
from tests.support.codec.catalogue import ENTRIES

SMALLER_SINCE_3_11 = 16
"""How much an object may have shrunk: the header of strings by 16 bytes in 3.12."""


@pytest.mark.parametrize(
    ("counted", "values"),
    [
        (memory.LIST, [[]]),
        (memory.SHORTEST_TEXT, ["\u0100", "\uffff", "\ufffd"]),
        (memory.SHORTEST_BYTES, [b"x", bytes(memoryview(b"ab")[:1])]),
        (memory.SMALL_NUMBER, [2**32 - 1, -(2**31), 2**31 - 1, 2**30]),
        (memory.LARGE_NUMBER, [2**63 - 1, -(2**63), 2**62]),
        (memory.MEMORYVIEW, [memoryview(b"abc")[1:2]]),
    ],
    ids=["list", "text", "bytes", "small number", "large number", "memoryview"],
)
def test_a_constant_is_the_size_of_its_largest_value(counted: int, values: list[object]) -> None:
    largest = max(map(sys.getsizeof, values))
    assert largest <= counted <= largest + SMALLER_SINCE_3_11


def test_a_float_takes_no_more_than_a_large_number() -> None:
    assert sys.getsizeof(0.5) <= memory.LARGE_NUMBER


def test_an_object_takes_what_its_slots_say() -> None:
    classes = {part.cls for entry in ENTRIES for part in parts(entry.layout) if isinstance(part, StructType)}
    assert len(classes) > 300
    for cls in classes:
        assert sys.getsizeof(object.__new__(cls)) == memory.size_of_object(cls), cls


def test_a_list_that_grows_takes_at_most_its_spare_and_its_items() -> None:
    items: list[None] = []
    spare = []
    for count in range(1, 20_000):
        items.append(None)
        spare.append(sys.getsizeof(items) - memory.LIST - memory.ITEM * count)
    assert max(spare) == memory.LIST_SPARE


def test_a_string_takes_at_most_its_shortest_and_what_is_free_for_each_further_byte() -> None:
    """A byte that is no UTF-8 becomes a character of two bytes, and one character of four bytes makes all of them such."""
    for text in ("", "a", "é", "ā", "\uffff", "\U0001f600", "\U0001f600" + "a" * 50, "ā" + "a" * 50):
        for data in (text.encode(), text.encode() + b"\xff" * 20):
            size = sys.getsizeof(data.decode("utf-8", "replace"))
            assert size <= memory.SHORTEST_TEXT + memory.FREE * max(0, len(data) - 1), data


def test_an_unknown_tag_takes_at_most_what_it_costs() -> None:
    beyond_free = []
    for tag, value_bytes in product([0, 100, 127, 128, 256, 257, 2**14 - 1, 2**14, 2**30, 2**32 - 1], range(20)):
        value = bytes(value_bytes)
        wire_bytes = len(uvarint(tag)) + len(uvarint(value_bytes)) + value_bytes
        taken = sys.getsizeof((tag, value)) + memory.ITEM
        taken += 0 if tag <= 256 else sys.getsizeof(tag)  # CPython shares the numbers up to 256, and empty bytes
        taken += sys.getsizeof(value) if value else 0
        beyond_free.append(taken - memory.FREE * wire_bytes)
    assert memory.UNKNOWN_TAG - SMALLER_SINCE_3_11 <= max(beyond_free) <= memory.UNKNOWN_TAG


def test_the_room_and_what_is_free_and_the_copy_make_the_limit() -> None:
    assert memory.ROOM_PER_BYTE + memory.FREE + 1 == memory.LIMIT
    assert memory.room_for(1000) - memory.room_for(0) == 1000 * memory.ROOM_PER_BYTE
    assert memory.room_for(0) + sys.getsizeof([]) < 64 * 1024


def test_the_example_of_the_page_is_counted_as_it_says() -> None:
    [names] = [part for part in parts(DELETE_TOPICS_REQUEST_V4) if isinstance(part, ArrayType)]
    assert names.is_heavy
    assert names.item_weight == memory.ITEM + memory.SHORTEST_TEXT - 2 * memory.FREE == 64
    with pytest.raises(DecodeError, match="memory"):
        DELETE_TOPICS_REQUEST_V4.decode(DELETE_TOPICS_REQUEST_V4.encode(DeleteTopicsRequest(topic_names=["x"] * 5000)))
    request = DeleteTopicsRequest(topic_names=["xyz"] * 5000)
    assert DELETE_TOPICS_REQUEST_V4.decode(DELETE_TOPICS_REQUEST_V4.encode(request)) == request
