"""Zigzag varints, which only records use: they encode small numbers of either sign in few bytes."""

from __future__ import annotations


def read_varint(b: bytes, p: int) -> tuple[int, int]:
    """Decode the zigzag varint at index ``p`` of ``b``, a number of at most 64 bits. Returns ``(value, index after it)``.

    Raises IndexError at the end of the bytes, ValueError for a longer number.
    """
    byte = b[p]
    p += 1
    raw = byte & 0x7F
    shift = 7
    while byte > 0x7F:
        if shift > 63:
            raise ValueError(f"the varint at byte {p - 10} has more than ten bytes; at most 10 bytes are allowed")
        byte = b[p]
        p += 1
        raw |= (byte & 0x7F) << shift
        shift += 7
    if raw >> 64:
        raise ValueError(f"the varint that ends before byte {p} has the value {raw}, which does not fit in 64 bits")
    return (raw >> 1) ^ -(raw & 1), p


def varint(value: int) -> bytes:
    """Return the zigzag varint of a number of at most 64 bits. Raises OverflowError for larger numbers."""
    if not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value} does not fit in a varint of 64 bits")
    raw = (value << 1) ^ (value >> 63)
    if raw < 0x80:
        return raw.to_bytes(1, "big")
    encoded = bytearray()
    while raw > 0x7F:
        encoded.append(raw & 0x7F | 0x80)
        raw >>= 7
    encoded.append(raw)
    return bytes(encoded)
