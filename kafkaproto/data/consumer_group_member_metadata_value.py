# Generated from schemas/data/ConsumerGroupMemberMetadataValue.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupMemberMetadataValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message, TaggedNullableStruct
from kafkaproto.primitives import CompactBytes, CompactNullableString, CompactString, Int32
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tagged, Tags


@dataclass(slots=True, eq=False, repr=False)
class ClassicProtocol(Struct):
    """One item of the list ``ClassicMemberMetadata.supported_protocols``."""

    name: str = ""
    metadata: bytes = b""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ClassicMemberMetadata(Struct):
    """The struct in the field ``ConsumerGroupMemberMetadataValue.classic_member_metadata``."""

    session_timeout_ms: int = 0
    supported_protocols: list[ClassicProtocol] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupMemberMetadataValue(Whole):
    """Value of a record whose key is `ConsumerGroupMemberMetadataKey`; this data has version 0, which is flexible (KIP-482)."""

    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default_factory=list)
    subscribed_topic_regex: str | None = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = ""
    classic_member_metadata: ClassicMemberMetadata | None = field(default_factory=ClassicMemberMetadata)  # tag 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


CLASSIC_PROTOCOL_V0 = Message(
    ClassicProtocol,
    "name" / CompactString,
    "metadata" / CompactBytes,
    Tags(),
    versions="0",
)

CLASSIC_MEMBER_METADATA_V0 = Message(
    ClassicMemberMetadata,
    "session_timeout_ms" / Int32,
    "supported_protocols" / CompactArray(CLASSIC_PROTOCOL_V0),
    Tags(),
    versions="0",
)

CONSUMER_GROUP_MEMBER_METADATA_VALUE_V0 = Message(
    ConsumerGroupMemberMetadataValue,
    "instance_id" / CompactNullableString,
    "rack_id" / CompactNullableString,
    "client_id" / CompactString,
    "client_host" / CompactString,
    "subscribed_topic_names" / CompactArray(CompactString),
    "subscribed_topic_regex" / CompactNullableString,
    "rebalance_timeout_ms" / Int32,
    "server_assignor" / CompactNullableString,
    Tags(
        Tagged(0, "classic_member_metadata" / TaggedNullableStruct(CLASSIC_MEMBER_METADATA_V0)),
    ),
    versions="0",
)

LAYOUTS: dict[int, Message[ConsumerGroupMemberMetadataValue]] = {
    0: CONSUMER_GROUP_MEMBER_METADATA_VALUE_V0,
}
ConsumerGroupMemberMetadataValue.layouts = LAYOUTS
