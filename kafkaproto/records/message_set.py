"""Messages of magic 0 and 1, which preceded record batches (0.11, KIP-98; magic 1 is KIP-32).

A message is an offset, a size, and that many bytes: checksum, magic, attributes, in magic 1 a timestamp, key, value. One message is one record,
unless it is compressed: then it is a wrapper whose value is the compressed messages. Inner offsets are absolute in magic 0; in magic 1 they are
relative to the first inner message, and the wrapper has the absolute offset of its last inner message (KIP-31).

`records` decodes and `build_message_set` encodes. This module does not depend on magic 2 or topics.
Kafka classes: ``LegacyRecord``, ``AbstractLegacyRecordBatch``, ``MemoryRecordsBuilder``.
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
"""The size in bytes of the first two fields of a message, offset and size. The value of the size field does not count them."""
COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
SMALLEST_BYTES = {0: 14, 1: 22}
"""Maps the magic to the smallest valid value of the size field, which is that of a message with empty key and value."""

_HEADER = struct.Struct(">qiIbb")
_MAGIC_AT = 16
_SIZE_AT = 8
CRC_AT = 12
_CRC_COUNTS_FROM = 16
_TIMESTAMP_AT = 18
_KEY_AT = {0: 18, 1: 26}

_PREFIX = struct.Struct(">qi")
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_MAX_DELTA = 2**31 - 1


class MessageHeader(NamedTuple):
    """The header of a message of magic 0 or 1.

    ``timestamp`` is in ms. It is -1 if the message has no timestamp, which is always so in magic 0.
    """

    offset: int
    message_size: int
    crc: int
    magic: int
    attributes: int
    timestamp: int

    @property
    def size(self) -> int:
        """Return the size of the whole message in bytes."""
        return self.message_size + PREFIX_BYTES

    @property
    def last_offset(self) -> int:
        """Return the offset of the last record in the message.

        A compressed message has the offset of the last message inside, any other message has its own offset.
        """
        return self.offset

    @property
    def next_offset(self) -> int:
        """Return the offset after the last offset of the message, at which the next message may begin."""
        return self.offset + 1

    @property
    def max_timestamp(self) -> int:
        """Return the largest timestamp. For a compressed message (wrapper), this is the timestamp of the wrapper itself."""
        return self.timestamp

    @property
    def compression(self) -> int:
        """Return the compression kind in the header as a number, because the kind may be unknown (`Compression` has the known ones)."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Return whether the broker set the timestamp, which then applies to all inner messages. Always false in magic 0."""
        return self.magic == 1 and bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_control(self) -> bool:
        """Return False: control records need magic 2."""
        return False


class Message(NamedTuple):
    """One whole message of magic 0 or 1. Its value is not decompressed."""

    header: MessageHeader
    key: bytes | None
    value: bytes | None


def read_header(buffer: Buffer, pos: int = 0) -> MessageHeader:
    """Return the header of the message that begins at index ``pos`` of a buffer.

    Raises DecodeError if the header is incomplete, has another magic than 0 and 1, or announces a message smaller than a header. The message itself
    may be incomplete: only the header must be in the buffer.
    """
    bytes_left = len(buffer) - pos
    if bytes_left < _HEADER.size:
        raise DecodeError("Message", pos, f"the header takes {_HEADER.size} bytes, but only {bytes_left} are left")
    offset, size, crc, magic, attributes = _HEADER.unpack_from(buffer, pos)
    if magic not in SMALLEST_BYTES:
        raise DecodeError("Message.magic", pos + _MAGIC_AT, f"the magic of a message must be 0 or 1 (got {magic})")
    if size < SMALLEST_BYTES[magic]:
        raise DecodeError(
            "Message.message_size",
            pos + _SIZE_AT,
            f"the message size must be at least {SMALLEST_BYTES[magic]} bytes (got {size})",
        )
    timestamp = NO_TIMESTAMP
    if magic == 1:
        if bytes_left < _TIMESTAMP_AT + 8:
            raise DecodeError(
                "Message.timestamp",
                pos + _TIMESTAMP_AT,
                f"the timestamp takes 8 bytes, but only {bytes_left - _TIMESTAMP_AT} are left",
            )
        (timestamp,) = _INT64.unpack_from(buffer, pos + _TIMESTAMP_AT)
    return MessageHeader(offset, size, crc, magic, attributes, timestamp)


def read_message(buffer: Buffer, pos: int = 0) -> Message:
    """Return the message that begins at index ``pos`` of a buffer. Raises DecodeError if it is incomplete.

    Bytes between its value and its end are ignored, as in Kafka.
    """
    header = read_header(buffer, pos)
    end = pos + header.size
    if end > len(buffer):
        reason = f"the message takes {header.size} bytes, but only {len(buffer) - pos} are left"
        raise DecodeError("Message.message_size", pos + _SIZE_AT, reason)
    key, p = _read_bytes(buffer, pos + _KEY_AT[header.magic], end, "key")
    value, p = _read_bytes(buffer, p, end, "value")
    return Message(header, key, value)


def _read_bytes(buffer: Buffer, p: int, end: int, name: str) -> tuple[bytes | None, int]:
    if end - p < 4:
        raise DecodeError(f"Message.{name}", p, f"the length of the {name} takes 4 bytes, but only {end - p} are left")
    (size,) = _INT32.unpack_from(buffer, p)
    p += 4
    if size < 0:
        return None, p
    if size > end - p:
        raise DecodeError(
            f"Message.{name}", p, f"{size} bytes are announced, but only {end - p} are left in the message"
        )
    return bytes(buffer[p : p + size]), p + size


def check_crc(message: Buffer) -> bool:
    """Return whether the checksum of a message is correct. message: exactly the bytes of one message.

    For a compressed message, the checksums of the messages inside are not checked; `kafkaproto.records.verify` checks them.
    """
    view = memoryview(message)
    if len(view) < PREFIX_BYTES + SMALLEST_BYTES[0]:
        return False
    (crc,) = _UINT32.unpack_from(view, CRC_AT)
    return bool(crc == zlib.crc32(view[_CRC_COUNTS_FROM:]))


def inner_messages(wrapper: Message, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> tuple[bytes, list[int]]:
    """Return the decompressed bytes of a compressed message (wrapper), and the position of each inner message in these bytes.

    An incomplete message at the end is ignored, as in Kafka. Raises DecodeError for damaged data, for a wrapper without messages, and
    for more than ``limit_bytes``.
    """
    packed = wrapper.value
    if packed is None:
        raise DecodeError("Message.value", 0, "the value of a compressed message must not be null")
    kind = wrapper.header.compression
    if kind == Compression.ZSTD:
        raise DecodeError(
            "Message.attributes",
            _MAGIC_AT + 1,
            f"messages of magic {wrapper.header.magic} cannot be compressed with zstd, only with gzip, snappy or lz4",
        )
    if kind == Compression.LZ4 and wrapper.header.magic == 0:
        packed = with_right_checksum(packed)
    inside = decompress(kind, packed, limit_bytes)
    positions = []
    pos = 0
    while len(inside) - pos >= PREFIX_BYTES:
        (size,) = _INT32.unpack_from(inside, pos + _SIZE_AT)
        if size < SMALLEST_BYTES[0]:
            raise DecodeError(
                "Message.value",
                pos + _SIZE_AT,
                f"a message inside a compressed message must have a size of at least {SMALLEST_BYTES[0]} bytes (got {size})",
            )
        if size > len(inside) - pos - PREFIX_BYTES:
            break
        positions.append(pos)
        pos += PREFIX_BYTES + size
    if not positions:
        raise DecodeError(
            "Message.value",
            0,
            f"the compressed value must contain at least one whole message (got {len(inside)} decompressed bytes)",
        )
    return inside, positions


def records(message: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Iterator[Record]:
    """Yield the record of a message; for a compressed message (wrapper), all records inside. message: exactly the bytes of one message.

    The records have no headers, and in magic 0 no timestamp (-1). Raises DecodeError for damage, or for more than ``limit_bytes`` after
    decompression. Checksums are not verified. Offsets in errors about inner messages count from the start of the decompressed bytes.
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
            raise DecodeError(
                "Message.attributes",
                pos + _MAGIC_AT + 1,
                "a message inside a compressed message must not be compressed itself",
            )
        timestamp = header.timestamp if forced is None or header.magic == 0 else forced
        yield Record(base + header.offset, timestamp, key, value, ())


def _base_offset(wrapper: MessageHeader, inside: bytes, last_at: int) -> int:
    """Return the number to add to each inner offset of a compressed message (wrapper) to get the record's offset in the log.

    inside: the decompressed inner messages. last_at: the position of the last inner message in ``inside``. The result is 0 in magic 0, whose inner
    offsets are absolute. It is also 0 for a wrapper with offset 0: some versions of librdkafka give the wrapper offset 0 and the inner messages the
    offsets 0, 1 and so on.
    """
    if wrapper.magic == 0 or wrapper.offset == 0:
        return 0
    (last,) = _INT64.unpack_from(inside, last_at)
    if wrapper.offset < last:
        raise DecodeError(
            "Message.offset",
            0,
            f"the offset of a compressed message must be at least the relative offset of its last inner message, {last} (got {wrapper.offset})",
        )
    return int(wrapper.offset - last)


def build_message_set(
    new_records: Iterable[NewRecord],
    *,
    magic: int,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    log_append_time_ms: int | None = None,
) -> bytes:
    """Return the records as messages at consecutive offsets: one message for each record or, if compressed, one message that contains them all.

    ``log_append_time_ms`` becomes the timestamp of all messages; in magic 1, their timestamp type becomes LogAppendTime, too. Raises EncodeError if
    there are no records, if a record has headers or the compression is zstd (magic 0 and 1 support neither), and for values that do not fit.
    ``base_offset`` is the offset of the first record.
    """
    messages = list(new_records)
    try:
        if any(record.headers for record in messages):
            raise EncodeError(
                "Message.headers", f"records of magic {magic} cannot have headers; only those of magic 2 can"
            )
        numbered = [
            Record(base_offset + i, record.timestamp, record.key, record.value, ()) for i, record in enumerate(messages)
        ]
    except (AttributeError, TypeError) as error:
        raise EncodeError("Message", str(error)) from None
    return write_messages(numbered, magic, compression, log_append_time_ms)


def write_messages(
    listed: Sequence[Record], magic: int, compression: int, log_append_time_ms: int | None = None
) -> bytes:
    """Return records that already have increasing offsets as messages of `magic` 0 or 1. The headers of the records are dropped.

    compression: the number of the compression kind. ``log_append_time_ms`` becomes the time of all messages. Raises EncodeError for another magic, if
    there are no records, if offsets do not increase, for zstd, and for values that do not fit.
    """
    if magic not in SMALLEST_BYTES:
        raise EncodeError("Message.magic", f"the magic of a message must be 0 or 1 (got {magic})")
    try:
        kind = Compression(compression)
    except ValueError:
        raise EncodeError(
            "Message.attributes",
            f"unknown compression type {compression}; messages can have 0 (none), 1 (gzip), 2 (snappy) or 3 (lz4)",
        ) from None
    if kind == Compression.ZSTD:
        raise EncodeError(
            "Message.attributes", f"messages of magic {magic} cannot be compressed with zstd; use gzip, snappy or lz4"
        )
    if not listed:
        raise EncodeError("Message", "a message set must have at least one message")
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
    previous_offset = None
    for record in listed:
        if previous_offset is not None and record.offset <= previous_offset:
            raise EncodeError(
                "Message.offset", f"offset {record.offset} follows offset {previous_offset}, but offsets must increase"
            )
        previous_offset = record.offset
    if listed[-1].offset - listed[0].offset > _MAX_DELTA:
        raise EncodeError(
            "Message.offset",
            f"the offsets must differ by at most {_MAX_DELTA} (first {listed[0].offset}, last {listed[-1].offset})",
        )


def _message(offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None) -> bytes:
    try:
        if timestamp < NO_TIMESTAMP:
            raise EncodeError("Message.timestamp", f"a timestamp must be at least {NO_TIMESTAMP} (got {timestamp})")
        body = struct.pack(">bb", magic, attributes)
        if magic == 1:
            body += _INT64.pack(timestamp)
        body += _with_length(key) + _with_length(value)
        return _PREFIX.pack(offset, len(body) + 4) + _UINT32.pack(zlib.crc32(body)) + body
    except (struct.error, TypeError) as error:
        raise EncodeError("Message", str(error)) from None


def _with_length(data: bytes | None) -> bytes:
    return _INT32.pack(-1) if data is None else _INT32.pack(len(data)) + data
