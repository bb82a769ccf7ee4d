# Generated from schemas/messages/WriteTxnMarkersRequest.json and WriteTxnMarkersResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""WriteTxnMarkersRequest and WriteTxnMarkersResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactString, Int16, Int32, Int64, Int8, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class WritableTxnMarkerTopic(Struct):
    """One item of the list ``WritableTxnMarker.topics``."""

    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class WritableTxnMarker(Struct):
    """One item of the list ``WriteTxnMarkersRequest.markers``."""

    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = field(default_factory=list)
    coordinator_epoch: int = 0
    transaction_version: int = 0  # v2+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class WriteTxnMarkersRequest(Whole):
    """Request of API key 27: versions 0 to 2; flexible from version 1 on (KIP-482)."""

    markers: list[WritableTxnMarker] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class WritableTxnMarkerPartitionResult(Struct):
    """One item of the list ``WritableTxnMarkerTopicResult.partitions``."""

    partition_index: int = 0
    error_code: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class WritableTxnMarkerTopicResult(Struct):
    """One item of the list ``WritableTxnMarkerResult.topics``."""

    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class WritableTxnMarkerResult(Struct):
    """One item of the list ``WriteTxnMarkersResponse.markers``."""

    producer_id: int = 0
    topics: list[WritableTxnMarkerTopicResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class WriteTxnMarkersResponse(Whole):
    """Response of API key 27: versions 0 to 2; flexible from version 1 on (KIP-482)."""

    markers: list[WritableTxnMarkerResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


WRITABLE_TXN_MARKER_TOPIC_V0 = Message(
    WritableTxnMarkerTopic,
    "name" / String,
    "partition_indexes" / Array(Int32),
    versions="0",
)

WRITABLE_TXN_MARKER_V0 = Message(
    WritableTxnMarker,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "transaction_result" / Bool,
    "topics" / Array(WRITABLE_TXN_MARKER_TOPIC_V0),
    "coordinator_epoch" / Int32,
    versions="0",
)

WRITE_TXN_MARKERS_REQUEST_V0 = Message(
    WriteTxnMarkersRequest,
    "markers" / Array(WRITABLE_TXN_MARKER_V0),
    versions="0",
)

WRITABLE_TXN_MARKER_TOPIC_V1 = Message(
    WritableTxnMarkerTopic,
    "name" / CompactString,
    "partition_indexes" / CompactArray(Int32),
    Tags(),
    versions="1-2",
)

WRITABLE_TXN_MARKER_V1 = Message(
    WritableTxnMarker,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "transaction_result" / Bool,
    "topics" / CompactArray(WRITABLE_TXN_MARKER_TOPIC_V1),
    "coordinator_epoch" / Int32,
    Tags(),
    versions="1",
)

WRITE_TXN_MARKERS_REQUEST_V1 = Message(
    WriteTxnMarkersRequest,
    "markers" / CompactArray(WRITABLE_TXN_MARKER_V1),
    Tags(),
    versions="1",
)

WRITABLE_TXN_MARKER_V2 = Message(
    WritableTxnMarker,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "transaction_result" / Bool,
    "topics" / CompactArray(WRITABLE_TXN_MARKER_TOPIC_V1),
    "coordinator_epoch" / Int32,
    "transaction_version" / Int8,
    Tags(),
    versions="2",
)

WRITE_TXN_MARKERS_REQUEST_V2 = Message(
    WriteTxnMarkersRequest,
    "markers" / CompactArray(WRITABLE_TXN_MARKER_V2),
    Tags(),
    versions="2",
)

REQUESTS: dict[int, Message[WriteTxnMarkersRequest]] = {
    0: WRITE_TXN_MARKERS_REQUEST_V0,
    1: WRITE_TXN_MARKERS_REQUEST_V1,
    2: WRITE_TXN_MARKERS_REQUEST_V2,
}
WriteTxnMarkersRequest.layouts = REQUESTS

WRITABLE_TXN_MARKER_PARTITION_RESULT_V0 = Message(
    WritableTxnMarkerPartitionResult,
    "partition_index" / Int32,
    "error_code" / Int16,
    versions="0",
)

WRITABLE_TXN_MARKER_TOPIC_RESULT_V0 = Message(
    WritableTxnMarkerTopicResult,
    "name" / String,
    "partitions" / Array(WRITABLE_TXN_MARKER_PARTITION_RESULT_V0),
    versions="0",
)

WRITABLE_TXN_MARKER_RESULT_V0 = Message(
    WritableTxnMarkerResult,
    "producer_id" / Int64,
    "topics" / Array(WRITABLE_TXN_MARKER_TOPIC_RESULT_V0),
    versions="0",
)

WRITE_TXN_MARKERS_RESPONSE_V0 = Message(
    WriteTxnMarkersResponse,
    "markers" / Array(WRITABLE_TXN_MARKER_RESULT_V0),
    versions="0",
)

WRITABLE_TXN_MARKER_PARTITION_RESULT_V1 = Message(
    WritableTxnMarkerPartitionResult,
    "partition_index" / Int32,
    "error_code" / Int16,
    Tags(),
    versions="1-2",
)

WRITABLE_TXN_MARKER_TOPIC_RESULT_V1 = Message(
    WritableTxnMarkerTopicResult,
    "name" / CompactString,
    "partitions" / CompactArray(WRITABLE_TXN_MARKER_PARTITION_RESULT_V1),
    Tags(),
    versions="1-2",
)

WRITABLE_TXN_MARKER_RESULT_V1 = Message(
    WritableTxnMarkerResult,
    "producer_id" / Int64,
    "topics" / CompactArray(WRITABLE_TXN_MARKER_TOPIC_RESULT_V1),
    Tags(),
    versions="1-2",
)

WRITE_TXN_MARKERS_RESPONSE_V1 = Message(
    WriteTxnMarkersResponse,
    "markers" / CompactArray(WRITABLE_TXN_MARKER_RESULT_V1),
    Tags(),
    versions="1-2",
)

WRITE_TXN_MARKERS_RESPONSE_V2 = WRITE_TXN_MARKERS_RESPONSE_V1

RESPONSES: dict[int, Message[WriteTxnMarkersResponse]] = {
    0: WRITE_TXN_MARKERS_RESPONSE_V0,
    1: WRITE_TXN_MARKERS_RESPONSE_V1,
    2: WRITE_TXN_MARKERS_RESPONSE_V2,
}
WriteTxnMarkersResponse.layouts = RESPONSES
