"""SyncGroup (key 14, versions 0-5): the group leader sends the assignment, and every member receives its partitions.

v1 adds throttle time; v3 adds static members; v4 is flexible; v5 adds protocol type and name, both mandatory.
Behaviour: the responses of all members wait for the leader's assignment. While the broker loads the group, the error is REBALANCE_IN_PROGRESS with
Kafka's group coordinator in Scala, and COORDINATOR_LOAD_IN_PROGRESS with the one in Java (default from 4.0 on, GC-9).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.results import SyncRequest, SyncResult
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_VERSION_WITH_PROTOCOL = 5


def _failed(exchange: Exchange, request: SyncGroupRequest, error_code: int) -> Reply:
    return _response(SyncResult(int(error_code)))


@register(ApiKey.SYNC_GROUP, _failed)
def sync_group(exchange: Exchange, request: SyncGroupRequest) -> Reply | Delayed:
    node = exchange.node
    if exchange.api_version >= FIRST_VERSION_WITH_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        return _failed(exchange, request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    error = node.refuses_group(request.group_id) if request.group_id else 0
    if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and not node.groups.is_new_coordinator:
        error = ErrorCode.REBALANCE_IN_PROGRESS  # what was to be assigned is lost: the member must join again (GC-9)
    if error:
        return _failed(exchange, request, error)
    delayed = Delayed()

    def reply(result: SyncResult, at_ms: int) -> None:
        delayed.complete(lambda: _response(result), at_ms)

    node.groups.sync(_sync_request(request), exchange.now_ms, reply)
    if not delayed.done and node.events.noted is not None:
        facts = {"api": "SyncGroup", "client_id": exchange.client_id, "group": request.group_id}
        node.events.noted(exchange.now_ms, node.broker_id, "parked", facts)
    return delayed


def _sync_request(request: SyncGroupRequest) -> SyncRequest:
    return SyncRequest(
        request.group_id,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        request.protocol_type,
        request.protocol_name,
        [(a.member_id, a.assignment) for a in request.assignments],
    )


def _response(result: SyncResult) -> Reply:
    response = SyncGroupResponse(
        error_code=int(result.error_code),
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )
    return Reply(response)
