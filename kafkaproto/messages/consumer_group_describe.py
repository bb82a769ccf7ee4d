# Generated from schemas/messages/ConsumerGroupDescribeRequest.json and ConsumerGroupDescribeResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupDescribeRequest and ConsumerGroupDescribeResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactNullableString, CompactString, Int16, Int32, Int8, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupDescribeRequest(Whole):
    """Request of API key 69: versions 0 to 1; all flexible (KIP-482)."""

    group_ids: list[str] = field(default_factory=list)
    include_authorized_operations: bool = False
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TopicPartitions(Struct):
    """One item of the list ``Assignment.topic_partitions``."""

    topic_id: bytes = bytes(16)
    topic_name: str = ""
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Assignment(Struct):
    """The struct in the field ``Member.assignment`` or ``Member.target_assignment``."""

    topic_partitions: list[TopicPartitions] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Member(Struct):
    """One item of the list ``DescribedGroup.members``."""

    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = field(default_factory=list)
    subscribed_topic_regex: str | None = None
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    member_type: int = -1  # v1+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribedGroup(Struct):
    """One item of the list ``ConsumerGroupDescribeResponse.groups``."""

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: list[Member] = field(default_factory=list)
    authorized_operations: int = -2147483648
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupDescribeResponse(Whole):
    """Response of API key 69: versions 0 to 1; all flexible (KIP-482)."""

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


CONSUMER_GROUP_DESCRIBE_REQUEST_V0 = Message(
    ConsumerGroupDescribeRequest,
    "group_ids" / CompactArray(CompactString),
    "include_authorized_operations" / Bool,
    Tags(),
    versions="0-1",
)

CONSUMER_GROUP_DESCRIBE_REQUEST_V1 = CONSUMER_GROUP_DESCRIBE_REQUEST_V0

REQUESTS: dict[int, Message[ConsumerGroupDescribeRequest]] = {
    0: CONSUMER_GROUP_DESCRIBE_REQUEST_V0,
    1: CONSUMER_GROUP_DESCRIBE_REQUEST_V1,
}
ConsumerGroupDescribeRequest.layouts = REQUESTS

TOPIC_PARTITIONS_V0 = Message(
    TopicPartitions,
    "topic_id" / Uuid,
    "topic_name" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="0-1",
)

ASSIGNMENT_V0 = Message(
    Assignment,
    "topic_partitions" / CompactArray(TOPIC_PARTITIONS_V0),
    Tags(),
    versions="0-1",
)

MEMBER_V0 = Message(
    Member,
    "member_id" / CompactString,
    "instance_id" / CompactNullableString,
    "rack_id" / CompactNullableString,
    "member_epoch" / Int32,
    "client_id" / CompactString,
    "client_host" / CompactString,
    "subscribed_topic_names" / CompactArray(CompactString),
    "subscribed_topic_regex" / CompactNullableString,
    "assignment" / ASSIGNMENT_V0,
    "target_assignment" / ASSIGNMENT_V0,
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
    "assignor_name" / CompactString,
    "members" / CompactArray(MEMBER_V0),
    "authorized_operations" / Int32,
    Tags(),
    versions="0",
)

CONSUMER_GROUP_DESCRIBE_RESPONSE_V0 = Message(
    ConsumerGroupDescribeResponse,
    "throttle_time_ms" / Int32,
    "groups" / CompactArray(DESCRIBED_GROUP_V0),
    Tags(),
    versions="0",
)

MEMBER_V1 = Message(
    Member,
    "member_id" / CompactString,
    "instance_id" / CompactNullableString,
    "rack_id" / CompactNullableString,
    "member_epoch" / Int32,
    "client_id" / CompactString,
    "client_host" / CompactString,
    "subscribed_topic_names" / CompactArray(CompactString),
    "subscribed_topic_regex" / CompactNullableString,
    "assignment" / ASSIGNMENT_V0,
    "target_assignment" / ASSIGNMENT_V0,
    "member_type" / Int8,
    Tags(),
    versions="1",
)

DESCRIBED_GROUP_V1 = Message(
    DescribedGroup,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "group_id" / CompactString,
    "group_state" / CompactString,
    "group_epoch" / Int32,
    "assignment_epoch" / Int32,
    "assignor_name" / CompactString,
    "members" / CompactArray(MEMBER_V1),
    "authorized_operations" / Int32,
    Tags(),
    versions="1",
)

CONSUMER_GROUP_DESCRIBE_RESPONSE_V1 = Message(
    ConsumerGroupDescribeResponse,
    "throttle_time_ms" / Int32,
    "groups" / CompactArray(DESCRIBED_GROUP_V1),
    Tags(),
    versions="1",
)

RESPONSES: dict[int, Message[ConsumerGroupDescribeResponse]] = {
    0: CONSUMER_GROUP_DESCRIBE_RESPONSE_V0,
    1: CONSUMER_GROUP_DESCRIBE_RESPONSE_V1,
}
ConsumerGroupDescribeResponse.layouts = RESPONSES
