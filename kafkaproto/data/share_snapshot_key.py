# Generated from schemas/data/ShareSnapshotKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ShareSnapshotKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Int32, String, Uuid
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ShareSnapshotKey(Whole):
    """Key of a record in the topic `__share_group_state`; this data has version 0, which is not flexible (KIP-482)."""

    group_id: str = ""  # v0
    topic_id: bytes = bytes(16)  # v0
    partition: int = 0  # v0


SHARE_SNAPSHOT_KEY_V0 = Message(
    ShareSnapshotKey,
    "group_id" / String,
    "topic_id" / Uuid,
    "partition" / Int32,
    versions="0",
)

LAYOUTS: dict[int, Message[ShareSnapshotKey]] = {
    0: SHARE_SNAPSHOT_KEY_V0,
}
ShareSnapshotKey.layouts = LAYOUTS
