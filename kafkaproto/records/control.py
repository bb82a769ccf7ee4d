"""Control batches: records that brokers write for consumers and for themselves, above all the end of a transaction (KIP-98).

The key of a control record is a version and a type; the value depends on the type. This module must never know
transactions. Twins: ``ControlRecordType``, ``EndTransactionMarker``, ``MemoryRecords.withEndTransactionMarker``.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from kafkaproto.data.end_txn_marker import END_TXN_MARKER_V0, EndTxnMarker
from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records.batch import CONTROL, NO_EPOCH, NO_PRODUCER, TRANSACTIONAL, build_batch
from kafkaproto.records.record import NewRecord, Record

__all__ = ["ControlRecordType", "EndOfTransaction", "build_end_txn_marker", "control_type", "read_end_txn_marker"]

_KEY = struct.Struct(">hh")
_VERSION = struct.Struct(">h")
_CURRENT_VERSION = 0


class ControlRecordType(IntEnum):
    """What a control record says. UNKNOWN stands for every type that is not here; a consumer passes over those."""

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
    """How a transaction ended, and the epoch of the coordinator that said so."""

    committed: bool
    coordinator_epoch: int


def control_type(key: bytes | None) -> ControlRecordType:
    """The type that the key of a control record tells. DecodeError if it is too short or its version is negative.

    Newer versions are read like the known one, as in Kafka.
    """
    if key is None or len(key) < _KEY.size:
        raise DecodeError("ControlRecord.key", 0, f"has {len(key or b'')} bytes, a version and a type have {_KEY.size}")
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise DecodeError("ControlRecord.key", 0, f"version {version} is negative")
    return ControlRecordType(kind)


def read_end_txn_marker(record: Record) -> EndOfTransaction:
    """What the marker says. DecodeError if the record is of another type or damaged."""
    kind = control_type(record.key)
    if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        raise DecodeError("ControlRecord.key", 2, f"{kind.name} does not end a transaction")
    value = record.value or b""
    if len(value) < _VERSION.size:
        raise DecodeError("ControlRecord.value", 0, f"has {len(value)} bytes, a version has {_VERSION.size}")
    (version,) = _VERSION.unpack_from(value)
    if version < 0:
        raise DecodeError("ControlRecord.value", 0, f"version {version} is negative")
    marker, _ = END_TXN_MARKER_V0.decode_flat(memoryview(value), _VERSION.size, len(value))
    return EndOfTransaction(kind == ControlRecordType.COMMIT, marker.coordinator_epoch)


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
    """A batch with the marker that ends a transaction. ``timestamp`` in ms. EncodeError without a producer id."""
    if producer_id <= NO_PRODUCER:
        raise EncodeError("RecordBatch.producer_id", f"a marker needs one, not {producer_id}")
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
