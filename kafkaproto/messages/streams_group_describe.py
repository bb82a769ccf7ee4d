# Generated from schemas/messages/StreamsGroupDescribeRequest.json and StreamsGroupDescribeResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupDescribeRequest and StreamsGroupDescribeResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray, CompactNullableArray
from kafkaproto.message import Message, NullableStruct
from kafkaproto.primitives import Bool, CompactNullableString, CompactString, Int16, Int32, Int64, Uint16
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupDescribeRequest(Whole):
    """Request of API key 89: version 0; flexible (KIP-482)."""

    group_ids: list[str] = field(default_factory=list)
    include_authorized_operations: bool = False
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class KeyValue(Struct):
    """One item of the list ``TopicInfo.topic_configs`` or ``Member.client_tags``."""

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
class Subtopology(Struct):
    """One item of the list ``Topology.subtopologies``."""

    subtopology_id: str = ""
    source_topics: list[str] = field(default_factory=list)
    repartition_sink_topics: list[str] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Topology(Struct):
    """The struct in the field ``DescribedGroup.topology``."""

    epoch: int = 0
    subtopologies: list[Subtopology] | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Endpoint(Struct):
    """The struct in the field ``Member.user_endpoint``."""

    host: str = ""
    port: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TaskOffset(Struct):
    """One item of the list ``Member.task_offsets`` or ``Member.task_end_offsets``."""

    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TaskIds(Struct):
    """One item of the list ``Assignment.active_tasks``, ``Assignment.standby_tasks`` or ``Assignment.warmup_tasks``."""

    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Assignment(Struct):
    """The struct in the field ``Member.assignment`` or ``Member.target_assignment``."""

    active_tasks: list[TaskIds] = field(default_factory=list)
    standby_tasks: list[TaskIds] = field(default_factory=list)
    warmup_tasks: list[TaskIds] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Member(Struct):
    """One item of the list ``DescribedGroup.members``."""

    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = field(default_factory=list)
    task_offsets: list[TaskOffset] = field(default_factory=list)
    task_end_offsets: list[TaskOffset] = field(default_factory=list)
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    is_classic: bool = False
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribedGroup(Struct):
    """One item of the list ``StreamsGroupDescribeResponse.groups``."""

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: list[Member] = field(default_factory=list)
    authorized_operations: int = -2147483648
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupDescribeResponse(Whole):
    """Response of API key 89: version 0; flexible (KIP-482)."""

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


STREAMS_GROUP_DESCRIBE_REQUEST_V0 = Message(
    StreamsGroupDescribeRequest,
    "group_ids" / CompactArray(CompactString),
    "include_authorized_operations" / Bool,
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[StreamsGroupDescribeRequest]] = {
    0: STREAMS_GROUP_DESCRIBE_REQUEST_V0,
}
StreamsGroupDescribeRequest.layouts = REQUESTS

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

SUBTOPOLOGY_V0 = Message(
    Subtopology,
    "subtopology_id" / CompactString,
    "source_topics" / CompactArray(CompactString),
    "repartition_sink_topics" / CompactArray(CompactString),
    "state_changelog_topics" / CompactArray(TOPIC_INFO_V0),
    "repartition_source_topics" / CompactArray(TOPIC_INFO_V0),
    Tags(),
    versions="0",
)

TOPOLOGY_V0 = Message(
    Topology,
    "epoch" / Int32,
    "subtopologies" / CompactNullableArray(SUBTOPOLOGY_V0),
    Tags(),
    versions="0",
)

ENDPOINT_V0 = Message(
    Endpoint,
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

TASK_IDS_V0 = Message(
    TaskIds,
    "subtopology_id" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="0",
)

ASSIGNMENT_V0 = Message(
    Assignment,
    "active_tasks" / CompactArray(TASK_IDS_V0),
    "standby_tasks" / CompactArray(TASK_IDS_V0),
    "warmup_tasks" / CompactArray(TASK_IDS_V0),
    Tags(),
    versions="0",
)

MEMBER_V0 = Message(
    Member,
    "member_id" / CompactString,
    "member_epoch" / Int32,
    "instance_id" / CompactNullableString,
    "rack_id" / CompactNullableString,
    "client_id" / CompactString,
    "client_host" / CompactString,
    "topology_epoch" / Int32,
    "process_id" / CompactString,
    "user_endpoint" / NullableStruct(ENDPOINT_V0),
    "client_tags" / CompactArray(KEY_VALUE_V0),
    "task_offsets" / CompactArray(TASK_OFFSET_V0),
    "task_end_offsets" / CompactArray(TASK_OFFSET_V0),
    "assignment" / ASSIGNMENT_V0,
    "target_assignment" / ASSIGNMENT_V0,
    "is_classic" / Bool,
    Tags(),
    versions="0",
)

DESCRIBED_GROUP_V0 = Message(
    DescribedGroup,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "group_id" / CompactString,
    "group_state" / CompactString,
    "group_epoch" / Int32,
    "assignment_epoch" / Int32,
    "topology" / NullableStruct(TOPOLOGY_V0),
    "members" / CompactArray(MEMBER_V0),
    "authorized_operations" / Int32,
    Tags(),
    versions="0",
)

STREAMS_GROUP_DESCRIBE_RESPONSE_V0 = Message(
    StreamsGroupDescribeResponse,
    "throttle_time_ms" / Int32,
    "groups" / CompactArray(DESCRIBED_GROUP_V0),
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[StreamsGroupDescribeResponse]] = {
    0: STREAMS_GROUP_DESCRIBE_RESPONSE_V0,
}
StreamsGroupDescribeResponse.layouts = RESPONSES
