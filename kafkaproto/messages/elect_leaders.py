# Generated from schemas/messages/ElectLeadersRequest.json and ElectLeadersResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ElectLeadersRequest and ElectLeadersResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray, CompactNullableArray, NullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int8, NullableString, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class TopicPartitions(Struct):
    """One item of the list ``ElectLeadersRequest.topic_partitions``."""

    topic: str = ""
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ElectLeadersRequest(Whole):
    """Request of API key 43: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    election_type: int = 0  # v1+
    topic_partitions: list[TopicPartitions] | None = field(default_factory=list)
    timeout_ms: int = 60000
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class PartitionResult(Struct):
    """One item of the list ``ReplicaElectionResult.partition_result``."""

    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ReplicaElectionResult(Struct):
    """One item of the list ``ElectLeadersResponse.replica_election_results``."""

    topic: str = ""
    partition_result: list[PartitionResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ElectLeadersResponse(Whole):
    """Response of API key 43: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0  # v1+
    replica_election_results: list[ReplicaElectionResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


TOPIC_PARTITIONS_V0 = Message(
    TopicPartitions,
    "topic" / String,
    "partitions" / Array(Int32),
    versions="0-1",
)

ELECT_LEADERS_REQUEST_V0 = Message(
    ElectLeadersRequest,
    "topic_partitions" / NullableArray(TOPIC_PARTITIONS_V0),
    "timeout_ms" / Int32,
    versions="0",
    absent=("election_type",),
)

ELECT_LEADERS_REQUEST_V1 = Message(
    ElectLeadersRequest,
    "election_type" / Int8,
    "topic_partitions" / NullableArray(TOPIC_PARTITIONS_V0),
    "timeout_ms" / Int32,
    versions="1",
)

TOPIC_PARTITIONS_V2 = Message(
    TopicPartitions,
    "topic" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="2",
)

ELECT_LEADERS_REQUEST_V2 = Message(
    ElectLeadersRequest,
    "election_type" / Int8,
    "topic_partitions" / CompactNullableArray(TOPIC_PARTITIONS_V2),
    "timeout_ms" / Int32,
    Tags(),
    versions="2",
)

REQUESTS: dict[int, Message[ElectLeadersRequest]] = {
    0: ELECT_LEADERS_REQUEST_V0,
    1: ELECT_LEADERS_REQUEST_V1,
    2: ELECT_LEADERS_REQUEST_V2,
}
ElectLeadersRequest.layouts = REQUESTS

PARTITION_RESULT_V0 = Message(
    PartitionResult,
    "partition_id" / Int32,
    "error_code" / Int16,
    "error_message" / NullableString,
    versions="0-1",
)

REPLICA_ELECTION_RESULT_V0 = Message(
    ReplicaElectionResult,
    "topic" / String,
    "partition_result" / Array(PARTITION_RESULT_V0),
    versions="0-1",
)

ELECT_LEADERS_RESPONSE_V0 = Message(
    ElectLeadersResponse,
    "throttle_time_ms" / Int32,
    "replica_election_results" / Array(REPLICA_ELECTION_RESULT_V0),
    versions="0",
    absent=("error_code",),
)

ELECT_LEADERS_RESPONSE_V1 = Message(
    ElectLeadersResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "replica_election_results" / Array(REPLICA_ELECTION_RESULT_V0),
    versions="1",
)

PARTITION_RESULT_V2 = Message(
    PartitionResult,
    "partition_id" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    Tags(),
    versions="2",
)

REPLICA_ELECTION_RESULT_V2 = Message(
    ReplicaElectionResult,
    "topic" / CompactString,
    "partition_result" / CompactArray(PARTITION_RESULT_V2),
    Tags(),
    versions="2",
)

ELECT_LEADERS_RESPONSE_V2 = Message(
    ElectLeadersResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "replica_election_results" / CompactArray(REPLICA_ELECTION_RESULT_V2),
    Tags(),
    versions="2",
)

RESPONSES: dict[int, Message[ElectLeadersResponse]] = {
    0: ELECT_LEADERS_RESPONSE_V0,
    1: ELECT_LEADERS_RESPONSE_V1,
    2: ELECT_LEADERS_RESPONSE_V2,
}
ElectLeadersResponse.layouts = RESPONSES
