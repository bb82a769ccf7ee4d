# Generated from schemas/data/ShareSnapshotValue.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareSnapshotValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Int16, Int32, Int64, Int8
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tagged, Tags


@dataclass(slots=True, eq=False, repr=False)
class StateBatch(Struct):
    """One item of the list ``ShareSnapshotValue.state_batches``."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ShareSnapshotValue(Whole):
    """Value of a record whose key is `ShareSnapshotKey`; this data has version 0, which is flexible (KIP-482)."""

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1  # tag 0
    create_timestamp: int = 0
    write_timestamp: int = 0
    state_batches: list[StateBatch] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


STATE_BATCH_V0 = Message(
    StateBatch,
    "first_offset" / Int64,
    "last_offset" / Int64,
    "delivery_state" / Int8,
    "delivery_count" / Int16,
    Tags(),
    versions="0",
)

SHARE_SNAPSHOT_VALUE_V0 = Message(
    ShareSnapshotValue,
    "snapshot_epoch" / Int32,
    "state_epoch" / Int32,
    "leader_epoch" / Int32,
    "start_offset" / Int64,
    "create_timestamp" / Int64,
    "write_timestamp" / Int64,
    "state_batches" / CompactArray(STATE_BATCH_V0),
    Tags(
        Tagged(0, "delivery_complete_count" / Int32),
    ),
    versions="0",
)

LAYOUTS: dict[int, Message[ShareSnapshotValue]] = {
    0: SHARE_SNAPSHOT_VALUE_V0,
}
ShareSnapshotValue.layouts = LAYOUTS
