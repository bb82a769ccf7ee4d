"""The orders in which a Java hash table may list names, if it also contains names of other tests."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaproto.partitioner import java_hash_bits

_LARGEST_TABLE = 1 << 20
"""The largest number of buckets that is tried; the table of a broker under test is smaller."""


def is_table_order(names: Sequence[str]) -> bool:
    """Return whether a Java `ConcurrentHashMap` with any number of buckets can list `names` in this order.

    Names in one bucket may have any order: it depends on the other names in the map, and on the times at which it grew.
    """
    hashes = [bits ^ bits >> 16 for bits in map(java_hash_bits, names)]
    table = 16
    while table <= _LARGEST_TABLE:
        buckets = [each & (table - 1) for each in hashes]
        if buckets == sorted(buckets):
            return True
        table *= 2
    return False
