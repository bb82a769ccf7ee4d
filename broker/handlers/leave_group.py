"""LeaveGroup (key 13, versions 0-5): remove members; an administrator may remove static members by instance id.

v1 adds throttle time; v3 takes many members, each with its own error (earlier versions have one member and one error); v4 is flexible; v5 adds a
reason.
Behaviour: the remaining members of a classic group rebalance. In a group of the new protocol (KIP-848) the response is sent when the change is
replicated.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.results import LeaveResult, LeavingMember
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

FIRST_VERSION_WITH_MANY_MEMBERS = 3


def _failed(exchange: Exchange, request: LeaveGroupRequest, error_code: int) -> Reply:
    return Reply(LeaveGroupResponse(error_code=int(error_code)))


@register(ApiKey.LEAVE_GROUP, _failed)
def leave_group(exchange: Exchange, request: LeaveGroupRequest) -> Reply | Delayed:
    node = exchange.node
    error = node.refuses_group(request.group_id) if request.group_id else 0
    if error:
        return _failed(exchange, request, error)
    many = exchange.api_version >= FIRST_VERSION_WITH_MANY_MEMBERS
    leaving = [LeavingMember(m.member_id, m.group_instance_id) for m in request.members]
    delayed = Delayed()

    def reply(result: LeaveResult, at_ms: int) -> None:
        delayed.complete(lambda: _response(exchange, request, result), at_ms)

    node.groups.leave(request.group_id, leaving if many else [LeavingMember(request.member_id)], exchange.now_ms, reply)
    return delayed


def _response(exchange: Exchange, request: LeaveGroupRequest, result: LeaveResult) -> Reply:
    if exchange.api_version < FIRST_VERSION_WITH_MANY_MEMBERS:
        return _failed(exchange, request, result.error_code or result.members[0][1])
    members = [MemberResponse(member.member_id, member.group_instance_id, int(code)) for member, code in result.members]
    return Reply(LeaveGroupResponse(error_code=int(result.error_code), members=members))
