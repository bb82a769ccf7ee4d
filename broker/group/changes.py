"""Reports changes of groups to observers: a new state, generation or epoch, and its causes.

`GroupChanges` compares a group with a snapshot from its last report. This shows which members joined, left or changed their subscription, and which
topics changed. It does not show why a member was removed: the code that removes the member passes the cause to `GroupChanges.note`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafkaproto.broker.group.causes import CLASSIC, CONSUMER, Cause, CauseKind, GroupChange
from kafkaproto.broker.group.consumer_group import ConsumerGroup, ConsumerGroupState
from kafkaproto.broker.group.consumer_requests import AWAY
from kafkaproto.broker.group.group import Group, GroupState
from kafkaproto.broker.group.results import Protocols
from kafkaproto.broker.group.subscription import CONSUMER_PROTOCOL, subscribed_topics
from kafkaproto.broker.runtime.events import Events


class _Snapshot(NamedTuple):
    """A snapshot of a group that is taken when a change is published to observers; the next change is found by comparison with the snapshot.

    members: maps member ids to (group instance id, subscription, whether the member has left temporarily). The subscription is a set of topic names,
    to which the regular expression is added if there is one. The set is empty in groups of the classic protocol. group_type: "classic" or "consumer".
    topics: maps the ids of subscribed topics to (name, number of partitions); the name is "" for a loaded group whose log contains only topic ids.
    """

    state: str | None = None
    epoch: int = 0
    assignment_epoch: int = 0
    members: Mapping[str, tuple[str | None, frozenset[str], bool]] = {}
    topics: Mapping[bytes, tuple[str, int]] = {}
    group_type: str | None = None


class GroupChanges:
    """Reports the changes of one broker's groups, as the event `group_changed` and as entries of kind "group" in the journal.

    The journal is the list of requests, throttles and state changes that tests read.

    While the event `group_changed` has no observer, changes are not reported at all, not even in the journal.
    """

    def __init__(self, events: Events, broker_id: int = -1) -> None:
        self.broker_id = broker_id
        self._events = events
        self._snapshots: dict[str, _Snapshot] = {}
        self._notes: dict[str, dict[str | None, Cause]] = {}
        """Maps a group id to the causes of changes of this group that the next call of `report` will publish.

        The causes are a dict from the member id to what the member did. The key None stands for a cause that concerns the whole group.
        """

    def note(self, group_id: str, kind: CauseKind, member_id: str | None = None) -> None:
        """Store the cause of a change; the next call of `report` publishes it. If a member has several causes, only the first is kept.

        kind: what happened, such as "joined". member_id: None if the cause concerns the whole group.
        """
        if self._events.group_changed is not None:
            self._notes.setdefault(group_id, {}).setdefault(member_id, Cause(kind, member_id))

    def note_request(self, group: Group, member_id: str, before: Protocols, after: Protocols) -> None:
        """Store the cause of a change for the next report, when a current member of a classic group sends JoinGroup again.

        If the topics of the member's subscription changed, this change is the cause. Otherwise, if the group is Stable or CompletingRebalance, the
        cause is that the member joined again. In other states, nothing is stored. before, after: the protocols that the member offered before this
        request and in this request. The topics are read from the first protocol of each list.
        """
        if self._events.group_changed is None:
            return
        topics = [subscribed_topics(data for _, data in protocols[:1]) for protocols in (before, after)]
        if group.protocol_type == CONSUMER_PROTOCOL and topics[0] != topics[1]:
            self.note(group.group_id, CauseKind.SUBSCRIPTION_CHANGED, member_id)
        elif group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.note(group.group_id, CauseKind.JOINED_AGAIN, member_id)

    def report(self, group: Group | ConsumerGroup | None, now_ms: int) -> None:
        """Report a group if its state, epochs or members changed since the last report. Does nothing if `group` is None."""
        if self._events.group_changed is None or group is None:
            return
        before = self._snapshots.get(group.group_id, _Snapshot())
        if before[:3] == _epochs(group) and before.members.keys() == group.members.keys():
            return
        after = self._snapshots[group.group_id] = _snapshot(group)
        notes = self._notes.pop(group.group_id, {})
        self._raise(group, before, after, _causes(before, after, notes), now_ms)

    def loaded(self, group: Group | ConsumerGroup, now_ms: int) -> None:
        """Publish that a group was loaded from the offsets topic.

        A group is also loaded again to undo a change that could not be stored. In this case, this object has already published a state of the group.
        The method then publishes an ordinary change instead, from the last published state to the loaded state.
        """
        if self._events.group_changed is None:
            return
        if group.group_id in self._snapshots:
            self.report(group, now_ms)
            return
        after = self._snapshots[group.group_id] = _snapshot(group)
        self._raise(group, _Snapshot(None, after.epoch), after, (Cause(CauseKind.LOADED),), now_ms)

    def ended(self, group: Group | ConsumerGroup, now_ms: int) -> None:
        """Report that a group is Dead: it was deleted, or this broker no longer coordinates it.

        Does nothing for a group of the new protocol (KIP-848) that was never reported, because the heartbeat that created it was rejected.
        """
        if isinstance(group, ConsumerGroup) and group.group_id not in self._snapshots:
            return
        before = self._snapshots.pop(group.group_id, _Snapshot())
        notes = self._notes.pop(group.group_id, {})
        after = _snapshot(group)._replace(state=ConsumerGroupState.DEAD.value)
        causes = tuple(cause for cause in notes.values() if cause.kind in (CauseKind.UNLOADED, CauseKind.FORGOTTEN))
        self._raise(group, before, after, causes, now_ms)

    def _raise(
        self, group: Group | ConsumerGroup, before: _Snapshot, after: _Snapshot, causes: tuple[Cause, ...], now_ms: int
    ) -> None:
        if self._events.group_changed is not None:
            kind = CONSUMER if isinstance(group, ConsumerGroup) else CLASSIC
            change = GroupChange(
                group.group_id,
                kind,
                before.state,
                after.state or "",
                before.epoch,
                after.epoch,
                after.assignment_epoch,
                tuple(after.members),
                causes,
            )
            self._events.group_changed(self.broker_id, change, now_ms)
            self._note_in_journal(change, now_ms)

    def _note_in_journal(self, change: GroupChange, now_ms: int) -> None:
        if self._events.noted is not None:
            facts = {
                "group": change.group_id,
                "type": change.group_type,
                "state": change.state,
                "state_before": change.state_before,
                "epoch": change.epoch,
                "epoch_before": change.epoch_before,
                "assignment_epoch": change.assignment_epoch,
                "members": list(change.members),
                "causes": [str(cause) for cause in change.causes],
            }
            self._events.noted(now_ms, self.broker_id, "group", facts)


def _epochs(group: Group | ConsumerGroup) -> tuple[str, int, int]:
    """Return (state, group epoch, assignment epoch). For a classic group both epochs are its generation."""
    if isinstance(group, ConsumerGroup):
        return group.state.value, group.epoch, group.assignment_epoch
    return group.state.value, group.generation_id, group.generation_id


def _snapshot(group: Group | ConsumerGroup) -> _Snapshot:
    if isinstance(group, ConsumerGroup):
        consumers = {
            member.member_id: (
                member.instance_id,
                member.topic_names | {member.topic_regex} - {""},
                member.current.epoch == AWAY,
            )
            for member in group.members.values()
        }
        return _Snapshot(*_epochs(group), consumers, _topics(group), CONSUMER)
    members = {
        member.member_id: (member.group_instance_id, frozenset[str](), False) for member in group.members.values()
    }
    return _Snapshot(*_epochs(group), members, group_type=CLASSIC)


def _causes(before: _Snapshot, after: _Snapshot, notes: dict[str | None, Cause]) -> tuple[Cause, ...]:
    """Return the causes of a change: those in `notes`, and those that follow from a comparison of the snapshots `before` and `after`.

    notes: maps member ids to the causes that were passed to `GroupChanges.note`.

    a. If a static member is missing in `after` and a new member has its instance id, the new member replaced it. Causes in `notes` that are about the
       missing member are ignored.
    b. Any other member that is only in `after` has joined. A member that is only in `before` has the cause in `notes`, or was removed.
    c. For a member in both snapshots, the cause is the first of these that exists: it left temporarily, its subscription changed, the cause in
       `notes`.
    d. If the group was converted between the classic and the new protocol (KIP-848), the conversion is a cause.
    e. Otherwise, if the group epoch grew and the partitions of subscribed topics changed, the topics are a cause.
    """
    owners = {instance: member_id for member_id, (instance, _, _) in before.members.items() if instance is not None}
    causes: list[Cause] = []
    replaced_ids: set[str] = set()
    for member_id, (instance, topics, is_away) in after.members.items():
        member_before = before.members.get(member_id)
        if member_before is None:
            old_id = owners.get(instance or "")
            if old_id is not None and old_id not in after.members:
                replaced_ids.add(old_id)
                causes.append(Cause(CauseKind.REPLACED, member_id, (old_id,)))
            else:
                causes.append(Cause(CauseKind.JOINED, member_id))
        elif is_away and not member_before[2]:
            causes.append(Cause(CauseKind.AWAY, member_id))
        elif topics != member_before[1] and after.group_type == before.group_type:
            causes.append(Cause(CauseKind.SUBSCRIPTION_CHANGED, member_id))
        elif member_id in notes:
            causes.append(notes[member_id])
    causes += [
        notes.get(member_id, Cause(CauseKind.REMOVED, member_id))
        for member_id in before.members
        if member_id not in after.members and member_id not in replaced_ids
    ]
    if before.group_type not in (None, after.group_type):
        causes.append(Cause(CauseKind.UPGRADED if after.group_type == CONSUMER else CauseKind.DOWNGRADED))
    elif after.epoch > before.epoch and before.state is not None:
        names = _changed_topics(before, after)
        causes += [Cause(CauseKind.TOPICS_CHANGED, None, names)] if names else []
    return tuple(causes)


def _topics(group: ConsumerGroup) -> dict[bytes, tuple[str, int]]:
    """Return a dict that maps the id of each subscribed topic to (name, number of partitions).

    Kafka 4.1 and later do not store the topics of a group. If the group was loaded from records without topics, each name is "", and only the
    partitions in the target assignment are counted.
    """
    if group.topics:
        return {topic.topic_id: (name, topic.partition_count) for name, topic in group.topics.items()}
    return {topic_id: ("", count) for topic_id, count in group.assigned_counts().items()}


def _changed_topics(before: _Snapshot, after: _Snapshot) -> tuple[str, ...]:
    """Return the names of the topics that were created or deleted, or whose number of partitions changed.

    before: the snapshot of the group when its last change was published. after: the snapshot of its state now. Topics that members started or stopped
    subscribing to are left out. A topic whose name is unknown is represented by the hexadecimal digits of its id. If the members' subscriptions
    changed, all topics with unknown names are left out, because a difference may come from a subscription instead of a change of the topic.
    """
    subscribed_before, subscribed_after = (
        {name for _, topics, _ in snapshot.members.values() for name in topics} for snapshot in (before, after)
    )
    names = set()
    for topic_id in {**before.topics, **after.topics}:
        name_before, count_before = before.topics.get(topic_id, ("", 0))
        name_after, count_after = after.topics.get(topic_id, ("", 0))
        name = name_after or name_before
        if count_before != count_after and (name or subscribed_before == subscribed_after):
            names.add(name or topic_id.hex())
    return tuple(sorted(names - (subscribed_before ^ subscribed_after)))
