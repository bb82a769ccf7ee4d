# Generated from schemas/messages/DescribeClusterRequest.json and DescribeClusterResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DescribeClusterRequest and DescribeClusterResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactNullableString, CompactString, Int16, Int32, Int8
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class DescribeClusterRequest(Whole):
    """Request of API key 60: versions 0 to 2; all flexible (KIP-482)."""

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1  # v1+
    include_fenced_brokers: bool = False  # v2+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeClusterBroker(Struct):
    """One item of the list ``DescribeClusterResponse.brokers``."""

    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False  # v2+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeClusterResponse(Whole):
    """Response of API key 60: versions 0 to 2; all flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1  # v1+
    cluster_id: str = ""
    controller_id: int = -1
    brokers: list[DescribeClusterBroker] = field(default_factory=list)
    cluster_authorized_operations: int = -2147483648
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DESCRIBE_CLUSTER_REQUEST_V0 = Message(
    DescribeClusterRequest,
    "include_cluster_authorized_operations" / Bool,
    Tags(),
    versions="0",
    absent=("endpoint_type", "include_fenced_brokers"),
)

DESCRIBE_CLUSTER_REQUEST_V1 = Message(
    DescribeClusterRequest,
    "include_cluster_authorized_operations" / Bool,
    "endpoint_type" / Int8,
    Tags(),
    versions="1",
    absent=("include_fenced_brokers",),
)

DESCRIBE_CLUSTER_REQUEST_V2 = Message(
    DescribeClusterRequest,
    "include_cluster_authorized_operations" / Bool,
    "endpoint_type" / Int8,
    "include_fenced_brokers" / Bool,
    Tags(),
    versions="2",
)

REQUESTS: dict[int, Message[DescribeClusterRequest]] = {
    0: DESCRIBE_CLUSTER_REQUEST_V0,
    1: DESCRIBE_CLUSTER_REQUEST_V1,
    2: DESCRIBE_CLUSTER_REQUEST_V2,
}
DescribeClusterRequest.layouts = REQUESTS

DESCRIBE_CLUSTER_BROKER_V0 = Message(
    DescribeClusterBroker,
    "broker_id" / Int32,
    "host" / CompactString,
    "port" / Int32,
    "rack" / CompactNullableString,
    Tags(),
    versions="0-1",
    absent=("is_fenced",),
)

DESCRIBE_CLUSTER_RESPONSE_V0 = Message(
    DescribeClusterResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "cluster_id" / CompactString,
    "controller_id" / Int32,
    "brokers" / CompactArray(DESCRIBE_CLUSTER_BROKER_V0),
    "cluster_authorized_operations" / Int32,
    Tags(),
    versions="0",
    absent=("endpoint_type",),
)

DESCRIBE_CLUSTER_RESPONSE_V1 = Message(
    DescribeClusterResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "endpoint_type" / Int8,
    "cluster_id" / CompactString,
    "controller_id" / Int32,
    "brokers" / CompactArray(DESCRIBE_CLUSTER_BROKER_V0),
    "cluster_authorized_operations" / Int32,
    Tags(),
    versions="1",
)

DESCRIBE_CLUSTER_BROKER_V2 = Message(
    DescribeClusterBroker,
    "broker_id" / Int32,
    "host" / CompactString,
    "port" / Int32,
    "rack" / CompactNullableString,
    "is_fenced" / Bool,
    Tags(),
    versions="2",
)

DESCRIBE_CLUSTER_RESPONSE_V2 = Message(
    DescribeClusterResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "endpoint_type" / Int8,
    "cluster_id" / CompactString,
    "controller_id" / Int32,
    "brokers" / CompactArray(DESCRIBE_CLUSTER_BROKER_V2),
    "cluster_authorized_operations" / Int32,
    Tags(),
    versions="2",
)

RESPONSES: dict[int, Message[DescribeClusterResponse]] = {
    0: DESCRIBE_CLUSTER_RESPONSE_V0,
    1: DESCRIBE_CLUSTER_RESPONSE_V1,
    2: DESCRIBE_CLUSTER_RESPONSE_V2,
}
DescribeClusterResponse.layouts = RESPONSES
