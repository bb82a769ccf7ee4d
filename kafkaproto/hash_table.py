"""A Java hash table that can be changed, with the order in which Java iterates over it. For tables that are only filled, see `hash_order`.

This module does not depend on Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from kafkaproto.hash_order import SMALLEST_TABLE, copy_table

Item = TypeVar("Item")


class JavaTable(Generic[Item]):
    """The items of a Java `HashSet`, or the keys of a Java `HashMap`. Iterating over it returns them in Java's order.

    Like `java_order`, this class does not turn a bucket with more than eight items into a tree, so its order within such a bucket may differ.

    bits: a function that returns the 32 bits of an item's `hashCode()` in Java as an unsigned number. table: the number of buckets of the empty
    table, a power of two; see `table_for`.
    """

    __slots__ = ("_bits", "_first", "_last", "_ranks", "_table")

    def __init__(self, bits: Callable[[Item], int], table: int = SMALLEST_TABLE) -> None:
        self._bits = bits
        self._table = table
        self._ranks: dict[Item, int] = {}
        """Maps each item to a number. These numbers order the items of a bucket."""
        self._first = self._last = 0

    @classmethod
    def copy_of(
        cls, items: Iterable[Item], bits: Callable[[Item], int], others: Iterable[Item] = ()
    ) -> JavaTable[Item]:
        """Return a `HashSet` that is created from a collection. items: the distinct items of the collection, in its order.

        others: items that are added to the set afterwards.
        """
        in_order = list(items)
        copied = cls(bits, copy_table(len(in_order)))
        for item in (*in_order, *others):
            copied.add(item)
        return copied

    def add(self, item: Item) -> None:
        """Add an item at the end of its bucket, as `add` and `put` do. If the table must grow, it grows after the item is added."""
        if item in self._ranks:
            return
        self._last += 1
        self._ranks[item] = self._last
        self._grow()

    def add_first(self, item: Item) -> None:
        """Add an item at the start of its bucket, as `computeIfAbsent` and `merge` do. If the table is too full, it grows first.

        It also grows if the table contains the item already.
        """
        self._grow()
        if item not in self._ranks:
            self._first -= 1
            self._ranks[item] = self._first

    def discard(self, item: Item) -> None:
        """Remove an item if the table contains it. The table does not shrink."""
        self._ranks.pop(item, None)

    def _grow(self) -> None:
        if len(self._ranks) * 4 > self._table * 3:
            self._table *= 2

    def __contains__(self, item: object) -> bool:
        return item in self._ranks

    def __len__(self) -> int:
        return len(self._ranks)

    def __iter__(self) -> Iterator[Item]:
        ranks, bits, mask = self._ranks, self._bits, self._table - 1
        keys = {item: ((hashed := bits(item)) ^ hashed >> 16) & mask for item in ranks}
        return iter(sorted(ranks, key=lambda item: (keys[item], ranks[item])))


def table_for(capacity: int) -> int:
    """Return the number of buckets of a Java `HashMap` or `HashSet` that is created with an initial capacity."""
    return 1 << max(capacity - 1, 0).bit_length()


def map_copy_table(size: int) -> int:
    """Return the number of buckets of a Java `HashMap` that is created from another map with `size` entries."""
    return table_for(size * 4 // 3 + 1) if size else SMALLEST_TABLE
