"""The history of rebalances: when each group got a new generation or epoch, why, and how long that took. The history is bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kafkaproto.broker.group.causes import CLASSIC, Cause, CauseKind, GroupChange
from kafkaproto.broker.runtime.events import Observer

MOST_GROUPS = 1000
MOST_OF_GROUP = 100
_DEAD, _EMPTY, _STABLE = "Dead", "Empty", "Stable"
_PREPARING = "PreparingRebalance"


@dataclass(slots=True, repr=False)
class RebalanceSeen:
    """One rebalance of a group: the change from one generation, or group epoch (KIP-848), to the next.

    at_ms: when the rebalance began, in ms of the cluster's clock. elapsed_ms: `at_ms` counted from the cluster's start or last reset.
    """

    at_ms: int
    broker_id: int
    """The id of the broker that coordinates the group."""
    group_id: str
    """The name of the group."""
    group_type: str
    """"classic", or "consumer" for the new protocol (KIP-848)."""
    from_epoch: int
    """The generation of a classic group, or the group epoch, before the rebalance."""
    to_epoch: int | None
    """The generation or group epoch after the rebalance; None while the members of a classic group join."""
    state: str
    """The last state of the group in this rebalance, under Kafka's name, such as "Stable"; "Dead" if the rebalance ended unfinished."""
    members: tuple[str, ...]
    """The ids of the group's members when the group was in the state `state`."""
    causes: tuple[Cause, ...]
    """What caused the rebalance, such as a member that joined, left or timed out, a changed subscription or a changed topic."""
    duration_ms: int | None = None
    """How long the rebalance took until the group was Stable or Empty, in milliseconds.

    None if that has not happened, or if another rebalance began first.
    """
    elapsed_ms: int = 0

    def __str__(self) -> str:
        word = "generation" if self.group_type == CLASSIC else "epoch"
        to_epoch = "..." if self.to_epoch is None else self.to_epoch
        duration_text = "" if self.duration_ms is None else f" after {self.duration_ms} ms"
        members = ", ".join(self.members) or "no members"
        causes = "; ".join(map(str, self.causes)) or "cause unknown"
        return (
            f"+{self.elapsed_ms / 1000:.3f} s broker {self.broker_id} group {self.group_id}: {word} {self.from_epoch} to {to_epoch}, "
            f"{self.state}{duration_text} with {members}: {causes}"
        )

    def __repr__(self) -> str:
        return f"<RebalanceSeen {self}>"


class RebalanceHistory(Observer):
    """The history of the rebalances of a cluster: the last 100 of each group, for the 1,000 groups that rebalanced most recently."""

    def __init__(self, started_ms: int) -> None:
        self._started_ms = started_ms
        self._of_group: dict[str, deque[RebalanceSeen]] = {}

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._of_group

    def group_changed(self, broker_id: int, change: GroupChange, now_ms: int) -> None:
        """Add a rebalance to the history, or update the current one, after a change of a group.

        a. A rebalance starts when a classic group enters PreparingRebalance, or when a group gets a new generation or group epoch. Rule b is the
           exception.
        b. While the members of a classic group join, no further rebalance starts. The generation that begins when all have joined becomes the
           `to_epoch` of the current rebalance.
        c. Any other change updates the current rebalance. The rebalance is complete when the group is Stable or Empty. It ends unfinished when the
           group is Dead. Exception: a coordinator that unloads a consumer group reports it as Dead, but this does not end the rebalance.
        d. When the next coordinator loads the group, the current rebalance continues if its `to_epoch` is the loaded generation or group epoch.
           Otherwise it ends unfinished.
        """
        current = self._current(change.group_id)
        kinds = {cause.kind for cause in change.causes}
        if change.state == _DEAD:
            if change.group_type == CLASSIC or CauseKind.UNLOADED not in kinds:
                self._end_unfinished(change.group_id)
            return
        if CauseKind.LOADED in kinds:
            if current is None or current.to_epoch != change.epoch:
                self._end_unfinished(change.group_id)
                return
            change = change._replace(causes=())
        is_joining = current is not None and current.to_epoch is None
        has_new_epoch = change.epoch > change.epoch_before
        starts = change.state == _PREPARING or has_new_epoch
        if starts and not is_joining:
            to_epoch = change.epoch if has_new_epoch else None
            current = self._add(broker_id, change, to_epoch, now_ms)
        elif current is None:
            return
        else:
            current.causes += change.causes
            if has_new_epoch:
                current.to_epoch = change.epoch
        current.state, current.members = change.state, change.members
        if change.state in (_STABLE, _EMPTY):
            current.duration_ms = now_ms - current.at_ms

    def _current(self, group_id: str) -> RebalanceSeen | None:
        """Return the rebalance that is in progress in a group; None if no rebalance is in progress."""
        entries = self._of_group.get(group_id)
        is_current = entries and entries[-1].duration_ms is None and entries[-1].state != _DEAD
        return entries[-1] if entries and is_current else None

    def _end_unfinished(self, group_id: str) -> None:
        current = self._current(group_id)
        if current is not None:
            current.state = _DEAD

    def _add(self, broker_id: int, change: GroupChange, to_epoch: int | None, now_ms: int) -> RebalanceSeen:
        rebalance = RebalanceSeen(
            now_ms,
            broker_id,
            change.group_id,
            change.group_type,
            change.epoch_before,
            to_epoch,
            change.state,
            change.members,
            change.causes,
            elapsed_ms=now_ms - self._started_ms,
        )
        # The group moves to the end, so that the first group is the one whose last rebalance is the oldest.
        entries = self._of_group.pop(change.group_id, None) or deque(maxlen=MOST_OF_GROUP)
        entries.append(rebalance)
        self._of_group[change.group_id] = entries
        if len(self._of_group) > MOST_GROUPS:
            del self._of_group[next(iter(self._of_group))]
        return rebalance

    def cleared(self, now_ms: int) -> None:
        self._started_ms = now_ms
        self._of_group.clear()

    def of_group(self, group_id: str) -> list[RebalanceSeen]:
        """Return copies of the rebalances of a group, oldest first; none for an unknown group."""
        return [replace(rebalance) for rebalance in self._of_group.get(group_id, ())]

    def latest(self, count: int) -> list[RebalanceSeen]:
        """Return copies of the last `count` rebalances of all groups, oldest first."""
        rebalances: Iterator[RebalanceSeen] = (seen for entries in self._of_group.values() for seen in entries)
        ordered = sorted(rebalances, key=lambda seen: seen.at_ms)
        return [replace(seen) for seen in ordered[max(0, len(ordered) - count) :]]
