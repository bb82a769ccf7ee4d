# Generated from schemas/messages/ResponseHeader.json by `python -m kafkaproto.generator`. Do not edit.
"""ResponseHeader: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Int32
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ResponseHeader(Whole):
    """Response header: versions 0 to 1; flexible from version 1 on (KIP-482)."""

    correlation_id: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


RESPONSE_HEADER_V0 = Message(
    ResponseHeader,
    "correlation_id" / Int32,
    versions="0",
    leading=True,
)

RESPONSE_HEADER_V1 = Message(
    ResponseHeader,
    "correlation_id" / Int32,
    Tags(),
    versions="1",
    leading=True,
)

LAYOUTS: dict[int, Message[ResponseHeader]] = {
    0: RESPONSE_HEADER_V0,
    1: RESPONSE_HEADER_V1,
}
ResponseHeader.layouts = LAYOUTS
