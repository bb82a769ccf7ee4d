"""The arguments of the event `group_changed`: a change of a consumer group and its causes.

This module does not import the group coordinator, so that programs which only observe events need not import it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

CLASSIC, CONSUMER = "classic", "consumer"


class CauseKind(StrEnum):
    """The kinds of events that can cause a change of a group."""

    JOINED = "joined"
    LEFT = "left"
    SESSION_TIMED_OUT = "session timed out"
    JOIN_TIMED_OUT = "join timed out"
    SYNC_TIMED_OUT = "sync timed out"
    REVOCATION_TIMED_OUT = "revocation timed out"
    FENCED = "fenced"
    REMOVED = "removed"
    REPLACED = "replaced"
    AWAY = "away"
    JOINED_AGAIN = "joined again"
    SUBSCRIPTION_CHANGED = "subscription changed"
    TOPICS_CHANGED = "topics changed"
    UPGRADED = "upgraded"
    DOWNGRADED = "downgraded"
    LOADED = "loaded"
    UNLOADED = "unloaded"
    FORGOTTEN = "forgotten"


_TEXTS = {
    CauseKind.JOINED: "member {member} joined",
    CauseKind.LEFT: "member {member} left",
    CauseKind.SESSION_TIMED_OUT: "member {member} sent no heartbeat within its session timeout",
    CauseKind.JOIN_TIMED_OUT: "member {member} did not join again within the rebalance timeout",
    CauseKind.SYNC_TIMED_OUT: "member {member} sent no SyncGroup within the rebalance timeout",
    CauseKind.REVOCATION_TIMED_OUT: "member {member} did not revoke its partitions within its rebalance timeout",
    CauseKind.FENCED: "member {member} was fenced",
    CauseKind.REMOVED: "member {member} was removed",
    CauseKind.REPLACED: "member {member} replaced static member {names}",
    CauseKind.AWAY: "static member {member} left for a while",
    CauseKind.JOINED_AGAIN: "member {member} joined again",
    CauseKind.SUBSCRIPTION_CHANGED: "member {member} changed its subscription",
    CauseKind.TOPICS_CHANGED: "the subscribed topics changed: {names}",
    CauseKind.UPGRADED: "the group changed from the classic to the new protocol",
    CauseKind.DOWNGRADED: "the group changed from the new to the classic protocol",
    CauseKind.LOADED: "the coordinator loaded the group",
    CauseKind.UNLOADED: "the coordinator moved to another broker, or stopped",
    CauseKind.FORGOTTEN: "the coordinator forgot the empty group when it rejected a JoinGroup with a member id, as Kafka does",
}


class Cause(NamedTuple):
    """One cause for a change of a group, such as a member that left; `str(cause)` describes it in a sentence.

    kind: what happened, such as `CauseKind.JOINED`. The values of `CauseKind` are strings, such as "joined". member_id: the group member that the
    cause is about; None if it is about the whole group. names: for `TOPICS_CHANGED`, the topics that changed; for `REPLACED`, the member id that the
    static member had before; otherwise empty.
    """

    kind: CauseKind
    member_id: str | None = None
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _TEXTS[self.kind].format(member=self.member_id, names=", ".join(self.names))


class GroupChange(NamedTuple):
    """A change of one group.

    group_type: "classic", or "consumer" for the new protocol (KIP-848). state, state_before: Kafka's names, such as "Stable"; state_before is None if
    the coordinator did not have the group before. epoch, epoch_before: the generation of a classic group, else the group epoch. assignment_epoch: the
    epoch of the target assignment; in a classic group the generation. members: the ids of the members.
    """

    group_id: str
    group_type: str
    state_before: str | None
    state: str
    epoch_before: int
    epoch: int
    assignment_epoch: int
    members: tuple[str, ...]
    causes: tuple[Cause, ...]
