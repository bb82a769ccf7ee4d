# Generated from schemas/data/GroupMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""GroupMetadataKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class GroupMetadataKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 2, which is not flexible (KIP-482)."""

    group: str = ""  # v2


GROUP_METADATA_KEY_V2 = Message(
    GroupMetadataKey,
    "group" / String,
    versions="2",
)

LAYOUTS: dict[int, Message[GroupMetadataKey]] = {
    2: GROUP_METADATA_KEY_V2,
}
GroupMetadataKey.layouts = LAYOUTS
