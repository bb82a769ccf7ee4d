"""ListGroups (key 16, versions 0-5): the groups that this broker speaks for.

v1 throttle time; v3 flexible; v4 states, and a filter for them; v5 types, and a filter for them ("classic" is the only
one here). Behaviour: each broker lists its own, so a client asks them all.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.placement import refusal
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

CLASSIC = "classic"


def _failed(exchange: Exchange, request: ListGroupsRequest, error_code: int) -> Reply:
    return Reply(ListGroupsResponse(error_code=int(error_code)))


@register(ApiKey.LIST_GROUPS, 0, 5, _failed)
def list_groups(exchange: Exchange, request: ListGroupsRequest) -> Reply:
    node = exchange.node
    listed = [
        ListedGroup(group.group_id, group.protocol_type, group.state, CLASSIC)
        for group in node.cluster.groups.list_groups(request.states_filter, request.types_filter)
        if not refusal(node.cluster, node.broker_id, group.group_id)
    ]
    return Reply(ListGroupsResponse(groups=listed))
