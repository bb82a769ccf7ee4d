"""XXH3 with 64 bits, without seed: the hash of topics that Kafka 4.1 and later store with a consumer group (KIP-1101).

The algorithm depends on the length of the input: up to 16 bytes, up to 128, up to 240, or more. Longer input goes through eight accumulators in
stripes of 64 bytes. Source: the specification of the xxHash family, section XXH3.
"""

from __future__ import annotations

import struct

_MASK = (1 << 64) - 1
_LOW = (1 << 32) - 1
_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1, _P64_2, _P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P64_4, _P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MX_1, _MX_2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_U32, _U64, _STRIPE = struct.Struct("<I"), struct.Struct("<Q"), struct.Struct("<8Q")
_STRIPE_BYTES, _SECRET_STEP = 64, 8
_STRIPES_IN_BLOCK = (len(_SECRET) - _STRIPE_BYTES) // _SECRET_STEP
_SECRET_OF_LAST_STRIPE = len(_SECRET) - _STRIPE_BYTES - 7
_SECRET_OF_MERGE = 11


def xxh3_64(data: bytes) -> int:
    """Return the 64-bit XXH3 hash of `data`, with seed 0, as an unsigned number."""
    size = len(data)
    if size <= 16:
        return _short(data, size)
    if size <= 128:
        return _medium(data, size)
    return _long(data, size) if size > 240 else _large(data, size)


def _short(data: bytes, size: int) -> int:
    if size > 8:
        low = _u64(data, 0) ^ _secret(24) ^ _secret(32)
        high = _u64(data, size - 8) ^ _secret(40) ^ _secret(48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((size + swapped + high + _fold(low, high)) & _MASK)
    if size >= 4:
        joined = _u32(data, size - 4) + (_u32(data, 0) << 32)
        mixed = joined ^ _secret(8) ^ _secret(16)
        mixed ^= _rotated(mixed, 49) ^ _rotated(mixed, 24)
        mixed = mixed * _MX_2 & _MASK
        mixed ^= (mixed >> 35) + size
        mixed = mixed * _MX_2 & _MASK
        return mixed ^ (mixed >> 28)
    if size:
        joined = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _avalanche_of_xxh64(joined ^ _u32(_SECRET, 0) ^ _u32(_SECRET, 4))
    return _avalanche_of_xxh64(_secret(56) ^ _secret(64))


def _medium(data: bytes, size: int) -> int:
    total = size * _P64_1
    for pair in range((size - 1) // 32 + 1):
        total += _mixed(data, 16 * pair, 32 * pair) + _mixed(data, size - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(total & _MASK)


def _large(data: bytes, size: int) -> int:
    total = size * _P64_1 + sum(_mixed(data, 16 * i, 16 * i) for i in range(8))
    total = _avalanche(total & _MASK)
    total += sum(_mixed(data, 16 * i, 16 * (i - 8) + 3) for i in range(8, size // 16))
    return _avalanche((total + _mixed(data, size - 16, 136 - 17)) & _MASK)


def _long(data: bytes, size: int) -> int:
    sums = [_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1]
    for number in range((size - 1) // _STRIPE_BYTES):
        in_block = number % _STRIPES_IN_BLOCK
        _accumulate(sums, data, number * _STRIPE_BYTES, in_block * _SECRET_STEP)
        if in_block == _STRIPES_IN_BLOCK - 1:
            _scramble(sums)
    _accumulate(sums, data, size - _STRIPE_BYTES, _SECRET_OF_LAST_STRIPE)
    total = size * _P64_1
    for i in range(0, 8, 2):
        place = _SECRET_OF_MERGE + 8 * i
        total += _fold(sums[i] ^ _secret(place), sums[i + 1] ^ _secret(place + 8))
    return _avalanche(total & _MASK)


def _accumulate(sums: list[int], data: bytes, at: int, secret_at: int) -> None:
    values, keys = _STRIPE.unpack_from(data, at), _STRIPE.unpack_from(_SECRET, secret_at)
    for i in range(8):
        key = values[i] ^ keys[i]
        sums[i ^ 1] = (sums[i ^ 1] + values[i]) & _MASK
        sums[i] = (sums[i] + (key & _LOW) * (key >> 32)) & _MASK


def _scramble(sums: list[int]) -> None:
    keys = _STRIPE.unpack_from(_SECRET, len(_SECRET) - _STRIPE_BYTES)
    for i in range(8):
        sums[i] = (sums[i] ^ (sums[i] >> 47) ^ keys[i]) * _P32_1 & _MASK


def _mixed(data: bytes, at: int, secret_at: int) -> int:
    return _fold(_u64(data, at) ^ _secret(secret_at), _u64(data, at + 8) ^ _secret(secret_at + 8))


def _fold(left: int, right: int) -> int:
    product = left * right
    return (product & _MASK) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * _MX_1 & _MASK
    return value ^ (value >> 32)


def _avalanche_of_xxh64(value: int) -> int:
    value ^= value >> 33
    value = value * _P64_2 & _MASK
    value ^= value >> 29
    value = value * _P64_3 & _MASK
    return value ^ (value >> 32)


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _secret(at: int) -> int:
    return _u64(_SECRET, at)


def _u64(data: bytes, at: int) -> int:
    value: int = _U64.unpack_from(data, at)[0]
    return value


def _u32(data: bytes, at: int) -> int:
    value: int = _U32.unpack_from(data, at)[0]
    return value
