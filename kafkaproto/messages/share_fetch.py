# Generated from schemas/messages/ShareFetchRequest.json and ShareFetchResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareFetchRequest and ShareFetchResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import (
    Bool,
    CompactNullableString,
    CompactRecords,
    CompactString,
    Int16,
    Int32,
    Int64,
    Int8,
    RecordsValue,
    Uuid,
)
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class AcknowledgementBatch(Struct):
    """One item of the list ``FetchPartition.acknowledgement_batches``."""

    first_offset: int = 0  # v0+
    last_offset: int = 0  # v0+
    acknowledge_types: list[int] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class FetchPartition(Struct):
    """One item of the list ``FetchTopic.partitions``."""

    partition_index: int = 0  # v0+
    partition_max_bytes: int = 0  # v0
    acknowledgement_batches: list[AcknowledgementBatch] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class FetchTopic(Struct):
    """One item of the list ``ShareFetchRequest.topics``."""

    topic_id: bytes = bytes(16)  # v0+
    partitions: list[FetchPartition] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ForgottenTopic(Struct):
    """One item of the list ``ShareFetchRequest.forgotten_topics_data``."""

    topic_id: bytes = bytes(16)  # v0+
    partitions: list[int] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ShareFetchRequest(Whole):
    """Request of API key 78: versions 1 to 2; all flexible (KIP-482)."""

    group_id: str | None = None  # v0+
    member_id: str | None = ""  # v0+
    share_session_epoch: int = 0  # v0+
    max_wait_ms: int = 0  # v0+
    min_bytes: int = 0  # v0+
    max_bytes: int = 2147483647  # v0+
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0  # v2+, ignorable
    is_renew_ack: bool = False  # v2+
    topics: list[FetchTopic] = field(default_factory=list)  # v0+
    forgotten_topics_data: list[ForgottenTopic] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class LeaderIdAndEpoch(Struct):
    """The struct in the field ``PartitionData.current_leader``."""

    leader_id: int = 0  # v0+
    leader_epoch: int = 0  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AcquiredRecords(Struct):
    """One item of the list ``PartitionData.acquired_records``."""

    first_offset: int = 0  # v0+
    last_offset: int = 0  # v0+
    delivery_count: int = 0  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class PartitionData(Struct):
    """One item of the list ``ShareFetchableTopicResponse.partitions``."""

    partition_index: int = 0  # v0+
    error_code: int = 0  # v0+
    error_message: str | None = None  # v0+
    acknowledge_error_code: int = 0  # v0+
    acknowledge_error_message: str | None = None  # v0+
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)  # v0+
    records: RecordsValue | None = None  # v0+
    acquired_records: list[AcquiredRecords] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ShareFetchableTopicResponse(Struct):
    """One item of the list ``ShareFetchResponse.responses``."""

    topic_id: bytes = bytes(16)  # v0+
    partitions: list[PartitionData] = field(default_factory=list)  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class NodeEndpoint(Struct):
    """One item of the list ``ShareFetchResponse.node_endpoints``."""

    node_id: int = 0  # v0+
    host: str = ""  # v0+
    port: int = 0  # v0+
    rack: str | None = None  # v0+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ShareFetchResponse(Whole):
    """Response of API key 78: versions 1 to 2; all flexible (KIP-482)."""

    throttle_time_ms: int = 0  # v0+
    error_code: int = 0  # v0+
    error_message: str | None = None  # v0+
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareFetchableTopicResponse] = field(default_factory=list)  # v0+
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

FETCH_PARTITION_V1 = Message(
    FetchPartition,
    "partition_index" / Int32,
    "acknowledgement_batches" / CompactArray(ACKNOWLEDGEMENT_BATCH_V1),
    Tags(),
    versions="1-2",
    absent=("partition_max_bytes",),
)

FETCH_TOPIC_V1 = Message(
    FetchTopic,
    "topic_id" / Uuid,
    "partitions" / CompactArray(FETCH_PARTITION_V1),
    Tags(),
    versions="1-2",
)

FORGOTTEN_TOPIC_V1 = Message(
    ForgottenTopic,
    "topic_id" / Uuid,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="1-2",
)

SHARE_FETCH_REQUEST_V1 = Message(
    ShareFetchRequest,
    "group_id" / CompactNullableString,
    "member_id" / CompactNullableString,
    "share_session_epoch" / Int32,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / Int32,
    "max_records" / Int32,
    "batch_size" / Int32,
    "topics" / CompactArray(FETCH_TOPIC_V1),
    "forgotten_topics_data" / CompactArray(FORGOTTEN_TOPIC_V1),
    Tags(),
    versions="1",
    absent=("is_renew_ack",),
)

SHARE_FETCH_REQUEST_V2 = Message(
    ShareFetchRequest,
    "group_id" / CompactNullableString,
    "member_id" / CompactNullableString,
    "share_session_epoch" / Int32,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / Int32,
    "max_records" / Int32,
    "batch_size" / Int32,
    "share_acquire_mode" / Int8,
    "is_renew_ack" / Bool,
    "topics" / CompactArray(FETCH_TOPIC_V1),
    "forgotten_topics_data" / CompactArray(FORGOTTEN_TOPIC_V1),
    Tags(),
    versions="2",
)

REQUESTS: dict[int, Message[ShareFetchRequest]] = {
    1: SHARE_FETCH_REQUEST_V1,
    2: SHARE_FETCH_REQUEST_V2,
}
ShareFetchRequest.layouts = REQUESTS

LEADER_ID_AND_EPOCH_V1 = Message(
    LeaderIdAndEpoch,
    "leader_id" / Int32,
    "leader_epoch" / Int32,
    Tags(),
    versions="1-2",
)

ACQUIRED_RECORDS_V1 = Message(
    AcquiredRecords,
    "first_offset" / Int64,
    "last_offset" / Int64,
    "delivery_count" / Int16,
    Tags(),
    versions="1-2",
)

PARTITION_DATA_V1 = Message(
    PartitionData,
    "partition_index" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "acknowledge_error_code" / Int16,
    "acknowledge_error_message" / CompactNullableString,
    "current_leader" / LEADER_ID_AND_EPOCH_V1,
    "records" / CompactRecords,
    "acquired_records" / CompactArray(ACQUIRED_RECORDS_V1),
    Tags(),
    versions="1-2",
)

SHARE_FETCHABLE_TOPIC_RESPONSE_V1 = Message(
    ShareFetchableTopicResponse,
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

SHARE_FETCH_RESPONSE_V1 = Message(
    ShareFetchResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "acquisition_lock_timeout_ms" / Int32,
    "responses" / CompactArray(SHARE_FETCHABLE_TOPIC_RESPONSE_V1),
    "node_endpoints" / CompactArray(NODE_ENDPOINT_V1),
    Tags(),
    versions="1-2",
)

SHARE_FETCH_RESPONSE_V2 = SHARE_FETCH_RESPONSE_V1

RESPONSES: dict[int, Message[ShareFetchResponse]] = {
    1: SHARE_FETCH_RESPONSE_V1,
    2: SHARE_FETCH_RESPONSE_V2,
}
ShareFetchResponse.layouts = RESPONSES
