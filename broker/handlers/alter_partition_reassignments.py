"""AlterPartitionReassignments (key 45, version 0), KIP-455.

Behaviour: each partition stands for itself and is answered at once; the data moves afterwards. Replicas null take back what is under
way, 85 if nothing is.
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


def _reassign(exchange: Exchange, topic: str, asked: ReassignablePartition) -> ReassignablePartitionResponse:
    try:
        exchange.node.cluster.controller.reassign(topic, asked.partition_index, asked.replicas)
    except KafkaError as error:
        return ReassignablePartitionResponse(asked.partition_index, error.error_code, error.message)
    return ReassignablePartitionResponse(asked.partition_index, 0, None)
