# Generated from schemas/data/TransactionLogValue.json by `python -m kafkaproto.generator`. Do not edit.
"""TransactionLogValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray, CompactNullableArray, NullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int16, Int32, Int64, Int8, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tagged, Tags


@dataclass(slots=True, eq=False, repr=False)
class PartitionsSchema(Struct):
    """One item of the list ``TransactionLogValue.transaction_partitions``."""

    topic: str = ""
    partition_ids: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TransactionLogValue(Whole):
    """Value of a record whose key is `TransactionLogKey`; this data has versions 0 to 1, flexible from version 1 on (KIP-482)."""

    producer_id: int = 0
    previous_producer_id: int = -1  # v1+, tag 0
    next_producer_id: int = -1  # v1+, tag 1
    producer_epoch: int = 0
    next_producer_epoch: int = -1  # v1+, tag 3
    transaction_timeout_ms: int = 0
    transaction_status: int = 0
    transaction_partitions: list[PartitionsSchema] | None = field(default_factory=list)
    transaction_last_update_timestamp_ms: int = 0
    transaction_start_timestamp_ms: int = 0
    client_transaction_version: int = 0  # v1+, tag 2
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


PARTITIONS_SCHEMA_V0 = Message(
    PartitionsSchema,
    "topic" / String,
    "partition_ids" / Array(Int32),
    versions="0",
)

TRANSACTION_LOG_VALUE_V0 = Message(
    TransactionLogValue,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "transaction_timeout_ms" / Int32,
    "transaction_status" / Int8,
    "transaction_partitions" / NullableArray(PARTITIONS_SCHEMA_V0),
    "transaction_last_update_timestamp_ms" / Int64,
    "transaction_start_timestamp_ms" / Int64,
    versions="0",
    absent=("previous_producer_id", "next_producer_id", "next_producer_epoch", "client_transaction_version"),
)

PARTITIONS_SCHEMA_V1 = Message(
    PartitionsSchema,
    "topic" / CompactString,
    "partition_ids" / CompactArray(Int32),
    Tags(),
    versions="1",
)

TRANSACTION_LOG_VALUE_V1 = Message(
    TransactionLogValue,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "transaction_timeout_ms" / Int32,
    "transaction_status" / Int8,
    "transaction_partitions" / CompactNullableArray(PARTITIONS_SCHEMA_V1),
    "transaction_last_update_timestamp_ms" / Int64,
    "transaction_start_timestamp_ms" / Int64,
    Tags(
        Tagged(0, "previous_producer_id" / Int64),
        Tagged(1, "next_producer_id" / Int64),
        Tagged(3, "next_producer_epoch" / Int16),
        Tagged(2, "client_transaction_version" / Int16),
    ),
    versions="1",
)

LAYOUTS: dict[int, Message[TransactionLogValue]] = {
    0: TRANSACTION_LOG_VALUE_V0,
    1: TRANSACTION_LOG_VALUE_V1,
}
TransactionLogValue.layouts = LAYOUTS
