"""AlterPartitionReassignments (key 45, versions 0-1): move partitions to other brokers (KIP-455).

v1 adds a flag that forbids a change of the replication factor (KIP-860).
Behaviour: each partition is handled independently. The broker responds at once, and the data moves afterwards. Null replicas cancel the reassignment
in progress; the error is NO_REASSIGNMENT_IN_PROGRESS (85) if there is none. With a timeout of 0 or less all partitions get error REQUEST_TIMED_OUT
(AD-43).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.requests.deadline import check_timeout
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def _failed(exchange: Exchange, request: AlterPartitionReassignmentsRequest, error_code: int) -> Reply:
    responses = [
        ReassignableTopicResponse(
            t.name, [ReassignablePartitionResponse(p.partition_index, int(error_code), None) for p in t.partitions]
        )
        for t in request.topics
    ]
    return Reply(
        AlterPartitionReassignmentsResponse(error_code=int(error_code), error_message=None, responses=responses)
    )


@register(ApiKey.ALTER_PARTITION_REASSIGNMENTS, _failed)
def alter_partition_reassignments(exchange: Exchange, request: AlterPartitionReassignmentsRequest) -> Reply:
    if not request.topics:
        return Reply(AlterPartitionReassignmentsResponse())
    check_timeout(request.timeout_ms)
    responses = [
        ReassignableTopicResponse(topic.name, [_reassign(exchange, request, topic.name, p) for p in topic.partitions])
        for topic in request.topics
    ]
    return Reply(
        AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_message=None,
            responses=responses,
        )
    )


def _reassign(
    exchange: Exchange, request: AlterPartitionReassignmentsRequest, topic: str, partition: ReassignablePartition
) -> ReassignablePartitionResponse:
    keeps_factor = not request.allow_replication_factor_change
    try:
        exchange.node.cluster.controller.reassign(
            topic, partition.partition_index, partition.replicas, keeps_factor=keeps_factor
        )
    except KafkaError as error:
        return ReassignablePartitionResponse(partition.partition_index, error.error_code, error.message)
    return ReassignablePartitionResponse(partition.partition_index, 0, None)
