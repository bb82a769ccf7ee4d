# Generated from schemas/messages/StreamsGroupHeartbeatRequest.json and StreamsGroupHeartbeatResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupHeartbeatRequest and StreamsGroupHeartbeatResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray, CompactNullableArray
from kafkaproto.message import Message, NullableStruct
from kafkaproto.primitives import Bool, CompactNullableString, CompactString, Int16, Int32, Int64, Int8, Uint16
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class KeyValue(Struct):
    """One item of the list ``TopicInfo.topic_configs`` or ``StreamsGroupHeartbeatRequest.client_tags``."""

    key: str = ""
    value: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TopicInfo(Struct):
    """One item of the list ``Subtopology.state_changelog_topics`` or ``Subtopology.repartition_source_topics``."""

    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[KeyValue] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CopartitionGroup(Struct):
    """One item of the list ``Subtopology.copartition_groups``."""

    source_topics: list[int] = field(default_factory=list)
    source_topic_regex: list[int] = field(default_factory=list)
    repartition_source_topics: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Subtopology(Struct):
    """One item of the list ``Topology.subtopologies``."""

    subtopology_id: str = ""
    source_topics: list[str] = field(default_factory=list)
    source_topic_regex: list[str] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_sink_topics: list[str] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)
    copartition_groups: list[CopartitionGroup] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Topology(Struct):
    """The struct in the field ``StreamsGroupHeartbeatRequest.topology``."""

    epoch: int = 0
    subtopologies: list[Subtopology] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupHeartbeatRequestTaskIds(Struct):
    """One item of the list ``StreamsGroupHeartbeatRequest.active_tasks``, ``StreamsGroupHeartbeatRequest.standby_tasks`` or ``StreamsGroupHeartbeatRequest.warmup_tasks``."""

    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupHeartbeatRequestEndpoint(Struct):
    """The struct in the field ``StreamsGroupHeartbeatRequest.user_endpoint``."""

    host: str = ""
    port: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TaskOffset(Struct):
    """One item of the list ``StreamsGroupHeartbeatRequest.task_offsets`` or ``StreamsGroupHeartbeatRequest.task_end_offsets``."""

    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupHeartbeatRequest(Whole):
    """Request of API key 88: version 0; flexible (KIP-482)."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None
    standby_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None
    warmup_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = None
    process_id: str | None = None
    user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: bool = False
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Status(Struct):
    """One item of the list ``StreamsGroupHeartbeatResponse.status``."""

    status_code: int = 0
    status_detail: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupHeartbeatResponseTaskIds(Struct):
    """One item of the list ``StreamsGroupHeartbeatResponse.active_tasks``, ``StreamsGroupHeartbeatResponse.standby_tasks`` or ``StreamsGroupHeartbeatResponse.warmup_tasks``."""

    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupHeartbeatResponseEndpoint(Struct):
    """The struct in the field ``EndpointToPartitions.user_endpoint``."""

    host: str = ""
    port: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TopicPartition(Struct):
    """One item of the list ``EndpointToPartitions.active_partitions`` or ``EndpointToPartitions.standby_partitions``."""

    topic: str = ""
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class EndpointToPartitions(Struct):
    """One item of the list ``StreamsGroupHeartbeatResponse.partitions_by_user_endpoint``."""

    user_endpoint: StreamsGroupHeartbeatResponseEndpoint = field(default_factory=StreamsGroupHeartbeatResponseEndpoint)
    active_partitions: list[TopicPartition] = field(default_factory=list)
    standby_partitions: list[TopicPartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupHeartbeatResponse(Whole):
    """Response of API key 88: version 0; flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    acceptable_recovery_lag: int = 0
    task_offset_interval_ms: int = 0
    status: list[Status] | None = field(default_factory=list)
    active_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None
    standby_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None
    warmup_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = None
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


KEY_VALUE_V0 = Message(
    KeyValue,
    "key" / CompactString,
    "value" / CompactString,
    Tags(),
    versions="0",
)

TOPIC_INFO_V0 = Message(
    TopicInfo,
    "name" / CompactString,
    "partitions" / Int32,
    "replication_factor" / Int16,
    "topic_configs" / CompactArray(KEY_VALUE_V0),
    Tags(),
    versions="0",
)

COPARTITION_GROUP_V0 = Message(
    CopartitionGroup,
    "source_topics" / CompactArray(Int16),
    "source_topic_regex" / CompactArray(Int16),
    "repartition_source_topics" / CompactArray(Int16),
    Tags(),
    versions="0",
)

SUBTOPOLOGY_V0 = Message(
    Subtopology,
    "subtopology_id" / CompactString,
    "source_topics" / CompactArray(CompactString),
    "source_topic_regex" / CompactArray(CompactString),
    "state_changelog_topics" / CompactArray(TOPIC_INFO_V0),
    "repartition_sink_topics" / CompactArray(CompactString),
    "repartition_source_topics" / CompactArray(TOPIC_INFO_V0),
    "copartition_groups" / CompactArray(COPARTITION_GROUP_V0),
    Tags(),
    versions="0",
)

TOPOLOGY_V0 = Message(
    Topology,
    "epoch" / Int32,
    "subtopologies" / CompactArray(SUBTOPOLOGY_V0),
    Tags(),
    versions="0",
)

STREAMS_GROUP_HEARTBEAT_REQUEST_TASK_IDS_V0 = Message(
    StreamsGroupHeartbeatRequestTaskIds,
    "subtopology_id" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="0",
)

STREAMS_GROUP_HEARTBEAT_REQUEST_ENDPOINT_V0 = Message(
    StreamsGroupHeartbeatRequestEndpoint,
    "host" / CompactString,
    "port" / Uint16,
    Tags(),
    versions="0",
)

TASK_OFFSET_V0 = Message(
    TaskOffset,
    "subtopology_id" / CompactString,
    "partition" / Int32,
    "offset" / Int64,
    Tags(),
    versions="0",
)

STREAMS_GROUP_HEARTBEAT_REQUEST_V0 = Message(
    StreamsGroupHeartbeatRequest,
    "group_id" / CompactString,
    "member_id" / CompactString,
    "member_epoch" / Int32,
    "endpoint_information_epoch" / Int32,
    "instance_id" / CompactNullableString,
    "rack_id" / CompactNullableString,
    "rebalance_timeout_ms" / Int32,
    "topology" / NullableStruct(TOPOLOGY_V0),
    "active_tasks" / CompactNullableArray(STREAMS_GROUP_HEARTBEAT_REQUEST_TASK_IDS_V0),
    "standby_tasks" / CompactNullableArray(STREAMS_GROUP_HEARTBEAT_REQUEST_TASK_IDS_V0),
    "warmup_tasks" / CompactNullableArray(STREAMS_GROUP_HEARTBEAT_REQUEST_TASK_IDS_V0),
    "process_id" / CompactNullableString,
    "user_endpoint" / NullableStruct(STREAMS_GROUP_HEARTBEAT_REQUEST_ENDPOINT_V0),
    "client_tags" / CompactNullableArray(KEY_VALUE_V0),
    "task_offsets" / CompactNullableArray(TASK_OFFSET_V0),
    "task_end_offsets" / CompactNullableArray(TASK_OFFSET_V0),
    "shutdown_application" / Bool,
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[StreamsGroupHeartbeatRequest]] = {
    0: STREAMS_GROUP_HEARTBEAT_REQUEST_V0,
}
StreamsGroupHeartbeatRequest.layouts = REQUESTS

STATUS_V0 = Message(
    Status,
    "status_code" / Int8,
    "status_detail" / CompactString,
    Tags(),
    versions="0",
)

STREAMS_GROUP_HEARTBEAT_RESPONSE_TASK_IDS_V0 = Message(
    StreamsGroupHeartbeatResponseTaskIds,
    "subtopology_id" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="0",
)

STREAMS_GROUP_HEARTBEAT_RESPONSE_ENDPOINT_V0 = Message(
    StreamsGroupHeartbeatResponseEndpoint,
    "host" / CompactString,
    "port" / Uint16,
    Tags(),
    versions="0",
)

TOPIC_PARTITION_V0 = Message(
    TopicPartition,
    "topic" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="0",
)

ENDPOINT_TO_PARTITIONS_V0 = Message(
    EndpointToPartitions,
    "user_endpoint" / STREAMS_GROUP_HEARTBEAT_RESPONSE_ENDPOINT_V0,
    "active_partitions" / CompactArray(TOPIC_PARTITION_V0),
    "standby_partitions" / CompactArray(TOPIC_PARTITION_V0),
    Tags(),
    versions="0",
)

STREAMS_GROUP_HEARTBEAT_RESPONSE_V0 = Message(
    StreamsGroupHeartbeatResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "member_id" / CompactString,
    "member_epoch" / Int32,
    "heartbeat_interval_ms" / Int32,
    "acceptable_recovery_lag" / Int32,
    "task_offset_interval_ms" / Int32,
    "status" / CompactNullableArray(STATUS_V0),
    "active_tasks" / CompactNullableArray(STREAMS_GROUP_HEARTBEAT_RESPONSE_TASK_IDS_V0),
    "standby_tasks" / CompactNullableArray(STREAMS_GROUP_HEARTBEAT_RESPONSE_TASK_IDS_V0),
    "warmup_tasks" / CompactNullableArray(STREAMS_GROUP_HEARTBEAT_RESPONSE_TASK_IDS_V0),
    "endpoint_information_epoch" / Int32,
    "partitions_by_user_endpoint" / CompactNullableArray(ENDPOINT_TO_PARTITIONS_V0),
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[StreamsGroupHeartbeatResponse]] = {
    0: STREAMS_GROUP_HEARTBEAT_RESPONSE_V0,
}
StreamsGroupHeartbeatResponse.layouts = RESPONSES
