# Generated from schemas/messages/ListConfigResourcesRequest.json and ListConfigResourcesResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ListConfigResourcesRequest and ListConfigResourcesResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int16, Int32, Int8
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ListConfigResourcesRequest(Whole):
    """Request of API key 74: versions 0 to 1; all flexible (KIP-482)."""

    resource_types: list[int] = field(default_factory=list)  # v1+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ConfigResource(Struct):
    """One item of the list ``ListConfigResourcesResponse.config_resources``."""

    resource_name: str = ""
    resource_type: int = 16  # v1+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ListConfigResourcesResponse(Whole):
    """Response of API key 74: versions 0 to 1; all flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: list[ConfigResource] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


LIST_CONFIG_RESOURCES_REQUEST_V0 = Message(
    ListConfigResourcesRequest,
    Tags(),
    versions="0",
    absent=("resource_types",),
)

LIST_CONFIG_RESOURCES_REQUEST_V1 = Message(
    ListConfigResourcesRequest,
    "resource_types" / CompactArray(Int8),
    Tags(),
    versions="1",
)

REQUESTS: dict[int, Message[ListConfigResourcesRequest]] = {
    0: LIST_CONFIG_RESOURCES_REQUEST_V0,
    1: LIST_CONFIG_RESOURCES_REQUEST_V1,
}
ListConfigResourcesRequest.layouts = REQUESTS

CONFIG_RESOURCE_V0 = Message(
    ConfigResource,
    "resource_name" / CompactString,
    Tags(),
    versions="0",
)

LIST_CONFIG_RESOURCES_RESPONSE_V0 = Message(
    ListConfigResourcesResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "config_resources" / CompactArray(CONFIG_RESOURCE_V0),
    Tags(),
    versions="0",
)

CONFIG_RESOURCE_V1 = Message(
    ConfigResource,
    "resource_name" / CompactString,
    "resource_type" / Int8,
    Tags(),
    versions="1",
)

LIST_CONFIG_RESOURCES_RESPONSE_V1 = Message(
    ListConfigResourcesResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "config_resources" / CompactArray(CONFIG_RESOURCE_V1),
    Tags(),
    versions="1",
)

RESPONSES: dict[int, Message[ListConfigResourcesResponse]] = {
    0: LIST_CONFIG_RESOURCES_RESPONSE_V0,
    1: LIST_CONFIG_RESOURCES_RESPONSE_V1,
}
ListConfigResourcesResponse.layouts = RESPONSES
