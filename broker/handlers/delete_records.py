"""DeleteRecords (key 21, versions 0-2): delete the records of partitions below an offset (KIP-107).

v1 changed nothing on the wire (KIP-219); v2 is flexible.
Behaviour: offset -1 means the high watermark; if a partition is named twice, the last offset counts. The broker responds when every running replica
has deleted the records, with the lowest of their log start offsets. After the timeout of the request the error is REQUEST_TIMED_OUT (7), and the
records stay deleted.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import INTERNAL_TOPICS
from kafkaproto.broker.replication.awaited_partitions import AwaitedDeletion, AwaitedPartitions
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

UNKNOWN_LOW_WATERMARK = -1

Waiting = list[tuple[AwaitedDeletion, DeleteRecordsPartitionResult]]


def _failed(exchange: Exchange, request: DeleteRecordsRequest, error_code: int) -> Reply:
    topics = [
        DeleteRecordsTopicResult(t.name, [_error(p.partition_index, error_code) for p in t.partitions])
        for t in request.topics
    ]
    return Reply(DeleteRecordsResponse(topics=topics))


@register(ApiKey.DELETE_RECORDS, _failed)
def delete_records(exchange: Exchange, request: DeleteRecordsRequest) -> Reply | Delayed:
    waiting: Waiting = []
    partitions_by_topic: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        partitions_by_topic.setdefault(topic.name, {}).update((p.partition_index, p) for p in topic.partitions)
    topics = [
        DeleteRecordsTopicResult(name, [_delete(exchange, name, p, waiting) for p in partitions.values()])
        for name, partitions in partitions_by_topic.items()
        if partitions
    ]

    def build(_now_ms: int) -> Reply:
        for awaited, result in waiting:
            result.error_code = awaited.error_code
            if awaited.error_code != ErrorCode.REQUEST_TIMED_OUT:  # a timed-out partition reports its first result
                result.low_watermark = UNKNOWN_LOW_WATERMARK if result.error_code else awaited.partition.low_watermark()
        return Reply(DeleteRecordsResponse(topics=topics))

    now_ms = exchange.now_ms
    all_awaited = AwaitedPartitions([awaited for awaited, _ in waiting])
    if all_awaited.is_settled(now_ms) or request.timeout_ms <= 0:
        all_awaited.time_out()
        return build(now_ms)
    deadline_ms = now_ms + request.timeout_ms
    return Delayed().wait(
        all_awaited.watchers, all_awaited.is_settled, exchange.node.timers, deadline_ms, build, all_awaited.time_out
    )


def _delete(
    exchange: Exchange, topic: str, requested: DeleteRecordsPartition, waiting: Waiting
) -> DeleteRecordsPartitionResult:
    node = exchange.node
    try:
        if topic in INTERNAL_TOPICS:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"The records of internal topic {topic} cannot be deleted."
            )
        partition = node.replicas.leader_or_error(node.image, topic, requested.partition_index)
        offset = partition.delete_records_before(requested.offset)
    except KafkaError as error:
        return _error(requested.partition_index, error.error_code)
    result = DeleteRecordsPartitionResult(requested.partition_index, partition.low_watermark())
    waiting.append((AwaitedDeletion(partition, offset), result))
    return result


def _error(index: int, error_code: int) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(index, UNKNOWN_LOW_WATERMARK, int(error_code))
