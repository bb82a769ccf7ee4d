"""Lists and descriptions of groups, as ListGroups and DescribeGroups return them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.group import Group, GroupState, in_table_order
from kafkaproto.broker.group.migration import AnyGroup, encode_assignment
from kafkaproto.broker.group.results import UNKNOWN_GROUP, DescribedMember, GroupDescription, GroupOverview
from kafkaproto.broker.group.subscription import CONSUMER_PROTOCOL

CLASSIC, CONSUMER = "classic", "consumer"


def matching_groups(groups: Iterable[AnyGroup], states: Collection[str], types: Collection[str]) -> list[GroupOverview]:
    """Return the groups that a ListGroups request selects. states, types: filters that ignore case; empty for all (GC-56)."""
    state_names, type_names = {state.lower() for state in states}, {kind.lower() for kind in types}
    overviews = (_overview(group) for group in groups)
    return [
        overview
        for overview in overviews
        if (not state_names or overview.state.lower() in state_names)
        and (not type_names or overview.group_type in type_names)
    ]


def _overview(group: AnyGroup) -> GroupOverview:
    if isinstance(group, ConsumerGroup):
        return GroupOverview(group.group_id, CONSUMER_PROTOCOL, group.state.value, CONSUMER)
    return GroupOverview(group.group_id, group.protocol_type or "", group.state.value, CLASSIC)


def described(group: AnyGroup | None, group_id: str, *, keeps_assignments: bool) -> GroupDescription:
    """Describe a classic group. If `group` is None or uses the new protocol (KIP-848), the state in the description is Dead.

    As in Kafka, the metadata of the members is empty unless the group is stable. keeps_assignments: whether the members of a rebalancing group keep
    the assignments of the previous generation, as in Kafka's group coordinator in Java (default from 4.0 on); otherwise their assignments are empty,
    too (GC-52).
    """
    if not isinstance(group, Group):
        return GroupDescription(group_id, UNKNOWN_GROUP)
    stable = group.is_in(GroupState.STABLE)
    name = (group.protocol_name or "") if stable else ""
    members = [
        DescribedMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.metadata(name) if stable else b"",
            member.assignment if stable or keeps_assignments else b"",
        )
        for member in in_table_order(group)
    ]
    return GroupDescription(group.group_id, group.state.value, 0, group.protocol_type or "", name, members)


def described_any(group: AnyGroup | None, group_id: str, *, keeps_assignments: bool) -> GroupDescription:
    """Describe a group of any protocol in the form of a classic one. If `group` is None, the state in the description is Dead.

    keeps_assignments: whether the members of a rebalancing classic group keep the assignments of the previous generation, as in Kafka's group
    coordinator in Java (default from 4.0 on); otherwise their assignments are empty (GC-52).
    """
    if isinstance(group, ConsumerGroup):
        return described_consumer(group)
    return described(group, group_id, keeps_assignments=keeps_assignments)


def described_consumer(group: ConsumerGroup) -> GroupDescription:
    """Describe a group of the new protocol (KIP-848) in the form of a classic one. The assignments are encoded as classic consumers encode them."""
    names = {topic.topic_id: name for name, topic in group.topics.items()}
    members = [
        DescribedMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            b"",
            encode_assignment(member.current.assigned, names),
        )
        for member in group.members.values()
    ]
    return GroupDescription(group.group_id, group.state.value, 0, CONSUMER_PROTOCOL, "", members)
