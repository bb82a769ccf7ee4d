"""ListOffsets (key 2, versions 0-11): the offset for a timestamp, or for an end of the log.

v0 returns an array of offsets; v1 returns one offset with its timestamp; v2 adds isolation level and throttle time; v4 adds leader epochs; v7 adds
timestamp -3 (the record with the largest timestamp); v8 adds -4 (the earliest local offset); v9 adds -5 (the latest tiered offset); v10 adds a
timeout for reads from remote storage; v11 adds -6 (the earliest offset that is to be uploaded to remote storage). This broker has no remote storage.
Behaviour: timestamp -1 stands for the end of the log as far as the client may read it, -2 for the start of the log. A timestamp of 0 or more selects
the first record at or after it (L-1 to L-10, L-12). With replica id -2 any replica responds, otherwise only the leader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

CONSUMER = -1
DEBUGGING_CONSUMER = -2
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
FIRST_VERSION_OF = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
FIRST_VERSION_WITH_ONE_OFFSET = 1
FIRST_VERSION_WITH_LEADER_EPOCH = 4
FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5
READ_COMMITTED = 1
ISOLATION_LEVELS = (0, READ_COMMITTED)


class FoundOffset(NamedTuple):
    """The result of a ListOffsets look-up: an offset with the timestamp (ms) and leader epoch of its record; offset -1 if no record matches (L-6)."""

    offset: int
    timestamp: int = -1
    leader_epoch: int = -1


NOTHING = FoundOffset(-1)


def _failed(exchange: Exchange, request: ListOffsetsRequest, error_code: int) -> Reply:
    topics = [ListOffsetsTopicResponse(t.name, [_error(p, error_code) for p in t.partitions]) for t in request.topics]
    return Reply(ListOffsetsResponse(topics=topics))


@register(ApiKey.LIST_OFFSETS, _failed)
def list_offsets(exchange: Exchange, request: ListOffsetsRequest) -> Reply:
    if request.isolation_level not in ISOLATION_LEVELS:
        return _failed(exchange, request, ErrorCode.UNKNOWN_SERVER_ERROR)
    rejects_repeated = exchange.api_version >= FIRST_VERSION_WITH_ONE_OFFSET  # L-3
    times = Counter((t.name, p.partition_index) for t in request.topics for p in t.partitions)
    topic_responses = []  # one entry for each topic of the request, including repeated ones, before release 4.0 (L-10)
    for topic in request.topics:
        topic_responses.append(topic_response := ListOffsetsTopicResponse(topic.name))
        for partition in topic.partitions:
            if rejects_repeated and times[(topic.name, partition.partition_index)] > 1:
                topic_response.partitions.append(_error(partition, ErrorCode.INVALID_REQUEST))
            else:
                topic_response.partitions.append(_list_partition(exchange, request, topic.name, partition))
    return Reply(
        ListOffsetsResponse(topics=_merged(topic_responses) if exchange.node.is_release_4 else topic_responses)
    )


def _merged(topic_responses: Sequence[ListOffsetsTopicResponse]) -> list[ListOffsetsTopicResponse]:
    """Merge the entries of a response, so that it contains each topic and each partition once, as in Kafka 4 (L-10).

    If a partition is repeated, its last entry counts. A topic without partitions is left out (L-12).
    """
    by_topic: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
    for topic_response in topic_responses:
        by_topic.setdefault(topic_response.name, {}).update((p.partition_index, p) for p in topic_response.partitions)
    return [
        ListOffsetsTopicResponse(name, list(partitions.values())) for name, partitions in by_topic.items() if partitions
    ]


def _list_partition(
    exchange: Exchange, request: ListOffsetsRequest, topic: str, requested: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    version = exchange.api_version
    try:
        if requested.timestamp < 0 and FIRST_VERSION_OF.get(requested.timestamp, version + 1) > version:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        partition = _partition(exchange, request.replica_id, topic, requested)
        if version < FIRST_VERSION_WITH_ONE_OFFSET:
            offsets = _old_style(partition, request.replica_id, requested, exchange.now_ms)
            return ListOffsetsPartitionResponse(requested.partition_index, 0, offsets)
        offset = _look_up(exchange, request, partition, requested.timestamp)
    except KafkaError as error:
        return _error(requested, error.error_code)
    epoch = offset.leader_epoch if version >= FIRST_VERSION_WITH_LEADER_EPOCH else -1
    return ListOffsetsPartitionResponse(requested.partition_index, 0, [], offset.timestamp, offset.offset, epoch)


def _old_style(partition: Partition, replica_id: int, requested: ListOffsetsPartition, now_ms: int) -> list[int]:
    """Return up to `max_num_offsets` offsets for version 0, newest first: the log end and the first offsets of segments.

    Segments that were last written after the requested timestamp are left out. Timestamp -1 selects all offsets, -2 only the oldest one. Kafka takes
    the time of the last write from the file system; this broker uses the largest timestamp in the segment. replica_id: -1 for a consumer, which gets
    the high watermark instead of the offsets above it. Source: `UnifiedLog.legacyFetchOffsetsBefore`.
    """
    log = partition.log
    starts = log.segment_starts()
    if log.log_end_offset > log.log_start_offset:
        starts.append((log.log_end_offset, now_ms))
    if requested.timestamp == EARLIEST:
        starts = starts[:1]
    elif requested.timestamp != LATEST:
        while starts and starts[-1][1] > requested.timestamp:
            starts.pop()
    offsets = [offset for offset, _ in reversed(starts)][: max(0, requested.max_num_offsets)]
    if replica_id != CONSUMER or not offsets or offsets[0] <= log.high_watermark:
        return offsets
    return [log.high_watermark, *(offset for offset in offsets if offset <= log.high_watermark)]


def _partition(exchange: Exchange, replica_id: int, topic: str, requested: ListOffsetsPartition) -> Partition:
    """Return the partition for which the client requests an offset, after the check of its leader epoch (L-3, L-4).

    requested: the entry of the request for this partition. replica_id: from the request; -2 (`DEBUGGING_CONSUMER`) accepts any replica, all other
    values only the leader. Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) if the cluster has no such partition, FENCED_LEADER_EPOCH (74) or
    UNKNOWN_LEADER_EPOCH (75) for a wrong leader epoch, NOT_LEADER_OR_FOLLOWER (6) if this broker does not lead the partition or, for replica id -2,
    has no replica of it.
    """
    node = exchange.node
    partition = node.replicas.find(topic, requested.partition_index)
    if partition is None:
        return node.replicas.leader_or_error(node.image, topic, requested.partition_index)
    error = partition.check_leader_epoch(requested.current_leader_epoch)
    if error:
        raise KafkaError(error)
    if replica_id != DEBUGGING_CONSUMER and not partition.is_leader:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return partition


def _look_up(exchange: Exchange, request: ListOffsetsRequest, partition: Partition, timestamp: int) -> FoundOffset:
    log = partition.log
    from_client = request.replica_id == CONSUMER
    bound = log.log_end_offset
    if from_client:
        committed = request.isolation_level == READ_COMMITTED
        high_watermark = min(log.high_watermark, log.log_end_offset)
        bound = log.last_stable_offset if committed else high_watermark
    unknown = from_client and partition.is_leader and partition.high_watermark_unknown()
    if timestamp == LATEST:
        if unknown:
            raise KafkaError(_not_available(exchange))
        return FoundOffset(bound, -1, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return FoundOffset(log.log_start_offset, -1, log.earliest_epoch())
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOTHING
    record = (
        log.offset_of_max_timestamp(bound) if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp, bound)
    )
    if record is not None:
        return FoundOffset(record.offset, record.timestamp, record.leader_epoch)
    if unknown:
        raise KafkaError(_not_available(exchange))
    return NOTHING


def _not_available(exchange: Exchange) -> int:
    """Return the error code for a partition whose new leader does not know its high watermark yet (L-8, KIP-207).

    It is OFFSET_NOT_AVAILABLE, or LEADER_NOT_AVAILABLE in request versions without that error.
    """
    is_supported = exchange.api_version >= FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE
    return ErrorCode.OFFSET_NOT_AVAILABLE if is_supported else ErrorCode.LEADER_NOT_AVAILABLE


def _error(requested: ListOffsetsPartition, error_code: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(requested.partition_index, int(error_code))
