"""OffsetDelete (key 47, version 0): delete committed offsets of a group.

Behaviour: rules GC-60 and GC-61. Offsets of topics that members of the group read are kept (error GROUP_SUBSCRIBED_TO_TOPIC (86)). Unknown partitions
get error UNKNOWN_TOPIC_OR_PARTITION (3), which is checked first.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.offsets import errors_by_topic
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def _failed(exchange: Exchange, request: OffsetDeleteRequest, error_code: int) -> Reply:
    return Reply(OffsetDeleteResponse(error_code=int(error_code)))


@register(ApiKey.OFFSET_DELETE, 0, 0, _failed)
def offset_delete(exchange: Exchange, request: OffsetDeleteRequest) -> Reply:
    node = exchange.node
    if not request.group_id:
        return _failed(exchange, request, ErrorCode.INVALID_GROUP_ID)
    keys = [(topic.name, p.partition_index) for topic in request.topics for p in topic.partitions]
    error = node.refuses_group(request.group_id)
    if error:
        return _failed(exchange, request, error)
    known = [key for key in keys if node.image.partition(*key) is not None]
    results = node.groups.commits.delete(request.group_id, known, exchange.now_ms)
    if isinstance(results, int):
        return _failed(exchange, request, results)
    requested = [(topic.name, [p.partition_index for p in topic.partitions]) for topic in request.topics]
    topics = [
        OffsetDeleteResponseTopic(name, [OffsetDeleteResponsePartition(index, error) for index, error in errors])
        for name, errors in errors_by_topic(requested, results, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    ]
    return Reply(OffsetDeleteResponse(topics=topics))
