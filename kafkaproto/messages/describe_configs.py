# Generated from schemas/messages/DescribeConfigsRequest.json and DescribeConfigsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DescribeConfigsRequest and DescribeConfigsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray, CompactNullableArray, NullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactNullableString, CompactString, Int16, Int32, Int8, NullableString, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class DescribeConfigsResource(Struct):
    """One item of the list ``DescribeConfigsRequest.resources``."""

    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeConfigsRequest(Whole):
    """Request of API key 32: versions 0 to 4; flexible from version 4 on (KIP-482)."""

    resources: list[DescribeConfigsResource] = field(default_factory=list)
    include_synonyms: bool = False  # v1+
    include_documentation: bool = False  # v3+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeConfigsSynonym(Struct):
    """One item of the list ``DescribeConfigsResourceResult.synonyms``."""

    name: str = ""  # v1+
    value: str | None = ""  # v1+
    source: int = 0  # v1+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeConfigsResourceResult(Struct):
    """One item of the list ``DescribeConfigsResult.configs``."""

    name: str = ""
    value: str | None = ""
    read_only: bool = False
    is_default: bool = False  # v0
    config_source: int = -1  # v1+, ignorable
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = field(default_factory=list)  # v1+, ignorable
    config_type: int = 0  # v3+, ignorable
    documentation: str | None = ""  # v3+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeConfigsResult(Struct):
    """One item of the list ``DescribeConfigsResponse.results``."""

    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeConfigsResponse(Whole):
    """Response of API key 32: versions 0 to 4; flexible from version 4 on (KIP-482)."""

    throttle_time_ms: int = 0
    results: list[DescribeConfigsResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DESCRIBE_CONFIGS_RESOURCE_V0 = Message(
    DescribeConfigsResource,
    "resource_type" / Int8,
    "resource_name" / String,
    "configuration_keys" / NullableArray(String),
    versions="0-3",
)

DESCRIBE_CONFIGS_REQUEST_V0 = Message(
    DescribeConfigsRequest,
    "resources" / Array(DESCRIBE_CONFIGS_RESOURCE_V0),
    versions="0",
    absent=("include_synonyms", "include_documentation"),
)

DESCRIBE_CONFIGS_REQUEST_V1 = Message(
    DescribeConfigsRequest,
    "resources" / Array(DESCRIBE_CONFIGS_RESOURCE_V0),
    "include_synonyms" / Bool,
    versions="1-2",
    absent=("include_documentation",),
)

DESCRIBE_CONFIGS_REQUEST_V2 = DESCRIBE_CONFIGS_REQUEST_V1

DESCRIBE_CONFIGS_REQUEST_V3 = Message(
    DescribeConfigsRequest,
    "resources" / Array(DESCRIBE_CONFIGS_RESOURCE_V0),
    "include_synonyms" / Bool,
    "include_documentation" / Bool,
    versions="3",
)

DESCRIBE_CONFIGS_RESOURCE_V4 = Message(
    DescribeConfigsResource,
    "resource_type" / Int8,
    "resource_name" / CompactString,
    "configuration_keys" / CompactNullableArray(CompactString),
    Tags(),
    versions="4",
)

DESCRIBE_CONFIGS_REQUEST_V4 = Message(
    DescribeConfigsRequest,
    "resources" / CompactArray(DESCRIBE_CONFIGS_RESOURCE_V4),
    "include_synonyms" / Bool,
    "include_documentation" / Bool,
    Tags(),
    versions="4",
)

REQUESTS: dict[int, Message[DescribeConfigsRequest]] = {
    0: DESCRIBE_CONFIGS_REQUEST_V0,
    1: DESCRIBE_CONFIGS_REQUEST_V1,
    2: DESCRIBE_CONFIGS_REQUEST_V2,
    3: DESCRIBE_CONFIGS_REQUEST_V3,
    4: DESCRIBE_CONFIGS_REQUEST_V4,
}
DescribeConfigsRequest.layouts = REQUESTS

DESCRIBE_CONFIGS_RESOURCE_RESULT_V0 = Message(
    DescribeConfigsResourceResult,
    "name" / String,
    "value" / NullableString,
    "read_only" / Bool,
    "is_default" / Bool,
    "is_sensitive" / Bool,
    versions="0",
)

DESCRIBE_CONFIGS_RESULT_V0 = Message(
    DescribeConfigsResult,
    "error_code" / Int16,
    "error_message" / NullableString,
    "resource_type" / Int8,
    "resource_name" / String,
    "configs" / Array(DESCRIBE_CONFIGS_RESOURCE_RESULT_V0),
    versions="0",
)

DESCRIBE_CONFIGS_RESPONSE_V0 = Message(
    DescribeConfigsResponse,
    "throttle_time_ms" / Int32,
    "results" / Array(DESCRIBE_CONFIGS_RESULT_V0),
    versions="0",
)

DESCRIBE_CONFIGS_SYNONYM_V1 = Message(
    DescribeConfigsSynonym,
    "name" / String,
    "value" / NullableString,
    "source" / Int8,
    versions="1-3",
)

DESCRIBE_CONFIGS_RESOURCE_RESULT_V1 = Message(
    DescribeConfigsResourceResult,
    "name" / String,
    "value" / NullableString,
    "read_only" / Bool,
    "config_source" / Int8,
    "is_sensitive" / Bool,
    "synonyms" / Array(DESCRIBE_CONFIGS_SYNONYM_V1),
    versions="1-2",
    absent=("is_default",),
)

DESCRIBE_CONFIGS_RESULT_V1 = Message(
    DescribeConfigsResult,
    "error_code" / Int16,
    "error_message" / NullableString,
    "resource_type" / Int8,
    "resource_name" / String,
    "configs" / Array(DESCRIBE_CONFIGS_RESOURCE_RESULT_V1),
    versions="1-2",
)

DESCRIBE_CONFIGS_RESPONSE_V1 = Message(
    DescribeConfigsResponse,
    "throttle_time_ms" / Int32,
    "results" / Array(DESCRIBE_CONFIGS_RESULT_V1),
    versions="1-2",
)

DESCRIBE_CONFIGS_RESPONSE_V2 = DESCRIBE_CONFIGS_RESPONSE_V1

DESCRIBE_CONFIGS_RESOURCE_RESULT_V3 = Message(
    DescribeConfigsResourceResult,
    "name" / String,
    "value" / NullableString,
    "read_only" / Bool,
    "config_source" / Int8,
    "is_sensitive" / Bool,
    "synonyms" / Array(DESCRIBE_CONFIGS_SYNONYM_V1),
    "config_type" / Int8,
    "documentation" / NullableString,
    versions="3",
    absent=("is_default",),
)

DESCRIBE_CONFIGS_RESULT_V3 = Message(
    DescribeConfigsResult,
    "error_code" / Int16,
    "error_message" / NullableString,
    "resource_type" / Int8,
    "resource_name" / String,
    "configs" / Array(DESCRIBE_CONFIGS_RESOURCE_RESULT_V3),
    versions="3",
)

DESCRIBE_CONFIGS_RESPONSE_V3 = Message(
    DescribeConfigsResponse,
    "throttle_time_ms" / Int32,
    "results" / Array(DESCRIBE_CONFIGS_RESULT_V3),
    versions="3",
)

DESCRIBE_CONFIGS_SYNONYM_V4 = Message(
    DescribeConfigsSynonym,
    "name" / CompactString,
    "value" / CompactNullableString,
    "source" / Int8,
    Tags(),
    versions="4",
)

DESCRIBE_CONFIGS_RESOURCE_RESULT_V4 = Message(
    DescribeConfigsResourceResult,
    "name" / CompactString,
    "value" / CompactNullableString,
    "read_only" / Bool,
    "config_source" / Int8,
    "is_sensitive" / Bool,
    "synonyms" / CompactArray(DESCRIBE_CONFIGS_SYNONYM_V4),
    "config_type" / Int8,
    "documentation" / CompactNullableString,
    Tags(),
    versions="4",
    absent=("is_default",),
)

DESCRIBE_CONFIGS_RESULT_V4 = Message(
    DescribeConfigsResult,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "resource_type" / Int8,
    "resource_name" / CompactString,
    "configs" / CompactArray(DESCRIBE_CONFIGS_RESOURCE_RESULT_V4),
    Tags(),
    versions="4",
)

DESCRIBE_CONFIGS_RESPONSE_V4 = Message(
    DescribeConfigsResponse,
    "throttle_time_ms" / Int32,
    "results" / CompactArray(DESCRIBE_CONFIGS_RESULT_V4),
    Tags(),
    versions="4",
)

RESPONSES: dict[int, Message[DescribeConfigsResponse]] = {
    0: DESCRIBE_CONFIGS_RESPONSE_V0,
    1: DESCRIBE_CONFIGS_RESPONSE_V1,
    2: DESCRIBE_CONFIGS_RESPONSE_V2,
    3: DESCRIBE_CONFIGS_RESPONSE_V3,
    4: DESCRIBE_CONFIGS_RESPONSE_V4,
}
DescribeConfigsResponse.layouts = RESPONSES
