"""xxHash32 of a few bytes, in plain Python.

Only the header checksum of an lz4 frame needs it, and covers at most 19 bytes. It is too slow for data: a megabyte
would take a second. This module does not depend on frames.
"""

from __future__ import annotations

import struct

_MASK = 0xFFFFFFFF
_PRIME_1 = 2654435761
_PRIME_2 = 2246822519
_PRIME_3 = 3266489917
_PRIME_4 = 668265263
_PRIME_5 = 374761393
_STRIPE_BYTES = 16
_STRIPE = struct.Struct("<4I")
_WORD = struct.Struct("<I")


def xxh32(data: bytes, seed: int = 0) -> int:
    """Return the xxHash32 of the bytes as an unsigned number."""
    pos = 0
    if len(data) >= _STRIPE_BYTES:
        lanes = [seed + _PRIME_1 + _PRIME_2, seed + _PRIME_2, seed, seed - _PRIME_1]
        for pos in range(0, len(data) - _STRIPE_BYTES + 1, _STRIPE_BYTES):
            words = _STRIPE.unpack_from(data, pos)
            lanes = [_rotate(lane + word * _PRIME_2, 13) * _PRIME_1 for lane, word in zip(lanes, words, strict=True)]
        pos += _STRIPE_BYTES
        mixed = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        mixed = seed + _PRIME_5
    mixed += len(data)
    while pos + 4 <= len(data):
        mixed = _rotate(mixed + _WORD.unpack_from(data, pos)[0] * _PRIME_3, 17) * _PRIME_4
        pos += 4
    for byte in data[pos:]:
        mixed = _rotate(mixed + byte * _PRIME_5, 11) * _PRIME_1
    mixed &= _MASK
    mixed = (mixed ^ mixed >> 15) * _PRIME_2 & _MASK
    mixed = (mixed ^ mixed >> 13) * _PRIME_3 & _MASK
    return mixed ^ mixed >> 16


def _rotate(value: int, by: int) -> int:
    value &= _MASK
    return value << by & _MASK | value >> 32 - by
