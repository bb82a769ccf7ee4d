# Generated from schemas/data/OffsetCommitKey.json by `python -m kafkaproto.generator`. Do not edit.
"""OffsetCommitKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Int32, String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class OffsetCommitKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has versions 0 to 1, none of which is flexible (KIP-482)."""

    group: str = ""  # v0-1
    topic: str = ""  # v0-1
    partition: int = 0  # v0-1


OFFSET_COMMIT_KEY_V0 = Message(
    OffsetCommitKey,
    "group" / String,
    "topic" / String,
    "partition" / Int32,
    versions="0-1",
)

OFFSET_COMMIT_KEY_V1 = OFFSET_COMMIT_KEY_V0

LAYOUTS: dict[int, Message[OffsetCommitKey]] = {
    0: OFFSET_COMMIT_KEY_V0,
    1: OFFSET_COMMIT_KEY_V1,
}
OffsetCommitKey.layouts = LAYOUTS
