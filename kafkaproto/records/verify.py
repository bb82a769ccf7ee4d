"""Verification of a batch or message: checksums, counts, offsets.

This module makes all checks that ``DefaultRecordBatch`` and ``LogValidator`` apply to a producer's batch, in their order, without
stopping at the first problem. Decoding does not make these checks. This module does not depend on topic settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkaproto.errors import DecodeError
from kafkaproto.records import entries, message_set
from kafkaproto.records.batch import BatchHeader, payload
from kafkaproto.records.compression import DEFAULT_LIMIT_BYTES, Buffer
from kafkaproto.records.message_set import MessageHeader
from kafkaproto.records.walk import Stretch, walk

__all__ = ["Problem", "problems"]


class Problem(NamedTuple):
    """A problem of a batch: ``field`` names the invalid field (``RecordBatch.crc``), ``reason`` describes the problem."""

    field: str
    reason: str


def problems(batch: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> list[Problem]:
    """Return all problems of one batch or message of any magic. batch: exactly its bytes. An empty list means that it is valid.

    A decoding error is not raised, but becomes the last problem. A batch that a cleaner has compacted is reported as having gaps in its offsets,
    because a producer's batch has none. limit_bytes: the maximum size of the decompressed records; exceeding it is a problem.
    """
    problem_list: list[Problem] = []
    try:
        header = entries.read_header(batch)
        if header.size != len(batch):
            return [Problem("RecordBatch.batch_length", f"announces {header.size} bytes, {len(batch)} are there")]
        problem_list.extend(
            _batch_problems(batch, header, limit_bytes)
            if isinstance(header, BatchHeader)
            else _message_problems(batch, header, limit_bytes)
        )
    except DecodeError as error:
        problem_list.append(Problem(error.path, error.reason))
    return problem_list


def _batch_problems(batch: Buffer, header: BatchHeader, limit_bytes: int) -> Iterator[Problem]:
    if not entries.check_crc(batch):
        yield Problem("RecordBatch.crc", f"{header.crc:#010x} is not that of the bytes")
    if header.last_offset_delta < 0:
        yield Problem("RecordBatch.last_offset_delta", f"{header.last_offset_delta} is negative")
    if header.record_count <= 0:
        yield Problem("RecordBatch.record_count", f"{header.record_count} records")
    elif header.last_offset_delta + 1 != header.record_count:
        reason = f"{header.record_count} records, but the offsets count {header.last_offset_delta + 1}"
        yield Problem("RecordBatch.record_count", reason)
    if header.has_producer_id and header.base_sequence < 0 and not header.is_control:
        yield Problem("RecordBatch.base_sequence", f"{header.base_sequence} is negative")
    _, b = payload(batch, limit_bytes)
    yield from _wrong_offsets(
        "RecordBatch",
        (
            delta
            for part in walk(b, header.record_count)
            for delta in (part.offsets(b, 0) if isinstance(part, Stretch) else (part[1],))
        ),
    )


def _message_problems(batch: Buffer, header: MessageHeader, limit_bytes: int) -> Iterator[Problem]:
    if not entries.check_crc(batch):
        yield Problem("Message.crc", f"{header.crc:#010x} is not that of the bytes")
    outer = message_set.read_message(batch)
    if not header.compression:
        return
    inside, positions = message_set.inner_messages(outer, limit_bytes)
    offsets = []
    for i, pos in enumerate(positions):
        inner = message_set.read_message(inside, pos).header
        offsets.append(inner.offset)
        if inner.magic != header.magic:
            yield Problem(f"Message.messages[{i}].magic", f"{inner.magic} inside of {header.magic}")
        if inner.compression:
            yield Problem(f"Message.messages[{i}].attributes", "a message inside of another is compressed")
        if not message_set.check_crc(inside[pos : pos + inner.size]):
            yield Problem(f"Message.messages[{i}].crc", f"{inner.crc:#010x} is not that of the bytes")
    first = 0 if header.magic else offsets[0]
    yield from _wrong_offsets("Message", (offset - first for offset in offsets))


def _wrong_offsets(name: str, deltas: Iterator[int]) -> Iterator[Problem]:
    """Yield a problem if the offsets of a batch are not consecutive; only the first wrong offset is reported.

    name: the name of the batch in the path of the invalid field, such as "RecordBatch". deltas: the offset of each record minus the base offset of
    the batch, which must be 0, 1, 2, ….
    """
    for i, delta in enumerate(deltas):
        if delta != i:
            yield Problem(f"{name}.records[{i}].offset_delta", f"is {delta}")
            return
