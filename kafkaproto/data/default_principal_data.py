# Generated from schemas/data/DefaultPrincipalData.json by `python -m kafkaproto.generator`. Do not edit.
"""DefaultPrincipalData: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Bool, CompactString
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class DefaultPrincipalData(Whole):
    """Principal of a client, as bytes in a forwarded request (KIP-590); this data has version 0, which is flexible (KIP-482)."""

    type: str = ""
    name: str = ""
    token_authenticated: bool = False
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


DEFAULT_PRINCIPAL_DATA_V0 = Message(
    DefaultPrincipalData,
    "type" / CompactString,
    "name" / CompactString,
    "token_authenticated" / Bool,
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[DefaultPrincipalData]] = {
    0: DEFAULT_PRINCIPAL_DATA_V0,
}
DefaultPrincipalData.layouts = LAYOUTS
