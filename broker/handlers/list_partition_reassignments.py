"""ListPartitionReassignments (key 46, version 0): the reassignments in progress (KIP-455).

Behaviour: partitions without a reassignment, and unknown partitions, are left out. If a request names a topic with reassignments twice, the response
has two entries for it (AD-47).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.metadata.image import Image
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def _failed(exchange: Exchange, request: ListPartitionReassignmentsRequest, error_code: int) -> Reply:
    return Reply(ListPartitionReassignmentsResponse(error_code=int(error_code), error_message=None))


@register(ApiKey.LIST_PARTITION_REASSIGNMENTS, _failed)
def list_partition_reassignments(exchange: Exchange, request: ListPartitionReassignmentsRequest) -> Reply:
    image = exchange.node.image
    if request.topics is None:
        topics = [(name, [p.index for p in topic.partitions]) for name, topic in image.topics.items()]
    else:
        topics = [(topic.name, topic.partition_indexes) for topic in request.topics]
    ongoing = [OngoingTopicReassignment(name, _ongoing(image, name, indexes)) for name, indexes in topics]
    return Reply(ListPartitionReassignmentsResponse(error_message=None, topics=[t for t in ongoing if t.partitions]))


def _ongoing(image: Image, topic: str, indexes: list[int]) -> list[OngoingPartitionReassignment]:
    states = [state for index in indexes if (state := image.partition(topic, index)) is not None]
    return [
        OngoingPartitionReassignment(s.index, list(s.replicas), list(s.adding), list(s.removing))
        for s in states
        if s.is_reassigned
    ]
