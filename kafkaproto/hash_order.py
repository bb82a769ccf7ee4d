"""The order in which hash tables of strings iterate in Java. Kafka's results depend on it in a few places, and so do the broker's.

This module does not depend on Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkaproto.partitioner import java_hash_bits

SMALLEST_TABLE = 16


def hash_order(texts: Iterable[str], table: int = SMALLEST_TABLE) -> list[str]:
    """Return distinct strings in the order of a Java `HashSet` or `HashMap` to which they were added one by one.

    The order differs from Java's if more than eight strings share a bucket of the table, which Java then keeps as a tree. table: the number of
    buckets of the empty set, a power of two.
    """
    added = list(dict.fromkeys(texts))
    while len(added) * 4 > table * 3:
        table *= 2
    return sorted(added, key=lambda text: bucket(text, table))


def bucket(text: str, table: int) -> int:
    """Return the index of a string's bucket in a Java hash table with `table` buckets, a power of two."""
    bits = java_hash_bits(text)
    return (bits ^ bits >> 16) & (table - 1)


def copy_order(texts: list[str]) -> list[str]:
    """Return distinct strings in the order of a Java `HashSet` that copies a list; its table has room for all items of the list."""
    room = len(texts) * 4 // 3 + 1
    return hash_order(texts, max(SMALLEST_TABLE, 1 << (room - 1).bit_length()))
