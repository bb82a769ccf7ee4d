"""Heartbeat (key 12, versions 0-4): a member lives, and hears whether it must join again.

v1 throttle time; v3 static members; v4 flexible.
Behaviour: `group.coordinator`.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.placement import refusal
from kafkaproto.broker.requests.registry import RequestContext, Response, register
from kafkaproto.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def _failed(context: RequestContext, request: HeartbeatRequest, error_code: int) -> Response:
    return Response(HeartbeatResponse(error_code=int(error_code)))


@register(ApiKey.HEARTBEAT, 0, 4, _failed)
def heartbeat(context: RequestContext, request: HeartbeatRequest) -> Response:
    node = context.node
    error = refusal(node.cluster, node.broker_id, request.group_id) if request.group_id else 0
    error = error or node.cluster.groups.heartbeat(
        request.group_id, request.generation_id, request.member_id, request.group_instance_id, context.now_ms
    )
    return Response(HeartbeatResponse(error_code=int(error)))
