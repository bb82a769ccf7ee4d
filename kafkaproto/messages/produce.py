# Generated from schemas/messages/ProduceRequest.json and ProduceResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ProduceRequest and ProduceResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import (
    CompactNullableRecords,
    CompactNullableString,
    CompactString,
    Int16,
    Int32,
    Int64,
    NullableRecords,
    NullableString,
    RecordsValue,
    String,
    Uuid,
)
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tagged, Tags


@dataclass(slots=True, eq=False, repr=False)
class PartitionProduceData(Struct):
    """One item of the list ``TopicProduceData.partition_data``."""

    index: int = 0
    records: RecordsValue | None = None
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TopicProduceData(Struct):
    """One item of the list ``ProduceRequest.topic_data``."""

    name: str = ""  # v0-12, ignorable
    topic_id: bytes = bytes(16)  # v13+, ignorable
    partition_data: list[PartitionProduceData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ProduceRequest(Whole):
    """Request of API key 0: versions 0 to 13; flexible from version 9 on (KIP-482)."""

    transactional_id: str | None = None  # v3+
    acks: int = 0
    timeout_ms: int = 0
    topic_data: list[TopicProduceData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class BatchIndexAndErrorMessage(Struct):
    """One item of the list ``PartitionProduceResponse.record_errors``."""

    batch_index: int = 0  # v8+
    batch_index_error_message: str | None = None  # v8+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class LeaderIdAndEpoch(Struct):
    """The struct in the field ``PartitionProduceResponse.current_leader``."""

    leader_id: int = -1  # v10+
    leader_epoch: int = -1  # v10+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class PartitionProduceResponse(Struct):
    """One item of the list ``TopicProduceResponse.partition_responses``."""

    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1  # v2+, ignorable
    log_start_offset: int = -1  # v5+, ignorable
    record_errors: list[BatchIndexAndErrorMessage] = field(default_factory=list)  # v8+, ignorable
    error_message: str | None = None  # v8+, ignorable
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)  # v10+, tag 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TopicProduceResponse(Struct):
    """One item of the list ``ProduceResponse.responses``."""

    name: str = ""  # v0-12, ignorable
    topic_id: bytes = bytes(16)  # v13+, ignorable
    partition_responses: list[PartitionProduceResponse] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class NodeEndpoint(Struct):
    """One item of the list ``ProduceResponse.node_endpoints``."""

    node_id: int = 0  # v10+
    host: str = ""  # v10+
    port: int = 0  # v10+
    rack: str | None = None  # v10+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ProduceResponse(Whole):
    """Response of API key 0: versions 0 to 13; flexible from version 9 on (KIP-482)."""

    responses: list[TopicProduceResponse] = field(default_factory=list)
    throttle_time_ms: int = 0  # v1+, ignorable
    node_endpoints: list[NodeEndpoint] = field(default_factory=list)  # v10+, tag 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


PARTITION_PRODUCE_DATA_V0 = Message(
    PartitionProduceData,
    "index" / Int32,
    "records" / NullableRecords,
    versions="0-8",
)

TOPIC_PRODUCE_DATA_V0 = Message(
    TopicProduceData,
    "name" / String,
    "partition_data" / Array(PARTITION_PRODUCE_DATA_V0),
    versions="0-8",
)

PRODUCE_REQUEST_V0 = Message(
    ProduceRequest,
    "acks" / Int16,
    "timeout_ms" / Int32,
    "topic_data" / Array(TOPIC_PRODUCE_DATA_V0),
    versions="0-2",
    absent=("transactional_id",),
)

PRODUCE_REQUEST_V1 = PRODUCE_REQUEST_V0

PRODUCE_REQUEST_V2 = PRODUCE_REQUEST_V0

PRODUCE_REQUEST_V3 = Message(
    ProduceRequest,
    "transactional_id" / NullableString,
    "acks" / Int16,
    "timeout_ms" / Int32,
    "topic_data" / Array(TOPIC_PRODUCE_DATA_V0),
    versions="3-8",
)

PRODUCE_REQUEST_V4 = PRODUCE_REQUEST_V3

PRODUCE_REQUEST_V5 = PRODUCE_REQUEST_V3

PRODUCE_REQUEST_V6 = PRODUCE_REQUEST_V3

PRODUCE_REQUEST_V7 = PRODUCE_REQUEST_V3

PRODUCE_REQUEST_V8 = PRODUCE_REQUEST_V3

PARTITION_PRODUCE_DATA_V9 = Message(
    PartitionProduceData,
    "index" / Int32,
    "records" / CompactNullableRecords,
    Tags(),
    versions="9-13",
)

TOPIC_PRODUCE_DATA_V9 = Message(
    TopicProduceData,
    "name" / CompactString,
    "partition_data" / CompactArray(PARTITION_PRODUCE_DATA_V9),
    Tags(),
    versions="9-12",
)

PRODUCE_REQUEST_V9 = Message(
    ProduceRequest,
    "transactional_id" / CompactNullableString,
    "acks" / Int16,
    "timeout_ms" / Int32,
    "topic_data" / CompactArray(TOPIC_PRODUCE_DATA_V9),
    Tags(),
    versions="9-12",
)

PRODUCE_REQUEST_V10 = PRODUCE_REQUEST_V9

PRODUCE_REQUEST_V11 = PRODUCE_REQUEST_V9

PRODUCE_REQUEST_V12 = PRODUCE_REQUEST_V9

TOPIC_PRODUCE_DATA_V13 = Message(
    TopicProduceData,
    "topic_id" / Uuid,
    "partition_data" / CompactArray(PARTITION_PRODUCE_DATA_V9),
    Tags(),
    versions="13",
)

PRODUCE_REQUEST_V13 = Message(
    ProduceRequest,
    "transactional_id" / CompactNullableString,
    "acks" / Int16,
    "timeout_ms" / Int32,
    "topic_data" / CompactArray(TOPIC_PRODUCE_DATA_V13),
    Tags(),
    versions="13",
)

REQUESTS: dict[int, Message[ProduceRequest]] = {
    0: PRODUCE_REQUEST_V0,
    1: PRODUCE_REQUEST_V1,
    2: PRODUCE_REQUEST_V2,
    3: PRODUCE_REQUEST_V3,
    4: PRODUCE_REQUEST_V4,
    5: PRODUCE_REQUEST_V5,
    6: PRODUCE_REQUEST_V6,
    7: PRODUCE_REQUEST_V7,
    8: PRODUCE_REQUEST_V8,
    9: PRODUCE_REQUEST_V9,
    10: PRODUCE_REQUEST_V10,
    11: PRODUCE_REQUEST_V11,
    12: PRODUCE_REQUEST_V12,
    13: PRODUCE_REQUEST_V13,
}
ProduceRequest.layouts = REQUESTS

PARTITION_PRODUCE_RESPONSE_V0 = Message(
    PartitionProduceResponse,
    "index" / Int32,
    "error_code" / Int16,
    "base_offset" / Int64,
    versions="0-1",
    absent=("current_leader",),
)

TOPIC_PRODUCE_RESPONSE_V0 = Message(
    TopicProduceResponse,
    "name" / String,
    "partition_responses" / Array(PARTITION_PRODUCE_RESPONSE_V0),
    versions="0-1",
)

PRODUCE_RESPONSE_V0 = Message(
    ProduceResponse,
    "responses" / Array(TOPIC_PRODUCE_RESPONSE_V0),
    versions="0",
    absent=("node_endpoints",),
)

PRODUCE_RESPONSE_V1 = Message(
    ProduceResponse,
    "responses" / Array(TOPIC_PRODUCE_RESPONSE_V0),
    "throttle_time_ms" / Int32,
    versions="1",
    absent=("node_endpoints",),
)

PARTITION_PRODUCE_RESPONSE_V2 = Message(
    PartitionProduceResponse,
    "index" / Int32,
    "error_code" / Int16,
    "base_offset" / Int64,
    "log_append_time_ms" / Int64,
    versions="2-4",
    absent=("current_leader",),
)

TOPIC_PRODUCE_RESPONSE_V2 = Message(
    TopicProduceResponse,
    "name" / String,
    "partition_responses" / Array(PARTITION_PRODUCE_RESPONSE_V2),
    versions="2-4",
)

PRODUCE_RESPONSE_V2 = Message(
    ProduceResponse,
    "responses" / Array(TOPIC_PRODUCE_RESPONSE_V2),
    "throttle_time_ms" / Int32,
    versions="2-4",
    absent=("node_endpoints",),
)

PRODUCE_RESPONSE_V3 = PRODUCE_RESPONSE_V2

PRODUCE_RESPONSE_V4 = PRODUCE_RESPONSE_V2

PARTITION_PRODUCE_RESPONSE_V5 = Message(
    PartitionProduceResponse,
    "index" / Int32,
    "error_code" / Int16,
    "base_offset" / Int64,
    "log_append_time_ms" / Int64,
    "log_start_offset" / Int64,
    versions="5-7",
    absent=("current_leader",),
)

TOPIC_PRODUCE_RESPONSE_V5 = Message(
    TopicProduceResponse,
    "name" / String,
    "partition_responses" / Array(PARTITION_PRODUCE_RESPONSE_V5),
    versions="5-7",
)

PRODUCE_RESPONSE_V5 = Message(
    ProduceResponse,
    "responses" / Array(TOPIC_PRODUCE_RESPONSE_V5),
    "throttle_time_ms" / Int32,
    versions="5-7",
    absent=("node_endpoints",),
)

PRODUCE_RESPONSE_V6 = PRODUCE_RESPONSE_V5

PRODUCE_RESPONSE_V7 = PRODUCE_RESPONSE_V5

BATCH_INDEX_AND_ERROR_MESSAGE_V8 = Message(
    BatchIndexAndErrorMessage,
    "batch_index" / Int32,
    "batch_index_error_message" / NullableString,
    versions="8",
)

PARTITION_PRODUCE_RESPONSE_V8 = Message(
    PartitionProduceResponse,
    "index" / Int32,
    "error_code" / Int16,
    "base_offset" / Int64,
    "log_append_time_ms" / Int64,
    "log_start_offset" / Int64,
    "record_errors" / Array(BATCH_INDEX_AND_ERROR_MESSAGE_V8),
    "error_message" / NullableString,
    versions="8",
    absent=("current_leader",),
)

TOPIC_PRODUCE_RESPONSE_V8 = Message(
    TopicProduceResponse,
    "name" / String,
    "partition_responses" / Array(PARTITION_PRODUCE_RESPONSE_V8),
    versions="8",
)

PRODUCE_RESPONSE_V8 = Message(
    ProduceResponse,
    "responses" / Array(TOPIC_PRODUCE_RESPONSE_V8),
    "throttle_time_ms" / Int32,
    versions="8",
    absent=("node_endpoints",),
)

BATCH_INDEX_AND_ERROR_MESSAGE_V9 = Message(
    BatchIndexAndErrorMessage,
    "batch_index" / Int32,
    "batch_index_error_message" / CompactNullableString,
    Tags(),
    versions="9-13",
)

PARTITION_PRODUCE_RESPONSE_V9 = Message(
    PartitionProduceResponse,
    "index" / Int32,
    "error_code" / Int16,
    "base_offset" / Int64,
    "log_append_time_ms" / Int64,
    "log_start_offset" / Int64,
    "record_errors" / CompactArray(BATCH_INDEX_AND_ERROR_MESSAGE_V9),
    "error_message" / CompactNullableString,
    Tags(
        reserved=(0,),
    ),
    versions="9",
    absent=("current_leader",),
)

TOPIC_PRODUCE_RESPONSE_V9 = Message(
    TopicProduceResponse,
    "name" / CompactString,
    "partition_responses" / CompactArray(PARTITION_PRODUCE_RESPONSE_V9),
    Tags(),
    versions="9",
)

PRODUCE_RESPONSE_V9 = Message(
    ProduceResponse,
    "responses" / CompactArray(TOPIC_PRODUCE_RESPONSE_V9),
    "throttle_time_ms" / Int32,
    Tags(
        reserved=(0,),
    ),
    versions="9",
    absent=("node_endpoints",),
)

LEADER_ID_AND_EPOCH_V10 = Message(
    LeaderIdAndEpoch,
    "leader_id" / Int32,
    "leader_epoch" / Int32,
    Tags(),
    versions="10-13",
)

PARTITION_PRODUCE_RESPONSE_V10 = Message(
    PartitionProduceResponse,
    "index" / Int32,
    "error_code" / Int16,
    "base_offset" / Int64,
    "log_append_time_ms" / Int64,
    "log_start_offset" / Int64,
    "record_errors" / CompactArray(BATCH_INDEX_AND_ERROR_MESSAGE_V9),
    "error_message" / CompactNullableString,
    Tags(
        Tagged(0, "current_leader" / LEADER_ID_AND_EPOCH_V10),
    ),
    versions="10-13",
)

TOPIC_PRODUCE_RESPONSE_V10 = Message(
    TopicProduceResponse,
    "name" / CompactString,
    "partition_responses" / CompactArray(PARTITION_PRODUCE_RESPONSE_V10),
    Tags(),
    versions="10-12",
)

NODE_ENDPOINT_V10 = Message(
    NodeEndpoint,
    "node_id" / Int32,
    "host" / CompactString,
    "port" / Int32,
    "rack" / CompactNullableString,
    Tags(),
    versions="10-13",
)

PRODUCE_RESPONSE_V10 = Message(
    ProduceResponse,
    "responses" / CompactArray(TOPIC_PRODUCE_RESPONSE_V10),
    "throttle_time_ms" / Int32,
    Tags(
        Tagged(0, "node_endpoints" / CompactArray(NODE_ENDPOINT_V10)),
    ),
    versions="10-12",
)

PRODUCE_RESPONSE_V11 = PRODUCE_RESPONSE_V10

PRODUCE_RESPONSE_V12 = PRODUCE_RESPONSE_V10

TOPIC_PRODUCE_RESPONSE_V13 = Message(
    TopicProduceResponse,
    "topic_id" / Uuid,
    "partition_responses" / CompactArray(PARTITION_PRODUCE_RESPONSE_V10),
    Tags(),
    versions="13",
)

PRODUCE_RESPONSE_V13 = Message(
    ProduceResponse,
    "responses" / CompactArray(TOPIC_PRODUCE_RESPONSE_V13),
    "throttle_time_ms" / Int32,
    Tags(
        Tagged(0, "node_endpoints" / CompactArray(NODE_ENDPOINT_V10)),
    ),
    versions="13",
)

RESPONSES: dict[int, Message[ProduceResponse]] = {
    0: PRODUCE_RESPONSE_V0,
    1: PRODUCE_RESPONSE_V1,
    2: PRODUCE_RESPONSE_V2,
    3: PRODUCE_RESPONSE_V3,
    4: PRODUCE_RESPONSE_V4,
    5: PRODUCE_RESPONSE_V5,
    6: PRODUCE_RESPONSE_V6,
    7: PRODUCE_RESPONSE_V7,
    8: PRODUCE_RESPONSE_V8,
    9: PRODUCE_RESPONSE_V9,
    10: PRODUCE_RESPONSE_V10,
    11: PRODUCE_RESPONSE_V11,
    12: PRODUCE_RESPONSE_V12,
    13: PRODUCE_RESPONSE_V13,
}
ProduceResponse.layouts = RESPONSES
