# Generated from schemas/data/OffsetCommitValue.json by `python -m kafkaproto.generator`. Do not edit.
"""OffsetCommitValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int32, Int64, String, Uuid
from kafkaproto.structs import Whole
from kafkaproto.tags import Tagged, Tags


@dataclass(slots=True, eq=False, repr=False)
class OffsetCommitValue(Whole):
    """Value of a record whose key is `OffsetCommitKey`; this data has versions 0 to 4, flexible from version 4 on (KIP-482)."""

    offset: int = 0
    leader_epoch: int = -1  # v3+, ignorable
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int = -1  # v1, ignorable
    topic_id: bytes = bytes(16)  # v4+, tag 0, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


OFFSET_COMMIT_VALUE_V0 = Message(
    OffsetCommitValue,
    "offset" / Int64,
    "metadata" / String,
    "commit_timestamp" / Int64,
    versions="0, 2",
)

OFFSET_COMMIT_VALUE_V1 = Message(
    OffsetCommitValue,
    "offset" / Int64,
    "metadata" / String,
    "commit_timestamp" / Int64,
    "expire_timestamp" / Int64,
    versions="1",
)

OFFSET_COMMIT_VALUE_V2 = OFFSET_COMMIT_VALUE_V0

OFFSET_COMMIT_VALUE_V3 = Message(
    OffsetCommitValue,
    "offset" / Int64,
    "leader_epoch" / Int32,
    "metadata" / String,
    "commit_timestamp" / Int64,
    versions="3",
)

OFFSET_COMMIT_VALUE_V4 = Message(
    OffsetCommitValue,
    "offset" / Int64,
    "leader_epoch" / Int32,
    "metadata" / CompactString,
    "commit_timestamp" / Int64,
    Tags(
        Tagged(0, "topic_id" / Uuid),
    ),
    versions="4",
)

LAYOUTS: dict[int, Message[OffsetCommitValue]] = {
    0: OFFSET_COMMIT_VALUE_V0,
    1: OFFSET_COMMIT_VALUE_V1,
    2: OFFSET_COMMIT_VALUE_V2,
    3: OFFSET_COMMIT_VALUE_V3,
    4: OFFSET_COMMIT_VALUE_V4,
}
OffsetCommitValue.layouts = LAYOUTS
