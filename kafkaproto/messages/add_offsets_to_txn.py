# Generated from schemas/messages/AddOffsetsToTxnRequest.json and AddOffsetsToTxnResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""AddOffsetsToTxnRequest and AddOffsetsToTxnResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int16, Int32, Int64, String
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class AddOffsetsToTxnRequest(Whole):
    """Request of API key 25: versions 0 to 4; flexible from version 3 on (KIP-482)."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class AddOffsetsToTxnResponse(Whole):
    """Response of API key 25: versions 0 to 4; flexible from version 3 on (KIP-482)."""

    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


ADD_OFFSETS_TO_TXN_REQUEST_V0 = Message(
    AddOffsetsToTxnRequest,
    "transactional_id" / String,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "group_id" / String,
    versions="0-2",
)

ADD_OFFSETS_TO_TXN_REQUEST_V1 = ADD_OFFSETS_TO_TXN_REQUEST_V0

ADD_OFFSETS_TO_TXN_REQUEST_V2 = ADD_OFFSETS_TO_TXN_REQUEST_V0

ADD_OFFSETS_TO_TXN_REQUEST_V3 = Message(
    AddOffsetsToTxnRequest,
    "transactional_id" / CompactString,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "group_id" / CompactString,
    Tags(),
    versions="3-4",
)

ADD_OFFSETS_TO_TXN_REQUEST_V4 = ADD_OFFSETS_TO_TXN_REQUEST_V3

REQUESTS: dict[int, Message[AddOffsetsToTxnRequest]] = {
    0: ADD_OFFSETS_TO_TXN_REQUEST_V0,
    1: ADD_OFFSETS_TO_TXN_REQUEST_V1,
    2: ADD_OFFSETS_TO_TXN_REQUEST_V2,
    3: ADD_OFFSETS_TO_TXN_REQUEST_V3,
    4: ADD_OFFSETS_TO_TXN_REQUEST_V4,
}
AddOffsetsToTxnRequest.layouts = REQUESTS

ADD_OFFSETS_TO_TXN_RESPONSE_V0 = Message(
    AddOffsetsToTxnResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    versions="0-2",
)

ADD_OFFSETS_TO_TXN_RESPONSE_V1 = ADD_OFFSETS_TO_TXN_RESPONSE_V0

ADD_OFFSETS_TO_TXN_RESPONSE_V2 = ADD_OFFSETS_TO_TXN_RESPONSE_V0

ADD_OFFSETS_TO_TXN_RESPONSE_V3 = Message(
    AddOffsetsToTxnResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    Tags(),
    versions="3-4",
)

ADD_OFFSETS_TO_TXN_RESPONSE_V4 = ADD_OFFSETS_TO_TXN_RESPONSE_V3

RESPONSES: dict[int, Message[AddOffsetsToTxnResponse]] = {
    0: ADD_OFFSETS_TO_TXN_RESPONSE_V0,
    1: ADD_OFFSETS_TO_TXN_RESPONSE_V1,
    2: ADD_OFFSETS_TO_TXN_RESPONSE_V2,
    3: ADD_OFFSETS_TO_TXN_RESPONSE_V3,
    4: ADD_OFFSETS_TO_TXN_RESPONSE_V4,
}
AddOffsetsToTxnResponse.layouts = RESPONSES
