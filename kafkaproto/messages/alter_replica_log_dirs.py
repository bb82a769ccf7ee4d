# Generated from schemas/messages/AlterReplicaLogDirsRequest.json and AlterReplicaLogDirsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""AlterReplicaLogDirsRequest and AlterReplicaLogDirsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int16, Int32, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class AlterReplicaLogDirTopic(Struct):
    """One item of the list ``AlterReplicaLogDir.topics``."""

    name: str = ""
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterReplicaLogDir(Struct):
    """One item of the list ``AlterReplicaLogDirsRequest.dirs``."""

    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterReplicaLogDirsRequest(Whole):
    """Request of API key 34: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    dirs: list[AlterReplicaLogDir] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterReplicaLogDirPartitionResult(Struct):
    """One item of the list ``AlterReplicaLogDirTopicResult.partitions``."""

    partition_index: int = 0
    error_code: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterReplicaLogDirTopicResult(Struct):
    """One item of the list ``AlterReplicaLogDirsResponse.results``."""

    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AlterReplicaLogDirsResponse(Whole):
    """Response of API key 34: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    throttle_time_ms: int = 0
    results: list[AlterReplicaLogDirTopicResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


ALTER_REPLICA_LOG_DIR_TOPIC_V0 = Message(
    AlterReplicaLogDirTopic,
    "name" / String,
    "partitions" / Array(Int32),
    versions="0-1",
)

ALTER_REPLICA_LOG_DIR_V0 = Message(
    AlterReplicaLogDir,
    "path" / String,
    "topics" / Array(ALTER_REPLICA_LOG_DIR_TOPIC_V0),
    versions="0-1",
)

ALTER_REPLICA_LOG_DIRS_REQUEST_V0 = Message(
    AlterReplicaLogDirsRequest,
    "dirs" / Array(ALTER_REPLICA_LOG_DIR_V0),
    versions="0-1",
)

ALTER_REPLICA_LOG_DIRS_REQUEST_V1 = ALTER_REPLICA_LOG_DIRS_REQUEST_V0

ALTER_REPLICA_LOG_DIR_TOPIC_V2 = Message(
    AlterReplicaLogDirTopic,
    "name" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="2",
)

ALTER_REPLICA_LOG_DIR_V2 = Message(
    AlterReplicaLogDir,
    "path" / CompactString,
    "topics" / CompactArray(ALTER_REPLICA_LOG_DIR_TOPIC_V2),
    Tags(),
    versions="2",
)

ALTER_REPLICA_LOG_DIRS_REQUEST_V2 = Message(
    AlterReplicaLogDirsRequest,
    "dirs" / CompactArray(ALTER_REPLICA_LOG_DIR_V2),
    Tags(),
    versions="2",
)

REQUESTS: dict[int, Message[AlterReplicaLogDirsRequest]] = {
    0: ALTER_REPLICA_LOG_DIRS_REQUEST_V0,
    1: ALTER_REPLICA_LOG_DIRS_REQUEST_V1,
    2: ALTER_REPLICA_LOG_DIRS_REQUEST_V2,
}
AlterReplicaLogDirsRequest.layouts = REQUESTS

ALTER_REPLICA_LOG_DIR_PARTITION_RESULT_V0 = Message(
    AlterReplicaLogDirPartitionResult,
    "partition_index" / Int32,
    "error_code" / Int16,
    versions="0-1",
)

ALTER_REPLICA_LOG_DIR_TOPIC_RESULT_V0 = Message(
    AlterReplicaLogDirTopicResult,
    "topic_name" / String,
    "partitions" / Array(ALTER_REPLICA_LOG_DIR_PARTITION_RESULT_V0),
    versions="0-1",
)

ALTER_REPLICA_LOG_DIRS_RESPONSE_V0 = Message(
    AlterReplicaLogDirsResponse,
    "throttle_time_ms" / Int32,
    "results" / Array(ALTER_REPLICA_LOG_DIR_TOPIC_RESULT_V0),
    versions="0-1",
)

ALTER_REPLICA_LOG_DIRS_RESPONSE_V1 = ALTER_REPLICA_LOG_DIRS_RESPONSE_V0

ALTER_REPLICA_LOG_DIR_PARTITION_RESULT_V2 = Message(
    AlterReplicaLogDirPartitionResult,
    "partition_index" / Int32,
    "error_code" / Int16,
    Tags(),
    versions="2",
)

ALTER_REPLICA_LOG_DIR_TOPIC_RESULT_V2 = Message(
    AlterReplicaLogDirTopicResult,
    "topic_name" / CompactString,
    "partitions" / CompactArray(ALTER_REPLICA_LOG_DIR_PARTITION_RESULT_V2),
    Tags(),
    versions="2",
)

ALTER_REPLICA_LOG_DIRS_RESPONSE_V2 = Message(
    AlterReplicaLogDirsResponse,
    "throttle_time_ms" / Int32,
    "results" / CompactArray(ALTER_REPLICA_LOG_DIR_TOPIC_RESULT_V2),
    Tags(),
    versions="2",
)

RESPONSES: dict[int, Message[AlterReplicaLogDirsResponse]] = {
    0: ALTER_REPLICA_LOG_DIRS_RESPONSE_V0,
    1: ALTER_REPLICA_LOG_DIRS_RESPONSE_V1,
    2: ALTER_REPLICA_LOG_DIRS_RESPONSE_V2,
}
AlterReplicaLogDirsResponse.layouts = RESPONSES
