"""ListGroups (key 16, versions 0-5): the groups that this broker coordinates.

v1 adds throttle time; v3 is flexible; v4 adds states and a filter for them; v5 adds types ("classic" or "consumer") and a filter for them.
Behaviour: each broker lists only the groups that it coordinates, so clients send the request to all brokers.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def _failed(exchange: Exchange, request: ListGroupsRequest, error_code: int) -> Reply:
    return Reply(ListGroupsResponse(error_code=int(error_code)))


@register(ApiKey.LIST_GROUPS, _failed)
def list_groups(exchange: Exchange, request: ListGroupsRequest) -> Reply:
    node = exchange.node
    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if node.groups.ownership.is_loading else ErrorCode.NONE
    if error and node.groups.is_new_coordinator:
        return _failed(exchange, request, error)
    # Kafka's group coordinator in Scala lists the loaded groups together with the error (GC-57).
    groups = [ListedGroup(*group) for group in node.groups.list_groups(request.states_filter, request.types_filter)]
    return Reply(ListGroupsResponse(error_code=int(error), groups=groups))
