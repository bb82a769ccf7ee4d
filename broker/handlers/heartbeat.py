"""Heartbeat (key 12, versions 0-4): a member lives, and hears whether it must join again.

v1 throttle time; v3 static members; v4 flexible.
Behaviour: `group.coordinator`.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.placement import refusal
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def _failed(exchange: Exchange, request: HeartbeatRequest, error_code: int) -> Reply:
    return Reply(HeartbeatResponse(error_code=int(error_code)))


@register(ApiKey.HEARTBEAT, 0, 4, _failed)
def heartbeat(exchange: Exchange, request: HeartbeatRequest) -> Reply:
    node = exchange.node
    error = refusal(node.cluster, node.broker_id, request.group_id) if request.group_id else 0
    error = error or node.cluster.groups.heartbeat(
        request.group_id, request.generation_id, request.member_id, request.group_instance_id, exchange.now_ms
    )
    return Reply(HeartbeatResponse(error_code=int(error)))
