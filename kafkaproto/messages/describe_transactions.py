# Generated from schemas/messages/DescribeTransactionsRequest.json and DescribeTransactionsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""DescribeTransactionsRequest and DescribeTransactionsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int16, Int32, Int64
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class DescribeTransactionsRequest(Whole):
    """Request of API key 65: version 0; flexible (KIP-482)."""

    transactional_ids: list[str] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TopicData(Struct):
    """One item of the list ``TransactionState.topics``."""

    topic: str = ""
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TransactionState(Struct):
    """One item of the list ``DescribeTransactionsResponse.transaction_states``."""

    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: list[TopicData] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeTransactionsResponse(Whole):
    """Response of API key 65: version 0; flexible (KIP-482)."""

    throttle_time_ms: int = 0
    transaction_states: list[TransactionState] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DESCRIBE_TRANSACTIONS_REQUEST_V0 = Message(
    DescribeTransactionsRequest,
    "transactional_ids" / CompactArray(CompactString),
    Tags(),
    versions="0",
)

REQUESTS: dict[int, Message[DescribeTransactionsRequest]] = {
    0: DESCRIBE_TRANSACTIONS_REQUEST_V0,
}
DescribeTransactionsRequest.layouts = REQUESTS

TOPIC_DATA_V0 = Message(
    TopicData,
    "topic" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="0",
)

TRANSACTION_STATE_V0 = Message(
    TransactionState,
    "error_code" / Int16,
    "transactional_id" / CompactString,
    "transaction_state" / CompactString,
    "transaction_timeout_ms" / Int32,
    "transaction_start_time_ms" / Int64,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "topics" / CompactArray(TOPIC_DATA_V0),
    Tags(),
    versions="0",
)

DESCRIBE_TRANSACTIONS_RESPONSE_V0 = Message(
    DescribeTransactionsResponse,
    "throttle_time_ms" / Int32,
    "transaction_states" / CompactArray(TRANSACTION_STATE_V0),
    Tags(),
    versions="0",
)

RESPONSES: dict[int, Message[DescribeTransactionsResponse]] = {
    0: DESCRIBE_TRANSACTIONS_RESPONSE_V0,
}
DescribeTransactionsResponse.layouts = RESPONSES
