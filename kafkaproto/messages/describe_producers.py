# Generated from schemas/messages/DescribeProducersRequest.json and DescribeProducersResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DescribeProducersRequest and DescribeProducersResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int64
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class TopicRequest(Struct):
    """One item of the list ``DescribeProducersRequest.topics``."""

    name: str = ""
    partition_indexes: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeProducersRequest(Whole):
    """Request of API key 61: version 0; flexible (KIP-482)."""

    topics: list[TopicRequest] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ProducerState(Struct):
    """One item of the list ``PartitionResponse.active_producers``."""

    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class PartitionResponse(Struct):
    """One item of the list ``TopicResponse.partitions``."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TopicResponse(Struct):
    """One item of the list ``DescribeProducersResponse.topics``."""

    name: str = ""
    partitions: list[PartitionResponse] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeProducersResponse(Whole):
    """Response of API key 61: version 0; flexible (KIP-482)."""

    throttle_time_ms: int = 0
    topics: list[TopicResponse] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


TOPIC_REQUEST_V0 = Message(
    TopicRequest,
    "name" / CompactString,
    "partition_indexes" / CompactArray(Int32),
    Tags(),
    versions="0",
)

DESCRIBE_PRODUCERS_REQUEST_V0 = Message(
    DescribeProducersRequest,
    "topics" / CompactArray(TOPIC_REQUEST_V0),
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[DescribeProducersRequest]] = {
    0: DESCRIBE_PRODUCERS_REQUEST_V0,
}
DescribeProducersRequest.layouts = REQUESTS

PRODUCER_STATE_V0 = Message(
    ProducerState,
    "producer_id" / Int64,
    "producer_epoch" / Int32,
    "last_sequence" / Int32,
    "last_timestamp" / Int64,
    "coordinator_epoch" / Int32,
    "current_txn_start_offset" / Int64,
    Tags(),
    versions="0",
)

PARTITION_RESPONSE_V0 = Message(
    PartitionResponse,
    "partition_index" / Int32,
    "error_code" / Int16,
    "error_message" / CompactNullableString,
    "active_producers" / CompactArray(PRODUCER_STATE_V0),
    Tags(),
    versions="0",
)

TOPIC_RESPONSE_V0 = Message(
    TopicResponse,
    "name" / CompactString,
    "partitions" / CompactArray(PARTITION_RESPONSE_V0),
    Tags(),
    versions="0",
)

DESCRIBE_PRODUCERS_RESPONSE_V0 = Message(
    DescribeProducersResponse,
    "throttle_time_ms" / Int32,
    "topics" / CompactArray(TOPIC_RESPONSE_V0),
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[DescribeProducersResponse]] = {
    0: DESCRIBE_PRODUCERS_RESPONSE_V0,
}
DescribeProducersResponse.layouts = RESPONSES
