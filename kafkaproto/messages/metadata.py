# Generated from schemas/messages/MetadataRequest.json and MetadataResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""MetadataRequest and MetadataResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray, CompactNullableArray, NullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactNullableString, CompactString, Int16, Int32, NullableString, String, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class MetadataRequestTopic(Struct):
    """One item of the list ``MetadataRequest.topics``."""

    topic_id: bytes = bytes(16)  # v10+, ignorable
    name: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class MetadataRequest(Whole):
    """Request of API key 3: versions 0 to 13; flexible from version 9 on (KIP-482)."""

    topics: list[MetadataRequestTopic] | None = field(default_factory=list)
    allow_auto_topic_creation: bool = True  # v4+
    include_cluster_authorized_operations: bool = False  # v8-10
    include_topic_authorized_operations: bool = False  # v8+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class MetadataResponseBroker(Struct):
    """One item of the list ``MetadataResponse.brokers``."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None  # v1+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class MetadataResponsePartition(Struct):
    """One item of the list ``MetadataResponseTopic.partitions``."""

    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1  # v7+, ignorable
    replica_nodes: list[int] = field(default_factory=list)
    isr_nodes: list[int] = field(default_factory=list)
    offline_replicas: list[int] = field(default_factory=list)  # v5+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class MetadataResponseTopic(Struct):
    """One item of the list ``MetadataResponse.topics``."""

    error_code: int = 0
    name: str | None = ""
    topic_id: bytes = bytes(16)  # v10+, ignorable
    is_internal: bool = False  # v1+, ignorable
    partitions: list[MetadataResponsePartition] = field(default_factory=list)
    topic_authorized_operations: int = -2147483648  # v8+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class MetadataResponse(Whole):
    """Response of API key 3: versions 0 to 13; flexible from version 9 on (KIP-482)."""

    throttle_time_ms: int = 0  # v3+, ignorable
    brokers: list[MetadataResponseBroker] = field(default_factory=list)
    cluster_id: str | None = None  # v2+, ignorable
    controller_id: int = -1  # v1+, ignorable
    topics: list[MetadataResponseTopic] = field(default_factory=list)
    cluster_authorized_operations: int = -2147483648  # v8-10
    error_code: int = 0  # v13+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


METADATA_REQUEST_TOPIC_V0 = Message(
    MetadataRequestTopic,
    "name" / String,
    versions="0-8",
)

METADATA_REQUEST_V0 = Message(
    MetadataRequest,
    "topics" / Array(METADATA_REQUEST_TOPIC_V0),
    versions="0",
    absent=("allow_auto_topic_creation", "include_cluster_authorized_operations", "include_topic_authorized_operations"),
)

METADATA_REQUEST_V1 = Message(
    MetadataRequest,
    "topics" / NullableArray(METADATA_REQUEST_TOPIC_V0),
    versions="1-3",
    absent=("allow_auto_topic_creation", "include_cluster_authorized_operations", "include_topic_authorized_operations"),
)

METADATA_REQUEST_V2 = METADATA_REQUEST_V1

METADATA_REQUEST_V3 = METADATA_REQUEST_V1

METADATA_REQUEST_V4 = Message(
    MetadataRequest,
    "topics" / NullableArray(METADATA_REQUEST_TOPIC_V0),
    "allow_auto_topic_creation" / Bool,
    versions="4-7",
    absent=("include_cluster_authorized_operations", "include_topic_authorized_operations"),
)

METADATA_REQUEST_V5 = METADATA_REQUEST_V4

METADATA_REQUEST_V6 = METADATA_REQUEST_V4

METADATA_REQUEST_V7 = METADATA_REQUEST_V4

METADATA_REQUEST_V8 = Message(
    MetadataRequest,
    "topics" / NullableArray(METADATA_REQUEST_TOPIC_V0),
    "allow_auto_topic_creation" / Bool,
    "include_cluster_authorized_operations" / Bool,
    "include_topic_authorized_operations" / Bool,
    versions="8",
)

METADATA_REQUEST_TOPIC_V9 = Message(
    MetadataRequestTopic,
    "name" / CompactString,
    Tags(),
    versions="9",
)

METADATA_REQUEST_V9 = Message(
    MetadataRequest,
    "topics" / CompactNullableArray(METADATA_REQUEST_TOPIC_V9),
    "allow_auto_topic_creation" / Bool,
    "include_cluster_authorized_operations" / Bool,
    "include_topic_authorized_operations" / Bool,
    Tags(),
    versions="9",
)

METADATA_REQUEST_TOPIC_V10 = Message(
    MetadataRequestTopic,
    "topic_id" / Uuid,
    "name" / CompactNullableString,
    Tags(),
    versions="10-13",
)

METADATA_REQUEST_V10 = Message(
    MetadataRequest,
    "topics" / CompactNullableArray(METADATA_REQUEST_TOPIC_V10),
    "allow_auto_topic_creation" / Bool,
    "include_cluster_authorized_operations" / Bool,
    "include_topic_authorized_operations" / Bool,
    Tags(),
    versions="10",
)

METADATA_REQUEST_V11 = Message(
    MetadataRequest,
    "topics" / CompactNullableArray(METADATA_REQUEST_TOPIC_V10),
    "allow_auto_topic_creation" / Bool,
    "include_topic_authorized_operations" / Bool,
    Tags(),
    versions="11-13",
    absent=("include_cluster_authorized_operations",),
)

METADATA_REQUEST_V12 = METADATA_REQUEST_V11

METADATA_REQUEST_V13 = METADATA_REQUEST_V11

REQUESTS: dict[int, Message[MetadataRequest]] = {
    0: METADATA_REQUEST_V0,
    1: METADATA_REQUEST_V1,
    2: METADATA_REQUEST_V2,
    3: METADATA_REQUEST_V3,
    4: METADATA_REQUEST_V4,
    5: METADATA_REQUEST_V5,
    6: METADATA_REQUEST_V6,
    7: METADATA_REQUEST_V7,
    8: METADATA_REQUEST_V8,
    9: METADATA_REQUEST_V9,
    10: METADATA_REQUEST_V10,
    11: METADATA_REQUEST_V11,
    12: METADATA_REQUEST_V12,
    13: METADATA_REQUEST_V13,
}
MetadataRequest.layouts = REQUESTS

METADATA_RESPONSE_BROKER_V0 = Message(
    MetadataResponseBroker,
    "node_id" / Int32,
    "host" / String,
    "port" / Int32,
    versions="0",
)

METADATA_RESPONSE_PARTITION_V0 = Message(
    MetadataResponsePartition,
    "error_code" / Int16,
    "partition_index" / Int32,
    "leader_id" / Int32,
    "replica_nodes" / Array(Int32),
    "isr_nodes" / Array(Int32),
    versions="0-4",
)

METADATA_RESPONSE_TOPIC_V0 = Message(
    MetadataResponseTopic,
    "error_code" / Int16,
    "name" / String,
    "partitions" / Array(METADATA_RESPONSE_PARTITION_V0),
    versions="0",
    absent=("topic_authorized_operations",),
)

METADATA_RESPONSE_V0 = Message(
    MetadataResponse,
    "brokers" / Array(METADATA_RESPONSE_BROKER_V0),
    "topics" / Array(METADATA_RESPONSE_TOPIC_V0),
    versions="0",
    absent=("cluster_authorized_operations",),
)

METADATA_RESPONSE_BROKER_V1 = Message(
    MetadataResponseBroker,
    "node_id" / Int32,
    "host" / String,
    "port" / Int32,
    "rack" / NullableString,
    versions="1-8",
)

METADATA_RESPONSE_TOPIC_V1 = Message(
    MetadataResponseTopic,
    "error_code" / Int16,
    "name" / String,
    "is_internal" / Bool,
    "partitions" / Array(METADATA_RESPONSE_PARTITION_V0),
    versions="1-4",
    absent=("topic_authorized_operations",),
)

METADATA_RESPONSE_V1 = Message(
    MetadataResponse,
    "brokers" / Array(METADATA_RESPONSE_BROKER_V1),
    "controller_id" / Int32,
    "topics" / Array(METADATA_RESPONSE_TOPIC_V1),
    versions="1",
    absent=("cluster_authorized_operations",),
)

METADATA_RESPONSE_V2 = Message(
    MetadataResponse,
    "brokers" / Array(METADATA_RESPONSE_BROKER_V1),
    "cluster_id" / NullableString,
    "controller_id" / Int32,
    "topics" / Array(METADATA_RESPONSE_TOPIC_V1),
    versions="2",
    absent=("cluster_authorized_operations",),
)

METADATA_RESPONSE_V3 = Message(
    MetadataResponse,
    "throttle_time_ms" / Int32,
    "brokers" / Array(METADATA_RESPONSE_BROKER_V1),
    "cluster_id" / NullableString,
    "controller_id" / Int32,
    "topics" / Array(METADATA_RESPONSE_TOPIC_V1),
    versions="3-4",
    absent=("cluster_authorized_operations",),
)

METADATA_RESPONSE_V4 = METADATA_RESPONSE_V3

METADATA_RESPONSE_PARTITION_V5 = Message(
    MetadataResponsePartition,
    "error_code" / Int16,
    "partition_index" / Int32,
    "leader_id" / Int32,
    "replica_nodes" / Array(Int32),
    "isr_nodes" / Array(Int32),
    "offline_replicas" / Array(Int32),
    versions="5-6",
)

METADATA_RESPONSE_TOPIC_V5 = Message(
    MetadataResponseTopic,
    "error_code" / Int16,
    "name" / String,
    "is_internal" / Bool,
    "partitions" / Array(METADATA_RESPONSE_PARTITION_V5),
    versions="5-6",
    absent=("topic_authorized_operations",),
)

METADATA_RESPONSE_V5 = Message(
    MetadataResponse,
    "throttle_time_ms" / Int32,
    "brokers" / Array(METADATA_RESPONSE_BROKER_V1),
    "cluster_id" / NullableString,
    "controller_id" / Int32,
    "topics" / Array(METADATA_RESPONSE_TOPIC_V5),
    versions="5-6",
    absent=("cluster_authorized_operations",),
)

METADATA_RESPONSE_V6 = METADATA_RESPONSE_V5

METADATA_RESPONSE_PARTITION_V7 = Message(
    MetadataResponsePartition,
    "error_code" / Int16,
    "partition_index" / Int32,
    "leader_id" / Int32,
    "leader_epoch" / Int32,
    "replica_nodes" / Array(Int32),
    "isr_nodes" / Array(Int32),
    "offline_replicas" / Array(Int32),
    versions="7-8",
)

METADATA_RESPONSE_TOPIC_V7 = Message(
    MetadataResponseTopic,
    "error_code" / Int16,
    "name" / String,
    "is_internal" / Bool,
    "partitions" / Array(METADATA_RESPONSE_PARTITION_V7),
    versions="7",
    absent=("topic_authorized_operations",),
)

METADATA_RESPONSE_V7 = Message(
    MetadataResponse,
    "throttle_time_ms" / Int32,
    "brokers" / Array(METADATA_RESPONSE_BROKER_V1),
    "cluster_id" / NullableString,
    "controller_id" / Int32,
    "topics" / Array(METADATA_RESPONSE_TOPIC_V7),
    versions="7",
    absent=("cluster_authorized_operations",),
)

METADATA_RESPONSE_TOPIC_V8 = Message(
    MetadataResponseTopic,
    "error_code" / Int16,
    "name" / String,
    "is_internal" / Bool,
    "partitions" / Array(METADATA_RESPONSE_PARTITION_V7),
    "topic_authorized_operations" / Int32,
    versions="8",
)

METADATA_RESPONSE_V8 = Message(
    MetadataResponse,
    "throttle_time_ms" / Int32,
    "brokers" / Array(METADATA_RESPONSE_BROKER_V1),
    "cluster_id" / NullableString,
    "controller_id" / Int32,
    "topics" / Array(METADATA_RESPONSE_TOPIC_V8),
    "cluster_authorized_operations" / Int32,
    versions="8",
)

METADATA_RESPONSE_BROKER_V9 = Message(
    MetadataResponseBroker,
    "node_id" / Int32,
    "host" / CompactString,
    "port" / Int32,
    "rack" / CompactNullableString,
    Tags(),
    versions="9-13",
)

METADATA_RESPONSE_PARTITION_V9 = Message(
    MetadataResponsePartition,
    "error_code" / Int16,
    "partition_index" / Int32,
    "leader_id" / Int32,
    "leader_epoch" / Int32,
    "replica_nodes" / CompactArray(Int32),
    "isr_nodes" / CompactArray(Int32),
    "offline_replicas" / CompactArray(Int32),
    Tags(),
    versions="9-13",
)

METADATA_RESPONSE_TOPIC_V9 = Message(
    MetadataResponseTopic,
    "error_code" / Int16,
    "name" / CompactString,
    "is_internal" / Bool,
    "partitions" / CompactArray(METADATA_RESPONSE_PARTITION_V9),
    "topic_authorized_operations" / Int32,
    Tags(),
    versions="9",
)

METADATA_RESPONSE_V9 = Message(
    MetadataResponse,
    "throttle_time_ms" / Int32,
    "brokers" / CompactArray(METADATA_RESPONSE_BROKER_V9),
    "cluster_id" / CompactNullableString,
    "controller_id" / Int32,
    "topics" / CompactArray(METADATA_RESPONSE_TOPIC_V9),
    "cluster_authorized_operations" / Int32,
    Tags(),
    versions="9",
)

METADATA_RESPONSE_TOPIC_V10 = Message(
    MetadataResponseTopic,
    "error_code" / Int16,
    "name" / CompactString,
    "topic_id" / Uuid,
    "is_internal" / Bool,
    "partitions" / CompactArray(METADATA_RESPONSE_PARTITION_V9),
    "topic_authorized_operations" / Int32,
    Tags(),
    versions="10-11",
)

METADATA_RESPONSE_V10 = Message(
    MetadataResponse,
    "throttle_time_ms" / Int32,
    "brokers" / CompactArray(METADATA_RESPONSE_BROKER_V9),
    "cluster_id" / CompactNullableString,
    "controller_id" / Int32,
    "topics" / CompactArray(METADATA_RESPONSE_TOPIC_V10),
    "cluster_authorized_operations" / Int32,
    Tags(),
    versions="10",
)

METADATA_RESPONSE_V11 = Message(
    MetadataResponse,
    "throttle_time_ms" / Int32,
    "brokers" / CompactArray(METADATA_RESPONSE_BROKER_V9),
    "cluster_id" / CompactNullableString,
    "controller_id" / Int32,
    "topics" / CompactArray(METADATA_RESPONSE_TOPIC_V10),
    Tags(),
    versions="11",
    absent=("cluster_authorized_operations",),
)

METADATA_RESPONSE_TOPIC_V12 = Message(
    MetadataResponseTopic,
    "error_code" / Int16,
    "name" / CompactNullableString,
    "topic_id" / Uuid,
    "is_internal" / Bool,
    "partitions" / CompactArray(METADATA_RESPONSE_PARTITION_V9),
    "topic_authorized_operations" / Int32,
    Tags(),
    versions="12-13",
)

METADATA_RESPONSE_V12 = Message(
    MetadataResponse,
    "throttle_time_ms" / Int32,
    "brokers" / CompactArray(METADATA_RESPONSE_BROKER_V9),
    "cluster_id" / CompactNullableString,
    "controller_id" / Int32,
    "topics" / CompactArray(METADATA_RESPONSE_TOPIC_V12),
    Tags(),
    versions="12",
    absent=("cluster_authorized_operations",),
)

METADATA_RESPONSE_V13 = Message(
    MetadataResponse,
    "throttle_time_ms" / Int32,
    "brokers" / CompactArray(METADATA_RESPONSE_BROKER_V9),
    "cluster_id" / CompactNullableString,
    "controller_id" / Int32,
    "topics" / CompactArray(METADATA_RESPONSE_TOPIC_V12),
    "error_code" / Int16,
    Tags(),
    versions="13",
    absent=("cluster_authorized_operations",),
)

RESPONSES: dict[int, Message[MetadataResponse]] = {
    0: METADATA_RESPONSE_V0,
    1: METADATA_RESPONSE_V1,
    2: METADATA_RESPONSE_V2,
    3: METADATA_RESPONSE_V3,
    4: METADATA_RESPONSE_V4,
    5: METADATA_RESPONSE_V5,
    6: METADATA_RESPONSE_V6,
    7: METADATA_RESPONSE_V7,
    8: METADATA_RESPONSE_V8,
    9: METADATA_RESPONSE_V9,
    10: METADATA_RESPONSE_V10,
    11: METADATA_RESPONSE_V11,
    12: METADATA_RESPONSE_V12,
    13: METADATA_RESPONSE_V13,
}
MetadataResponse.layouts = RESPONSES
