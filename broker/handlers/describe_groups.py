"""DescribeGroups (key 15, versions 0-5): state, protocol and members of groups.

v1 throttle time; v3 authorised operations; v4 static members; v5 flexible.
Behaviour: a group that does not exist is Dead, without an error; metadata and assignments are told of stable groups
only.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.placement import refusal
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

GROUP_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8
"""Read, delete, describe: without access control everybody may do everything (`AclEntry.supportedOperations`)."""


def _failed(exchange: Exchange, request: DescribeGroupsRequest, error_code: int) -> Reply:
    groups = [DescribedGroup(int(error_code), group_id=group_id) for group_id in request.groups]
    return Reply(DescribeGroupsResponse(groups=groups))


@register(ApiKey.DESCRIBE_GROUPS, 0, 5, _failed)
def describe_groups(exchange: Exchange, request: DescribeGroupsRequest) -> Reply:
    described = [_describe(exchange, group_id, request.include_authorized_operations) for group_id in request.groups]
    return Reply(DescribeGroupsResponse(groups=described))


def _describe(exchange: Exchange, group_id: str, with_operations: bool) -> DescribedGroup:
    node = exchange.node
    error = refusal(node.cluster, node.broker_id, group_id)
    if error:
        return DescribedGroup(int(error), group_id=group_id)
    found = node.cluster.groups.describe(group_id)
    members = [DescribedGroupMember(*member) for member in found.members]
    group = DescribedGroup(
        error_code=int(found.error_code),
        group_id=group_id,
        group_state=found.state,
        protocol_type=found.protocol_type,
        protocol_data=found.protocol_name,
        members=members,
    )
    if with_operations:
        group.authorized_operations = GROUP_OPERATIONS
    return group
