"""Finds the batches in a range of byte positions of a store, which holds the bytes of a partition. Only the headers of batches are decoded."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.log.index import INTERVAL_BYTES
from kafkaproto.broker.log.named_files import place_of
from kafkaproto.broker.log.store import Store
from kafkaproto.records.batch import BatchHeader, read_header
from kafkaproto.records.headers import HEADER_BYTES, PREFIX_BYTES, walk_headers

# The header fields needed to find an offset: base_offset, batch_length, last_offset_delta.
_EXTENT = Struct(">qi11xi")
# The batch begins within an index interval; its header may extend past the end of the interval.
_FIRST_READ_BYTES = INTERVAL_BYTES + HEADER_BYTES


def headers(store: Store, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (byte position, header) of every batch at byte positions of a partition's store from `start` up to `end`, exclusive.

    A batch must begin at `start`. Raises StorageError if no batch ends at `end`.
    """
    walked_to = start
    for position, size_bytes, chunk, at in walk_headers(store.read, start, end, first_read_bytes=_FIRST_READ_BYTES):
        walked_to = position + size_bytes
        yield position, read_header(chunk, at)
    if walked_to < end:
        raise StorageError(
            f"the log in {place_of(store.folder)} is damaged: bytes {walked_to} to {end} must be complete batches, "
            "but are not; restore the log from a backup, or delete the topic"
        )


def base_offset_at(store: Store, position: int) -> int:
    """Return the base offset of the batch that begins at byte `position` of the store, which holds a partition's bytes."""
    return read_header(store.read(position, HEADER_BYTES)).base_offset


def find_batch(store: Store, position: int, end: int, offset: int) -> tuple[int, int, int]:
    """Return (byte position, size in bytes, base offset) of the first batch that contains `offset` or a later offset.

    store: the bytes of a partition. position, end: the byte positions to search, `end` exclusive; a batch must begin at `position`. If all batches in
    this range end before `offset`, returns `(end, 0, offset)`. Raises StorageError if the store no longer has the bytes.
    """
    # Not `walk_headers`: every fetch searches here, and one loop over the chunk saves up to 2.8 % of its instructions.
    unpack = _EXTENT.unpack_from
    while position < end:
        chunk = store.read(position, min(_FIRST_READ_BYTES, end - position))
        at = 0
        chunk_end = len(chunk) - _EXTENT.size
        while at <= chunk_end:
            base_offset, batch_length, last_offset_delta = unpack(chunk, at)
            if base_offset + last_offset_delta >= offset:
                return position + at, batch_length + PREFIX_BYTES, base_offset
            at += batch_length + PREFIX_BYTES
        if not at:
            raise StorageError(
                f"the log in {place_of(store.folder)} no longer contains the bytes from position {position} to {end}: "
                "it was truncated or deleted during the read; read the partition again"
            )
        position += at
    return end, 0, offset
