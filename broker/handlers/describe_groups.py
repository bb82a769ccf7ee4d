"""DescribeGroups (key 15, versions 0-6): state, protocol and members of groups.

v1 adds throttle time; v3 adds authorised operations; v4 adds static members; v5 is flexible; v6 adds messages, and an unknown group gets error
GROUP_ID_NOT_FOUND (KIP-1043).
Behaviour: before v6 an unknown group is Dead, without an error. Unless a group is stable, its members have no metadata and no assignment, except that
Kafka's group coordinator in Java (default from 4.0 on) keeps the previous assignments during a rebalance (GC-52). GO-36 describes the order of
groups.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.results import UNKNOWN_GROUP
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.group_partitions import in_partition_order
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

FIRST_VERSION_WITH_MESSAGES = 6


def _failed(exchange: Exchange, request: DescribeGroupsRequest, error_code: int) -> Reply:
    groups = [DescribedGroup(int(error_code), group_id=group_id) for group_id in request.groups]
    return Reply(DescribeGroupsResponse(groups=groups))


@register(ApiKey.DESCRIBE_GROUPS, _failed)
def describe_groups(exchange: Exchange, request: DescribeGroupsRequest) -> Reply:
    node, group_ids = exchange.node, request.groups
    if node.groups.is_new_coordinator:
        group_ids = in_partition_order(node, group_ids)
    groups = [_describe(exchange, group_id, request.include_authorized_operations) for group_id in group_ids]
    return Reply(DescribeGroupsResponse(groups=groups))


def _describe(exchange: Exchange, group_id: str, with_operations: bool) -> DescribedGroup:
    node = exchange.node
    error = node.refuses_group(group_id)
    if error:
        return DescribedGroup(int(error), group_id=group_id)
    view = node.groups.describe(group_id)
    if exchange.api_version >= FIRST_VERSION_WITH_MESSAGES and view.state == UNKNOWN_GROUP:
        kind = "not found" if node.groups.groups.visible.get(group_id) is None else "is not a classic group"
        return DescribedGroup(int(ErrorCode.GROUP_ID_NOT_FOUND), f"Group {group_id} {kind}.", group_id, view.state)
    members = [DescribedGroupMember(*member) for member in view.members]
    group = DescribedGroup(
        error_code=int(view.error_code),
        group_id=group_id,
        group_state=view.state,
        protocol_type=view.protocol_type,
        protocol_data=view.protocol_name,
        members=members,
    )
    if with_operations:
        group.authorized_operations = node.groups.operations
    return group
