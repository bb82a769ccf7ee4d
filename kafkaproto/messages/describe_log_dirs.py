# Generated from schemas/messages/DescribeLogDirsRequest.json and DescribeLogDirsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DescribeLogDirsRequest and DescribeLogDirsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray, CompactNullableArray, NullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactString, Int16, Int32, Int64, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class DescribableLogDirTopic(Struct):
    """One item of the list ``DescribeLogDirsRequest.topics``."""

    topic: str = ""
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeLogDirsRequest(Whole):
    """Request of API key 35: versions 0 to 4; flexible from version 2 on (KIP-482)."""

    topics: list[DescribableLogDirTopic] | None = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeLogDirsPartition(Struct):
    """One item of the list ``DescribeLogDirsTopic.partitions``."""

    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeLogDirsTopic(Struct):
    """One item of the list ``DescribeLogDirsResult.topics``."""

    name: str = ""
    partitions: list[DescribeLogDirsPartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeLogDirsResult(Struct):
    """One item of the list ``DescribeLogDirsResponse.results``."""

    error_code: int = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = field(default_factory=list)
    total_bytes: int = -1  # v4+, ignorable
    usable_bytes: int = -1  # v4+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeLogDirsResponse(Whole):
    """Response of API key 35: versions 0 to 4; flexible from version 2 on (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0  # v3+, ignorable
    results: list[DescribeLogDirsResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DESCRIBABLE_LOG_DIR_TOPIC_V0 = Message(
    DescribableLogDirTopic,
    "topic" / String,
    "partitions" / Array(Int32),
    versions="0-1",
)

DESCRIBE_LOG_DIRS_REQUEST_V0 = Message(
    DescribeLogDirsRequest,
    "topics" / NullableArray(DESCRIBABLE_LOG_DIR_TOPIC_V0),
    versions="0-1",
)

DESCRIBE_LOG_DIRS_REQUEST_V1 = DESCRIBE_LOG_DIRS_REQUEST_V0

DESCRIBABLE_LOG_DIR_TOPIC_V2 = Message(
    DescribableLogDirTopic,
    "topic" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="2-4",
)

DESCRIBE_LOG_DIRS_REQUEST_V2 = Message(
    DescribeLogDirsRequest,
    "topics" / CompactNullableArray(DESCRIBABLE_LOG_DIR_TOPIC_V2),
    Tags(),
    versions="2-4",
)

DESCRIBE_LOG_DIRS_REQUEST_V3 = DESCRIBE_LOG_DIRS_REQUEST_V2

DESCRIBE_LOG_DIRS_REQUEST_V4 = DESCRIBE_LOG_DIRS_REQUEST_V2

REQUESTS: dict[int, Message[DescribeLogDirsRequest]] = {
    0: DESCRIBE_LOG_DIRS_REQUEST_V0,
    1: DESCRIBE_LOG_DIRS_REQUEST_V1,
    2: DESCRIBE_LOG_DIRS_REQUEST_V2,
    3: DESCRIBE_LOG_DIRS_REQUEST_V3,
    4: DESCRIBE_LOG_DIRS_REQUEST_V4,
}
DescribeLogDirsRequest.layouts = REQUESTS

DESCRIBE_LOG_DIRS_PARTITION_V0 = Message(
    DescribeLogDirsPartition,
    "partition_index" / Int32,
    "partition_size" / Int64,
    "offset_lag" / Int64,
    "is_future_key" / Bool,
    versions="0-1",
)

DESCRIBE_LOG_DIRS_TOPIC_V0 = Message(
    DescribeLogDirsTopic,
    "name" / String,
    "partitions" / Array(DESCRIBE_LOG_DIRS_PARTITION_V0),
    versions="0-1",
)

DESCRIBE_LOG_DIRS_RESULT_V0 = Message(
    DescribeLogDirsResult,
    "error_code" / Int16,
    "log_dir" / String,
    "topics" / Array(DESCRIBE_LOG_DIRS_TOPIC_V0),
    versions="0-1",
)

DESCRIBE_LOG_DIRS_RESPONSE_V0 = Message(
    DescribeLogDirsResponse,
    "throttle_time_ms" / Int32,
    "results" / Array(DESCRIBE_LOG_DIRS_RESULT_V0),
    versions="0-1",
)

DESCRIBE_LOG_DIRS_RESPONSE_V1 = DESCRIBE_LOG_DIRS_RESPONSE_V0

DESCRIBE_LOG_DIRS_PARTITION_V2 = Message(
    DescribeLogDirsPartition,
    "partition_index" / Int32,
    "partition_size" / Int64,
    "offset_lag" / Int64,
    "is_future_key" / Bool,
    Tags(),
    versions="2-4",
)

DESCRIBE_LOG_DIRS_TOPIC_V2 = Message(
    DescribeLogDirsTopic,
    "name" / CompactString,
    "partitions" / CompactArray(DESCRIBE_LOG_DIRS_PARTITION_V2),
    Tags(),
    versions="2-4",
)

DESCRIBE_LOG_DIRS_RESULT_V2 = Message(
    DescribeLogDirsResult,
    "error_code" / Int16,
    "log_dir" / CompactString,
    "topics" / CompactArray(DESCRIBE_LOG_DIRS_TOPIC_V2),
    Tags(),
    versions="2-3",
)

DESCRIBE_LOG_DIRS_RESPONSE_V2 = Message(
    DescribeLogDirsResponse,
    "throttle_time_ms" / Int32,
    "results" / CompactArray(DESCRIBE_LOG_DIRS_RESULT_V2),
    Tags(),
    versions="2",
)

DESCRIBE_LOG_DIRS_RESPONSE_V3 = Message(
    DescribeLogDirsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "results" / CompactArray(DESCRIBE_LOG_DIRS_RESULT_V2),
    Tags(),
    versions="3",
)

DESCRIBE_LOG_DIRS_RESULT_V4 = Message(
    DescribeLogDirsResult,
    "error_code" / Int16,
    "log_dir" / CompactString,
    "topics" / CompactArray(DESCRIBE_LOG_DIRS_TOPIC_V2),
    "total_bytes" / Int64,
    "usable_bytes" / Int64,
    Tags(),
    versions="4",
)

DESCRIBE_LOG_DIRS_RESPONSE_V4 = Message(
    DescribeLogDirsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "results" / CompactArray(DESCRIBE_LOG_DIRS_RESULT_V4),
    Tags(),
    versions="4",
)

RESPONSES: dict[int, Message[DescribeLogDirsResponse]] = {
    0: DESCRIBE_LOG_DIRS_RESPONSE_V0,
    1: DESCRIBE_LOG_DIRS_RESPONSE_V1,
    2: DESCRIBE_LOG_DIRS_RESPONSE_V2,
    3: DESCRIBE_LOG_DIRS_RESPONSE_V3,
    4: DESCRIBE_LOG_DIRS_RESPONSE_V4,
}
DescribeLogDirsResponse.layouts = RESPONSES
