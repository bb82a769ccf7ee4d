# Generated from schemas/data/StreamsGroupMemberMetadataValue.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupMemberMetadataValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message, NullableStruct
from kafkaproto.primitives import CompactNullableString, CompactString, Int32, Uint16
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class Endpoint(Struct):
    """The struct in the field ``StreamsGroupMemberMetadataValue.user_endpoint``."""

    host: str = ""
    port: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class KeyValue(Struct):
    """One item of the list ``StreamsGroupMemberMetadataValue.client_tags``."""

    key: str = ""
    value: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupMemberMetadataValue(Whole):
    """Value of a record whose key is `StreamsGroupMemberMetadataKey`; this data has version 0, which is flexible (KIP-482)."""

    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


ENDPOINT_V0 = Message(
    Endpoint,
    "host" / CompactString,
    "port" / Uint16,
    Tags(),
    versions="0",
)

KEY_VALUE_V0 = Message(
    KeyValue,
    "key" / CompactString,
    "value" / CompactString,
    Tags(),
    versions="0",
)

STREAMS_GROUP_MEMBER_METADATA_VALUE_V0 = Message(
    StreamsGroupMemberMetadataValue,
    "instance_id" / CompactNullableString,
    "rack_id" / CompactNullableString,
    "client_id" / CompactString,
    "client_host" / CompactString,
    "rebalance_timeout_ms" / Int32,
    "topology_epoch" / Int32,
    "process_id" / CompactString,
    "user_endpoint" / NullableStruct(ENDPOINT_V0),
    "client_tags" / CompactArray(KEY_VALUE_V0),
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[StreamsGroupMemberMetadataValue]] = {
    0: STREAMS_GROUP_MEMBER_METADATA_VALUE_V0,
}
StreamsGroupMemberMetadataValue.layouts = LAYOUTS
