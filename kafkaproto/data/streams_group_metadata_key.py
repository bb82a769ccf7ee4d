# Generated from schemas/data/StreamsGroupMetadataKey.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupMetadataKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupMetadataKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 17, which is not flexible (KIP-482)."""

    group_id: str = ""  # v17


STREAMS_GROUP_METADATA_KEY_V17 = Message(
    StreamsGroupMetadataKey,
    "group_id" / String,
    versions="17",
)

LAYOUTS: dict[int, Message[StreamsGroupMetadataKey]] = {
    17: STREAMS_GROUP_METADATA_KEY_V17,
}
StreamsGroupMetadataKey.layouts = LAYOUTS
