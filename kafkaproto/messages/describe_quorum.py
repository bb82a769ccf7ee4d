# Generated from schemas/messages/DescribeQuorumRequest.json and DescribeQuorumResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DescribeQuorumRequest and DescribeQuorumResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int64, Uint16, Uuid
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class DescribeQuorumRequestPartitionData(Struct):
    """One item of the list ``DescribeQuorumRequestTopicData.partitions``."""

    partition_index: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeQuorumRequestTopicData(Struct):
    """One item of the list ``DescribeQuorumRequest.topics``."""

    topic_name: str = ""
    partitions: list[DescribeQuorumRequestPartitionData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeQuorumRequest(Whole):
    """Request of API key 55: versions 0 to 2; all flexible (KIP-482)."""

    topics: list[DescribeQuorumRequestTopicData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ReplicaState(Struct):
    """One item of the list ``DescribeQuorumResponsePartitionData.current_voters`` or ``DescribeQuorumResponsePartitionData.observers``."""

    replica_id: int = 0
    replica_directory_id: bytes = bytes(16)  # v2+
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1  # v1+, ignorable
    last_caught_up_timestamp: int = -1  # v1+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeQuorumResponsePartitionData(Struct):
    """One item of the list ``DescribeQuorumResponseTopicData.partitions``."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""  # v2+, ignorable
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: list[ReplicaState] = field(default_factory=list)
    observers: list[ReplicaState] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeQuorumResponseTopicData(Struct):
    """One item of the list ``DescribeQuorumResponse.topics``."""

    topic_name: str = ""
    partitions: list[DescribeQuorumResponsePartitionData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Listener(Struct):
    """One item of the list ``Node.listeners``."""

    name: str = ""  # v2+
    host: str = ""  # v2+
    port: int = 0  # v2+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Node(Struct):
    """One item of the list ``DescribeQuorumResponse.nodes``."""

    node_id: int = 0  # v2+
    listeners: list[Listener] = field(default_factory=list)  # v2+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeQuorumResponse(Whole):
    """Response of API key 55: versions 0 to 2; all flexible (KIP-482)."""

    error_code: int = 0
    error_message: str | None = ""  # v2+, ignorable
    topics: list[DescribeQuorumResponseTopicData] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)  # v2+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DESCRIBE_QUORUM_REQUEST_PARTITION_DATA_V0 = Message(
    DescribeQuorumRequestPartitionData,
    "partition_index" / Int32,
    Tags(),
    versions="0-2",
)

DESCRIBE_QUORUM_REQUEST_TOPIC_DATA_V0 = Message(
    DescribeQuorumRequestTopicData,
    "topic_name" / CompactString,
    "partitions" / CompactArray(DESCRIBE_QUORUM_REQUEST_PARTITION_DATA_V0),
    Tags(),
    versions="0-2",
)

DESCRIBE_QUORUM_REQUEST_V0 = Message(
    DescribeQuorumRequest,
    "topics" / CompactArray(DESCRIBE_QUORUM_REQUEST_TOPIC_DATA_V0),
    Tags(),
    versions="0-2",
)

DESCRIBE_QUORUM_REQUEST_V1 = DESCRIBE_QUORUM_REQUEST_V0

DESCRIBE_QUORUM_REQUEST_V2 = DESCRIBE_QUORUM_REQUEST_V0

REQUESTS: dict[int, Message[DescribeQuorumRequest]] = {
    0: DESCRIBE_QUORUM_REQUEST_V0,
    1: DESCRIBE_QUORUM_REQUEST_V1,
    2: DESCRIBE_QUORUM_REQUEST_V2,
}
DescribeQuorumRequest.layouts = REQUESTS

REPLICA_STATE_V0 = Message(
    ReplicaState,
    "replica_id" / Int32,
    "log_end_offset" / Int64,
    Tags(),
    versions="0",
    absent=("replica_directory_id",),
)

DESCRIBE_QUORUM_RESPONSE_PARTITION_DATA_V0 = Message(
    DescribeQuorumResponsePartitionData,
    "partition_index" / Int32,
    "error_code" / Int16,
    "leader_id" / Int32,
    "leader_epoch" / Int32,
    "high_watermark" / Int64,
    "current_voters" / CompactArray(REPLICA_STATE_V0),
    "observers" / CompactArray(REPLICA_STATE_V0),
    Tags(),
    versions="0",
)

DESCRIBE_QUORUM_RESPONSE_TOPIC_DATA_V0 = Message(
    DescribeQuorumResponseTopicData,
    "topic_name" / CompactString,
    "partitions" / CompactArray(DESCRIBE_QUORUM_RESPONSE_PARTITION_DATA_V0),
    Tags(),
    versions="0",
)

DESCRIBE_QUORUM_RESPONSE_V0 = Message(
    DescribeQuorumResponse,
    "error_code" / Int16,
    "topics" / CompactArray(DESCRIBE_QUORUM_RESPONSE_TOPIC_DATA_V0),
    Tags(),
    versions="0",
    absent=("nodes",),
)

REPLICA_STATE_V1 = Message(
    ReplicaState,
    "replica_id" / Int32,
    "log_end_offset" / Int64,
    "last_fetch_timestamp" / Int64,
    "last_caught_up_timestamp" / Int64,
    Tags(),
    versions="1",
    absent=("replica_directory_id",),
)

DESCRIBE_QUORUM_RESPONSE_PARTITION_DATA_V1 = Message(
    DescribeQuorumResponsePartitionData,
    "partition_index" / Int32,
    "error_code" / Int16,
    "leader_id" / Int32,
    "leader_epoch" / Int32,
    "high_watermark" / Int64,
    "current_voters" / CompactArray(REPLICA_STATE_V1),
    "observers" / CompactArray(REPLICA_STATE_V1),
    Tags(),
    versions="1",
)

DESCRIBE_QUORUM_RESPONSE_TOPIC_DATA_V1 = Message(
    DescribeQuorumResponseTopicData,
    "topic_name" / CompactString,
    "partitions" / CompactArray(DESCRIBE_QUORUM_RESPONSE_PARTITION_DATA_V1),
    Tags(),
    versions="1",
)

DESCRIBE_QUORUM_RESPONSE_V1 = Message(
    DescribeQuorumResponse,
    "error_code" / Int16,
    "topics" / CompactArray(DESCRIBE_QUORUM_RESPONSE_TOPIC_DATA_V1),
    Tags(),
    versions="1",
    absent=("nodes",),
)

REPLICA_STATE_V2 = Message(
    ReplicaState,
    "replica_id" / Int32,
    "replica_directory_id" / Uuid,
    "log_end_offset" / Int64,
    "last_fetch_timestamp" / Int64,
    "last_caught_up_timestamp" / Int64,
    Tags(),
    versions="2",
)

DESCRIBE_QUORUM_RESPONSE_PARTITION_DATA_V2 = Message(
    DescribeQuorumResponsePartitionData,
    "partition_index" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "leader_id" / Int32,
    "leader_epoch" / Int32,
    "high_watermark" / Int64,
    "current_voters" / CompactArray(REPLICA_STATE_V2),
    "observers" / CompactArray(REPLICA_STATE_V2),
    Tags(),
    versions="2",
)

DESCRIBE_QUORUM_RESPONSE_TOPIC_DATA_V2 = Message(
    DescribeQuorumResponseTopicData,
    "topic_name" / CompactString,
    "partitions" / CompactArray(DESCRIBE_QUORUM_RESPONSE_PARTITION_DATA_V2),
    Tags(),
    versions="2",
)

LISTENER_V2 = Message(
    Listener,
    "name" / CompactString,
    "host" / CompactString,
    "port" / Uint16,
    Tags(),
    versions="2",
)

NODE_V2 = Message(
    Node,
    "node_id" / Int32,
    "listeners" / CompactArray(LISTENER_V2),
    Tags(),
    versions="2",
)

DESCRIBE_QUORUM_RESPONSE_V2 = Message(
    DescribeQuorumResponse,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "topics" / CompactArray(DESCRIBE_QUORUM_RESPONSE_TOPIC_DATA_V2),
    "nodes" / CompactArray(NODE_V2),
    Tags(),
    versions="2",
)

RESPONSES: dict[int, Message[DescribeQuorumResponse]] = {
    0: DESCRIBE_QUORUM_RESPONSE_V0,
    1: DESCRIBE_QUORUM_RESPONSE_V1,
    2: DESCRIBE_QUORUM_RESPONSE_V2,
}
DescribeQuorumResponse.layouts = RESPONSES
