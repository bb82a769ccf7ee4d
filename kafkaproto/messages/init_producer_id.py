# Generated from schemas/messages/InitProducerIdRequest.json and InitProducerIdResponse.json by `python -m kafkaproto.generator`. Do not edit.
"""InitProducerIdRequest and InitProducerIdResponse: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import CompactNullableString, Int16, Int32, Int64, NullableString
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class InitProducerIdRequest(Whole):
    """Request of API key 22: versions 0 to 5; flexible from version 2 on (KIP-482)."""

    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1  # v3+
    producer_epoch: int = -1  # v3+
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class InitProducerIdResponse(Whole):
    """Response of API key 22: versions 0 to 5; flexible from version 2 on (KIP-482)."""

    throttle_time_ms: int = 0  # ignorable
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


INIT_PRODUCER_ID_REQUEST_V0 = Message(
    InitProducerIdRequest,
    "transactional_id" / NullableString,
    "transaction_timeout_ms" / Int32,
    versions="0-1",
    absent=("producer_id", "producer_epoch"),
)

INIT_PRODUCER_ID_REQUEST_V1 = INIT_PRODUCER_ID_REQUEST_V0

INIT_PRODUCER_ID_REQUEST_V2 = Message(
    InitProducerIdRequest,
    "transactional_id" / CompactNullableString,
    "transaction_timeout_ms" / Int32,
    Tags(),
    versions="2",
    absent=("producer_id", "producer_epoch"),
)

INIT_PRODUCER_ID_REQUEST_V3 = Message(
    InitProducerIdRequest,
    "transactional_id" / CompactNullableString,
    "transaction_timeout_ms" / Int32,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    Tags(),
    versions="3-5",
)

INIT_PRODUCER_ID_REQUEST_V4 = INIT_PRODUCER_ID_REQUEST_V3

INIT_PRODUCER_ID_REQUEST_V5 = INIT_PRODUCER_ID_REQUEST_V3

REQUESTS: dict[int, Message[InitProducerIdRequest]] = {
    0: INIT_PRODUCER_ID_REQUEST_V0,
    1: INIT_PRODUCER_ID_REQUEST_V1,
    2: INIT_PRODUCER_ID_REQUEST_V2,
    3: INIT_PRODUCER_ID_REQUEST_V3,
    4: INIT_PRODUCER_ID_REQUEST_V4,
    5: INIT_PRODUCER_ID_REQUEST_V5,
}
InitProducerIdRequest.layouts = REQUESTS

INIT_PRODUCER_ID_RESPONSE_V0 = Message(
    InitProducerIdResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    versions="0-1",
)

INIT_PRODUCER_ID_RESPONSE_V1 = INIT_PRODUCER_ID_RESPONSE_V0

INIT_PRODUCER_ID_RESPONSE_V2 = Message(
    InitProducerIdResponse,
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    Tags(),
    versions="2-5",
)

INIT_PRODUCER_ID_RESPONSE_V3 = INIT_PRODUCER_ID_RESPONSE_V2

INIT_PRODUCER_ID_RESPONSE_V4 = INIT_PRODUCER_ID_RESPONSE_V2

INIT_PRODUCER_ID_RESPONSE_V5 = INIT_PRODUCER_ID_RESPONSE_V2

RESPONSES: dict[int, Message[InitProducerIdResponse]] = {
    0: INIT_PRODUCER_ID_RESPONSE_V0,
    1: INIT_PRODUCER_ID_RESPONSE_V1,
    2: INIT_PRODUCER_ID_RESPONSE_V2,
    3: INIT_PRODUCER_ID_RESPONSE_V3,
    4: INIT_PRODUCER_ID_RESPONSE_V4,
    5: INIT_PRODUCER_ID_RESPONSE_V5,
}
InitProducerIdResponse.layouts = RESPONSES
