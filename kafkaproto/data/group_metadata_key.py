# Generated from schemas/data/GroupMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""GroupMetadataKey: classes for all versions, and the layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class GroupMetadataKey(Whole):
    """Data of GroupMetadataKey: version 2; not flexible."""

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
