"""The order in which hash tables of strings iterate in Java and Scala. Kafka's results depend on it in a few places, and so do the broker's.

This module does not depend on Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkaproto.partitioner import java_hash_bits

SMALLEST_TABLE = 16
HASH_BITS, SLOT_BITS = 32, 5
ALL_BITS = (1 << HASH_BITS) - 1


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


def scala_order(texts: Iterable[str]) -> list[str]:
    """Return distinct strings in the order of an immutable `HashMap` of Scala 2.13 to which they were added one by one."""
    return _trie_order(list(dict.fromkeys(texts)), 0)


def _trie_order(texts: list[str], shift: int) -> list[str]:
    """Return the strings in one node of a Scala `HashMap` in iteration order: strings alone in their slot, then those in child nodes.

    shift: how many low bits of the hashes the parent nodes have used. The next five bits are the number of the slot.
    """
    if shift >= HASH_BITS:  # equal hashes
        return texts
    slots: dict[int, list[str]] = {}
    for text in texts:
        slots.setdefault(_scala_hash(text) >> shift & (1 << SLOT_BITS) - 1, []).append(text)
    in_order = [slots[slot] for slot in sorted(slots)]
    alone = [texts[0] for texts in in_order if len(texts) == 1]
    return alone + [text for texts in in_order if len(texts) > 1 for text in _trie_order(texts, shift + SLOT_BITS)]


def _scala_hash(text: str) -> int:
    """Return the hash that Scala's hash maps use for a string, as 32 unsigned bits.

    They mix the bits of Java's hash of the string once more; Scala calls this `improve`.
    """
    bits = java_hash_bits(text)
    bits = bits + ~(bits << 9) & ALL_BITS
    bits ^= bits >> 14
    bits = bits + (bits << 4) & ALL_BITS
    return bits ^ bits >> 10
