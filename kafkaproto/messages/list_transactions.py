# Generated from schemas/messages/ListTransactionsRequest.json and ListTransactionsResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""ListTransactionsRequest and ListTransactionsResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, CompactString, Int16, Int32, Int64
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ListTransactionsRequest(Whole):
    """Request of API key 66: versions 0 to 2; all flexible (KIP-482)."""

    state_filters: list[str] = field(default_factory=list)
    producer_id_filters: list[int] = field(default_factory=list)
    duration_filter: int = -1  # v1+
    transactional_id_pattern: str | None = None  # v2+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TransactionState(Struct):
    """One item of the list ``ListTransactionsResponse.transaction_states``."""

    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ListTransactionsResponse(Whole):
    """Response of API key 66: versions 0 to 2; all flexible (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: list[str] = field(default_factory=list)
    transaction_states: list[TransactionState] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


LIST_TRANSACTIONS_REQUEST_V0 = Message(
    ListTransactionsRequest,
    "state_filters" / CompactArray(CompactString),
    "producer_id_filters" / CompactArray(Int64),
    Tags(),
    versions="0",
    absent=("duration_filter", "transactional_id_pattern"),
)

LIST_TRANSACTIONS_REQUEST_V1 = Message(
    ListTransactionsRequest,
    "state_filters" / CompactArray(CompactString),
    "producer_id_filters" / CompactArray(Int64),
    "duration_filter" / Int64,
    Tags(),
    versions="1",
    absent=("transactional_id_pattern",),
)

LIST_TRANSACTIONS_REQUEST_V2 = Message(
    ListTransactionsRequest,
    "state_filters" / CompactArray(CompactString),
    "producer_id_filters" / CompactArray(Int64),
    "duration_filter" / Int64,
    "transactional_id_pattern" / CompactNullableString,
    Tags(),
    versions="2",
)

REQUESTS: dict[int, Message[ListTransactionsRequest]] = {
    0: LIST_TRANSACTIONS_REQUEST_V0,
    1: LIST_TRANSACTIONS_REQUEST_V1,
    2: LIST_TRANSACTIONS_REQUEST_V2,
}
ListTransactionsRequest.layouts = REQUESTS

TRANSACTION_STATE_V0 = Message(
    TransactionState,
    "transactional_id" / CompactString,
    "producer_id" / Int64,
    "transaction_state" / CompactString,
    Tags(),
    versions="0-2",
)

LIST_TRANSACTIONS_RESPONSE_V0 = Message(
    ListTransactionsResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "unknown_state_filters" / CompactArray(CompactString),
    "transaction_states" / CompactArray(TRANSACTION_STATE_V0),
    Tags(),
    versions="0-2",
)

LIST_TRANSACTIONS_RESPONSE_V1 = LIST_TRANSACTIONS_RESPONSE_V0

LIST_TRANSACTIONS_RESPONSE_V2 = LIST_TRANSACTIONS_RESPONSE_V0

RESPONSES: dict[int, Message[ListTransactionsResponse]] = {
    0: LIST_TRANSACTIONS_RESPONSE_V0,
    1: LIST_TRANSACTIONS_RESPONSE_V1,
    2: LIST_TRANSACTIONS_RESPONSE_V2,
}
ListTransactionsResponse.layouts = RESPONSES
