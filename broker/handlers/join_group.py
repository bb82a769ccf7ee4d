"""JoinGroup (key 11, versions 0-9): become a member of a classic group.

v1 adds a rebalance timeout (v0 uses the session timeout); v4 requires a new member to join again with the member id that it is given; v5 adds static
members; v6 is flexible; v7 adds the protocol type, and has no protocol name on error; v8 adds a reason; v9 lets a static leader skip the assignment.
Behaviour: the module `group.coordinator` handles the request. The response is sent when the join phase of the rebalance is over, which may be much
later. If the member joins again before, the first request gets no response (GC-24).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.results import JoinRequest, JoinResult
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node

FIRST_VERSION_WITH_REBALANCE_TIMEOUT = 1
FIRST_VERSION_THAT_NEEDS_A_MEMBER_ID = 4
FIRST_VERSION_WITH_NULL_PROTOCOL_NAME = 7
FIRST_VERSION_THAT_CAN_SKIP = 9


def _failed(exchange: Exchange, request: JoinGroupRequest, error_code: int) -> Reply:
    return _response(exchange, JoinResult(request.member_id, int(error_code)))


@register(ApiKey.JOIN_GROUP, _failed)
def join_group(exchange: Exchange, request: JoinGroupRequest) -> Reply | Delayed:
    node = exchange.node
    error = _refusal(node, request)
    if error:
        member_id = "" if node.groups.is_new_coordinator else request.member_id
        return _response(exchange, JoinResult(member_id, int(error)))
    delayed = Delayed()

    def reply(result: JoinResult, at_ms: int) -> None:
        delayed.complete(lambda: _response(exchange, result), at_ms)

    node.groups.join(_join_request(exchange, request), exchange.now_ms, reply)
    if not delayed.done and node.events.noted is not None:
        facts = {"api": "JoinGroup", "client_id": exchange.client_id, "group": request.group_id}
        node.events.noted(exchange.now_ms, node.broker_id, "parked", facts)
    return delayed


def _refusal(node: Node, request: JoinGroupRequest) -> int:
    """Return the error code if this broker does not coordinate the group, otherwise 0.

    Also returns 0 if the group id is empty or, with Kafka's group coordinator in Java, if the session timeout is invalid. Kafka checks these two
    fields before it checks who coordinates the group (GC-7), and in this broker, `GroupCoordinator.join` rejects such a request.
    """
    groups = node.groups
    if not request.group_id:
        return ErrorCode.NONE
    if groups.is_new_coordinator and not groups.settings.allows_session_timeout(request.session_timeout_ms):
        return ErrorCode.NONE
    return node.refuses_group(request.group_id)


def _join_request(exchange: Exchange, request: JoinGroupRequest) -> JoinRequest:
    version = exchange.api_version
    has_timeout = version >= FIRST_VERSION_WITH_REBALANCE_TIMEOUT
    return JoinRequest(
        request.group_id,
        request.member_id,
        request.session_timeout_ms,
        request.rebalance_timeout_ms if has_timeout else request.session_timeout_ms,
        request.protocol_type,
        tuple((p.name, p.metadata) for p in request.protocols),
        exchange.client_id or "",
        f"/{exchange.peer.client_address}",
        request.group_instance_id,
        requires_member_id=version >= FIRST_VERSION_THAT_NEEDS_A_MEMBER_ID,
        can_skip_assignment=version >= FIRST_VERSION_THAT_CAN_SKIP,
    )


def _response(exchange: Exchange, result: JoinResult) -> Reply:
    name = result.protocol_name
    if name is None and exchange.api_version < FIRST_VERSION_WITH_NULL_PROTOCOL_NAME:
        name = ""
    return Reply(
        JoinGroupResponse(
            error_code=int(result.error_code),
            generation_id=result.generation_id,
            protocol_type=result.protocol_type,
            protocol_name=name,
            leader=result.leader_id,
            skip_assignment=result.skip_assignment,
            member_id=result.member_id,
            members=[JoinGroupResponseMember(*member) for member in result.members],
        )
    )
