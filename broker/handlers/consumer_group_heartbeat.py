"""ConsumerGroupHeartbeat (key 68, versions 0-1): join a consumer group of the new protocol, stay in it, and leave it (KIP-848).

v1 adds a regular expression as subscription, and requires that the client creates its member id (KIP-1082).
Behaviour: the module `group.consumer_coordinator` handles the request. The response is sent when the changes of the group are replicated. If
`group.coordinator.rebalance.protocols` does not contain "consumer", the error is UNSUPPORTED_VERSION (GN-1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

if TYPE_CHECKING:
    from kafkaproto.broker.group.consumer_requests import ConsumerHeartbeat, ConsumerHeartbeatResult

FIRST_VERSION_WITH_MEMBER_ID_OF_CLIENT = 1


def _failed(exchange: Exchange, request: ConsumerGroupHeartbeatRequest, error_code: int) -> Reply:
    return Reply(ConsumerGroupHeartbeatResponse(error_code=int(error_code), error_message=None))


@register(ApiKey.CONSUMER_GROUP_HEARTBEAT, _failed)
def consumer_group_heartbeat(exchange: Exchange, request: ConsumerGroupHeartbeatRequest) -> Reply | Delayed:
    node = exchange.node
    if not node.groups.serves_consumers:
        if node.events.feature_requested is not None:
            node.events.feature_requested(exchange, "consumer protocol", [request.group_id])
        return _failed(exchange, request, ErrorCode.UNSUPPORTED_VERSION)
    heartbeat = _heartbeat(exchange, request)
    try:
        node.groups.consumers.check_at_any_broker(heartbeat)
    except KafkaError as refused:
        return Reply(ConsumerGroupHeartbeatResponse(error_code=int(refused.error_code), error_message=refused.message))
    error = node.refuses_group(request.group_id)
    if error:
        return _failed(exchange, request, error)
    delayed = Delayed()

    def reply(result: ConsumerHeartbeatResult, at_ms: int) -> None:
        delayed.complete(lambda: _response(result), at_ms)

    node.groups.consumers.heartbeat(heartbeat, exchange.now_ms, reply)
    return delayed


def _heartbeat(exchange: Exchange, request: ConsumerGroupHeartbeatRequest) -> ConsumerHeartbeat:
    from kafkaproto.broker.group.consumer_requests import (
        ConsumerHeartbeat,  # only clusters with the new protocol need it
    )

    return ConsumerHeartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        exchange.client_id or "",
        f"/{exchange.peer.client_address}",
        request.instance_id,
        request.rack_id,
        request.rebalance_timeout_ms,
        request.subscribed_topic_names,
        request.subscribed_topic_regex,
        request.server_assignor,
        None if request.topic_partitions is None else _owned(request.topic_partitions),
        creates_member_id=exchange.api_version < FIRST_VERSION_WITH_MEMBER_ID_OF_CLIENT,
    )


def _owned(entries: list[ConsumerGroupHeartbeatRequestTopicPartitions]) -> dict[bytes, frozenset[int]]:
    """Return the partitions that a member reports as its own, by topic id. If a topic has several entries, all their partitions count."""
    owned: dict[bytes, frozenset[int]] = {}
    for entry in entries:
        owned[entry.topic_id] = owned.get(entry.topic_id, frozenset()).union(entry.partitions)
    return owned


def _response(result: ConsumerHeartbeatResult) -> Reply:
    assignment = None
    if result.assignment is not None:
        assignment = Assignment(
            [
                ConsumerGroupHeartbeatResponseTopicPartitions(topic_id, list(indexes))
                for topic_id, indexes in result.assignment.items()
            ]
        )
    return Reply(
        ConsumerGroupHeartbeatResponse(
            error_code=int(result.error_code),
            error_message=result.error_message,
            member_id=result.member_id,
            member_epoch=result.member_epoch,
            heartbeat_interval_ms=result.interval_ms,
            assignment=assignment,
        )
    )
