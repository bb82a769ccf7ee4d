"""Record batches built by hand, so that the log's tests do not depend on the codec."""

from __future__ import annotations

import struct

from crc32c import crc32c

NOW_MS = 1_700_000_000_000


def varint(n: int) -> bytes:
    n = (n << 1) ^ (n >> 63)
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def record(delta: int, timestamp_delta: int, key: bytes | None, value: bytes) -> bytes:
    body = b"\0" + varint(timestamp_delta) + varint(delta)
    body += varint(-1) if key is None else varint(len(key)) + key
    body += varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def batch(
    count: int = 1,
    value_bytes: int = 20,
    *,
    key: bytes | None = None,
    timestamps: list[int] | None = None,
    base_offset: int = 0,
    epoch: int = -1,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    last_offset_delta: int | None = None,
    record_count: int | None = None,
    max_timestamp: int | None = None,
    payload: bytes | None = None,
    magic: int = 2,
) -> bytearray:
    """Return one batch of `count` records with a correct checksum. Every header field can be set to an invalid value."""
    times = timestamps if timestamps is not None else [NOW_MS] * count
    count = len(times)
    if payload is None:
        payload = b"".join(record(i, t - times[0], key, b"x" * value_bytes) for i, t in enumerate(times))
    tail = (
        struct.pack(
            ">hiqqqhii",
            attributes,
            count - 1 if last_offset_delta is None else last_offset_delta,
            times[0],
            max(times) if max_timestamp is None else max_timestamp,
            producer_id,
            producer_epoch,
            sequence,
            count if record_count is None else record_count,
        )
        + payload
    )
    body = struct.pack(">ibI", epoch, magic, crc32c(tail)) + tail
    return bytearray(struct.pack(">qi", base_offset, len(body)) + body)
