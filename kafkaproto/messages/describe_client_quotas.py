# Generated from schemas/messages/DescribeClientQuotasRequest.json and DescribeClientQuotasResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DescribeClientQuotasRequest and DescribeClientQuotasResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray, CompactNullableArray, NullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import (
    Bool,
    CompactNullableString,
    CompactString,
    Float64,
    Int16,
    Int32,
    Int8,
    NullableString,
    String,
)
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ComponentData(Struct):
    """One item of the list ``DescribeClientQuotasRequest.components``."""

    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeClientQuotasRequest(Whole):
    """Request of API key 48: versions 0 to 1; flexible from version 1 on (KIP-482)."""

    components: list[ComponentData] = field(default_factory=list)
    strict: bool = False
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class EntityData(Struct):
    """One item of the list ``EntryData.entity``."""

    entity_type: str = ""
    entity_name: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ValueData(Struct):
    """One item of the list ``EntryData.values``."""

    key: str = ""
    value: float = 0.0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class EntryData(Struct):
    """One item of the list ``DescribeClientQuotasResponse.entries``."""

    entity: list[EntityData] = field(default_factory=list)
    values: list[ValueData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeClientQuotasResponse(Whole):
    """Response of API key 48: versions 0 to 1; flexible from version 1 on (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


COMPONENT_DATA_V0 = Message(
    ComponentData,
    "entity_type" / String,
    "match_type" / Int8,
    "match" / NullableString,
    versions="0",
)

DESCRIBE_CLIENT_QUOTAS_REQUEST_V0 = Message(
    DescribeClientQuotasRequest,
    "components" / Array(COMPONENT_DATA_V0),
    "strict" / Bool,
    versions="0",
)

COMPONENT_DATA_V1 = Message(
    ComponentData,
    "entity_type" / CompactString,
    "match_type" / Int8,
    "match" / CompactNullableString,
    Tags(),
    versions="1",
)

DESCRIBE_CLIENT_QUOTAS_REQUEST_V1 = Message(
    DescribeClientQuotasRequest,
    "components" / CompactArray(COMPONENT_DATA_V1),
    "strict" / Bool,
    Tags(),
    versions="1",
)

REQUESTS: dict[int, Message[DescribeClientQuotasRequest]] = {
    0: DESCRIBE_CLIENT_QUOTAS_REQUEST_V0,
    1: DESCRIBE_CLIENT_QUOTAS_REQUEST_V1,
}
DescribeClientQuotasRequest.layouts = REQUESTS

ENTITY_DATA_V0 = Message(
    EntityData,
    "entity_type" / String,
    "entity_name" / NullableString,
    versions="0",
)

VALUE_DATA_V0 = Message(
    ValueData,
    "key" / String,
    "value" / Float64,
    versions="0",
)

ENTRY_DATA_V0 = Message(
    EntryData,
    "entity" / Array(ENTITY_DATA_V0),
    "values" / Array(VALUE_DATA_V0),
    versions="0",
)

DESCRIBE_CLIENT_QUOTAS_RESPONSE_V0 = Message(
    DescribeClientQuotasResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / NullableString,
    "entries" / NullableArray(ENTRY_DATA_V0),
    versions="0",
)

ENTITY_DATA_V1 = Message(
    EntityData,
    "entity_type" / CompactString,
    "entity_name" / CompactNullableString,
    Tags(),
    versions="1",
)

VALUE_DATA_V1 = Message(
    ValueData,
    "key" / CompactString,
    "value" / Float64,
    Tags(),
    versions="1",
)

ENTRY_DATA_V1 = Message(
    EntryData,
    "entity" / CompactArray(ENTITY_DATA_V1),
    "values" / CompactArray(VALUE_DATA_V1),
    Tags(),
    versions="1",
)

DESCRIBE_CLIENT_QUOTAS_RESPONSE_V1 = Message(
    DescribeClientQuotasResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "entries" / CompactNullableArray(ENTRY_DATA_V1),
    Tags(),
    versions="1",
)

RESPONSES: dict[int, Message[DescribeClientQuotasResponse]] = {
    0: DESCRIBE_CLIENT_QUOTAS_RESPONSE_V0,
    1: DESCRIBE_CLIENT_QUOTAS_RESPONSE_V1,
}
DescribeClientQuotasResponse.layouts = RESPONSES
