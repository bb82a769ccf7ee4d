"""The header checksum of lz4 frames, which Kafka computed wrongly as long as there was magic 0 (KIP-57).

The right one counts the frame descriptor; Kafka's counted the four magic bytes in front of it, too. Readers of magic 0
do not look at it (``KafkaLZ4BlockInputStream``), so both kinds are out there. This module must never know messages.
"""

from __future__ import annotations

from kafkaproto.records.xxh32 import xxh32

_MAGIC_BYTES = 4
_FLAGS_AT = 4
_CONTENT_SIZE = 0x08
_DICTIONARY = 0x01


def with_right_checksum(frame: bytes) -> bytes:
    """The frame with the checksum that its specification asks for; bytes that are no frame come back as they are."""
    return _with_checksum(frame, _MAGIC_BYTES)


def with_broken_checksum(frame: bytes) -> bytes:
    """The frame with the checksum that Kafka writes in magic 0."""
    return _with_checksum(frame, 0)


def _with_checksum(frame: bytes, counted_from: int) -> bytes:
    if len(frame) <= _FLAGS_AT:
        return frame
    flags = frame[_FLAGS_AT]
    at = _FLAGS_AT + 2 + (8 if flags & _CONTENT_SIZE else 0) + (4 if flags & _DICTIONARY else 0)
    if len(frame) <= at:
        return frame
    return frame[:at] + bytes([xxh32(frame[counted_from:at]) >> 8 & 0xFF]) + frame[at + 1 :]
