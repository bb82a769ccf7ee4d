"""OffsetDelete (key 47, version 0): delete committed offsets of a group.

Behaviour: unknown partitions get error UNKNOWN_TOPIC_OR_PARTITION (3); this error is checked first. Offsets of topics to which members of the group
subscribe are kept, with error GROUP_SUBSCRIBED_TO_TOPIC (86) (GC-60, GC-61).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.offsets import PartitionKey, errors_by_topic
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import partition_hash_bits, scala_map_order
from kafkaproto.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def _failed(exchange: Exchange, request: OffsetDeleteRequest, error_code: int) -> Reply:
    return Reply(OffsetDeleteResponse(error_code=int(error_code)))


@register(ApiKey.OFFSET_DELETE, _failed)
def offset_delete(exchange: Exchange, request: OffsetDeleteRequest) -> Reply | Delayed:
    node = exchange.node
    if not request.group_id:
        return _failed(exchange, request, ErrorCode.INVALID_GROUP_ID)
    keys = [(topic.name, p.partition_index) for topic in request.topics for p in topic.partitions]
    error = node.refuses_group(request.group_id)
    if error:
        return _failed(exchange, request, error)
    existing_keys = [key for key in keys if node.image.partition(*key) is not None]
    delayed = Delayed()

    def reply(results: dict[tuple[str, int], int] | int, at_ms: int) -> None:
        delayed.complete(lambda: _response(exchange, request, results), at_ms)

    node.groups.commits.delete(request.group_id, existing_keys, exchange.now_ms, reply)
    return delayed


def _unknown(topic: str) -> int:
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _response(exchange: Exchange, request: OffsetDeleteRequest, results: dict[tuple[str, int], int] | int) -> Reply:
    if isinstance(results, int):
        return _failed(exchange, request, results)
    missing = exchange.node.image.missing(topic.name for topic in request.topics)
    requested_topics = [(topic.name, [p.partition_index for p in topic.partitions]) for topic in request.topics]
    repeats = exchange.node.groups.is_new_coordinator
    if not repeats:
        results = _in_scala_order(results)
    topics = [
        OffsetDeleteResponseTopic(name, [OffsetDeleteResponsePartition(index, error) for index, error in errors])
        for name, errors in errors_by_topic(requested_topics, results, _unknown, missing, repeats=repeats)
    ]
    return Reply(OffsetDeleteResponse(topics=topics))


def _in_scala_order(results: dict[PartitionKey, int]) -> dict[PartitionKey, int]:
    """Return a dict with the same results, in the order in which Kafka's group coordinator in Scala returns them (GC-62).

    Kafka's coordinator adds the results to an immutable `Map` of Scala: first the partitions of topics to which members of the group subscribe, then
    the others. The response has the iteration order of this `Map`. results: maps each partition to its error code.
    """
    keys = sorted(results, key=lambda key: results[key] != ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
    return {key: results[key] for key in scala_map_order(keys, partition_hash_bits)}
