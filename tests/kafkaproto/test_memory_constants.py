"""The memory constants of `kafkaproto.memory` are never below the object sizes of this Python."""

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
"""How many bytes an object may have shrunk since 3.11: the header of strings lost 16 bytes in 3.12."""


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
def test_memory_estimate_of_a_value_is_at_least_the_size_of_its_python_object(
    counted: int, values: list[object]
) -> None:
    largest = max(map(sys.getsizeof, values))
    assert largest <= counted <= largest + SMALLER_SINCE_3_11


def test_memory_estimate_of_a_64_bit_number_is_at_least_the_size_of_a_python_float() -> None:
    assert sys.getsizeof(0.5) <= memory.LARGE_NUMBER


def test_memory_estimate_of_a_message_object_equals_its_size_in_python() -> None:
    classes = {part.cls for entry in ENTRIES for part in parts(entry.layout) if isinstance(part, StructType)}
    assert len(classes) > 300
    for cls in classes:
        assert sys.getsizeof(object.__new__(cls)) == memory.size_of_object(cls), cls


def test_memory_estimate_of_a_list_covers_the_spare_capacity_that_append_allocates() -> None:
    items: list[None] = []
    spare = []
    for count in range(1, 20_000):
        items.append(None)
        spare.append(sys.getsizeof(items) - memory.LIST - memory.ITEM * count)
    assert max(spare) == memory.LIST_SPARE


def test_decoded_string_uses_no_more_memory_than_the_estimate_for_its_bytes() -> None:
    """An invalid UTF-8 byte becomes a two-byte character, and one four-byte character widens all others."""
    for text in ("", "a", "é", "ā", "\uffff", "\U0001f600", "\U0001f600" + "a" * 50, "ā" + "a" * 50):
        for data in (text.encode(), text.encode() + b"\xff" * 20):
            size = sys.getsizeof(data.decode("utf-8", "replace"))
            assert size <= memory.SHORTEST_TEXT + memory.FREE * max(0, len(data) - 1), data


def test_unknown_tagged_field_uses_no_more_memory_than_its_estimate() -> None:
    beyond_free = []
    for tag, value_bytes in product([0, 100, 127, 128, 256, 257, 2**14 - 1, 2**14, 2**30, 2**32 - 1], range(20)):
        value = bytes(value_bytes)
        wire_bytes = len(uvarint(tag)) + len(uvarint(value_bytes)) + value_bytes
        used_bytes = sys.getsizeof((tag, value)) + memory.ITEM
        used_bytes += 0 if tag <= 256 else sys.getsizeof(tag)  # CPython shares the numbers up to 256, and empty bytes
        used_bytes += sys.getsizeof(value) if value else 0
        beyond_free.append(used_bytes - memory.FREE * wire_bytes)
    assert memory.UNKNOWN_TAG - SMALLER_SINCE_3_11 <= max(beyond_free) <= memory.UNKNOWN_TAG


def test_decoder_memory_limit_is_linear_in_size_and_below_64_kib_for_empty_messages() -> None:
    assert memory.ROOM_PER_BYTE + memory.FREE + 1 == memory.LIMIT
    assert memory.room_for(1000) - memory.room_for(0) == 1000 * memory.ROOM_PER_BYTE
    assert memory.room_for(0) + sys.getsizeof([]) < 64 * 1024


def test_decoder_memory_limit_rejects_5000_1_byte_strings_but_not_5000_3_byte_ones() -> None:
    [names] = [part for part in parts(DELETE_TOPICS_REQUEST_V4) if isinstance(part, ArrayType)]
    assert names.is_heavy
    assert names.item_weight == memory.ITEM + memory.SHORTEST_TEXT - 2 * memory.FREE == 64
    with pytest.raises(DecodeError, match="memory"):
        DELETE_TOPICS_REQUEST_V4.decode(DELETE_TOPICS_REQUEST_V4.encode(DeleteTopicsRequest(topic_names=["x"] * 5000)))
    request = DeleteTopicsRequest(topic_names=["xyz"] * 5000)
    assert DELETE_TOPICS_REQUEST_V4.decode(DELETE_TOPICS_REQUEST_V4.encode(request)) == request
