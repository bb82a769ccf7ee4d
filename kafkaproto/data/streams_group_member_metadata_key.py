# Generated from schemas/data/StreamsGroupMemberMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupMemberMetadataKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupMemberMetadataKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 19, which is not flexible (KIP-482)."""

    group_id: str = ""  # v19
    member_id: str = ""  # v19


STREAMS_GROUP_MEMBER_METADATA_KEY_V19 = Message(
    StreamsGroupMemberMetadataKey,
    "group_id" / String,
    "member_id" / String,
    versions="19",
)

LAYOUTS: dict[int, Message[StreamsGroupMemberMetadataKey]] = {
    19: STREAMS_GROUP_MEMBER_METADATA_KEY_V19,
}
StreamsGroupMemberMetadataKey.layouts = LAYOUTS
