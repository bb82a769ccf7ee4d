# Generated from schemas/messages/IncrementalAlterConfigsRequest.json and IncrementalAlterConfigsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""IncrementalAlterConfigsRequest and IncrementalAlterConfigsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactNullableString, CompactString, Int16, Int32, Int8, NullableString, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class AlterableConfig(Struct):
    """One item of the list ``AlterConfigsResource.configs``."""

    name: str = ""
    config_operation: int = 0
    value: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterConfigsResource(Struct):
    """One item of the list ``IncrementalAlterConfigsRequest.resources``."""

    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class IncrementalAlterConfigsRequest(Whole):
    """Request of API key 44: versions 0 to 1; flexible from version 1 on (KIP-482)."""

    resources: list[AlterConfigsResource] = field(default_factory=list)
    validate_only: bool = False
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterConfigsResourceResponse(Struct):
    """One item of the list ``IncrementalAlterConfigsResponse.responses``."""

    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class IncrementalAlterConfigsResponse(Whole):
    """Response of API key 44: versions 0 to 1; flexible from version 1 on (KIP-482)."""

    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


ALTERABLE_CONFIG_V0 = Message(
    AlterableConfig,
    "name" / String,
    "config_operation" / Int8,
    "value" / NullableString,
    versions="0",
)

ALTER_CONFIGS_RESOURCE_V0 = Message(
    AlterConfigsResource,
    "resource_type" / Int8,
    "resource_name" / String,
    "configs" / Array(ALTERABLE_CONFIG_V0),
    versions="0",
)

INCREMENTAL_ALTER_CONFIGS_REQUEST_V0 = Message(
    IncrementalAlterConfigsRequest,
    "resources" / Array(ALTER_CONFIGS_RESOURCE_V0),
    "validate_only" / Bool,
    versions="0",
)

ALTERABLE_CONFIG_V1 = Message(
    AlterableConfig,
    "name" / CompactString,
    "config_operation" / Int8,
    "value" / CompactNullableString,
    Tags(),
    versions="1",
)

ALTER_CONFIGS_RESOURCE_V1 = Message(
    AlterConfigsResource,
    "resource_type" / Int8,
    "resource_name" / CompactString,
    "configs" / CompactArray(ALTERABLE_CONFIG_V1),
    Tags(),
    versions="1",
)

INCREMENTAL_ALTER_CONFIGS_REQUEST_V1 = Message(
    IncrementalAlterConfigsRequest,
    "resources" / CompactArray(ALTER_CONFIGS_RESOURCE_V1),
    "validate_only" / Bool,
    Tags(),
    versions="1",
)

REQUESTS: dict[int, Message[IncrementalAlterConfigsRequest]] = {
    0: INCREMENTAL_ALTER_CONFIGS_REQUEST_V0,
    1: INCREMENTAL_ALTER_CONFIGS_REQUEST_V1,
}
IncrementalAlterConfigsRequest.layouts = REQUESTS

ALTER_CONFIGS_RESOURCE_RESPONSE_V0 = Message(
    AlterConfigsResourceResponse,
    "error_code" / Int16,
    "error_message" / NullableString,
    "resource_type" / Int8,
    "resource_name" / String,
    versions="0",
)

INCREMENTAL_ALTER_CONFIGS_RESPONSE_V0 = Message(
    IncrementalAlterConfigsResponse,
    "throttle_time_ms" / Int32,
    "responses" / Array(ALTER_CONFIGS_RESOURCE_RESPONSE_V0),
    versions="0",
)

ALTER_CONFIGS_RESOURCE_RESPONSE_V1 = Message(
    AlterConfigsResourceResponse,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "resource_type" / Int8,
    "resource_name" / CompactString,
    Tags(),
    versions="1",
)

INCREMENTAL_ALTER_CONFIGS_RESPONSE_V1 = Message(
    IncrementalAlterConfigsResponse,
    "throttle_time_ms" / Int32,
    "responses" / CompactArray(ALTER_CONFIGS_RESOURCE_RESPONSE_V1),
    Tags(),
    versions="1",
)

RESPONSES: dict[int, Message[IncrementalAlterConfigsResponse]] = {
    0: INCREMENTAL_ALTER_CONFIGS_RESPONSE_V0,
    1: INCREMENTAL_ALTER_CONFIGS_RESPONSE_V1,
}
IncrementalAlterConfigsResponse.layouts = RESPONSES
