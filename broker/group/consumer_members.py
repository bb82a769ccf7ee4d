"""The members of consumer groups: who may join, take over a static member, send a heartbeat, and leave (KIP-848).

Corresponds to `getOrMaybeSubscribeDynamicConsumerGroupMember`, `getOrMaybeSubscribeStaticConsumerGroupMember` and the checks of epochs in
Kafka's `GroupMetadataManager` (Java).
"""

from __future__ import annotations

import base64
from dataclasses import replace
from random import Random

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group import consumer_records as stored_as
from kafkaproto.broker.group.assignment import NOTHING
from kafkaproto.broker.group.consumer_group import ConsumerGroup, ConsumerMember
from kafkaproto.broker.group.consumer_requests import AWAY, JOINING, UNCHANGED_MS, ConsumerHeartbeat
from kafkaproto.broker.group.reconciliation import is_subset
from kafkaproto.broker.group.records import Entry
from kafkaproto.broker.group.sessions import cancel
from kafkaproto.error_codes import ErrorCode

MEMBER_ID_BYTES = 16


class Membership:
    """Finds, adds and updates members. random: generates member ids.

    may_always_rejoin: whether a known member may join again at any epoch, as from 4.2 on (GN-13).
    """

    def __init__(self, random: Random, *, may_always_rejoin: bool = False) -> None:
        self._random = random
        self._may_always_rejoin = may_always_rejoin

    def find_leaving(self, group: ConsumerGroup, request: ConsumerHeartbeat) -> ConsumerMember:
        """Return the member that leaves, for good or for a while. Raises KafkaError 25 or 82 (GN-31)."""
        if request.instance_id is not None:
            holder = group.members.get(group.static_ids.get(request.instance_id, ""))
            return _check_static(group, holder, request, request.instance_id)
        member = group.members.get(request.member_id)
        if member is None:
            raise _unknown_member(request.member_id, group)
        return member

    def find_or_add(self, group: ConsumerGroup, request: ConsumerHeartbeat, entries: list[Entry]) -> ConsumerMember:
        """Return the member that sends a heartbeat; one that joins is added. Raises KafkaError 25, 82, 110 or 111 (GN-12, GN-32)."""
        if request.instance_id is not None:
            return self._find_or_add_static(group, request, request.instance_id, entries)
        member = group.members.get(request.member_id)
        if member is None:
            if request.member_epoch != JOINING:
                raise _unknown_member(request.member_id, group)
            return self._new_member(group, request)
        if request.member_epoch != JOINING or not self._may_always_rejoin:
            _check_epoch(member, request)
        return member

    def _find_or_add_static(
        self, group: ConsumerGroup, request: ConsumerHeartbeat, instance_id: str, entries: list[Entry]
    ) -> ConsumerMember:
        """Return a static member; a joining one takes over from the member that left for a while (GN-32 to GN-34)."""
        holder = group.members.get(group.static_ids.get(instance_id, ""))
        if request.member_epoch != JOINING:
            member = _check_static(group, holder, request, instance_id)
            _check_epoch(member, request)
            return member
        if holder is None:
            return self._new_member(group, request)
        if holder.current.epoch != AWAY:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {request.member_id} with instance id {instance_id} cannot join the group because the "
                f"instance id is owned by {holder.member_id} member.",
            )
        return self._take_over(group, holder, request, entries)

    def _new_member(self, group: ConsumerGroup, request: ConsumerHeartbeat) -> ConsumerMember:
        member = ConsumerMember(
            request.member_id or self._new_member_id(),
            request.instance_id,
            None,
            "",
            "",
            UNCHANGED_MS,
        )
        group.put(member)
        return member

    def _take_over(
        self, group: ConsumerGroup, holder: ConsumerMember, request: ConsumerHeartbeat, entries: list[Entry]
    ) -> ConsumerMember:
        member_id = request.member_id or self._new_member_id()
        target = group.target_of(holder.member_id)
        cancel_timers(holder)
        group.remove(holder.member_id)
        current = holder.current._replace(epoch=JOINING, previous_epoch=JOINING)
        member = replace(holder, member_id=member_id, current=current, session_timer=None, rebalance_timer=None)
        group.put(member)
        group.targets[member_id] = target
        entries += stored_as.member_tombstones(group.group_id, holder.member_id)
        entries.append(stored_as.member_entry(group.group_id, member))
        entries.append(stored_as.target_entry(group.group_id, member_id, target))
        entries.append(stored_as.current_entry(group.group_id, member_id, current))
        return member

    def _new_member_id(self) -> str:
        """Return a new id like Kafka's `Uuid`: 16 random bytes in URL-safe base64 (GN-6)."""
        return base64.urlsafe_b64encode(self._random.randbytes(MEMBER_ID_BYTES)).decode().rstrip("=")

    def update(
        self, group: ConsumerGroup, member: ConsumerMember, request: ConsumerHeartbeat, entries: list[Entry]
    ) -> bool:
        """Update a member with the values of its heartbeat, and return whether its subscription changed."""
        before = _stored_values(member)
        names_before = member.topic_names
        if request.rack_id is not None:
            member.rack_id = request.rack_id
        if request.rebalance_timeout_ms != UNCHANGED_MS:
            member.rebalance_timeout_ms = request.rebalance_timeout_ms
        if request.assignor is not None:
            member.assignor = request.assignor
        member.client_id, member.client_host = request.client_id, request.client_host
        if request.topic_names is not None:
            group.subscribe(member, request.topic_names)
        if _stored_values(member) != before:
            entries.append(stored_as.member_entry(group.group_id, member))
        return member.topic_names != names_before


def _stored_values(member: ConsumerMember) -> tuple[object, ...]:
    """Return the values of a member's record that a heartbeat may change."""
    return (
        member.rack_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.topic_names,
        member.assignor,
    )


def cancel_timers(member: ConsumerMember) -> None:
    """Cancel both timers of a member."""
    cancel(member.session_timer)
    cancel(member.rebalance_timer)
    member.session_timer = member.rebalance_timer = None


def _unknown_member(member_id: str, group: ConsumerGroup) -> KafkaError:
    if member_id in group.fenced:
        text = f"Member {member_id} of group {group.group_id} was fenced. The member must abandon all its partitions and rejoin."
        return KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, text)
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")


def _check_static(
    group: ConsumerGroup, holder: ConsumerMember | None, request: ConsumerHeartbeat, instance_id: str
) -> ConsumerMember:
    if holder is None:
        if request.member_id in group.fenced:
            raise _unknown_member(request.member_id, group)
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder.member_id != request.member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {instance_id} was fenced by member {holder.member_id}.",
        )
    return holder


def _check_epoch(member: ConsumerMember, request: ConsumerHeartbeat) -> None:
    """Raise KafkaError 110 for an epoch that the member does not have, unless it repeats a heartbeat whose response was lost (GN-12)."""
    known, received = member.current.epoch, request.member_epoch
    if received == known:
        return
    repeats = received == member.current.previous_epoch and request.owned is not None
    if received < known and repeats and is_subset(request.owned or NOTHING, member.current.assigned):
        return
    word = "greater" if received > known else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {word} member epoch ({received}) than the one known by the group coordinator ({known}). "
        "The member must abandon all its partitions and rejoin.",
    )
