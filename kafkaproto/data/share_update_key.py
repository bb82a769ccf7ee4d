# Generated from schemas/data/ShareUpdateKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareUpdateKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Int32, String, Uuid
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ShareUpdateKey(Whole):
    """Key of a record in the topic `__share_group_state`; this data has version 1, which is not flexible (KIP-482)."""

    group_id: str = ""  # v1
    topic_id: bytes = bytes(16)  # v1
    partition: int = 0  # v1


SHARE_UPDATE_KEY_V1 = Message(
    ShareUpdateKey,
    "group_id" / String,
    "topic_id" / Uuid,
    "partition" / Int32,
    versions="1",
)

LAYOUTS: dict[int, Message[ShareUpdateKey]] = {
    1: SHARE_UPDATE_KEY_V1,
}
ShareUpdateKey.layouts = LAYOUTS
