# Generated from schemas/messages/ShareAcknowledgeRequest.json and ShareAcknowledgeResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareAcknowledgeRequest and ShareAcknowledgeResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactNullableString, CompactString, Int16, Int32, Int64, Int8, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class AcknowledgementBatch(Struct):
    """One item of the list ``AcknowledgePartition.acknowledgement_batches``."""

    first_offset: int = 0  # v0+
    last_offset: int = 0  # v0+
    acknowledge_types: list[int] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AcknowledgePartition(Struct):
    """One item of the list ``AcknowledgeTopic.partitions``."""

    partition_index: int = 0  # v0+
    acknowledgement_batches: list[AcknowledgementBatch] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AcknowledgeTopic(Struct):
    """One item of the list ``ShareAcknowledgeRequest.topics``."""

    topic_id: bytes = bytes(16)  # v0+
    partitions: list[AcknowledgePartition] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ShareAcknowledgeRequest(Whole):
    """Request of API key 79: versions 1 to 2; all flexible (KIP-482)."""

    group_id: str | None = None  # v0+
    member_id: str | None = ""  # v0+
    share_session_epoch: int = 0  # v0+
    is_renew_ack: bool = False  # v2+
    topics: list[AcknowledgeTopic] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class LeaderIdAndEpoch(Struct):
    """The struct in the field ``PartitionData.current_leader``."""

    leader_id: int = 0  # v0+
    leader_epoch: int = 0  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class PartitionData(Struct):
    """One item of the list ``ShareAcknowledgeTopicResponse.partitions``."""

    partition_index: int = 0  # v0+
    error_code: int = 0  # v0+
    error_message: str | None = None  # v0+
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ShareAcknowledgeTopicResponse(Struct):
    """One item of the list ``ShareAcknowledgeResponse.responses``."""

    topic_id: bytes = bytes(16)  # v0+
    partitions: list[PartitionData] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class NodeEndpoint(Struct):
    """One item of the list ``ShareAcknowledgeResponse.node_endpoints``."""

    node_id: int = 0  # v0+
    host: str = ""  # v0+
    port: int = 0  # v0+
    rack: str | None = None  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ShareAcknowledgeResponse(Whole):
    """Response of API key 79: versions 1 to 2; all flexible (KIP-482)."""

    throttle_time_ms: int = 0  # v0+
    error_code: int = 0  # v0+
    error_message: str | None = None  # v0+
    acquisition_lock_timeout_ms: int = 0  # v2+, ignorable
    responses: list[ShareAcknowledgeTopicResponse] = field(default_factory=list)  # v0+
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


ACKNOWLEDGEMENT_BATCH_V1 = Message(
    AcknowledgementBatch,
    "first_offset" / Int64,
    "last_offset" / Int64,
    "acknowledge_types" / CompactArray(Int8),
    Tags(),
    versions="1-2",
)

ACKNOWLEDGE_PARTITION_V1 = Message(
    AcknowledgePartition,
    "partition_index" / Int32,
    "acknowledgement_batches" / CompactArray(ACKNOWLEDGEMENT_BATCH_V1),
    Tags(),
    versions="1-2",
)

ACKNOWLEDGE_TOPIC_V1 = Message(
    AcknowledgeTopic,
    "topic_id" / Uuid,
    "partitions" / CompactArray(ACKNOWLEDGE_PARTITION_V1),
    Tags(),
    versions="1-2",
)

SHARE_ACKNOWLEDGE_REQUEST_V1 = Message(
    ShareAcknowledgeRequest,
    "group_id" / CompactNullableString,
    "member_id" / CompactNullableString,
    "share_session_epoch" / Int32,
    "topics" / CompactArray(ACKNOWLEDGE_TOPIC_V1),
    Tags(),
    versions="1",
    absent=("is_renew_ack",),
)

SHARE_ACKNOWLEDGE_REQUEST_V2 = Message(
    ShareAcknowledgeRequest,
    "group_id" / CompactNullableString,
    "member_id" / CompactNullableString,
    "share_session_epoch" / Int32,
    "is_renew_ack" / Bool,
    "topics" / CompactArray(ACKNOWLEDGE_TOPIC_V1),
    Tags(),
    versions="2",
)

REQUESTS: dict[int, Message[ShareAcknowledgeRequest]] = {
    1: SHARE_ACKNOWLEDGE_REQUEST_V1,
    2: SHARE_ACKNOWLEDGE_REQUEST_V2,
}
ShareAcknowledgeRequest.layouts = REQUESTS

LEADER_ID_AND_EPOCH_V1 = Message(
    LeaderIdAndEpoch,
    "leader_id" / Int32,
    "leader_epoch" / Int32,
    Tags(),
    versions="1-2",
)

PARTITION_DATA_V1 = Message(
    PartitionData,
    "partition_index" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "current_leader" / LEADER_ID_AND_EPOCH_V1,
    Tags(),
    versions="1-2",
)

SHARE_ACKNOWLEDGE_TOPIC_RESPONSE_V1 = Message(
    ShareAcknowledgeTopicResponse,
    "topic_id" / Uuid,
    "partitions" / CompactArray(PARTITION_DATA_V1),
    Tags(),
    versions="1-2",
)

NODE_ENDPOINT_V1 = Message(
    NodeEndpoint,
    "node_id" / Int32,
    "host" / CompactString,
    "port" / Int32,
    "rack" / CompactNullableString,
    Tags(),
    versions="1-2",
)

SHARE_ACKNOWLEDGE_RESPONSE_V1 = Message(
    ShareAcknowledgeResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "responses" / CompactArray(SHARE_ACKNOWLEDGE_TOPIC_RESPONSE_V1),
    "node_endpoints" / CompactArray(NODE_ENDPOINT_V1),
    Tags(),
    versions="1",
)

SHARE_ACKNOWLEDGE_RESPONSE_V2 = Message(
    ShareAcknowledgeResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "acquisition_lock_timeout_ms" / Int32,
    "responses" / CompactArray(SHARE_ACKNOWLEDGE_TOPIC_RESPONSE_V1),
    "node_endpoints" / CompactArray(NODE_ENDPOINT_V1),
    Tags(),
    versions="2",
)

RESPONSES: dict[int, Message[ShareAcknowledgeResponse]] = {
    1: SHARE_ACKNOWLEDGE_RESPONSE_V1,
    2: SHARE_ACKNOWLEDGE_RESPONSE_V2,
}
ShareAcknowledgeResponse.layouts = RESPONSES
