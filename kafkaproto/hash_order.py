"""The order in which hash tables of Java and Scala iterate. A few results of Kafka depend on this order, so this broker reproduces it.

The functions that order items of any type have an argument `bits`: a function that returns an item's `hashCode()` in Java as an unsigned number.

This module does not depend on Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from functools import lru_cache
from typing import TypeVar

from kafkaproto.partitioner import java_hash_bits

SMALLEST_TABLE = 16
SMALLEST_TIMELINE_TABLE = 2
GOLDEN_RATIO = 0x9E3779B97F4A7C15
"""The factor with which Kafka's `TimelineHashMap` spreads hashes: 2**64 divided by the golden ratio."""
HASH_BITS, SLOT_BITS = 32, 5
ALL_BITS = (1 << HASH_BITS) - 1
SMALL_MAP = 4
"""An immutable `Map` of Scala with at most this many entries iterates in insertion order; a larger `Map` is a hash table."""
LONGEST_CACHED = 249
"""The maximum length of a topic name. Only a few longer texts are cached, so that clients cannot fill the memory with them."""
Item = TypeVar("Item")


_topic_hash_bits = lru_cache(1024)(java_hash_bits)
"""The function `java_hash_bits` with a cache, because a commit of many partitions hashes the same topic names again and again."""
_long_text_hash_bits = lru_cache(4)(java_hash_bits)
"""The function `java_hash_bits` with a small cache, for texts that are too long to be names of topics.

The hash of 32,767 characters takes milliseconds, and one request may need it thousands of times.
"""


def partition_hash_bits(partition: tuple[str, int]) -> int:
    """Return the 32 bits of `hashCode()` of Kafka's `TopicPartition`, as a number that is not negative. partition: (topic, index)."""
    topic, index = partition
    topic_bits = _topic_hash_bits if len(topic) <= LONGEST_CACHED else _long_text_hash_bits
    return (31 * (31 + index) + topic_bits(topic)) & ALL_BITS


def topic_id_partition_hash_bits(partition: tuple[str, int]) -> int:
    """Return the 32 bits of `hashCode()` of Kafka's `TopicIdPartition` with topic id 0, as a number that is not negative.

    partition: (topic, index).
    """
    return (31 * 31 + partition_hash_bits(partition)) & ALL_BITS


def hash_order(texts: Iterable[str], table: int = SMALLEST_TABLE) -> list[str]:
    """Return distinct strings in the order of a Java `HashSet` or `HashMap` to which they were added one by one.

    table: the number of buckets of the empty set, a power of two.
    """
    return java_order(texts, java_hash_bits, table)


def java_order(
    items: Iterable[Item], bits: Callable[[Item], int], table: int = SMALLEST_TABLE, *, most: int = 0
) -> list[Item]:
    """Return distinct items in the order of a Java `HashSet` or `HashMap` to which they were added one by one.

    Java turns a bucket with more than eight items into a tree. This function does not, so its order of items in such a bucket may differ from Java's.
    bits: a function that returns the 32 bits of an item's `hashCode()` in Java. table: the number of buckets of the empty set, a power of two. most:
    the largest number of items that the table has ever had; 0 if it never had more than the `items`. The table never shrinks.
    """
    added = list(dict.fromkeys(items))
    while max(len(added), most) * 4 > table * 3:
        table *= 2
    return sorted(added, key=lambda item: _bucket(bits(item), table))


def concurrent_order(items: Iterable[Item], bits: Callable[[Item], int], most: int = 0) -> list[Item]:
    """Return distinct items in the order of a Java `ConcurrentHashMap` to which they were added one by one.

    Like `java_order`, this function does not turn large buckets into trees. bits: a function that returns the 32 bits of an item's `hashCode()` in
    Java. most: the largest number of items that the map has ever had; 0 if it never had more than the `items`. It determines the size of the table,
    which never shrinks.
    """
    added = list(dict.fromkeys(items))
    spread = {item: (hashed := bits(item)) ^ hashed >> 16 for item in added}
    table = SMALLEST_TABLE
    buckets: dict[int, list[Item]] = {}
    for size, item in enumerate(added, 1):
        buckets.setdefault(spread[item] & (table - 1), []).append(item)
        if size * 4 >= table * 3:
            buckets, table = _doubled(buckets, spread, table), table * 2
    while most * 4 >= table * 3:
        buckets, table = _doubled(buckets, spread, table), table * 2
    return [item for index in sorted(buckets) for item in buckets[index]]


def _doubled(buckets: dict[int, list[Item]], spread: dict[Item, int], table: int) -> dict[int, list[Item]]:
    """Return the buckets of a `ConcurrentHashMap` by index, after its table of `table` buckets was doubled.

    buckets: the buckets before. spread: maps the items to their hashes.
    """
    return {index: half for bucket in buckets.values() for index, half in _halves(bucket, spread, table)}


def _halves(bucket: list[Item], spread: dict[Item, int], table: int) -> list[tuple[int, list[Item]]]:
    """Divide one bucket of a `ConcurrentHashMap` between two new buckets, because its table of `table` buckets doubles.

    Returns (index of the new bucket, its items) for each new bucket that gets items. The items at the end of the old bucket that all go to one new
    bucket keep their order. Each item before them is then inserted at the start of its new bucket. bucket: the items of the old bucket, in order.
    spread: maps the items to their hashes.
    """
    kept = len(bucket) - 1
    while kept and (spread[bucket[kept - 1]] ^ spread[bucket[-1]]) & table == 0:
        kept -= 1
    halves: dict[int, list[Item]] = {spread[bucket[-1]] & (2 * table - 1): bucket[kept:]}
    for item in bucket[:kept]:
        halves.setdefault(spread[item] & (2 * table - 1), []).insert(0, item)
    return list(halves.items())


def grouped_order(items: Iterable[Item], bits: Callable[[Item], int]) -> list[Item]:
    """Return distinct items in the order of the keys of a Java `HashMap` that was filled by calling `computeIfAbsent` for each item in turn.

    `computeIfAbsent` differs from `put`: it puts a new key before the other keys of its bucket, and it enlarges the table at the beginning of the
    next call, also if that call adds nothing. Like `java_order`, this function does not turn large buckets into trees. items: the items may be
    repeated. bits: a function that returns the 32 bits of an item's `hashCode()` in Java.
    """
    table = SMALLEST_TABLE
    added: dict[Item, None] = {}
    for item in items:
        if len(added) * 4 > table * 3:
            table *= 2
        added[item] = None
    newest_first = list(added)[::-1]
    return sorted(newest_first, key=lambda item: _bucket(bits(item), table))


def properties_order(texts: Collection[str]) -> list[str]:
    """Return distinct strings in the order of the keys of a Java `Properties` object that was filled from another map with `putAll`.

    `putAll` enlarges the table before it adds anything, so that it may have more buckets than a table filled one by one. texts: the strings in the
    order of the other map, which decides the order of strings in one bucket.
    """
    table, needed_size = SMALLEST_TABLE, 1 << (len(texts) + len(texts) // 2).bit_length()
    while needed_size * 4 > table * 3:
        table *= 2
    return hash_order(texts, table)


def timeline_order(items: Iterable[Item], bits: Callable[[Item], int], most: int = 0) -> list[Item]:
    """Return distinct items in the order of Kafka's `TimelineHashMap` to which they were added one by one.

    Of the items in one bucket, the last added comes first. bits: a function that returns the 32 bits of an item's `hashCode()` in Java. most: the
    largest number of items for which the map has ever made room; 0 if it was never larger than the number of `items`. It determines the size of the
    table, which never shrinks. If an item was replaced while the map had N items, the map made room for N + 1, because it makes room for a new item
    before it replaces the old one.
    """
    added = list(dict.fromkeys(items))
    added.reverse()
    table = SMALLEST_TIMELINE_TABLE
    while max(len(added), most) * 3 > table * 4:
        table *= 2
    shift = 65 - table.bit_length()
    return sorted(added, key=lambda item: (_signed(bits(item)) * GOLDEN_RATIO & (1 << 64) - 1) >> shift)


def uuid_hash_bits(uuid: bytes) -> int:
    """Return the 32 bits of `hashCode()` of Kafka's `Uuid`, as a number that is not negative. uuid: its 16 bytes."""
    high, low = int.from_bytes(uuid[:8], "big"), int.from_bytes(uuid[8:], "big")
    mixed = high ^ low
    return (mixed >> HASH_BITS ^ mixed) & ALL_BITS


def long_hash_bits(number: int) -> int:
    """Return the 32 bits of `hashCode()` of Java's `Long`, as a number that is not negative. number: an int64 that is not negative."""
    return (number >> HASH_BITS ^ number) & ALL_BITS


def uuid_order(uuid: bytes) -> tuple[int, int]:
    """Return a key that sorts topic ids as Kafka's `Uuid.compareTo` does: as two signed numbers of 64 bits. uuid: the 16 bytes of the id."""
    return int.from_bytes(uuid[:8], "big", signed=True), int.from_bytes(uuid[8:], "big", signed=True)


def _signed(bits: int) -> int:
    return bits - (1 << HASH_BITS) if bits >> HASH_BITS - 1 else bits


def bucket(text: str, table: int) -> int:
    """Return the index of a string's bucket in a Java hash table with `table` buckets, a power of two."""
    return _bucket(java_hash_bits(text), table)


def _bucket(bits: int, table: int) -> int:
    return (bits ^ bits >> 16) & (table - 1)


def copy_order(texts: list[str]) -> list[str]:
    """Return distinct strings in the order of a Java `HashSet` that is created from a list, with a table that is large enough for the list."""
    return hash_order(texts, copy_table(len(texts)))


def copy_table(size: int) -> int:
    """Return the number of buckets of a Java `HashSet` that is created from a collection. size: the number of items in the collection."""
    room = size * 4 // 3 + 1
    return max(SMALLEST_TABLE, 1 << (room - 1).bit_length())


def scala_order(texts: Iterable[str]) -> list[str]:
    """Return distinct strings in the order of an immutable `HashMap` of Scala 2.13 to which they were added one by one."""
    return _trie_order({text: _scala_hash(java_hash_bits(text)) for text in texts}, 0)


def scala_map_order(items: Iterable[Item], bits: Callable[[Item], int]) -> list[Item]:
    """Return distinct items in the order of an immutable `Map` of Scala 2.13: up to four in the order of the input, more in that of a `HashMap`.

    bits: a function that returns the 32 bits of an item's `hashCode()` in Java.
    """
    distinct = list(dict.fromkeys(items))
    if len(distinct) <= SMALL_MAP:
        return distinct
    return _trie_order({item: _scala_hash(bits(item)) for item in distinct}, 0)


def scala_filtered_order(items: Iterable[Item], kept: Container[Item], bits: Callable[[Item], int]) -> list[Item]:
    """Return items in the order of an immutable `Map` of Scala 2.13 from which the method `filter` took only the items in `kept`.

    A `Map` with more than four entries stays a hash table when it is filtered, also if at most four entries remain. items: the items of the `Map`
    that is filtered, as they were added. bits: a function that returns the 32 bits of an item's `hashCode()` in Java.
    """
    distinct = list(dict.fromkeys(items))
    kept_items = [item for item in distinct if item in kept]
    if len(distinct) <= SMALL_MAP:
        return kept_items
    return _trie_order({item: _scala_hash(bits(item)) for item in kept_items}, 0)


def scala_table_order(items: Iterable[Item], bits: Callable[[Item], int], most: int = 0) -> list[Item]:
    """Return distinct items in the order of a mutable `HashMap` of Scala 2.13 to which they were added one by one.

    bits: a function that returns the 32 bits of an item's `hashCode()` in Java. most: the largest number of items for which the map has ever made
    room; 0 if it was never larger than the number of `items`. It determines the size of the table, as in `timeline_order`.
    """
    hashes = {item: bits(item) ^ bits(item) >> 16 for item in items}
    table = SMALLEST_TABLE
    while max(len(hashes), most) * 4 >= table * 3:
        table *= 2
    half = 1 << (HASH_BITS - 1)  # the hashes in a bucket are sorted as signed numbers
    return sorted(hashes, key=lambda item: (hashes[item] & (table - 1), hashes[item] ^ half))


def scala_copy_order(items: Iterable[Item], bits: Callable[[Item], int]) -> list[Item]:
    """Return distinct items in the order of an immutable `Map` of Scala 2.13 that was copied from a mutable `HashMap` with these items.

    bits: a function that returns the 32 bits of an item's `hashCode()` in Java.
    """
    return scala_map_order(scala_table_order(items, bits), bits)


def _trie_order(hashes: dict[Item, int], shift: int) -> list[Item]:
    """Return the items in one node of a Scala `HashMap` in iteration order: items alone in their slot, then those in child nodes.

    hashes: maps the items to their hashes. shift: how many low bits of the hashes the parent nodes have used. The next five bits are the number of
    the slot.
    """
    if shift >= HASH_BITS:  # equal hashes
        return list(hashes)
    slots: dict[int, dict[Item, int]] = {}
    for item, bits in hashes.items():
        slots.setdefault(bits >> shift & (1 << SLOT_BITS) - 1, {})[item] = bits
    in_order = [slots[slot] for slot in sorted(slots)]
    alone = [item for items in in_order if len(items) == 1 for item in items]
    return alone + [item for items in in_order if len(items) > 1 for item in _trie_order(items, shift + SLOT_BITS)]


def _scala_hash(bits: int) -> int:
    """Return the hash that Scala's immutable hash maps use for an item, as 32 unsigned bits.

    Scala mixes the bits of Java's hash once more, in a function that it calls `improve`. bits: the bits of Java's hash of the item.
    """
    bits = bits + ~(bits << 9) & ALL_BITS
    bits ^= bits >> 14
    bits = bits + (bits << 4) & ALL_BITS
    return bits ^ bits >> 10
