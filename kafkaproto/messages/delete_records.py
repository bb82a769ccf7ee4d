# Generated from schemas/messages/DeleteRecordsRequest.json and DeleteRecordsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DeleteRecordsRequest and DeleteRecordsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int16, Int32, Int64, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class DeleteRecordsPartition(Struct):
    """One item of the list ``DeleteRecordsTopic.partitions``."""

    partition_index: int = 0
    offset: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteRecordsTopic(Struct):
    """One item of the list ``DeleteRecordsRequest.topics``."""

    name: str = ""
    partitions: list[DeleteRecordsPartition] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteRecordsRequest(Whole):
    """Request of API key 21: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    topics: list[DeleteRecordsTopic] = field(default_factory=list)
    timeout_ms: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteRecordsPartitionResult(Struct):
    """One item of the list ``DeleteRecordsTopicResult.partitions``."""

    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteRecordsTopicResult(Struct):
    """One item of the list ``DeleteRecordsResponse.topics``."""

    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DeleteRecordsResponse(Whole):
    """Response of API key 21: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    throttle_time_ms: int = 0
    topics: list[DeleteRecordsTopicResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DELETE_RECORDS_PARTITION_V0 = Message(
    DeleteRecordsPartition,
    "partition_index" / Int32,
    "offset" / Int64,
    versions="0-1",
)

DELETE_RECORDS_TOPIC_V0 = Message(
    DeleteRecordsTopic,
    "name" / String,
    "partitions" / Array(DELETE_RECORDS_PARTITION_V0),
    versions="0-1",
)

DELETE_RECORDS_REQUEST_V0 = Message(
    DeleteRecordsRequest,
    "topics" / Array(DELETE_RECORDS_TOPIC_V0),
    "timeout_ms" / Int32,
    versions="0-1",
)

DELETE_RECORDS_REQUEST_V1 = DELETE_RECORDS_REQUEST_V0

DELETE_RECORDS_PARTITION_V2 = Message(
    DeleteRecordsPartition,
    "partition_index" / Int32,
    "offset" / Int64,
    Tags(),
    versions="2",
)

DELETE_RECORDS_TOPIC_V2 = Message(
    DeleteRecordsTopic,
    "name" / CompactString,
    "partitions" / CompactArray(DELETE_RECORDS_PARTITION_V2),
    Tags(),
    versions="2",
)

DELETE_RECORDS_REQUEST_V2 = Message(
    DeleteRecordsRequest,
    "topics" / CompactArray(DELETE_RECORDS_TOPIC_V2),
    "timeout_ms" / Int32,
    Tags(),
    versions="2",
)

REQUESTS: dict[int, Message[DeleteRecordsRequest]] = {
    0: DELETE_RECORDS_REQUEST_V0,
    1: DELETE_RECORDS_REQUEST_V1,
    2: DELETE_RECORDS_REQUEST_V2,
}
DeleteRecordsRequest.layouts = REQUESTS

DELETE_RECORDS_PARTITION_RESULT_V0 = Message(
    DeleteRecordsPartitionResult,
    "partition_index" / Int32,
    "low_watermark" / Int64,
    "error_code" / Int16,
    versions="0-1",
)

DELETE_RECORDS_TOPIC_RESULT_V0 = Message(
    DeleteRecordsTopicResult,
    "name" / String,
    "partitions" / Array(DELETE_RECORDS_PARTITION_RESULT_V0),
    versions="0-1",
)

DELETE_RECORDS_RESPONSE_V0 = Message(
    DeleteRecordsResponse,
    "throttle_time_ms" / Int32,
    "topics" / Array(DELETE_RECORDS_TOPIC_RESULT_V0),
    versions="0-1",
)

DELETE_RECORDS_RESPONSE_V1 = DELETE_RECORDS_RESPONSE_V0

DELETE_RECORDS_PARTITION_RESULT_V2 = Message(
    DeleteRecordsPartitionResult,
    "partition_index" / Int32,
    "low_watermark" / Int64,
    "error_code" / Int16,
    Tags(),
    versions="2",
)

DELETE_RECORDS_TOPIC_RESULT_V2 = Message(
    DeleteRecordsTopicResult,
    "name" / CompactString,
    "partitions" / CompactArray(DELETE_RECORDS_PARTITION_RESULT_V2),
    Tags(),
    versions="2",
)

DELETE_RECORDS_RESPONSE_V2 = Message(
    DeleteRecordsResponse,
    "throttle_time_ms" / Int32,
    "topics" / CompactArray(DELETE_RECORDS_TOPIC_RESULT_V2),
    Tags(),
    versions="2",
)

RESPONSES: dict[int, Message[DeleteRecordsResponse]] = {
    0: DELETE_RECORDS_RESPONSE_V0,
    1: DELETE_RECORDS_RESPONSE_V1,
    2: DELETE_RECORDS_RESPONSE_V2,
}
DeleteRecordsResponse.layouts = RESPONSES
