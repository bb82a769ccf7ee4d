"""Heartbeat (key 12, versions 0-4): keep a member's session alive, and return whether the member must join again.

v1 adds throttle time; v3 adds static members; v4 is flexible.
Behaviour: the error REBALANCE_IN_PROGRESS tells a member to join again. While the broker loads the group, every heartbeat succeeds (GC-9). With
Kafka's group coordinator in Java, the response waits until earlier changes of the group are replicated (GC-66).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

_OF_MEMBERS = ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS
"""The error codes of responses that wait, with Kafka's group coordinator in Java, until earlier changes of the group are replicated.

Responses with other error codes are sent at once.
"""


def _failed(exchange: Exchange, request: HeartbeatRequest, error_code: int) -> Reply:
    return Reply(HeartbeatResponse(error_code=int(error_code)))


@register(ApiKey.HEARTBEAT, _failed)
def heartbeat(exchange: Exchange, request: HeartbeatRequest) -> Reply | Delayed:
    node = exchange.node
    error = node.refuses_group(request.group_id) if request.group_id else 0
    if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return _failed(
            exchange, request, ErrorCode.NONE
        )  # the member may not know yet that its coordinator moved (GC-9)
    error = error or node.groups.heartbeat(
        request.group_id, request.generation_id, request.member_id, request.group_instance_id, exchange.now_ms
    )
    if error not in _OF_MEMBERS or not node.groups.groups.visible.committed.is_behind(request.group_id):
        return _failed(exchange, request, error)
    delayed = Delayed()

    def replicated(failure: int, at_ms: int) -> None:
        delayed.complete(lambda: _failed(exchange, request, failure or error), at_ms)

    node.groups.groups.await_writes(request.group_id, exchange.now_ms, replicated)
    return delayed
