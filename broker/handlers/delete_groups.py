"""DeleteGroups (key 42, versions 0-2): delete groups without members, with their committed offsets.

v1 changes no layout; v2 is flexible.
Behaviour: a group with members gets error NON_EMPTY_GROUP. A group that the request names twice is deleted once and has one result (GC-59).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def _failed(exchange: Exchange, request: DeleteGroupsRequest, error_code: int) -> Reply:
    return _response(dict.fromkeys(request.groups_names, error_code))


@register(ApiKey.DELETE_GROUPS, _failed)
def delete_groups(exchange: Exchange, request: DeleteGroupsRequest) -> Delayed:
    node = exchange.node
    results = {group_id: node.refuses_group(group_id) for group_id in request.groups_names}
    own = [group_id for group_id, error in results.items() if not error]
    delayed = Delayed()

    def reply(errors: dict[str, int], at_ms: int) -> None:
        delayed.complete(lambda: _response(results | errors), at_ms)

    node.groups.commits.delete_groups(own, exchange.now_ms, reply)
    return delayed


def _response(results: dict[str, int]) -> Reply:
    return Reply(
        DeleteGroupsResponse(
            results=[DeletableGroupResult(group_id, int(error)) for group_id, error in results.items()]
        )
    )
