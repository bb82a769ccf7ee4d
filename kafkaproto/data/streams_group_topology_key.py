# Generated from schemas/data/StreamsGroupTopologyKey.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupTopologyKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupTopologyKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 23, which is not flexible (KIP-482)."""

    group_id: str = ""  # v23


STREAMS_GROUP_TOPOLOGY_KEY_V23 = Message(
    StreamsGroupTopologyKey,
    "group_id" / String,
    versions="23",
)

LAYOUTS: dict[int, Message[StreamsGroupTopologyKey]] = {
    23: STREAMS_GROUP_TOPOLOGY_KEY_V23,
}
StreamsGroupTopologyKey.layouts = LAYOUTS
