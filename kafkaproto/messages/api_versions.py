# Generated from schemas/messages/ApiVersionsRequest.json and ApiVersionsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ApiVersionsRequest and ApiVersionsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactString, Int16, Int32, Int64
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tagged, Tags


@dataclass(slots=True, eq=False, repr=False)
class ApiVersionsRequest(Whole):
    """Request of API key 18: versions 0 to 4; flexible from version 3 on (KIP-482)."""

    client_software_name: str = ""  # v3+, ignorable
    client_software_version: str = ""  # v3+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ApiVersion(Struct):
    """One item of the list ``ApiVersionsResponse.api_keys``."""

    api_key: int = 0
    min_version: int = 0
    max_version: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class SupportedFeatureKey(Struct):
    """One item of the list ``ApiVersionsResponse.supported_features``."""

    name: str = ""  # v3+
    min_version: int = 0  # v3+
    max_version: int = 0  # v3+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class FinalizedFeatureKey(Struct):
    """One item of the list ``ApiVersionsResponse.finalized_features``."""

    name: str = ""  # v3+
    max_version_level: int = 0  # v3+
    min_version_level: int = 0  # v3+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ApiVersionsResponse(Whole):
    """Response of API key 18: versions 0 to 4; flexible from version 3 on (KIP-482)."""

    error_code: int = 0
    api_keys: list[ApiVersion] = field(default_factory=list)
    throttle_time_ms: int = 0  # v1+, ignorable
    supported_features: list[SupportedFeatureKey] = field(default_factory=list)  # v3+, tag 0, ignorable
    finalized_features_epoch: int = -1  # v3+, tag 1, ignorable
    finalized_features: list[FinalizedFeatureKey] = field(default_factory=list)  # v3+, tag 2, ignorable
    zk_migration_ready: bool = False  # v3+, tag 3, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


API_VERSIONS_REQUEST_V0 = Message(
    ApiVersionsRequest,
    versions="0-2",
)

API_VERSIONS_REQUEST_V1 = API_VERSIONS_REQUEST_V0

API_VERSIONS_REQUEST_V2 = API_VERSIONS_REQUEST_V0

API_VERSIONS_REQUEST_V3 = Message(
    ApiVersionsRequest,
    "client_software_name" / CompactString,
    "client_software_version" / CompactString,
    Tags(),
    versions="3-4",
)

API_VERSIONS_REQUEST_V4 = API_VERSIONS_REQUEST_V3

REQUESTS: dict[int, Message[ApiVersionsRequest]] = {
    0: API_VERSIONS_REQUEST_V0,
    1: API_VERSIONS_REQUEST_V1,
    2: API_VERSIONS_REQUEST_V2,
    3: API_VERSIONS_REQUEST_V3,
    4: API_VERSIONS_REQUEST_V4,
}
ApiVersionsRequest.layouts = REQUESTS

API_VERSION_V0 = Message(
    ApiVersion,
    "api_key" / Int16,
    "min_version" / Int16,
    "max_version" / Int16,
    versions="0-2",
)

API_VERSIONS_RESPONSE_V0 = Message(
    ApiVersionsResponse,
    "error_code" / Int16,
    "api_keys" / Array(API_VERSION_V0),
    versions="0",
)

API_VERSIONS_RESPONSE_V1 = Message(
    ApiVersionsResponse,
    "error_code" / Int16,
    "api_keys" / Array(API_VERSION_V0),
    "throttle_time_ms" / Int32,
    versions="1-2",
)

API_VERSIONS_RESPONSE_V2 = API_VERSIONS_RESPONSE_V1

API_VERSION_V3 = Message(
    ApiVersion,
    "api_key" / Int16,
    "min_version" / Int16,
    "max_version" / Int16,
    Tags(),
    versions="3-4",
)

SUPPORTED_FEATURE_KEY_V3 = Message(
    SupportedFeatureKey,
    "name" / CompactString,
    "min_version" / Int16,
    "max_version" / Int16,
    Tags(),
    versions="3-4",
)

FINALIZED_FEATURE_KEY_V3 = Message(
    FinalizedFeatureKey,
    "name" / CompactString,
    "max_version_level" / Int16,
    "min_version_level" / Int16,
    Tags(),
    versions="3-4",
)

API_VERSIONS_RESPONSE_V3 = Message(
    ApiVersionsResponse,
    "error_code" / Int16,
    "api_keys" / CompactArray(API_VERSION_V3),
    "throttle_time_ms" / Int32,
    Tags(
        Tagged(0, "supported_features" / CompactArray(SUPPORTED_FEATURE_KEY_V3)),
        Tagged(1, "finalized_features_epoch" / Int64),
        Tagged(2, "finalized_features" / CompactArray(FINALIZED_FEATURE_KEY_V3)),
        Tagged(3, "zk_migration_ready" / Bool),
    ),
    versions="3-4",
)

API_VERSIONS_RESPONSE_V4 = API_VERSIONS_RESPONSE_V3

RESPONSES: dict[int, Message[ApiVersionsResponse]] = {
    0: API_VERSIONS_RESPONSE_V0,
    1: API_VERSIONS_RESPONSE_V1,
    2: API_VERSIONS_RESPONSE_V2,
    3: API_VERSIONS_RESPONSE_V3,
    4: API_VERSIONS_RESPONSE_V4,
}
ApiVersionsResponse.layouts = RESPONSES
