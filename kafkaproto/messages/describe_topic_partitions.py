# Generated from schemas/messages/DescribeTopicPartitionsRequest.json and DescribeTopicPartitionsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DescribeTopicPartitionsRequest and DescribeTopicPartitionsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray, CompactNullableArray
from kafkaproto.message import Message, NullableStruct
from kafkaproto.primitives import Bool, CompactNullableString, CompactString, Int16, Int32, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class TopicRequest(Struct):
    """One item of the list ``DescribeTopicPartitionsRequest.topics``."""

    name: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeTopicPartitionsRequestCursor(Struct):
    """The struct in the field ``DescribeTopicPartitionsRequest.cursor``."""

    topic_name: str = ""
    partition_index: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeTopicPartitionsRequest(Whole):
    """Request of API key 75: version 0; flexible (KIP-482)."""

    topics: list[TopicRequest] = field(default_factory=list)
    response_partition_limit: int = 2000
    cursor: DescribeTopicPartitionsRequestCursor | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeTopicPartitionsResponsePartition(Struct):
    """One item of the list ``DescribeTopicPartitionsResponseTopic.partitions``."""

    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1  # ignorable
    replica_nodes: list[int] = field(default_factory=list)
    isr_nodes: list[int] = field(default_factory=list)
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None
    offline_replicas: list[int] = field(default_factory=list)  # ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeTopicPartitionsResponseTopic(Struct):
    """One item of the list ``DescribeTopicPartitionsResponse.topics``."""

    error_code: int = 0
    name: str | None = ""
    topic_id: bytes = bytes(16)  # ignorable
    is_internal: bool = False  # ignorable
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(default_factory=list)
    topic_authorized_operations: int = -2147483648
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeTopicPartitionsResponseCursor(Struct):
    """The struct in the field ``DescribeTopicPartitionsResponse.next_cursor``."""

    topic_name: str = ""
    partition_index: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeTopicPartitionsResponse(Whole):
    """Response of API key 75: version 0; flexible (KIP-482)."""

    throttle_time_ms: int = 0  # ignorable
    topics: list[DescribeTopicPartitionsResponseTopic] = field(default_factory=list)
    next_cursor: DescribeTopicPartitionsResponseCursor | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


TOPIC_REQUEST_V0 = Message(
    TopicRequest,
    "name" / CompactString,
    Tags(),
    versions="0",
)

DESCRIBE_TOPIC_PARTITIONS_REQUEST_CURSOR_V0 = Message(
    DescribeTopicPartitionsRequestCursor,
    "topic_name" / CompactString,
    "partition_index" / Int32,
    Tags(),
    versions="0",
)

DESCRIBE_TOPIC_PARTITIONS_REQUEST_V0 = Message(
    DescribeTopicPartitionsRequest,
    "topics" / CompactArray(TOPIC_REQUEST_V0),
    "response_partition_limit" / Int32,
    "cursor" / NullableStruct(DESCRIBE_TOPIC_PARTITIONS_REQUEST_CURSOR_V0),
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[DescribeTopicPartitionsRequest]] = {
    0: DESCRIBE_TOPIC_PARTITIONS_REQUEST_V0,
}
DescribeTopicPartitionsRequest.layouts = REQUESTS

DESCRIBE_TOPIC_PARTITIONS_RESPONSE_PARTITION_V0 = Message(
    DescribeTopicPartitionsResponsePartition,
    "error_code" / Int16,
    "partition_index" / Int32,
    "leader_id" / Int32,
    "leader_epoch" / Int32,
    "replica_nodes" / CompactArray(Int32),
    "isr_nodes" / CompactArray(Int32),
    "eligible_leader_replicas" / CompactNullableArray(Int32),
    "last_known_elr" / CompactNullableArray(Int32),
    "offline_replicas" / CompactArray(Int32),
    Tags(),
    versions="0",
)

DESCRIBE_TOPIC_PARTITIONS_RESPONSE_TOPIC_V0 = Message(
    DescribeTopicPartitionsResponseTopic,
    "error_code" / Int16,
    "name" / CompactNullableString,
    "topic_id" / Uuid,
    "is_internal" / Bool,
    "partitions" / CompactArray(DESCRIBE_TOPIC_PARTITIONS_RESPONSE_PARTITION_V0),
    "topic_authorized_operations" / Int32,
    Tags(),
    versions="0",
)

DESCRIBE_TOPIC_PARTITIONS_RESPONSE_CURSOR_V0 = Message(
    DescribeTopicPartitionsResponseCursor,
    "topic_name" / CompactString,
    "partition_index" / Int32,
    Tags(),
    versions="0",
)

DESCRIBE_TOPIC_PARTITIONS_RESPONSE_V0 = Message(
    DescribeTopicPartitionsResponse,
    "throttle_time_ms" / Int32,
    "topics" / CompactArray(DESCRIBE_TOPIC_PARTITIONS_RESPONSE_TOPIC_V0),
    "next_cursor" / NullableStruct(DESCRIBE_TOPIC_PARTITIONS_RESPONSE_CURSOR_V0),
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[DescribeTopicPartitionsResponse]] = {
    0: DESCRIBE_TOPIC_PARTITIONS_RESPONSE_V0,
}
DescribeTopicPartitionsResponse.layouts = RESPONSES
