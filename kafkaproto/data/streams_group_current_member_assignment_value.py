# Generated from schemas/data/StreamsGroupCurrentMemberAssignmentValue.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupCurrentMemberAssignmentValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray, CompactNullableArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int32, Int8
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tagged, Tags


@dataclass(slots=True, eq=False, repr=False)
class TaskIds(Struct):
    """One item of the list ``StreamsGroupCurrentMemberAssignmentValue.active_tasks``, ``StreamsGroupCurrentMemberAssignmentValue.standby_tasks``, ``StreamsGroupCurrentMemberAssignmentValue.warmup_tasks``, ``StreamsGroupCurrentMemberAssignmentValue.active_tasks_pending_revocation``, ``StreamsGroupCurrentMemberAssignmentValue.standby_tasks_pending_revocation`` or ``StreamsGroupCurrentMemberAssignmentValue.warmup_tasks_pending_revocation``."""

    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list)
    assignment_epochs: list[int] | None = field(default_factory=list)  # tag 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupCurrentMemberAssignmentValue(Whole):
    """Value of a record whose key is `StreamsGroupCurrentMemberAssignmentKey`; this data has version 0, which is flexible (KIP-482)."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    active_tasks: list[TaskIds] = field(default_factory=list)
    standby_tasks: list[TaskIds] = field(default_factory=list)
    warmup_tasks: list[TaskIds] = field(default_factory=list)
    active_tasks_pending_revocation: list[TaskIds] = field(default_factory=list)
    standby_tasks_pending_revocation: list[TaskIds] = field(default_factory=list)
    warmup_tasks_pending_revocation: list[TaskIds] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


TASK_IDS_V0 = Message(
    TaskIds,
    "subtopology_id" / CompactString,
    "partitions" / CompactArray(Int32),
    Tags(
        Tagged(0, "assignment_epochs" / CompactNullableArray(Int32)),
    ),
    versions="0",
)

STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_V0 = Message(
    StreamsGroupCurrentMemberAssignmentValue,
    "member_epoch" / Int32,
    "previous_member_epoch" / Int32,
    "state" / Int8,
    "active_tasks" / CompactArray(TASK_IDS_V0),
    "standby_tasks" / CompactArray(TASK_IDS_V0),
    "warmup_tasks" / CompactArray(TASK_IDS_V0),
    "active_tasks_pending_revocation" / CompactArray(TASK_IDS_V0),
    "standby_tasks_pending_revocation" / CompactArray(TASK_IDS_V0),
    "warmup_tasks_pending_revocation" / CompactArray(TASK_IDS_V0),
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[StreamsGroupCurrentMemberAssignmentValue]] = {
    0: STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_V0,
}
StreamsGroupCurrentMemberAssignmentValue.layouts = LAYOUTS
