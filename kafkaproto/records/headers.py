"""Boundaries of record batches, found by their headers alone: for one batch (`batch_bytes`) or a whole range (`walk_headers`).

A batch of magic 2 and a message of magic 0 or 1 begin alike: an offset, the length of the rest, and 4 bytes later the magic.
`kafkaproto.records.batch` and `kafkaproto.records.message_set` decode the rest of the header. `walk_headers` ends without an error at an incomplete
batch or at invalid bytes; a caller that needs the error decodes the header at that position.

In four other modules, functions decode these headers without this module, each for a reason:

- `kafkaproto.broker.log.scan.find_batch` also needs the last offset of each batch. Every fetch calls this function. Its own
  loop saves up to 2.8 % of the CPU instructions of a fetch, compared with a call of `walk_headers`.
- `kafkaproto.broker.log.validation` (`_batch_size`, `is_transactional`) rejects an invalid produced batch with the error
  code that Kafka uses for each fault. `batch_bytes` returns None for all faults.
- `kafkaproto.trace.frames.cut_produce` compares length and magic itself. It runs for every recorded produce request, and
  calling `batch_bytes` would take longer.
- `kafkaproto.records.entries.complete_bytes` checks the bytes after the last whole batch, and raises DecodeError if they
  are invalid rather than incomplete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from struct import Struct
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
Read: TypeAlias = Callable[[int, int], Buffer]
"""A function ``(position, size) -> bytes`` that returns the bytes from ``position`` on, for example from a file.

``size`` is only a hint: the function may return more or fewer bytes. It returns at least a whole header, unless the data ends before.
"""

PREFIX_BYTES = 12
"""The size in bytes of the first two fields of a batch, base offset and length. The value of the length field does not count them."""
HEADER_BYTES = 61
"""The size in bytes of the header of a batch of magic 2."""
MAGIC = 2

BATCHES: Mapping[int, int] = {MAGIC: HEADER_BYTES}
"""Maps the magic of batches (2) to the smallest size of a batch in bytes, which is the size of its header."""
MESSAGES: Mapping[int, int] = {0: 26, 1: 34}
"""Maps the magics of messages to the smallest size of a message in bytes: with empty key and value."""
ENTRIES: Mapping[int, int] = {**MESSAGES, **BATCHES}

LARGE_BATCH_BYTES = 8 << 10
"""After a batch of at least this size in bytes, `walk_headers` reads only the header of the next batch, not a larger block."""
NEXT_READ_BYTES = 64 << 10

LENGTH_AND_MAGIC = Struct(">8xi4xB")
_LEAST_BYTES, _length_and_magic = LENGTH_AND_MAGIC.size, LENGTH_AND_MAGIC.unpack_from


def batch_bytes(buffer: Buffer, at: int, room: int, kinds: Mapping[int, int] = BATCHES) -> int | None:
    """Return the size in bytes of the batch that begins at index `at`, or None if the batch is invalid or incomplete.

    room: the number of bytes from `at` to the end of the range in which the batch must end. The buffer need not contain the whole batch, only its
    header. kinds: maps each accepted magic to the smallest valid size of a batch in bytes.
    """
    bytes_left = len(buffer) - at
    if bytes_left < _LEAST_BYTES:
        return None
    length, magic = _length_and_magic(buffer, at)
    least = kinds.get(magic)
    if least is None or bytes_left < least:
        return None
    size: int = length + PREFIX_BYTES
    return size if least <= size <= room else None


def walk_headers(
    read: Read, start: int, end: int, kinds: Mapping[int, int] = BATCHES, first_read_bytes: int = HEADER_BYTES
) -> Iterator[tuple[int, int, Buffer, int]]:
    """Yield (position, size in bytes, a buffer, the header's index in this buffer) of each whole batch from `start` up to `end`, exclusive.

    The iterator stops before the first batch that is invalid or ends after `end`. read: a function of (position, size) that returns bytes from
    this position on. kinds: maps each accepted magic to the smallest valid size in bytes of a batch of this magic. first_read_bytes: the size of the
    first read; later sizes depend on the batches.
    """
    position = chunk_start = start
    chunk: Buffer = b""
    read_bytes = first_read_bytes
    while position < end:
        at = position - chunk_start
        if at + HEADER_BYTES > len(chunk):
            chunk = read(position, min(read_bytes, end - position))
            chunk_start, at = position, 0
        size = batch_bytes(chunk, at, end - position, kinds)
        if size is None:
            return
        yield position, size, chunk, at
        position += size
        read_bytes = HEADER_BYTES if size >= LARGE_BATCH_BYTES else NEXT_READ_BYTES


def in_memory(buffer: Buffer) -> Read:
    """Return a function that reads from a buffer, for `walk_headers`. Positions are indexes into the buffer, and nothing is copied."""
    view = memoryview(buffer)
    return lambda position, _: view[position:]
