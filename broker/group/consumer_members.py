"""The members of consumer groups: which clients may join, replace a static member, send heartbeats, and leave (KIP-848).

Corresponds to `getOrMaybeSubscribeDynamicConsumerGroupMember`, `getOrMaybeSubscribeStaticConsumerGroupMember` and the checks of epochs in Kafka's
`GroupMetadataManager` (Java).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group import consumer_records as stored_as
from kafkaproto.broker.group.assignment import NOTHING
from kafkaproto.broker.group.consumer_group import (
    TIMERS,
    ClassicProtocol,
    ConsumerGroup,
    ConsumerMember,
    ReplacedMember,
)
from kafkaproto.broker.group.consumer_requests import AWAY, JOINING, UNCHANGED_MS, ConsumerHeartbeat
from kafkaproto.broker.group.reconciliation import is_subset
from kafkaproto.broker.group.records import Entry
from kafkaproto.broker.group.results import JoinRequest
from kafkaproto.broker.group.sessions import cancel
from kafkaproto.broker.group.settings import ConsumerGroupSettings
from kafkaproto.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkaproto.error_codes import ErrorCode

MEMBER_ID_BYTES = 16


class Changes(NamedTuple):
    """The changes that a request made to a member.

    has_other_names: whether the member now subscribes to other topic names than before. regex_before: the regular expression before the request; None
    if it is unchanged. has_new_instance: whether the member has an instance id that no member had before. is_new: whether the request added the
    member to the group. names: the topic names that the request lists, in its order, even if the member subscribed to them before; None if it lists
    none.
    """

    has_other_names: bool
    regex_before: str | None = None
    has_new_instance: bool = False
    is_new: bool = False
    names: Sequence[str] | None = None

    @property
    def is_resubscribed(self) -> bool:
        return self.has_other_names or self.regex_before is not None


class Membership:
    """Finds, adds and updates the members of consumer groups of the new protocol (KIP-848). random: generates member ids."""

    def __init__(self, random: Random, settings: ConsumerGroupSettings) -> None:
        self._random = random
        self._is_release_4 = settings.is_release_4
        self._may_always_rejoin = settings.is_release_4_2  # also at another epoch (GN-13)

    def find_leaving(self, group: ConsumerGroup, request: ConsumerHeartbeat) -> ConsumerMember:
        """Return the member that leaves the group, for good or temporarily (GN-31).

        A request with an instance id names the member by this id, any other request by the member id. Raises KafkaError:

        - UNKNOWN_MEMBER_ID (25) if the member is missing in the group;
        - FENCED_MEMBER_EPOCH (110) instead, if `group.fenced` contains the id of the missing member;
        - FENCED_INSTANCE_ID (82) if a member with another member id has the instance id.

        The missing member is normally the one with the member id in the request. If `group.static_ids` still maps the instance id in the request to a
        removed member, the missing member is this removed member (GN-34).
        """
        if request.instance_id is not None:
            holder = _holder(group, request.instance_id)
            return _check_static(group, holder, request.member_id, request.instance_id)
        member = group.members.get(request.member_id)
        if member is None:
            raise _unknown_member(request.member_id, group)
        return member

    def find_or_add(self, group: ConsumerGroup, request: ConsumerHeartbeat, entries: list[Entry]) -> ConsumerMember:
        """Return the member that sends a heartbeat. A member that joins is first added to the group, if it is missing (GN-12, GN-32).

        entries: the list to which records of the change are added. Raises KafkaError:

        - UNKNOWN_MEMBER_ID (25) if the member does not join and is missing in the group;
        - UNKNOWN_MEMBER_ID (25), even for a member that joins, if `group.static_ids` still maps its instance id to a removed member (GN-34);
        - FENCED_MEMBER_EPOCH (110) instead of UNKNOWN_MEMBER_ID, if `group.fenced` contains the id of the missing or removed member;
        - FENCED_MEMBER_EPOCH (110) for a wrong epoch;
        - FENCED_INSTANCE_ID (82) if the member does not join, and another member has its instance id;
        - UNRELEASED_INSTANCE_ID (111) if the member joins with the instance id of a member that has not left and must not be replaced.
        """
        if request.instance_id is not None:
            return self._find_or_add_static(group, request, request.instance_id, entries)
        member = group.members.get(request.member_id)
        if member is None:
            if request.member_epoch != JOINING:
                raise _unknown_member(request.member_id, group)
            return self._new_member(group, request.member_id or self.new_member_id(), None)
        if request.member_epoch != JOINING or not self._may_always_rejoin:
            _check_epoch(member, request)
        return member

    def _find_or_add_static(
        self, group: ConsumerGroup, request: ConsumerHeartbeat, instance_id: str, entries: list[Entry]
    ) -> ConsumerMember:
        """Return the static member that sends a heartbeat. If it joins, it is first added, or takes the place of a member (GN-32 to GN-34).

        A joining member takes the place of a member with the same instance id that has left temporarily or, from Kafka 4.0 on, uses the classic
        protocol. It is added if the group has neither its instance id nor its member id. entries: the list to which the records of a replacement are
        added. Raises KafkaError UNRELEASED_INSTANCE_ID (111) if the member joins, and the member with its instance id must not be replaced. Raises
        UNKNOWN_MEMBER_ID (25), FENCED_INSTANCE_ID (82) or FENCED_MEMBER_EPOCH (110) for a wrong member id or epoch.
        """
        holder = _holder(group, instance_id)
        if request.member_epoch != JOINING:
            member = _check_static(group, holder, request.member_id, instance_id)
            _check_epoch(member, request)
            return member
        if holder is None:
            member_id = request.member_id or self.new_member_id()
            return group.members.get(member_id) or self._new_member(group, member_id, instance_id)
        if holder.current.epoch != AWAY and (holder.classic is None or not self._is_release_4):
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {request.member_id} with instance id {instance_id} cannot join the group because the "
                f"instance id is owned by {holder.member_id} member.",
            )
        return self._take_over(group, holder, request.member_id or self.new_member_id(), entries)

    def find_or_add_classic(self, group: ConsumerGroup, request: JoinRequest, entries: list[Entry]) -> ConsumerMember:
        """Return the member that sends JoinGroup. A new member is first added, or replaces the member that has its instance id (GN-57).

        entries: the list to which records of the change are added. Raises KafkaError, only for a static member:

        - UNKNOWN_MEMBER_ID (25) if the request has a member id, and no member has the instance id;
        - UNKNOWN_MEMBER_ID (25) if `group.static_ids` still maps the instance id to a removed member (GN-34);
        - FENCED_MEMBER_EPOCH (110) instead, if `group.fenced` contains the member id in the request (first case) or the id of the removed member
          (second case);
        - FENCED_INSTANCE_ID (82) if the request has a member id, and another member has the instance id.
        """
        member_id, instance_id = request.member_id or self.new_member_id(), request.group_instance_id
        if instance_id is None:
            return group.members.get(member_id) or self._new_member(group, member_id, None)
        holder = _holder(group, instance_id)
        if request.member_id:
            return _check_static(group, holder, member_id, instance_id)
        if holder is None:
            return self._new_member(group, member_id, instance_id)
        return self._take_over(group, holder, member_id, entries)

    def check_static(self, group: ConsumerGroup, request: JoinRequest) -> None:
        """Check that the member id in a JoinGroup request belongs to the static member with the request's instance id (GN-57).

        The ids are compared only if the request contains both. No member is added. Raises KafkaError:

        - UNKNOWN_MEMBER_ID (25) if the request has a member id, and no member has the instance id;
        - UNKNOWN_MEMBER_ID (25) if `group.static_ids` still maps the instance id to a removed member (GN-34);
        - FENCED_MEMBER_EPOCH (110) instead, if `group.fenced` contains the member id in the request (first case) or the id of the removed member
          (second case);
        - FENCED_INSTANCE_ID (82) if the request has a member id, and a member with another member id has the instance id.
        """
        if request.group_instance_id is not None:
            holder = _holder(group, request.group_instance_id)
            if request.member_id:
                _check_static(group, holder, request.member_id, request.group_instance_id)

    def find_classic(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
        """Return a member that uses the classic protocol (GN-56).

        instance_id: the instance id of a static member, by which it is found; None for a dynamic member, which is found by `member_id`. Raises
        KafkaError:

        - UNKNOWN_MEMBER_ID (25) if there is no such member, or if the member uses the new protocol (KIP-848);
        - FENCED_MEMBER_EPOCH (110) instead, if a static member is missing and `group.fenced` contains its member id;
        - FENCED_INSTANCE_ID (82) if a member with another member id has the instance id.

        The missing static member is normally the one with the id `member_id`. If `group.static_ids` still maps the instance id to a removed member,
        the missing member is this removed member (GN-34).
        """
        if instance_id is None:
            member = group.members.get(member_id)
        else:
            holder = _holder(group, instance_id)
            member = _check_static(group, holder, member_id, instance_id)
        if member is None or member.classic is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def _new_member(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
        member = ConsumerMember(
            member_id,
            instance_id,
            None,
            "",
            "",
            UNCHANGED_MS,
        )
        group.put(member)
        return member

    def _take_over(
        self, group: ConsumerGroup, holder: ConsumerMember, member_id: str, entries: list[Entry]
    ) -> ConsumerMember:
        target, overwritten = group.target_of(holder.member_id), group.members.get(member_id)
        if overwritten is not None and overwritten is not holder:
            group.releasing = group.owned_by(overwritten)
            cancel_timers(overwritten)
        cancel_timers(holder)
        group.replaced = ReplacedMember(holder.member_id, member_id, tuple(group.members))
        group.remove(holder.member_id)
        current = holder.current._replace(epoch=JOINING, previous_epoch=JOINING)
        member = replace(holder, member_id=member_id, current=current)
        group.put(member)
        group.targets[member_id] = target
        entries += stored_as.member_tombstones(group.group_id, holder.member_id)
        entries.append(stored_as.member_entry(group.group_id, member))
        entries.append(stored_as.target_entry(group.group_id, member_id, target))
        entries.append(stored_as.current_entry(group.group_id, member_id, current))
        return member

    def new_member_id(self) -> str:
        """Return a new member id in the format of Kafka's `Uuid`: 16 random bytes in URL-safe base64 (GN-6)."""
        return base64.urlsafe_b64encode(self._random.randbytes(MEMBER_ID_BYTES)).decode().rstrip("=")

    def update(
        self, group: ConsumerGroup, member: ConsumerMember, request: ConsumerHeartbeat, entries: list[Entry]
    ) -> Changes:
        """Update a member with the values of its heartbeat, and return the changes of its subscription.

        entries: the list to which the member's record is added if it has changed.
        """
        before = _stored_values(member)
        has_new_instance = False
        if request.instance_id is not None:  # a dynamic member may become static (GN-32)
            has_new_instance = request.instance_id not in group.static_ids
            member.instance_id = request.instance_id
            group.static_ids[request.instance_id] = member.member_id
        if request.rack_id is not None:
            member.rack_id = request.rack_id
        if request.rebalance_timeout_ms != UNCHANGED_MS:
            member.rebalance_timeout_ms = request.rebalance_timeout_ms
        if request.assignor is not None:
            member.assignor = request.assignor
        member.client_id, member.client_host = request.client_id, request.client_host
        cancel(member.join_timer)
        cancel(member.sync_timer)
        member.classic = member.join_timer = member.sync_timer = None
        names = member.topic_names if request.topic_names is None else request.topic_names
        regex = member.topic_regex if request.topic_regex is None else request.topic_regex
        changes = _subscribe(group, member, names, regex, before, entries)
        return changes._replace(has_new_instance=has_new_instance, names=request.topic_names)

    def update_classic(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        request: JoinRequest,
        subscription: ConsumerProtocolSubscription,
        entries: list[Entry],
    ) -> Changes:
        """Update a member with the values of its JoinGroup request, and return the changes of its subscription (GN-57).

        entries: the list to which the member's record is added if it has changed.
        """
        before = _stored_values(member)
        member.rack_id = subscription.rack_id or member.rack_id
        if request.rebalance_timeout_ms != UNCHANGED_MS:
            member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.client_id, member.client_host = request.client_id, request.client_host
        cancel(member.rebalance_timer)
        member.rebalance_timer = None
        member.classic = ClassicProtocol(request.session_timeout_ms, request.protocols)
        return _subscribe(group, member, subscription.topics, "", before, entries)._replace(names=subscription.topics)


def _subscribe(
    group: ConsumerGroup,
    member: ConsumerMember,
    names: Iterable[str],
    regex: str,
    before: tuple[object, ...],
    entries: list[Entry],
) -> Changes:
    """Set a member's subscription and return how it changed. names, regex: the topic names and the regular expression that it subscribes to.

    before: what `_stored_values` returned for the member before the request. If the values differ now, the member's record is added to `entries`.
    """
    names_before, regex_before = member.topic_names, member.topic_regex
    group.subscribe(member, names, regex)
    if _stored_values(member) != before:
        entries.append(stored_as.member_entry(group.group_id, member))
    return Changes(member.topic_names != names_before, regex_before if regex != regex_before else None)


def _stored_values(member: ConsumerMember) -> tuple[object, ...]:
    """Return the values in a member's stored record that a request can change, so that they can be compared before and after a request."""
    return (
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.topic_names,
        member.topic_regex,
        member.assignor,
        member.classic,
    )


def cancel_timers(member: ConsumerMember) -> None:
    """Cancel all timers of a member."""
    for name in TIMERS:
        cancel(getattr(member, name))
        setattr(member, name, None)


def _unknown_member(member_id: str, group: ConsumerGroup) -> KafkaError:
    if member_id in group.fenced:
        text = f"Member {member_id} of group {group.group_id} was fenced. The member must abandon all its partitions and rejoin."
        return KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, text)
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")


def _holder(group: ConsumerGroup, instance_id: str) -> ConsumerMember | None:
    """Return the member to which the dict `group.static_ids` maps an instance id; None if the dict does not contain the id.

    As in Kafka, the dict keeps the old instance id of a member that has changed its instance id, even after the member is removed. For an id that the
    dict maps to a removed member, KafkaError is raised: FENCED_MEMBER_EPOCH (110) if that member is in `group.fenced`, otherwise UNKNOWN_MEMBER_ID
    (25) (GN-34).
    """
    member_id = group.static_ids.get(instance_id)
    if member_id is None:
        return None
    if member_id not in group.members:
        raise _unknown_member(member_id, group)
    return group.members[member_id]


def _check_static(
    group: ConsumerGroup, holder: ConsumerMember | None, member_id: str, instance_id: str
) -> ConsumerMember:
    if holder is None:
        if member_id in group.fenced:
            raise _unknown_member(member_id, group)
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.member_id}.",
        )
    return holder


def _check_epoch(member: ConsumerMember, request: ConsumerHeartbeat) -> None:
    """Raise KafkaError FENCED_MEMBER_EPOCH (110) unless a heartbeat has the current epoch of `member`, or is allowed to have the previous one.

    The previous epoch is allowed if the heartbeat lists the partitions that the member owns, and all of them are assigned to the member. The member
    then probably missed the response that contained the current epoch (GN-12).
    """
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
