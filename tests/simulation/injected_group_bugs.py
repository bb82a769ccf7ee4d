"""Bugs of the group coordinator injected on purpose, to test whether the simulation finds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kafkaproto.broker.group import commits, consumer_records, offset_expiry, registry
from kafkaproto.broker.group.commits import Commits
from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.consumer_members import Membership
from kafkaproto.broker.group.group import Group, GroupState
from kafkaproto.broker.group.reconciliation import NO_EPOCH
from kafkaproto.broker.group.records import Entry, StoredGroup
from kafkaproto.broker.group.registry import Registry
from kafkaproto.broker.group.replay import Loaded
from kafkaproto.broker.group.storage import GroupStorage
from kafkaproto.broker.group.transitions import Transitions
from kafkaproto.broker.replication.coordinator_log import CoordinatorLog
from kafkaproto.data.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey
from tests.simulation.bug import Bug, Original


def _free_before_it_is_revoked(_: Original) -> Original:
    def owner_epoch(self: ConsumerGroup, topic_id: bytes, index: int) -> int:
        return NO_EPOCH

    return owner_epoch


def _any_member_epoch_may_commit(original: Original) -> Original:
    def refusal(group: ConsumerGroup, member_epoch: int, member_id: str, **more: Any) -> int:
        member = group.members.get(member_id)
        return int(original(group, member_epoch if member is None else member.current.epoch, member_id, **more))

    return refusal


def _any_generation_may_commit(original: Original) -> Original:
    def refusal(group: Group, generation_id: int, *more: Any) -> int:
        return int(original(group, generation_id if generation_id < 0 else group.generation_id, *more))

    return refusal


def _fenced_member_may_commit(original: Original) -> Original:
    def refusal(group: ConsumerGroup, member_epoch: int, member_id: str, **more: Any) -> int:
        return int(original(group, member_epoch, member_id, **more)) if member_id in group.members else 0

    return refusal


def _no_tombstones(_: Original) -> Original:
    def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
        return []

    return member_tombstones


def _current_assignment_not_loaded(original: Original) -> Original:
    def apply(group: ConsumerGroup, key: Any, value: Any) -> bool:
        return True if isinstance(key, ConsumerGroupCurrentMemberAssignmentKey) else bool(original(group, key, value))

    return apply


def _epoch_kept_when_a_member_leaves(original: Original) -> Original:
    def fence(self: Transitions, group: ConsumerGroup, members: Any, entries: list[Entry], now_ms: int) -> None:
        original(self, group, members, entries, now_ms)
        group.epoch -= 1
        entries.pop()  # the record of the new epoch

    return fence


def _old_process_of_a_static_member_may_commit(original: Original) -> Original:
    def commit(
        self: Commits,
        group_id: str,
        generation_id: int,
        member_id: str,
        instance_id: str | None,
        *more: Any,
        **named: Any,
    ) -> None:
        group = self._groups.get(group_id)
        if group is not None and instance_id is not None:
            member_id = group.static_ids.get(instance_id, member_id)
        original(self, group_id, generation_id, member_id, instance_id, *more, **named)

    return commit


def _offsets_of_consumer_groups_not_loaded(original: Original) -> Original:
    def take(self: Registry, loaded: Loaded, now_ms: int) -> None:
        for group_id in loaded.consumers:
            loaded.offsets.pop(group_id, None)
        original(self, loaded, now_ms)

    return take


def _generation_one_too_low(original: Original) -> Original:
    def restore(self: Group, stored: StoredGroup, now_ms: int) -> None:
        original(self, stored._replace(generation_id=stored.generation_id - 1), now_ms)

    return restore


def _assignment_sent_before_it_is_stored(_: Original) -> Original:
    def store_group(
        self: GroupStorage, group: Group, assignments: Any, now_ms: int, stored: Callable[[int, int], None]
    ) -> None:
        stored(0, now_ms)

    return store_group


def _change_sent_before_it_is_stored(original: Original) -> Original:
    def append(
        self: GroupStorage, group_id: str, entries: Sequence[Entry], now_ms: int, stored: Callable[[int, int], None]
    ) -> None:
        original(self, group_id, entries, now_ms, lambda error, at_ms: None)
        stored(0, now_ms)

    return append


def _taken_over_without_leaving(original: Original) -> Original:
    def take_over(self: Membership, group: ConsumerGroup, holder: Any, *more: Any) -> Any:
        member = original(self, group, holder, *more)
        group.put(holder)  # the old process stays a member beside the new one
        return member

    return take_over


def _converted_without_offsets(original: Original) -> Original:
    def convert(*given: Any, **more: Any) -> Any:
        group = original(*given, **more)
        group.offsets = {}
        return group

    return convert


def _owners_forgotten_by_an_upgrade(original: Original) -> Original:
    def to_consumer_group(*given: Any, **more: Any) -> ConsumerGroup:
        group: ConsumerGroup = original(*given, **more)
        for member in list(group.members.values()):
            group.put(replace(member, current=member.current._replace(assigned={})))
        return group

    return to_consumer_group


def _rejected_commit_acknowledged(original: Original) -> Original:
    def store_offsets(
        self: GroupStorage, group_id: str, offsets: Any, now_ms: int, stored: Callable[[int, int], None], **named: Any
    ) -> None:
        def acknowledge(error: int, at_ms: int) -> None:
            stored(error if self.is_new_coordinator else 0, at_ms)

        original(self, group_id, offsets, now_ms, acknowledge, **named)

    return store_offsets


def _too_few_replicas_not_checked(original: Original) -> Original:
    def init(self: CoordinatorLog, *given: Any, **named: Any) -> None:
        original(self, *given, **{**named, "checks_isr": False})

    return init


def _nothing() -> None:
    """Do nothing."""


def _effective_before_it_is_replicated(original: Original) -> Original:
    def store_offsets(
        self: GroupStorage, *given: Any, take_effect: Callable[[], None], producer: Any = None, **named: Any
    ) -> None:
        if not self.is_new_coordinator and producer is None:
            take_effect()
            take_effect = _nothing
        original(self, *given, take_effect=take_effect, producer=producer, **named)

    return store_offsets


def _unused_despite_its_offsets(_: Original) -> Original:
    def is_unused(group: Group | ConsumerGroup) -> bool:
        return isinstance(group, Group) and group.is_in(GroupState.EMPTY)

    return is_unused


GROUP_BUGS = {
    "partition assigned before its owner revokes it": Bug(ConsumerGroup, "owner_epoch", _free_before_it_is_revoked),
    "commit of an old member epoch accepted": Bug(commits, "_refusal_of_consumer", _any_member_epoch_may_commit),
    "commit of an old generation accepted": Bug(commits, "_refusal", _any_generation_may_commit),
    "commit of a fenced member accepted": Bug(commits, "_refusal_of_consumer", _fenced_member_may_commit),
    "tombstones of a member that left not written": Bug(consumer_records, "member_tombstones", _no_tombstones),
    "current assignment not restored on load": Bug(consumer_records, "apply", _current_assignment_not_loaded),
    "group epoch not bumped by a leaving member": Bug(Transitions, "fence", _epoch_kept_when_a_member_leaves),
    "replaced static member may still commit": Bug(Commits, "commit", _old_process_of_a_static_member_may_commit),
    "offsets lost when the coordinator moves": Bug(
        Registry, "_add_loaded_groups", _offsets_of_consumer_groups_not_loaded
    ),
    "generation restored one too low": Bug(Group, "restore", _generation_one_too_low),
    "generation sent to members before it is stored": Bug(
        GroupStorage, "store_group", _assignment_sent_before_it_is_stored
    ),
    "heartbeat answered before its changes are stored": Bug(GroupStorage, "append", _change_sent_before_it_is_stored),
    "offsets lost by an upgrade": Bug(registry, "to_consumer_group", _converted_without_offsets),
    "offsets lost by a downgrade": Bug(registry, "to_classic_group", _converted_without_offsets),
    "owners forgotten by an upgrade": Bug(registry, "to_consumer_group", _owners_forgotten_by_an_upgrade),
    "old coordinator acknowledges a rejected commit": Bug(GroupStorage, "store_offsets", _rejected_commit_acknowledged),
    "old coordinator appends a commit although too few replicas are in sync": Bug(
        CoordinatorLog, "__init__", _too_few_replicas_not_checked
    ),
    "old coordinator returns an offset before it is replicated": Bug(
        GroupStorage, "store_offsets", _effective_before_it_is_replicated
    ),
    "empty group deleted with its offsets": Bug(offset_expiry, "is_unused", _unused_despite_its_offsets),
    "replaced static member stays in the group": Bug(Membership, "_take_over", _taken_over_without_leaving),
}
