# Generated from schemas/data/StreamsGroupTargetAssignmentMemberValue.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupTargetAssignmentMemberValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int32
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class TaskIds(Struct):
    """One item of the list ``StreamsGroupTargetAssignmentMemberValue.active_tasks``, ``StreamsGroupTargetAssignmentMemberValue.standby_tasks`` or ``StreamsGroupTargetAssignmentMemberValue.warmup_tasks``."""

    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupTargetAssignmentMemberValue(Whole):
    """Value of a record whose key is `StreamsGroupTargetAssignmentMemberKey`; this data has version 0, which is flexible (KIP-482)."""

    active_tasks: list[TaskIds] = field(default_factory=list)
    standby_tasks: list[TaskIds] = field(default_factory=list)
    warmup_tasks: list[TaskIds] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


TASK_IDS_V0 = Message(
    TaskIds,
    "subtopology_id" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(),
    versions="0",
)

STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_V0 = Message(
    StreamsGroupTargetAssignmentMemberValue,
    "active_tasks" / CompactArray(TASK_IDS_V0),
    "standby_tasks" / CompactArray(TASK_IDS_V0),
    "warmup_tasks" / CompactArray(TASK_IDS_V0),
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[StreamsGroupTargetAssignmentMemberValue]] = {
    0: STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_V0,
}
StreamsGroupTargetAssignmentMemberValue.layouts = LAYOUTS
