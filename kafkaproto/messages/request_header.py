# Generated from schemas/messages/RequestHeader.json by `python -m kafkaproto.generator`. Do not edit.
"""RequestHeader: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Int16, Int32, NullableString
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class RequestHeader(Whole):
    """Request header: versions 0 to 2; flexible from version 2 on (KIP-482)."""

    api_key: int = 0
    api_version: int = 0
    correlation_id: int = 0
    client_id: str | None = ""  # v1+, ignorable
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


REQUEST_HEADER_V0 = Message(
    RequestHeader,
    "api_key" / Int16,
    "api_version" / Int16,
    "correlation_id" / Int32,
    versions="0",
    leading=True,
)

REQUEST_HEADER_V1 = Message(
    RequestHeader,
    "api_key" / Int16,
    "api_version" / Int16,
    "correlation_id" / Int32,
    "client_id" / NullableString,
    versions="1",
    leading=True,
)

REQUEST_HEADER_V2 = Message(
    RequestHeader,
    "api_key" / Int16,
    "api_version" / Int16,
    "correlation_id" / Int32,
    "client_id" / NullableString,
    Tags(),
    versions="2",
    leading=True,
)

LAYOUTS: dict[int, Message[RequestHeader]] = {
    0: REQUEST_HEADER_V0,
    1: REQUEST_HEADER_V1,
    2: REQUEST_HEADER_V2,
}
RequestHeader.layouts = LAYOUTS
