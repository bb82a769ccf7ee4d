"""Which partition a record with a key goes to: the rule of Kafka's Java clients, so that both put a key into the same place.

Twins: ``BuiltInPartitioner.partitionForKey``, ``Utils.murmur2``. Must never know topics.
"""

from __future__ import annotations

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit hash, unsigned."""
    h = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_of_key(key: bytes, partitions: int) -> int:
    """One of ``partitions`` many."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
