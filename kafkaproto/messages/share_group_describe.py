# Generated from schemas/messages/ShareGroupDescribeRequest.json and ShareGroupDescribeResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareGroupDescribeRequest and ShareGroupDescribeResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactNullableString, CompactString, Int16, Int32, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupDescribeRequest(Whole):
    """Request of API key 77: version 1; flexible (KIP-482)."""

    group_ids: list[str] = field(default_factory=list)  # v0+
    include_authorized_operations: bool = False  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TopicPartitions(Struct):
    """One item of the list ``Assignment.topic_partitions``."""

    topic_id: bytes = bytes(16)  # v0+
    topic_name: str = ""  # v0+
    partitions: list[int] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Assignment(Struct):
    """The struct in the field ``Member.assignment``."""

    topic_partitions: list[TopicPartitions] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Member(Struct):
    """One item of the list ``DescribedGroup.members``."""

    member_id: str = ""  # v0+
    rack_id: str | None = None  # v0+
    member_epoch: int = 0  # v0+
    client_id: str = ""  # v0+
    client_host: str = ""  # v0+
    subscribed_topic_names: list[str] = field(default_factory=list)  # v0+
    assignment: Assignment = field(default_factory=Assignment)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribedGroup(Struct):
    """One item of the list ``ShareGroupDescribeResponse.groups``."""

    error_code: int = 0  # v0+
    error_message: str | None = None  # v0+
    group_id: str = ""  # v0+
    group_state: str = ""  # v0+
    group_epoch: int = 0  # v0+
    assignment_epoch: int = 0  # v0+
    assignor_name: str = ""  # v0+
    members: list[Member] = field(default_factory=list)  # v0+
    authorized_operations: int = -2147483648  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupDescribeResponse(Whole):
    """Response of API key 77: version 1; flexible (KIP-482)."""

    throttle_time_ms: int = 0  # v0+
    groups: list[DescribedGroup] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


SHARE_GROUP_DESCRIBE_REQUEST_V1 = Message(
    ShareGroupDescribeRequest,
    "group_ids" / CompactArray(CompactString),
    "include_authorized_operations" / Bool,
    Tags(),
    versions="1",
)

REQUESTS: dict[int, Message[ShareGroupDescribeRequest]] = {
    1: SHARE_GROUP_DESCRIBE_REQUEST_V1,
}
ShareGroupDescribeRequest.layouts = REQUESTS

TOPIC_PARTITIONS_V1 = Message(
    TopicPartitions,
    "topic_id" / Uuid,
    "topic_name" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="1",
)

ASSIGNMENT_V1 = Message(
    Assignment,
    "topic_partitions" / CompactArray(TOPIC_PARTITIONS_V1),
    Tags(),
    versions="1",
)

MEMBER_V1 = Message(
    Member,
    "member_id" / CompactString,
    "rack_id" / CompactNullableString,
    "member_epoch" / Int32,
    "client_id" / CompactString,
    "client_host" / CompactString,
    "subscribed_topic_names" / CompactArray(CompactString),
    "assignment" / ASSIGNMENT_V1,
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

SHARE_GROUP_DESCRIBE_RESPONSE_V1 = Message(
    ShareGroupDescribeResponse,
    "throttle_time_ms" / Int32,
    "groups" / CompactArray(DESCRIBED_GROUP_V1),
    Tags(),
    versions="1",
)

RESPONSES: dict[int, Message[ShareGroupDescribeResponse]] = {
    1: SHARE_GROUP_DESCRIBE_RESPONSE_V1,
}
ShareGroupDescribeResponse.layouts = RESPONSES
