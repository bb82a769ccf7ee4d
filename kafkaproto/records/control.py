"""Control batches: records that brokers write, above all the markers that end transactions (KIP-98).

The key of a control record is a version and a type; the value depends on the type. This module does not depend on
transactions. Kafka classes: ``ControlRecordType``, ``EndTransactionMarker``, ``MemoryRecords.withEndTransactionMarker``.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from kafkaproto.data.end_txn_marker import END_TXN_MARKER_V0, EndTxnMarker
from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records.batch import CONTROL, NO_EPOCH, NO_PRODUCER, TRANSACTIONAL, build_batch
from kafkaproto.records.record import NewRecord, Record

__all__ = [
    "ControlRecordType",
    "EndOfTransaction",
    "build_end_txn_marker",
    "control_type",
    "end_of_transaction",
    "read_end_txn_marker",
]

_KEY = struct.Struct(">hh")
_VERSION = struct.Struct(">h")
_CURRENT_VERSION = 0


class ControlRecordType(IntEnum):
    """The type of a control record. UNKNOWN stands for every unlisted type; consumers skip such records."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6

    @classmethod
    def _missing_(cls, value: object) -> ControlRecordType:
        return cls.UNKNOWN


class EndOfTransaction(NamedTuple):
    """The content of a transaction marker: whether the transaction was committed, and the epoch of the coordinator that wrote the marker."""

    committed: bool
    coordinator_epoch: int


def control_type(key: bytes | None) -> ControlRecordType:
    """Return the type in the key of a control record. Raises DecodeError if the key is too short or its version is negative.

    A key of a newer version is decoded like one of version 0, as in Kafka.
    """
    if key is None or len(key) < _KEY.size:
        raise DecodeError(
            "ControlRecord.key", 0, f"version and type take {_KEY.size} bytes, but the key has only {len(key or b'')}"
        )
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise DecodeError("ControlRecord.key", 0, f"the version must not be negative (got {version})")
    return ControlRecordType(kind)


def read_end_txn_marker(record: Record) -> EndOfTransaction:
    """Decode the marker that ends a transaction. Raises DecodeError if the record is of another type or damaged."""
    kind = control_type(record.key)
    if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        raise DecodeError(
            "ControlRecord.key", 2, f"the type must be ABORT or COMMIT to end a transaction (got {kind.name})"
        )
    value = record.value or b""
    if len(value) < _VERSION.size:
        raise DecodeError(
            "ControlRecord.value", 0, f"the version takes {_VERSION.size} bytes, but the value has only {len(value)}"
        )
    (version,) = _VERSION.unpack_from(value)
    if version < 0:
        raise DecodeError("ControlRecord.value", 0, f"the version must not be negative (got {version})")
    marker, _ = END_TXN_MARKER_V0.decode_flat(memoryview(value), _VERSION.size, len(value))
    return EndOfTransaction(kind == ControlRecordType.COMMIT, marker.coordinator_epoch)


def end_of_transaction(record: Record) -> EndOfTransaction | None:
    """Return the content of a transaction marker; None if the control record is of another type or damaged."""
    try:
        return read_end_txn_marker(record)
    except DecodeError:
        return None


def build_end_txn_marker(
    committed: bool,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
) -> bytes:
    """Return a control batch with the marker that ends a transaction. Raises EncodeError if the producer id is -1.

    committed: False for an aborted transaction. coordinator_epoch: the epoch of the transaction coordinator. timestamp: the time of the marker in ms.
    base_offset, leader_epoch: the offset of the marker and the partition's leader epoch, which a broker sets when it appends the batch.
    """
    if producer_id == NO_PRODUCER:
        raise EncodeError(
            "RecordBatch.producer_id", f"a transaction marker needs the id of its producer (got {producer_id})"
        )
    kind = ControlRecordType.COMMIT if committed else ControlRecordType.ABORT
    value = _VERSION.pack(_CURRENT_VERSION) + END_TXN_MARKER_V0.encode(EndTxnMarker(coordinator_epoch))
    return build_batch(
        [NewRecord(value, _KEY.pack(_CURRENT_VERSION, kind), timestamp)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        attributes=TRANSACTIONAL | CONTROL,
    )
