"""The header checksum of lz4 frames, which Kafka computed wrongly in magic 0 (KIP-57).

The correct checksum covers the frame descriptor; Kafka's also covered the frame's four magic bytes before the descriptor. Readers of messages of
magic 0 do not verify the checksum (``KafkaLZ4BlockInputStream``), so both kinds exist. This module does not depend on messages.
"""

from __future__ import annotations

from kafkaproto.records.xxh32 import xxh32

_MAGIC_BYTES = 4
_FLAGS_AT = 4
_CONTENT_SIZE = 0x08
_DICTIONARY = 0x01


def with_right_checksum(frame: bytes) -> bytes:
    """Return the lz4 frame with its header checksum replaced by the correct one, as the lz4 specification defines it.

    Bytes that are too short for a frame header are returned unchanged.
    """
    return _with_checksum(frame, _MAGIC_BYTES)


def with_broken_checksum(frame: bytes) -> bytes:
    """Return the lz4 frame with its header checksum replaced by the incorrect one that Kafka writes in messages of magic 0."""
    return _with_checksum(frame, 0)


def _with_checksum(frame: bytes, counted_from: int) -> bytes:
    if len(frame) <= _FLAGS_AT:
        return frame
    flags = frame[_FLAGS_AT]
    at = _FLAGS_AT + 2 + (8 if flags & _CONTENT_SIZE else 0) + (4 if flags & _DICTIONARY else 0)
    if len(frame) <= at:
        return frame
    return frame[:at] + bytes([xxh32(frame[counted_from:at]) >> 8 & 0xFF]) + frame[at + 1 :]
