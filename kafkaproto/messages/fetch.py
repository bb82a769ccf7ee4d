# Generated from schemas/messages/FetchRequest.json and FetchResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""FetchRequest and FetchResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray, CompactNullableArray, NullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import (
    CompactNullableRecords,
    CompactNullableString,
    CompactString,
    Int16,
    Int32,
    Int64,
    Int8,
    NullableRecords,
    RecordsValue,
    String,
    Uuid,
)
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tagged, Tags


@dataclass(slots=True, eq=False, repr=False)
class ReplicaState(Struct):
    """The struct in the field ``FetchRequest.replica_state``."""

    replica_id: int = -1  # v15+
    replica_epoch: int = -1  # v15+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class FetchPartition(Struct):
    """One item of the list ``FetchTopic.partitions``."""

    partition: int = 0
    current_leader_epoch: int = -1  # v9+, ignorable
    fetch_offset: int = 0
    last_fetched_epoch: int = -1  # v12+
    log_start_offset: int = -1  # v5+, ignorable
    partition_max_bytes: int = 0
    replica_directory_id: bytes = bytes(16)  # v17+, tag 0, ignorable
    high_watermark: int = 9223372036854775807  # v18+, tag 1, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class FetchTopic(Struct):
    """One item of the list ``FetchRequest.topics``."""

    topic: str = ""  # v0-12, ignorable
    topic_id: bytes = bytes(16)  # v13+, ignorable
    partitions: list[FetchPartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ForgottenTopic(Struct):
    """One item of the list ``FetchRequest.forgotten_topics_data``."""

    topic: str = ""  # v7-12, ignorable
    topic_id: bytes = bytes(16)  # v13+, ignorable
    partitions: list[int] = field(default_factory=list)  # v7+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class FetchRequest(Whole):
    """Request of API key 1: versions 0 to 18; flexible from version 12 on (KIP-482)."""

    cluster_id: str | None = None  # v12+, tag 0, ignorable
    replica_id: int = -1  # v0-14
    replica_state: ReplicaState = field(default_factory=ReplicaState)  # v15+, tag 1
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647  # v3+, ignorable
    isolation_level: int = 0  # v4+, ignorable
    session_id: int = 0  # v7+, ignorable
    session_epoch: int = -1  # v7+, ignorable
    topics: list[FetchTopic] = field(default_factory=list)
    forgotten_topics_data: list[ForgottenTopic] = field(default_factory=list)  # v7+
    rack_id: str = ""  # v11+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class EpochEndOffset(Struct):
    """The struct in the field ``PartitionData.diverging_epoch``."""

    epoch: int = -1  # v12+
    end_offset: int = -1  # v12+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class LeaderIdAndEpoch(Struct):
    """The struct in the field ``PartitionData.current_leader``."""

    leader_id: int = -1  # v12+
    leader_epoch: int = -1  # v12+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class SnapshotId(Struct):
    """The struct in the field ``PartitionData.snapshot_id``."""

    end_offset: int = -1
    epoch: int = -1
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AbortedTransaction(Struct):
    """One item of the list ``PartitionData.aborted_transactions``."""

    producer_id: int = 0  # v4+
    first_offset: int = 0  # v4+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class PartitionData(Struct):
    """One item of the list ``FetchableTopicResponse.partitions``."""

    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1  # v4+, ignorable
    log_start_offset: int = -1  # v5+, ignorable
    diverging_epoch: EpochEndOffset = field(default_factory=EpochEndOffset)  # v12+, tag 0
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)  # v12+, tag 1
    snapshot_id: SnapshotId = field(default_factory=SnapshotId)  # v12+, tag 2
    aborted_transactions: list[AbortedTransaction] | None = field(default_factory=list)  # v4+, ignorable
    preferred_read_replica: int = -1  # v11+
    records: RecordsValue | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class FetchableTopicResponse(Struct):
    """One item of the list ``FetchResponse.responses``."""

    topic: str = ""  # v0-12, ignorable
    topic_id: bytes = bytes(16)  # v13+, ignorable
    partitions: list[PartitionData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class NodeEndpoint(Struct):
    """One item of the list ``FetchResponse.node_endpoints``."""

    node_id: int = 0  # v16+
    host: str = ""  # v16+
    port: int = 0  # v16+
    rack: str | None = None  # v16+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class FetchResponse(Whole):
    """Response of API key 1: versions 0 to 18; flexible from version 12 on (KIP-482)."""

    throttle_time_ms: int = 0  # v1+, ignorable
    error_code: int = 0  # v7+, ignorable
    session_id: int = 0  # v7+
    responses: list[FetchableTopicResponse] = field(default_factory=list)
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)  # v16+, tag 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


FETCH_PARTITION_V0 = Message(
    FetchPartition,
    "partition" / Int32,
    "fetch_offset" / Int64,
    "partition_max_bytes" / Int32,
    versions="0-4",
    absent=("last_fetched_epoch",),
)

FETCH_TOPIC_V0 = Message(
    FetchTopic,
    "topic" / String,
    "partitions" / Array(FETCH_PARTITION_V0),
    versions="0-4",
)

FETCH_REQUEST_V0 = Message(
    FetchRequest,
    "replica_id" / Int32,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "topics" / Array(FETCH_TOPIC_V0),
    versions="0-2",
    absent=("replica_state", "forgotten_topics_data"),
)

FETCH_REQUEST_V1 = FETCH_REQUEST_V0

FETCH_REQUEST_V2 = FETCH_REQUEST_V0

FETCH_REQUEST_V3 = Message(
    FetchRequest,
    "replica_id" / Int32,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / Int32,
    "topics" / Array(FETCH_TOPIC_V0),
    versions="3",
    absent=("replica_state", "forgotten_topics_data"),
)

FETCH_REQUEST_V4 = Message(
    FetchRequest,
    "replica_id" / Int32,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / Int32,
    "isolation_level" / Int8,
    "topics" / Array(FETCH_TOPIC_V0),
    versions="4",
    absent=("replica_state", "forgotten_topics_data"),
)

FETCH_PARTITION_V5 = Message(
    FetchPartition,
    "partition" / Int32,
    "fetch_offset" / Int64,
    "log_start_offset" / Int64,
    "partition_max_bytes" / Int32,
    versions="5-8",
    absent=("last_fetched_epoch",),
)

FETCH_TOPIC_V5 = Message(
    FetchTopic,
    "topic" / String,
    "partitions" / Array(FETCH_PARTITION_V5),
    versions="5-8",
)

FETCH_REQUEST_V5 = Message(
    FetchRequest,
    "replica_id" / Int32,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / Int32,
    "isolation_level" / Int8,
    "topics" / Array(FETCH_TOPIC_V5),
    versions="5-6",
    absent=("replica_state", "forgotten_topics_data"),
)

FETCH_REQUEST_V6 = FETCH_REQUEST_V5

FORGOTTEN_TOPIC_V7 = Message(
    ForgottenTopic,
    "topic" / String,
    "partitions" / Array(Int32),
    versions="7-11",
)

FETCH_REQUEST_V7 = Message(
    FetchRequest,
    "replica_id" / Int32,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / Int32,
    "isolation_level" / Int8,
    "session_id" / Int32,
    "session_epoch" / Int32,
    "topics" / Array(FETCH_TOPIC_V5),
    "forgotten_topics_data" / Array(FORGOTTEN_TOPIC_V7),
    versions="7-8",
    absent=("replica_state",),
)

FETCH_REQUEST_V8 = FETCH_REQUEST_V7

FETCH_PARTITION_V9 = Message(
    FetchPartition,
    "partition" / Int32,
    "current_leader_epoch" / Int32,
    "fetch_offset" / Int64,
    "log_start_offset" / Int64,
    "partition_max_bytes" / Int32,
    versions="9-11",
    absent=("last_fetched_epoch",),
)

FETCH_TOPIC_V9 = Message(
    FetchTopic,
    "topic" / String,
    "partitions" / Array(FETCH_PARTITION_V9),
    versions="9-11",
)

FETCH_REQUEST_V9 = Message(
    FetchRequest,
    "replica_id" / Int32,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / Int32,
    "isolation_level" / Int8,
    "session_id" / Int32,
    "session_epoch" / Int32,
    "topics" / Array(FETCH_TOPIC_V9),
    "forgotten_topics_data" / Array(FORGOTTEN_TOPIC_V7),
    versions="9-10",
    absent=("replica_state",),
)

FETCH_REQUEST_V10 = FETCH_REQUEST_V9

FETCH_REQUEST_V11 = Message(
    FetchRequest,
    "replica_id" / Int32,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / Int32,
    "isolation_level" / Int8,
    "session_id" / Int32,
    "session_epoch" / Int32,
    "topics" / Array(FETCH_TOPIC_V9),
    "forgotten_topics_data" / Array(FORGOTTEN_TOPIC_V7),
    "rack_id" / String,
    versions="11",
    absent=("replica_state",),
)

FETCH_PARTITION_V12 = Message(
    FetchPartition,
    "partition" / Int32,
    "current_leader_epoch" / Int32,
    "fetch_offset" / Int64,
    "last_fetched_epoch" / Int32,
    "log_start_offset" / Int64,
    "partition_max_bytes" / Int32,
    Tags(
        reserved=(0, 1),
    ),
    versions="12-16",
)

FETCH_TOPIC_V12 = Message(
    FetchTopic,
    "topic" / CompactString,
    "partitions" / CompactArray(FETCH_PARTITION_V12),
    Tags(),
    versions="12",
)

FORGOTTEN_TOPIC_V12 = Message(
    ForgottenTopic,
    "topic" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="12",
)

FETCH_REQUEST_V12 = Message(
    FetchRequest,
    "replica_id" / Int32,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / Int32,
    "isolation_level" / Int8,
    "session_id" / Int32,
    "session_epoch" / Int32,
    "topics" / CompactArray(FETCH_TOPIC_V12),
    "forgotten_topics_data" / CompactArray(FORGOTTEN_TOPIC_V12),
    "rack_id" / CompactString,
    Tags(
        Tagged(0, "cluster_id" / CompactNullableString),
        reserved=(1,),
    ),
    versions="12",
    absent=("replica_state",),
)

FETCH_TOPIC_V13 = Message(
    FetchTopic,
    "topic_id" / Uuid,
    "partitions" / CompactArray(FETCH_PARTITION_V12),
    Tags(),
    versions="13-16",
)

FORGOTTEN_TOPIC_V13 = Message(
    ForgottenTopic,
    "topic_id" / Uuid,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="13-18",
)

FETCH_REQUEST_V13 = Message(
    FetchRequest,
    "replica_id" / Int32,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / Int32,
    "isolation_level" / Int8,
    "session_id" / Int32,
    "session_epoch" / Int32,
    "topics" / CompactArray(FETCH_TOPIC_V13),
    "forgotten_topics_data" / CompactArray(FORGOTTEN_TOPIC_V13),
    "rack_id" / CompactString,
    Tags(
        Tagged(0, "cluster_id" / CompactNullableString),
        reserved=(1,),
    ),
    versions="13-14",
    absent=("replica_state",),
)

FETCH_REQUEST_V14 = FETCH_REQUEST_V13

REPLICA_STATE_V15 = Message(
    ReplicaState,
    "replica_id" / Int32,
    "replica_epoch" / Int64,
    Tags(),
    versions="15-18",
)

FETCH_REQUEST_V15 = Message(
    FetchRequest,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / Int32,
    "isolation_level" / Int8,
    "session_id" / Int32,
    "session_epoch" / Int32,
    "topics" / CompactArray(FETCH_TOPIC_V13),
    "forgotten_topics_data" / CompactArray(FORGOTTEN_TOPIC_V13),
    "rack_id" / CompactString,
    Tags(
        Tagged(0, "cluster_id" / CompactNullableString),
        Tagged(1, "replica_state" / REPLICA_STATE_V15),
    ),
    versions="15-16",
    absent=("replica_id",),
)

FETCH_REQUEST_V16 = FETCH_REQUEST_V15

FETCH_PARTITION_V17 = Message(
    FetchPartition,
    "partition" / Int32,
    "current_leader_epoch" / Int32,
    "fetch_offset" / Int64,
    "last_fetched_epoch" / Int32,
    "log_start_offset" / Int64,
    "partition_max_bytes" / Int32,
    Tags(
        Tagged(0, "replica_directory_id" / Uuid),
        reserved=(1,),
    ),
    versions="17",
)

FETCH_TOPIC_V17 = Message(
    FetchTopic,
    "topic_id" / Uuid,
    "partitions" / CompactArray(FETCH_PARTITION_V17),
    Tags(),
    versions="17",
)

FETCH_REQUEST_V17 = Message(
    FetchRequest,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / Int32,
    "isolation_level" / Int8,
    "session_id" / Int32,
    "session_epoch" / Int32,
    "topics" / CompactArray(FETCH_TOPIC_V17),
    "forgotten_topics_data" / CompactArray(FORGOTTEN_TOPIC_V13),
    "rack_id" / CompactString,
    Tags(
        Tagged(0, "cluster_id" / CompactNullableString),
        Tagged(1, "replica_state" / REPLICA_STATE_V15),
    ),
    versions="17",
    absent=("replica_id",),
)

FETCH_PARTITION_V18 = Message(
    FetchPartition,
    "partition" / Int32,
    "current_leader_epoch" / Int32,
    "fetch_offset" / Int64,
    "last_fetched_epoch" / Int32,
    "log_start_offset" / Int64,
    "partition_max_bytes" / Int32,
    Tags(
        Tagged(0, "replica_directory_id" / Uuid),
        Tagged(1, "high_watermark" / Int64),
    ),
    versions="18",
)

FETCH_TOPIC_V18 = Message(
    FetchTopic,
    "topic_id" / Uuid,
    "partitions" / CompactArray(FETCH_PARTITION_V18),
    Tags(),
    versions="18",
)

FETCH_REQUEST_V18 = Message(
    FetchRequest,
    "max_wait_ms" / Int32,
    "min_bytes" / Int32,
    "max_bytes" / Int32,
    "isolation_level" / Int8,
    "session_id" / Int32,
    "session_epoch" / Int32,
    "topics" / CompactArray(FETCH_TOPIC_V18),
    "forgotten_topics_data" / CompactArray(FORGOTTEN_TOPIC_V13),
    "rack_id" / CompactString,
    Tags(
        Tagged(0, "cluster_id" / CompactNullableString),
        Tagged(1, "replica_state" / REPLICA_STATE_V15),
    ),
    versions="18",
    absent=("replica_id",),
)

REQUESTS: dict[int, Message[FetchRequest]] = {
    0: FETCH_REQUEST_V0,
    1: FETCH_REQUEST_V1,
    2: FETCH_REQUEST_V2,
    3: FETCH_REQUEST_V3,
    4: FETCH_REQUEST_V4,
    5: FETCH_REQUEST_V5,
    6: FETCH_REQUEST_V6,
    7: FETCH_REQUEST_V7,
    8: FETCH_REQUEST_V8,
    9: FETCH_REQUEST_V9,
    10: FETCH_REQUEST_V10,
    11: FETCH_REQUEST_V11,
    12: FETCH_REQUEST_V12,
    13: FETCH_REQUEST_V13,
    14: FETCH_REQUEST_V14,
    15: FETCH_REQUEST_V15,
    16: FETCH_REQUEST_V16,
    17: FETCH_REQUEST_V17,
    18: FETCH_REQUEST_V18,
}
FetchRequest.layouts = REQUESTS

PARTITION_DATA_V0 = Message(
    PartitionData,
    "partition_index" / Int32,
    "error_code" / Int16,
    "high_watermark" / Int64,
    "records" / NullableRecords,
    versions="0-3",
    absent=("diverging_epoch", "current_leader", "snapshot_id", "preferred_read_replica"),
)

FETCHABLE_TOPIC_RESPONSE_V0 = Message(
    FetchableTopicResponse,
    "topic" / String,
    "partitions" / Array(PARTITION_DATA_V0),
    versions="0-3",
)

FETCH_RESPONSE_V0 = Message(
    FetchResponse,
    "responses" / Array(FETCHABLE_TOPIC_RESPONSE_V0),
    versions="0",
    absent=("session_id", "node_endpoints"),
)

FETCH_RESPONSE_V1 = Message(
    FetchResponse,
    "throttle_time_ms" / Int32,
    "responses" / Array(FETCHABLE_TOPIC_RESPONSE_V0),
    versions="1-3",
    absent=("session_id", "node_endpoints"),
)

FETCH_RESPONSE_V2 = FETCH_RESPONSE_V1

FETCH_RESPONSE_V3 = FETCH_RESPONSE_V1

ABORTED_TRANSACTION_V4 = Message(
    AbortedTransaction,
    "producer_id" / Int64,
    "first_offset" / Int64,
    versions="4-11",
)

PARTITION_DATA_V4 = Message(
    PartitionData,
    "partition_index" / Int32,
    "error_code" / Int16,
    "high_watermark" / Int64,
    "last_stable_offset" / Int64,
    "aborted_transactions" / NullableArray(ABORTED_TRANSACTION_V4),
    "records" / NullableRecords,
    versions="4",
    absent=("diverging_epoch", "current_leader", "snapshot_id", "preferred_read_replica"),
)

FETCHABLE_TOPIC_RESPONSE_V4 = Message(
    FetchableTopicResponse,
    "topic" / String,
    "partitions" / Array(PARTITION_DATA_V4),
    versions="4",
)

FETCH_RESPONSE_V4 = Message(
    FetchResponse,
    "throttle_time_ms" / Int32,
    "responses" / Array(FETCHABLE_TOPIC_RESPONSE_V4),
    versions="4",
    absent=("session_id", "node_endpoints"),
)

PARTITION_DATA_V5 = Message(
    PartitionData,
    "partition_index" / Int32,
    "error_code" / Int16,
    "high_watermark" / Int64,
    "last_stable_offset" / Int64,
    "log_start_offset" / Int64,
    "aborted_transactions" / NullableArray(ABORTED_TRANSACTION_V4),
    "records" / NullableRecords,
    versions="5-10",
    absent=("diverging_epoch", "current_leader", "snapshot_id", "preferred_read_replica"),
)

FETCHABLE_TOPIC_RESPONSE_V5 = Message(
    FetchableTopicResponse,
    "topic" / String,
    "partitions" / Array(PARTITION_DATA_V5),
    versions="5-10",
)

FETCH_RESPONSE_V5 = Message(
    FetchResponse,
    "throttle_time_ms" / Int32,
    "responses" / Array(FETCHABLE_TOPIC_RESPONSE_V5),
    versions="5-6",
    absent=("session_id", "node_endpoints"),
)

FETCH_RESPONSE_V6 = FETCH_RESPONSE_V5

FETCH_RESPONSE_V7 = Message(
    FetchResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "session_id" / Int32,
    "responses" / Array(FETCHABLE_TOPIC_RESPONSE_V5),
    versions="7-10",
    absent=("node_endpoints",),
)

FETCH_RESPONSE_V8 = FETCH_RESPONSE_V7

FETCH_RESPONSE_V9 = FETCH_RESPONSE_V7

FETCH_RESPONSE_V10 = FETCH_RESPONSE_V7

PARTITION_DATA_V11 = Message(
    PartitionData,
    "partition_index" / Int32,
    "error_code" / Int16,
    "high_watermark" / Int64,
    "last_stable_offset" / Int64,
    "log_start_offset" / Int64,
    "aborted_transactions" / NullableArray(ABORTED_TRANSACTION_V4),
    "preferred_read_replica" / Int32,
    "records" / NullableRecords,
    versions="11",
    absent=("diverging_epoch", "current_leader", "snapshot_id"),
)

FETCHABLE_TOPIC_RESPONSE_V11 = Message(
    FetchableTopicResponse,
    "topic" / String,
    "partitions" / Array(PARTITION_DATA_V11),
    versions="11",
)

FETCH_RESPONSE_V11 = Message(
    FetchResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "session_id" / Int32,
    "responses" / Array(FETCHABLE_TOPIC_RESPONSE_V11),
    versions="11",
    absent=("node_endpoints",),
)

EPOCH_END_OFFSET_V12 = Message(
    EpochEndOffset,
    "epoch" / Int32,
    "end_offset" / Int64,
    Tags(),
    versions="12-18",
)

LEADER_ID_AND_EPOCH_V12 = Message(
    LeaderIdAndEpoch,
    "leader_id" / Int32,
    "leader_epoch" / Int32,
    Tags(),
    versions="12-18",
)

SNAPSHOT_ID_V12 = Message(
    SnapshotId,
    "end_offset" / Int64,
    "epoch" / Int32,
    Tags(),
    versions="12-18",
)

ABORTED_TRANSACTION_V12 = Message(
    AbortedTransaction,
    "producer_id" / Int64,
    "first_offset" / Int64,
    Tags(),
    versions="12-18",
)

PARTITION_DATA_V12 = Message(
    PartitionData,
    "partition_index" / Int32,
    "error_code" / Int16,
    "high_watermark" / Int64,
    "last_stable_offset" / Int64,
    "log_start_offset" / Int64,
    "aborted_transactions" / CompactNullableArray(ABORTED_TRANSACTION_V12),
    "preferred_read_replica" / Int32,
    "records" / CompactNullableRecords,
    Tags(
        Tagged(0, "diverging_epoch" / EPOCH_END_OFFSET_V12),
        Tagged(1, "current_leader" / LEADER_ID_AND_EPOCH_V12),
        Tagged(2, "snapshot_id" / SNAPSHOT_ID_V12),
    ),
    versions="12-18",
)

FETCHABLE_TOPIC_RESPONSE_V12 = Message(
    FetchableTopicResponse,
    "topic" / CompactString,
    "partitions" / CompactArray(PARTITION_DATA_V12),
    Tags(),
    versions="12",
)

FETCH_RESPONSE_V12 = Message(
    FetchResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "session_id" / Int32,
    "responses" / CompactArray(FETCHABLE_TOPIC_RESPONSE_V12),
    Tags(
        reserved=(0,),
    ),
    versions="12",
    absent=("node_endpoints",),
)

FETCHABLE_TOPIC_RESPONSE_V13 = Message(
    FetchableTopicResponse,
    "topic_id" / Uuid,
    "partitions" / CompactArray(PARTITION_DATA_V12),
    Tags(),
    versions="13-18",
)

FETCH_RESPONSE_V13 = Message(
    FetchResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "session_id" / Int32,
    "responses" / CompactArray(FETCHABLE_TOPIC_RESPONSE_V13),
    Tags(
        reserved=(0,),
    ),
    versions="13-15",
    absent=("node_endpoints",),
)

FETCH_RESPONSE_V14 = FETCH_RESPONSE_V13

FETCH_RESPONSE_V15 = FETCH_RESPONSE_V13

NODE_ENDPOINT_V16 = Message(
    NodeEndpoint,
    "node_id" / Int32,
    "host" / CompactString,
    "port" / Int32,
    "rack" / CompactNullableString,
    Tags(),
    versions="16-18",
)

FETCH_RESPONSE_V16 = Message(
    FetchResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "session_id" / Int32,
    "responses" / CompactArray(FETCHABLE_TOPIC_RESPONSE_V13),
    Tags(
        Tagged(0, "node_endpoints" / CompactArray(NODE_ENDPOINT_V16)),
    ),
    versions="16-18",
)

FETCH_RESPONSE_V17 = FETCH_RESPONSE_V16

FETCH_RESPONSE_V18 = FETCH_RESPONSE_V16

RESPONSES: dict[int, Message[FetchResponse]] = {
    0: FETCH_RESPONSE_V0,
    1: FETCH_RESPONSE_V1,
    2: FETCH_RESPONSE_V2,
    3: FETCH_RESPONSE_V3,
    4: FETCH_RESPONSE_V4,
    5: FETCH_RESPONSE_V5,
    6: FETCH_RESPONSE_V6,
    7: FETCH_RESPONSE_V7,
    8: FETCH_RESPONSE_V8,
    9: FETCH_RESPONSE_V9,
    10: FETCH_RESPONSE_V10,
    11: FETCH_RESPONSE_V11,
    12: FETCH_RESPONSE_V12,
    13: FETCH_RESPONSE_V13,
    14: FETCH_RESPONSE_V14,
    15: FETCH_RESPONSE_V15,
    16: FETCH_RESPONSE_V16,
    17: FETCH_RESPONSE_V17,
    18: FETCH_RESPONSE_V18,
}
FetchResponse.layouts = RESPONSES
