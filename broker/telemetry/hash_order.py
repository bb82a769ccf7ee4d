"""The order in which a Java `HashSet` of strings iterates: it is part of the id of a client metrics subscription (AD-12)."""

from __future__ import annotations

from collections.abc import Iterable

from kafkaproto.partitioner import java_hash_bits

SMALLEST_TABLE = 16


def hash_order(texts: Iterable[str], table: int = SMALLEST_TABLE) -> list[str]:
    """Return distinct strings in the order of a Java `HashSet` to which they were added one by one.

    The order differs from Java's if more than eight strings share a bucket of the table, which Java then keeps as a tree. table: the number of
    buckets of the empty set, a power of two.
    """
    added = list(dict.fromkeys(texts))
    while len(added) * 4 > table * 3:
        table *= 2

    def bucket(text: str) -> int:
        bits = java_hash_bits(text)
        return (bits ^ bits >> 16) & (table - 1)

    return sorted(added, key=bucket)


def copy_order(texts: list[str]) -> list[str]:
    """Return distinct strings in the order of a Java `HashSet` that copies a list; its table has room for all items of the list."""
    room = len(texts) * 4 // 3 + 1
    return hash_order(texts, max(SMALLEST_TABLE, 1 << (room - 1).bit_length()))
