# Generated from schemas/messages/EndTxnRequest.json and EndTxnResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""EndTxnRequest and EndTxnResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactString, Int16, Int32, Int64, String
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class EndTxnRequest(Whole):
    """Request of API key 26: versions 0 to 5; flexible from version 3 on (KIP-482)."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class EndTxnResponse(Whole):
    """Response of API key 26: versions 0 to 5; flexible from version 3 on (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1  # v5+, ignorable
    producer_epoch: int = -1  # v5+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


END_TXN_REQUEST_V0 = Message(
    EndTxnRequest,
    "transactional_id" / String,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "committed" / Bool,
    versions="0-2",
)

END_TXN_REQUEST_V1 = END_TXN_REQUEST_V0

END_TXN_REQUEST_V2 = END_TXN_REQUEST_V0

END_TXN_REQUEST_V3 = Message(
    EndTxnRequest,
    "transactional_id" / CompactString,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "committed" / Bool,
    Tags(),
    versions="3-5",
)

END_TXN_REQUEST_V4 = END_TXN_REQUEST_V3

END_TXN_REQUEST_V5 = END_TXN_REQUEST_V3

REQUESTS: dict[int, Message[EndTxnRequest]] = {
    0: END_TXN_REQUEST_V0,
    1: END_TXN_REQUEST_V1,
    2: END_TXN_REQUEST_V2,
    3: END_TXN_REQUEST_V3,
    4: END_TXN_REQUEST_V4,
    5: END_TXN_REQUEST_V5,
}
EndTxnRequest.layouts = REQUESTS

END_TXN_RESPONSE_V0 = Message(
    EndTxnResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    versions="0-2",
)

END_TXN_RESPONSE_V1 = END_TXN_RESPONSE_V0

END_TXN_RESPONSE_V2 = END_TXN_RESPONSE_V0

END_TXN_RESPONSE_V3 = Message(
    EndTxnResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    Tags(),
    versions="3-4",
)

END_TXN_RESPONSE_V4 = END_TXN_RESPONSE_V3

END_TXN_RESPONSE_V5 = Message(
    EndTxnResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    Tags(),
    versions="5",
)

RESPONSES: dict[int, Message[EndTxnResponse]] = {
    0: END_TXN_RESPONSE_V0,
    1: END_TXN_RESPONSE_V1,
    2: END_TXN_RESPONSE_V2,
    3: END_TXN_RESPONSE_V3,
    4: END_TXN_RESPONSE_V4,
    5: END_TXN_RESPONSE_V5,
}
EndTxnResponse.layouts = RESPONSES
