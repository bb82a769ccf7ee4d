# Generated from schemas/messages/AlterClientQuotasRequest.json and AlterClientQuotasResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""AlterClientQuotasRequest and AlterClientQuotasResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import (
    Bool,
    CompactNullableString,
    CompactString,
    Float64,
    Int16,
    Int32,
    NullableString,
    String,
)
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class AlterClientQuotasRequestEntityData(Struct):
    """One item of the list ``AlterClientQuotasRequestEntryData.entity``."""

    entity_type: str = ""
    entity_name: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class OpData(Struct):
    """One item of the list ``AlterClientQuotasRequestEntryData.ops``."""

    key: str = ""
    value: float = 0.0
    remove: bool = False
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterClientQuotasRequestEntryData(Struct):
    """One item of the list ``AlterClientQuotasRequest.entries``."""

    entity: list[AlterClientQuotasRequestEntityData] = field(default_factory=list)
    ops: list[OpData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterClientQuotasRequest(Whole):
    """Request of API key 49: versions 0 to 1; flexible from version 1 on (KIP-482)."""

    entries: list[AlterClientQuotasRequestEntryData] = field(default_factory=list)
    validate_only: bool = False
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterClientQuotasResponseEntityData(Struct):
    """One item of the list ``AlterClientQuotasResponseEntryData.entity``."""

    entity_type: str = ""
    entity_name: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterClientQuotasResponseEntryData(Struct):
    """One item of the list ``AlterClientQuotasResponse.entries``."""

    error_code: int = 0
    error_message: str | None = ""
    entity: list[AlterClientQuotasResponseEntityData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterClientQuotasResponse(Whole):
    """Response of API key 49: versions 0 to 1; flexible from version 1 on (KIP-482)."""

    throttle_time_ms: int = 0
    entries: list[AlterClientQuotasResponseEntryData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


ALTER_CLIENT_QUOTAS_REQUEST_ENTITY_DATA_V0 = Message(
    AlterClientQuotasRequestEntityData,
    "entity_type" / String,
    "entity_name" / NullableString,
    versions="0",
)

OP_DATA_V0 = Message(
    OpData,
    "key" / String,
    "value" / Float64,
    "remove" / Bool,
    versions="0",
)

ALTER_CLIENT_QUOTAS_REQUEST_ENTRY_DATA_V0 = Message(
    AlterClientQuotasRequestEntryData,
    "entity" / Array(ALTER_CLIENT_QUOTAS_REQUEST_ENTITY_DATA_V0),
    "ops" / Array(OP_DATA_V0),
    versions="0",
)

ALTER_CLIENT_QUOTAS_REQUEST_V0 = Message(
    AlterClientQuotasRequest,
    "entries" / Array(ALTER_CLIENT_QUOTAS_REQUEST_ENTRY_DATA_V0),
    "validate_only" / Bool,
    versions="0",
)

ALTER_CLIENT_QUOTAS_REQUEST_ENTITY_DATA_V1 = Message(
    AlterClientQuotasRequestEntityData,
    "entity_type" / CompactString,
    "entity_name" / CompactNullableString,
    Tags(),
    versions="1",
)

OP_DATA_V1 = Message(
    OpData,
    "key" / CompactString,
    "value" / Float64,
    "remove" / Bool,
    Tags(),
    versions="1",
)

ALTER_CLIENT_QUOTAS_REQUEST_ENTRY_DATA_V1 = Message(
    AlterClientQuotasRequestEntryData,
    "entity" / CompactArray(ALTER_CLIENT_QUOTAS_REQUEST_ENTITY_DATA_V1),
    "ops" / CompactArray(OP_DATA_V1),
    Tags(),
    versions="1",
)

ALTER_CLIENT_QUOTAS_REQUEST_V1 = Message(
    AlterClientQuotasRequest,
    "entries" / CompactArray(ALTER_CLIENT_QUOTAS_REQUEST_ENTRY_DATA_V1),
    "validate_only" / Bool,
    Tags(),
    versions="1",
)

REQUESTS: dict[int, Message[AlterClientQuotasRequest]] = {
    0: ALTER_CLIENT_QUOTAS_REQUEST_V0,
    1: ALTER_CLIENT_QUOTAS_REQUEST_V1,
}
AlterClientQuotasRequest.layouts = REQUESTS

ALTER_CLIENT_QUOTAS_RESPONSE_ENTITY_DATA_V0 = Message(
    AlterClientQuotasResponseEntityData,
    "entity_type" / String,
    "entity_name" / NullableString,
    versions="0",
)

ALTER_CLIENT_QUOTAS_RESPONSE_ENTRY_DATA_V0 = Message(
    AlterClientQuotasResponseEntryData,
    "error_code" / Int16,
    "error_message" / NullableString,
    "entity" / Array(ALTER_CLIENT_QUOTAS_RESPONSE_ENTITY_DATA_V0),
    versions="0",
)

ALTER_CLIENT_QUOTAS_RESPONSE_V0 = Message(
    AlterClientQuotasResponse,
    "throttle_time_ms" / Int32,
    "entries" / Array(ALTER_CLIENT_QUOTAS_RESPONSE_ENTRY_DATA_V0),
    versions="0",
)

ALTER_CLIENT_QUOTAS_RESPONSE_ENTITY_DATA_V1 = Message(
    AlterClientQuotasResponseEntityData,
    "entity_type" / CompactString,
    "entity_name" / CompactNullableString,
    Tags(),
    versions="1",
)

ALTER_CLIENT_QUOTAS_RESPONSE_ENTRY_DATA_V1 = Message(
    AlterClientQuotasResponseEntryData,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "entity" / CompactArray(ALTER_CLIENT_QUOTAS_RESPONSE_ENTITY_DATA_V1),
    Tags(),
    versions="1",
)

ALTER_CLIENT_QUOTAS_RESPONSE_V1 = Message(
    AlterClientQuotasResponse,
    "throttle_time_ms" / Int32,
    "entries" / CompactArray(ALTER_CLIENT_QUOTAS_RESPONSE_ENTRY_DATA_V1),
    Tags(),
    versions="1",
)

RESPONSES: dict[int, Message[AlterClientQuotasResponse]] = {
    0: ALTER_CLIENT_QUOTAS_RESPONSE_V0,
    1: ALTER_CLIENT_QUOTAS_RESPONSE_V1,
}
AlterClientQuotasResponse.layouts = RESPONSES
