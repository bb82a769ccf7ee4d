"""Computation of a partition from a record's key, or from the id of a group or transaction, with the same result as in Kafka.

Kafka: ``BuiltInPartitioner.partitionForKey``, ``Utils.murmur2``, ``Utils.abs(id.hashCode())``. This module does not depend on topics.
"""

from __future__ import annotations

from struct import unpack

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit murmur2 hash by which Kafka's producers choose a partition for a key, as an unsigned number."""
    h = _SEED ^ len(data)
    aligned_bytes = len(data) & ~3
    for at in range(0, aligned_bytes, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if aligned_bytes < len(data):
        h = (h ^ int.from_bytes(data[aligned_bytes:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_of_key(key: bytes, partitions: int) -> int:
    """Return the partition that Kafka's producers choose for a record's key in a topic that has `partitions` partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def java_hash_bits(text: str) -> int:
    """Return Java's `String.hashCode()` of a text as an unsigned 32-bit number. The hash is computed over the UTF-16 units of the text."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for unit in unpack(f">{len(encoded) // 2}H", encoded):
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value


def java_hash(text: str) -> int:
    """Return the absolute value of Java's `String.hashCode()`; 0 for a hash of -2**31 (Kafka's `Utils.abs`).

    This value, modulo the number of partitions of a coordinator's topic, is the partition in which a group or transactional id `text` is stored.
    """
    value = java_hash_bits(text)
    return (1 << 32) - value if value > 1 << 31 else value & 0x7FFFFFFF
