"""Where record batches begin and end, by their headers alone: one batch (`batch_bytes`) or a whole range (`walk_headers`).

A batch of magic 2 and a message of magic 0 or 1 begin alike: an offset, the length of what follows, and 4 bytes later
the magic. What else is in a header, `kafkaproto.records.batch` and `kafkaproto.records.message_set` know. A batch that
is cut off and bytes that are no batch end a walk without an error; who needs the error reads the header there.

Four places read these headers themselves:

- `kafkaproto.broker.log.scan.find_batch` also needs the last offset of each batch. Every fetch calls it, and one loop
  over the chunk saves up to 2.8 % of its instructions.
- `kafkaproto.broker.log.validation` (`_batch_size`, `is_transactional`) rejects an invalid produced batch with the error
  code that Kafka chooses for what is wrong. `batch_bytes` returns None for all of it.
- `kafkaproto.trace.frames.cut_produce` compares length and magic without a call, because it runs for every recorded
  produce request.
- `kafkaproto.records.entries.complete_bytes` looks at what follows the last whole batch, and raises DecodeError if those
  bytes are invalid rather than cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from struct import Struct
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
Read: TypeAlias = Callable[[int, int], Buffer]
"""``(position, size) -> bytes``: at least a header's, or all that there are; more than ``size`` is welcome."""

PREFIX_BYTES = 12
"""Base offset and length: what the length does not count."""
HEADER_BYTES = 61
"""The header of a batch of magic 2."""
MAGIC = 2

BATCHES: Mapping[int, int] = {MAGIC: HEADER_BYTES}
"""The smallest size of a batch of magic 2, by magic."""
MESSAGES: Mapping[int, int] = {0: 26, 1: 34}
"""The smallest size of a message, whose key and value are empty, by magic."""
ENTRIES: Mapping[int, int] = {**MESSAGES, **BATCHES}

LARGE_BATCH_BYTES = 8 << 10
"""Behind a batch from this size on only the next header is read."""
NEXT_READ_BYTES = 64 << 10

LENGTH_AND_MAGIC = Struct(">8xi4xB")
_LEAST_BYTES, _length_and_magic = LENGTH_AND_MAGIC.size, LENGTH_AND_MAGIC.unpack_from


def batch_bytes(buffer: Buffer, at: int, room: int, kinds: Mapping[int, int] = BATCHES) -> int | None:
    """Return the size of the batch whose header lies at `at`, or None if there is none, or not all of it.

    room: the bytes from the batch's first byte to the end of the range, of which the buffer needs to have the header only.
    kinds: the magics that count, each with its smallest size.
    """
    left = len(buffer) - at
    if left < _LEAST_BYTES:
        return None
    length, magic = _length_and_magic(buffer, at)
    least = kinds.get(magic)
    if least is None or left < least:
        return None
    size: int = length + PREFIX_BYTES
    return size if least <= size <= room else None


def walk_headers(
    read: Read, start: int, end: int, kinds: Mapping[int, int] = BATCHES, first_read_bytes: int = HEADER_BYTES
) -> Iterator[tuple[int, int, Buffer, int]]:
    """Yield the whole batches of the range `start`..`end`: position, size, and a buffer with the header's place in it.

    The walk ends before the first batch that is not whole or of another kind. first_read_bytes: how much is read at
    first; after that it depends on the size of the batches.
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
    """Return what `walk_headers` reads a buffer with; positions are the buffer's, and nothing is copied."""
    view = memoryview(buffer)
    return lambda position, _: view[position:]
