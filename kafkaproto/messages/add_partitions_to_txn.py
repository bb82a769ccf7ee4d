# Generated from schemas/messages/AddPartitionsToTxnRequest.json and AddPartitionsToTxnResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""AddPartitionsToTxnRequest and AddPartitionsToTxnResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array, CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactString, Int16, Int32, Int64, String
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class AddPartitionsToTxnTopic(Struct):
    """One item of the list ``AddPartitionsToTxnTransaction.topics`` or ``AddPartitionsToTxnRequest.v3_and_below_topics``."""

    name: str = ""
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AddPartitionsToTxnTransaction(Struct):
    """One item of the list ``AddPartitionsToTxnRequest.transactions``."""

    transactional_id: str = ""  # v4+
    producer_id: int = 0  # v4+
    producer_epoch: int = 0  # v4+
    verify_only: bool = False  # v4+
    topics: list[AddPartitionsToTxnTopic] = field(default_factory=list)  # v4+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AddPartitionsToTxnRequest(Whole):
    """Request of API key 24: versions 0 to 5; flexible from version 3 on (KIP-482)."""

    transactions: list[AddPartitionsToTxnTransaction] = field(default_factory=list)  # v4+
    v3_and_below_transactional_id: str = ""  # v0-3
    v3_and_below_producer_id: int = 0  # v0-3
    v3_and_below_producer_epoch: int = 0  # v0-3
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(default_factory=list)  # v0-3
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AddPartitionsToTxnPartitionResult(Struct):
    """One item of the list ``AddPartitionsToTxnTopicResult.results_by_partition``."""

    partition_index: int = 0
    partition_error_code: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AddPartitionsToTxnTopicResult(Struct):
    """One item of the list ``AddPartitionsToTxnResult.topic_results`` or ``AddPartitionsToTxnResponse.results_by_topic_v3_and_below``."""

    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AddPartitionsToTxnResult(Struct):
    """One item of the list ``AddPartitionsToTxnResponse.results_by_transaction``."""

    transactional_id: str = ""  # v4+
    topic_results: list[AddPartitionsToTxnTopicResult] = field(default_factory=list)  # v4+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AddPartitionsToTxnResponse(Whole):
    """Response of API key 24: versions 0 to 5; flexible from version 3 on (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0  # v4+, ignorable
    results_by_transaction: list[AddPartitionsToTxnResult] = field(default_factory=list)  # v4+
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(default_factory=list)  # v0-3
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


ADD_PARTITIONS_TO_TXN_TOPIC_V0 = Message(
    AddPartitionsToTxnTopic,
    "name" / String,
    "partitions" / Array(Int32),
    versions="0-2",
)

ADD_PARTITIONS_TO_TXN_REQUEST_V0 = Message(
    AddPartitionsToTxnRequest,
    "v3_and_below_transactional_id" / String,
    "v3_and_below_producer_id" / Int64,
    "v3_and_below_producer_epoch" / Int16,
    "v3_and_below_topics" / Array(ADD_PARTITIONS_TO_TXN_TOPIC_V0),
    versions="0-2",
    absent=("transactions",),
)

ADD_PARTITIONS_TO_TXN_REQUEST_V1 = ADD_PARTITIONS_TO_TXN_REQUEST_V0

ADD_PARTITIONS_TO_TXN_REQUEST_V2 = ADD_PARTITIONS_TO_TXN_REQUEST_V0

ADD_PARTITIONS_TO_TXN_TOPIC_V3 = Message(
    AddPartitionsToTxnTopic,
    "name" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="3-5",
)

ADD_PARTITIONS_TO_TXN_REQUEST_V3 = Message(
    AddPartitionsToTxnRequest,
    "v3_and_below_transactional_id" / CompactString,
    "v3_and_below_producer_id" / Int64,
    "v3_and_below_producer_epoch" / Int16,
    "v3_and_below_topics" / CompactArray(ADD_PARTITIONS_TO_TXN_TOPIC_V3),
    Tags(),
    versions="3",
    absent=("transactions",),
)

ADD_PARTITIONS_TO_TXN_TRANSACTION_V4 = Message(
    AddPartitionsToTxnTransaction,
    "transactional_id" / CompactString,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "verify_only" / Bool,
    "topics" / CompactArray(ADD_PARTITIONS_TO_TXN_TOPIC_V3),
    Tags(),
    versions="4-5",
)

ADD_PARTITIONS_TO_TXN_REQUEST_V4 = Message(
    AddPartitionsToTxnRequest,
    "transactions" / CompactArray(ADD_PARTITIONS_TO_TXN_TRANSACTION_V4),
    Tags(),
    versions="4-5",
    absent=("v3_and_below_transactional_id", "v3_and_below_producer_id", "v3_and_below_producer_epoch", "v3_and_below_topics"),
)

ADD_PARTITIONS_TO_TXN_REQUEST_V5 = ADD_PARTITIONS_TO_TXN_REQUEST_V4

REQUESTS: dict[int, Message[AddPartitionsToTxnRequest]] = {
    0: ADD_PARTITIONS_TO_TXN_REQUEST_V0,
    1: ADD_PARTITIONS_TO_TXN_REQUEST_V1,
    2: ADD_PARTITIONS_TO_TXN_REQUEST_V2,
    3: ADD_PARTITIONS_TO_TXN_REQUEST_V3,
    4: ADD_PARTITIONS_TO_TXN_REQUEST_V4,
    5: ADD_PARTITIONS_TO_TXN_REQUEST_V5,
}
AddPartitionsToTxnRequest.layouts = REQUESTS

ADD_PARTITIONS_TO_TXN_PARTITION_RESULT_V0 = Message(
    AddPartitionsToTxnPartitionResult,
    "partition_index" / Int32,
    "partition_error_code" / Int16,
    versions="0-2",
)

ADD_PARTITIONS_TO_TXN_TOPIC_RESULT_V0 = Message(
    AddPartitionsToTxnTopicResult,
    "name" / String,
    "results_by_partition" / Array(ADD_PARTITIONS_TO_TXN_PARTITION_RESULT_V0),
    versions="0-2",
)

ADD_PARTITIONS_TO_TXN_RESPONSE_V0 = Message(
    AddPartitionsToTxnResponse,
    "throttle_time_ms" / Int32,
    "results_by_topic_v3_and_below" / Array(ADD_PARTITIONS_TO_TXN_TOPIC_RESULT_V0),
    versions="0-2",
    absent=("results_by_transaction",),
)

ADD_PARTITIONS_TO_TXN_RESPONSE_V1 = ADD_PARTITIONS_TO_TXN_RESPONSE_V0

ADD_PARTITIONS_TO_TXN_RESPONSE_V2 = ADD_PARTITIONS_TO_TXN_RESPONSE_V0

ADD_PARTITIONS_TO_TXN_PARTITION_RESULT_V3 = Message(
    AddPartitionsToTxnPartitionResult,
    "partition_index" / Int32,
    "partition_error_code" / Int16,
    Tags(),
    versions="3-5",
)

ADD_PARTITIONS_TO_TXN_TOPIC_RESULT_V3 = Message(
    AddPartitionsToTxnTopicResult,
    "name" / CompactString,
    "results_by_partition" / CompactArray(ADD_PARTITIONS_TO_TXN_PARTITION_RESULT_V3),
    Tags(),
    versions="3-5",
)

ADD_PARTITIONS_TO_TXN_RESPONSE_V3 = Message(
    AddPartitionsToTxnResponse,
    "throttle_time_ms" / Int32,
    "results_by_topic_v3_and_below" / CompactArray(ADD_PARTITIONS_TO_TXN_TOPIC_RESULT_V3),
    Tags(),
    versions="3",
    absent=("results_by_transaction",),
)

ADD_PARTITIONS_TO_TXN_RESULT_V4 = Message(
    AddPartitionsToTxnResult,
    "transactional_id" / CompactString,
    "topic_results" / CompactArray(ADD_PARTITIONS_TO_TXN_TOPIC_RESULT_V3),
    Tags(),
    versions="4-5",
)

ADD_PARTITIONS_TO_TXN_RESPONSE_V4 = Message(
    AddPartitionsToTxnResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "results_by_transaction" / CompactArray(ADD_PARTITIONS_TO_TXN_RESULT_V4),
    Tags(),
    versions="4-5",
    absent=("results_by_topic_v3_and_below",),
)

ADD_PARTITIONS_TO_TXN_RESPONSE_V5 = ADD_PARTITIONS_TO_TXN_RESPONSE_V4

RESPONSES: dict[int, Message[AddPartitionsToTxnResponse]] = {
    0: ADD_PARTITIONS_TO_TXN_RESPONSE_V0,
    1: ADD_PARTITIONS_TO_TXN_RESPONSE_V1,
    2: ADD_PARTITIONS_TO_TXN_RESPONSE_V2,
    3: ADD_PARTITIONS_TO_TXN_RESPONSE_V3,
    4: ADD_PARTITIONS_TO_TXN_RESPONSE_V4,
    5: ADD_PARTITIONS_TO_TXN_RESPONSE_V5,
}
AddPartitionsToTxnResponse.layouts = RESPONSES
