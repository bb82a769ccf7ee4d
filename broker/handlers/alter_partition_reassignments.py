"""AlterPartitionReassignments (key 45, version 0): move partitions to other brokers (KIP-455).

Behaviour: each partition is handled independently. The broker responds at once, and the data moves afterwards. Null replicas cancel the reassignment
in progress; the error is NO_REASSIGNMENT_IN_PROGRESS (85) if there is none.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
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
    return Reply(AlterPartitionReassignmentsResponse(error_code=int(error_code), error_message=None))


@register(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 0, _failed)
def alter_partition_reassignments(exchange: Exchange, request: AlterPartitionReassignmentsRequest) -> Reply:
    responses = [
        ReassignableTopicResponse(topic.name, [_reassign(exchange, topic.name, p) for p in topic.partitions])
        for topic in request.topics
    ]
    return Reply(AlterPartitionReassignmentsResponse(error_message=None, responses=responses))


def _reassign(exchange: Exchange, topic: str, partition: ReassignablePartition) -> ReassignablePartitionResponse:
    try:
        exchange.node.cluster.controller.reassign(topic, partition.partition_index, partition.replicas)
    except KafkaError as error:
        return ReassignablePartitionResponse(partition.partition_index, error.error_code, error.message)
    return ReassignablePartitionResponse(partition.partition_index, 0, None)
