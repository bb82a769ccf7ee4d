"""Record batches from their description in a request sequence, complete or damaged in one way."""

from __future__ import annotations

import struct
from typing import Any

from crc32c import crc32c

from kafkaproto.records.batch import Compression, NewRecord, build_batch
from kafkaproto.records.message_set import build_message_set

TIME_MS = 1_700_000_000_000
FIRST_PRODUCER = 4_000_000
OLD_MS = 1000
LENGTH_AT, MAGIC_AT, CRC_AT, ATTRIBUTES_AT, LAST_DELTA_AT, SEQUENCE_AT, COUNT_AT = 8, 16, 17, 21, 23, 53, 57


def made(batch: dict[str, Any]) -> bytes:
    """Return the bytes that a produce request contains for this batch."""
    damage = batch.get("damage", "")
    if damage == "nothing":
        return b""
    times = OLD_MS if damage == "old time" else TIME_MS
    listed = [
        NewRecord(b"v" * size, b"k%d" % (i % 2) if batch.get("keys", True) else None, times + 1000 * i)
        for i, size in enumerate(batch["values"])
    ]
    if damage in ("magic 0", "magic 1"):
        return build_message_set(listed, magic=int(damage[-1]))
    options: dict[str, Any] = {}
    if "producer" in batch:
        producer_id = FIRST_PRODUCER + batch["producer"]
        options = {"producer_id": producer_id, "producer_epoch": batch["epoch"], "base_sequence": batch["sequence"]}
    data = bytearray(build_batch(listed, compression=Compression(batch["codec"]), **options))
    return bytes(_damaged(data, damage))


def _damaged(data: bytearray, damage: str) -> bytes | bytearray:
    length = len(data) - 12
    if damage == "checksum":
        data[-1] ^= 1
        return data
    if damage == "two batches":
        return data + data
    if damage == "tail":
        return data + b"\0\0\0\0\0\0\0\1\0\0\1"
    if damage == "cut":
        return data[:-3]
    if damage == "magic 3":
        data[MAGIC_AT] = 3
        return data
    if damage == "base offset":
        struct.pack_into(">q", data, 0, 7)
        return data
    lengths = {"length short": length - 4, "length long": length + 4, "length tiny": 9}
    if damage in lengths:
        struct.pack_into(">i", data, LENGTH_AT, lengths[damage])
        return data
    if damage == "last delta":
        struct.pack_into(">i", data, LAST_DELTA_AT, 77)
    elif damage in ("count 0", "count many"):
        struct.pack_into(">i", data, COUNT_AT, 0 if damage == "count 0" else 9)
    elif damage == "no sequence":
        struct.pack_into(">qhi", data, 43, FIRST_PRODUCER, 0, -1)
    flags = {"control": 0x20, "transactional": 0x10, "log append time": 0x08, "unknown codec": 0x07}
    if damage in flags:
        (attributes,) = struct.unpack_from(">h", data, ATTRIBUTES_AT)
        struct.pack_into(">h", data, ATTRIBUTES_AT, attributes | flags[damage])
    struct.pack_into(">I", data, CRC_AT, crc32c(data[ATTRIBUTES_AT:]))
    return data
