"""Messages of magic 0 and 1: what Kafka wrote before it had record batches (0.11, KIP-98; magic 1 is KIP-32).

A message is an offset, a size, and so many bytes: checksum, magic, attributes, in magic 1 a timestamp, key, value. One
message is one record, unless it is compressed: then it is a wrapper, its value the compressed messages. Their offsets
are absolute in magic 0; in magic 1 they count from the first one, and the wrapper has the offset of the last (KIP-31).

`records` and `build_message_set` are the pair that people need. This module must never know magic 2 or topics.
Twins: ``LegacyRecord``, ``AbstractLegacyRecordBatch``, ``MemoryRecordsBuilder``.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records.compression import DEFAULT_LIMIT_BYTES, Buffer, Compression, compress, decompress
from kafkaproto.records.lz4_header import with_broken_checksum, with_right_checksum
from kafkaproto.records.record import NO_TIMESTAMP, NewRecord, Record

__all__ = [
    "Message",
    "MessageHeader",
    "build_message_set",
    "check_crc",
    "inner_messages",
    "read_header",
    "read_message",
    "records",
    "write_messages",
]

PREFIX_BYTES = 12
"""Offset and size: what the size does not count."""
COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
SMALLEST_BYTES = {0: 14, 1: 22}
"""What the size counts at least, by magic: all fields, key and value empty."""

_HEADER = struct.Struct(">qiIbb")
_MAGIC_AT = 16
_SIZE_AT = 8
_CRC_AT = 12
_CRC_COUNTS_FROM = 16
_TIMESTAMP_AT = 18
_KEY_AT = {0: 18, 1: 26}

_PREFIX = struct.Struct(">qi")
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_MAX_DELTA = 2**31 - 1


class MessageHeader(NamedTuple):
    """What stands in front of key and value. ``timestamp`` is in ms; -1 for none, and always in magic 0."""

    offset: int
    message_size: int
    crc: int
    magic: int
    attributes: int
    timestamp: int

    @property
    def size(self) -> int:
        """The bytes of the whole message."""
        return self.message_size + PREFIX_BYTES

    @property
    def last_offset(self) -> int:
        """The offset of the last record: a wrapper has the offset of the last message inside."""
        return self.offset

    @property
    def next_offset(self) -> int:
        """The offset behind it."""
        return self.offset + 1

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp: of a wrapper, that is what its own says."""
        return self.timestamp

    @property
    def compression(self) -> int:
        """The compression kind as it lies there, which need not be one that exists."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker set the timestamp; it is the time of all messages inside, too. Never in magic 0."""
        return self.magic == 1 and bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_control(self) -> bool:
        """Never: markers came with magic 2."""
        return False


class Message(NamedTuple):
    """One whole message, its key and value as they lie there."""

    header: MessageHeader
    key: bytes | None
    value: bytes | None


def read_header(buffer: Buffer, pos: int = 0) -> MessageHeader:
    """The header at ``pos``.

    DecodeError if it is not all there, is of another magic than 0 and 1, or announces a message smaller than itself.
    Whether the whole message is there is not looked at.
    """
    left = len(buffer) - pos
    if left < _HEADER.size:
        raise DecodeError("Message", pos, f"a header has {_HEADER.size} bytes, {left} are left")
    offset, size, crc, magic, attributes = _HEADER.unpack_from(buffer, pos)
    if magic not in SMALLEST_BYTES:
        raise DecodeError("Message.magic", pos + _MAGIC_AT, f"is {magic}, only 0 and 1 are known here")
    if size < SMALLEST_BYTES[magic]:
        raise DecodeError("Message.message_size", pos + _SIZE_AT, f"{size} is below {SMALLEST_BYTES[magic]}")
    timestamp = NO_TIMESTAMP
    if magic == 1:
        if left < _TIMESTAMP_AT + 8:
            raise DecodeError("Message.timestamp", pos + _TIMESTAMP_AT, "is cut off")
        (timestamp,) = _INT64.unpack_from(buffer, pos + _TIMESTAMP_AT)
    return MessageHeader(offset, size, crc, magic, attributes, timestamp)


def read_message(buffer: Buffer, pos: int = 0) -> Message:
    """The message at ``pos``; DecodeError if it is not all there. Bytes behind its value are ignored, as in Kafka."""
    header = read_header(buffer, pos)
    end = pos + header.size
    if end > len(buffer):
        reason = f"announces {header.size} bytes, {len(buffer) - pos} are left"
        raise DecodeError("Message.message_size", pos + _SIZE_AT, reason)
    key, p = _read_bytes(buffer, pos + _KEY_AT[header.magic], end, "key")
    value, p = _read_bytes(buffer, p, end, "value")
    return Message(header, key, value)


def _read_bytes(buffer: Buffer, p: int, end: int, name: str) -> tuple[bytes | None, int]:
    if end - p < 4:
        raise DecodeError(f"Message.{name}", p, f"its length is cut off, {end - p} bytes are left")
    (size,) = _INT32.unpack_from(buffer, p)
    p += 4
    if size < 0:
        return None, p
    if size > end - p:
        raise DecodeError(f"Message.{name}", p, f"{size} bytes, {end - p} are left of the message")
    return bytes(buffer[p : p + size]), p + size


def check_crc(message: Buffer) -> bool:
    """Whether the checksum of a message, given from its first to its last byte, is right.

    The wrapper's says nothing of the checksums inside; `kafkaproto.records.verify` looks at those.
    """
    view = memoryview(message)
    if len(view) < PREFIX_BYTES + SMALLEST_BYTES[0]:
        return False
    (crc,) = _UINT32.unpack_from(view, _CRC_AT)
    return bool(crc == zlib.crc32(view[_CRC_COUNTS_FROM:]))


def inner_messages(wrapper: Message, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> tuple[bytes, list[int]]:
    """The messages inside a wrapper: the decompressed bytes and where each begins.

    A message that is cut off at the end does not count, as in Kafka. DecodeError for damaged data, for none at all, and
    for more than ``limit_bytes``.
    """
    packed = wrapper.value
    if packed is None:
        raise DecodeError("Message.value", 0, "a compressed message has no value")
    kind = wrapper.header.compression
    if kind == Compression.ZSTD:
        raise DecodeError("Message.attributes", _MAGIC_AT + 1, f"zstd is not for magic {wrapper.header.magic}")
    if kind == Compression.LZ4 and wrapper.header.magic == 0:
        packed = with_right_checksum(packed)
    inside = decompress(kind, packed, limit_bytes)
    positions = []
    pos = 0
    while len(inside) - pos >= PREFIX_BYTES:
        (size,) = _INT32.unpack_from(inside, pos + _SIZE_AT)
        if size < SMALLEST_BYTES[0]:
            raise DecodeError("Message.value", pos + _SIZE_AT, f"a message of {size} bytes cannot be")
        if size > len(inside) - pos - PREFIX_BYTES:
            break
        positions.append(pos)
        pos += PREFIX_BYTES + size
    if not positions:
        raise DecodeError("Message.value", 0, "no message is inside")
    return inside, positions


def records(message: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Iterator[Record]:
    """The records of one message, given from its first to its last byte: one, or those inside of it.

    They have no headers, in magic 0 no timestamp (-1). DecodeError for what is damaged, or more than ``limit_bytes``
    when it is unpacked. Checksums are not looked at. Offsets in errors about what is inside count there.
    """
    outer = read_message(message)
    if not outer.header.compression:
        yield Record(outer.header.offset, outer.header.timestamp, outer.key, outer.value, ())
        return
    inside, positions = inner_messages(outer, limit_bytes)
    base = _base_offset(outer.header, inside, positions[-1])
    forced = outer.header.timestamp if outer.header.is_log_append_time else None
    for pos in positions:
        header, key, value = read_message(inside, pos)
        if header.compression:
            raise DecodeError("Message.attributes", pos + _MAGIC_AT + 1, "a message inside of another is compressed")
        timestamp = header.timestamp if forced is None or header.magic == 0 else forced
        yield Record(base + header.offset, timestamp, key, value, ())


def _base_offset(wrapper: MessageHeader, inside: bytes, last_at: int) -> int:
    """What to add to the offsets inside. Some librdkafka produced wrappers with offset 0, whose first one is 0, too."""
    if wrapper.magic == 0 or wrapper.offset == 0:
        return 0
    (last,) = _INT64.unpack_from(inside, last_at)
    if wrapper.offset < last:
        raise DecodeError("Message.offset", 0, f"the wrapper's {wrapper.offset} is below {last}, the last one inside")
    return int(wrapper.offset - last)


def build_message_set(
    new_records: Iterable[NewRecord],
    *,
    magic: int,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    log_append_time_ms: int | None = None,
) -> bytes:
    """Messages of the records at consecutive offsets: one each, or one wrapper around all of them.

    With ``log_append_time_ms`` that is the time of all, and marked as the broker's (magic 1 only has the mark). Raises
    EncodeError for no records at all, for headers, which these magics lack, for zstd, and for values that do not fit.
    """
    listed = list(new_records)
    try:
        if any(record.headers for record in listed):
            raise EncodeError("Message.headers", f"magic {magic} has no headers")
        numbered = [
            Record(base_offset + i, record.timestamp, record.key, record.value, ()) for i, record in enumerate(listed)
        ]
    except (AttributeError, TypeError) as error:
        raise EncodeError("Message", str(error)) from None
    return write_messages(numbered, magic, compression, log_append_time_ms)


def write_messages(
    listed: Sequence[Record], magic: int, compression: int, log_append_time_ms: int | None = None
) -> bytes:
    """The same of records that have their offsets, which must rise. Headers are lost."""
    if magic not in SMALLEST_BYTES:
        raise EncodeError("Message.magic", f"is {magic}, only 0 and 1 are known here")
    try:
        kind = Compression(compression)
    except ValueError as error:
        raise EncodeError("Message.attributes", str(error)) from None
    if kind == Compression.ZSTD:
        raise EncodeError("Message.attributes", f"zstd is not for magic {magic}")
    if not listed:
        raise EncodeError("Message", "a message set has at least one message")
    _check_offsets(listed)
    attributes = LOG_APPEND_TIME if magic == 1 and log_append_time_ms is not None else 0
    if log_append_time_ms is not None:
        listed = [record._replace(timestamp=log_append_time_ms) for record in listed]
    base = listed[0].offset if magic == 1 and compression else 0
    plain = b"".join(
        _message(record.offset - base, magic, attributes, record.timestamp, record.key, record.value)
        for record in listed
    )
    if not compression:
        return plain
    packed = compress(kind, plain)
    if compression == Compression.LZ4 and magic == 0:
        packed = with_broken_checksum(packed)
    latest = max(NO_TIMESTAMP, *(record.timestamp for record in listed))
    return _message(listed[-1].offset, magic, attributes | compression, latest, None, packed)


def _check_offsets(listed: Sequence[Record]) -> None:
    before = None
    for record in listed:
        if before is not None and record.offset <= before:
            raise EncodeError("Message.offset", f"{record.offset} follows {before}")
        before = record.offset
    if listed[-1].offset - listed[0].offset > _MAX_DELTA:
        raise EncodeError("Message.offset", f"{listed[-1].offset} is too far from {listed[0].offset}")


def _message(offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None) -> bytes:
    try:
        if timestamp < NO_TIMESTAMP:
            raise EncodeError("Message.timestamp", f"{timestamp} is negative")
        body = struct.pack(">bb", magic, attributes)
        if magic == 1:
            body += _INT64.pack(timestamp)
        body += _sized(key) + _sized(value)
        return _PREFIX.pack(offset, len(body) + 4) + _UINT32.pack(zlib.crc32(body)) + body
    except (struct.error, TypeError) as error:
        raise EncodeError("Message", str(error)) from None


def _sized(data: bytes | None) -> bytes:
    return _INT32.pack(-1) if data is None else _INT32.pack(len(data)) + data
