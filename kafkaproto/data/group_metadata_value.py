# Generated from schemas/data/GroupMetadataValue.json by `python -m kafkaproto.generator`. Do not edit.
"""GroupMetadataValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import (
    Bytes,
    CompactBytes,
    CompactNullableString,
    CompactString,
    Int32,
    Int64,
    NullableString,
    String,
)
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class MemberMetadata(Struct):
    """One item of the list ``GroupMetadataValue.members``."""

    member_id: str = ""
    group_instance_id: str | None = None  # v3+, ignorable
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1  # v1+, ignorable
    session_timeout: int = 0
    subscription: bytes = b""
    assignment: bytes = b""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class GroupMetadataValue(Whole):
    """Value of a record whose key is `GroupMetadataKey`; this data has versions 0 to 4, flexible from version 4 on (KIP-482)."""

    protocol_type: str = ""
    generation: int = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: int = -1  # v2+, ignorable
    members: list[MemberMetadata] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


MEMBER_METADATA_V0 = Message(
    MemberMetadata,
    "member_id" / String,
    "client_id" / String,
    "client_host" / String,
    "session_timeout" / Int32,
    "subscription" / Bytes,
    "assignment" / Bytes,
    versions="0",
)

GROUP_METADATA_VALUE_V0 = Message(
    GroupMetadataValue,
    "protocol_type" / String,
    "generation" / Int32,
    "protocol" / NullableString,
    "leader" / NullableString,
    "members" / Array(MEMBER_METADATA_V0),
    versions="0",
)

MEMBER_METADATA_V1 = Message(
    MemberMetadata,
    "member_id" / String,
    "client_id" / String,
    "client_host" / String,
    "rebalance_timeout" / Int32,
    "session_timeout" / Int32,
    "subscription" / Bytes,
    "assignment" / Bytes,
    versions="1-2",
)

GROUP_METADATA_VALUE_V1 = Message(
    GroupMetadataValue,
    "protocol_type" / String,
    "generation" / Int32,
    "protocol" / NullableString,
    "leader" / NullableString,
    "members" / Array(MEMBER_METADATA_V1),
    versions="1",
)

GROUP_METADATA_VALUE_V2 = Message(
    GroupMetadataValue,
    "protocol_type" / String,
    "generation" / Int32,
    "protocol" / NullableString,
    "leader" / NullableString,
    "current_state_timestamp" / Int64,
    "members" / Array(MEMBER_METADATA_V1),
    versions="2",
)

MEMBER_METADATA_V3 = Message(
    MemberMetadata,
    "member_id" / String,
    "group_instance_id" / NullableString,
    "client_id" / String,
    "client_host" / String,
    "rebalance_timeout" / Int32,
    "session_timeout" / Int32,
    "subscription" / Bytes,
    "assignment" / Bytes,
    versions="3",
)

GROUP_METADATA_VALUE_V3 = Message(
    GroupMetadataValue,
    "protocol_type" / String,
    "generation" / Int32,
    "protocol" / NullableString,
    "leader" / NullableString,
    "current_state_timestamp" / Int64,
    "members" / Array(MEMBER_METADATA_V3),
    versions="3",
)

MEMBER_METADATA_V4 = Message(
    MemberMetadata,
    "member_id" / CompactString,
    "group_instance_id" / CompactNullableString,
    "client_id" / CompactString,
    "client_host" / CompactString,
    "rebalance_timeout" / Int32,
    "session_timeout" / Int32,
    "subscription" / CompactBytes,
    "assignment" / CompactBytes,
    Tags(),
    versions="4",
)

GROUP_METADATA_VALUE_V4 = Message(
    GroupMetadataValue,
    "protocol_type" / CompactString,
    "generation" / Int32,
    "protocol" / CompactNullableString,
    "leader" / CompactNullableString,
    "current_state_timestamp" / Int64,
    "members" / CompactArray(MEMBER_METADATA_V4),
    Tags(),
    versions="4",
)

LAYOUTS: dict[int, Message[GroupMetadataValue]] = {
    0: GROUP_METADATA_VALUE_V0,
    1: GROUP_METADATA_VALUE_V1,
    2: GROUP_METADATA_VALUE_V2,
    3: GROUP_METADATA_VALUE_V3,
    4: GROUP_METADATA_VALUE_V4,
}
GroupMetadataValue.layouts = LAYOUTS
