"""OffsetForLeaderEpoch (key 23, versions 0-4): where an epoch ended, so that a log can be cut where it parts from the leader's.

v1 adds the epoch in the answer; v2 the asker's current epoch and throttle time; v3 replica_id (-1 consumer); v4 is flexible.
Behaviour: E-1 to E-5, and D4: under `kip` a consumer is told nothing beyond the high watermark.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

CONSUMER = -1
FIRST_VERSION_WITH_REPLICA_ID = 3


def _failed(exchange: Exchange, request: OffsetForLeaderEpochRequest, error_code: int) -> Reply:
    topics = [
        OffsetForLeaderTopicResult(t.topic, [EpochEndOffset(int(error_code), p.partition) for p in t.partitions])
        for t in request.topics
    ]
    return Reply(OffsetForLeaderEpochResponse(topics=topics))


@register(ApiKey.OFFSET_FOR_LEADER_EPOCH, 0, 4, _failed)
def offset_for_leader_epoch(exchange: Exchange, request: OffsetForLeaderEpochRequest) -> Reply:
    from_consumer = exchange.api_version >= FIRST_VERSION_WITH_REPLICA_ID and request.replica_id == CONSUMER
    capped = from_consumer and exchange.node.cluster.strict_kip
    topics = [
        OffsetForLeaderTopicResult(topic.topic, [_one(exchange, topic.topic, p, capped) for p in topic.partitions])
        for topic in request.topics
    ]
    return Reply(OffsetForLeaderEpochResponse(topics=topics))


def _one(exchange: Exchange, topic: str, asked: OffsetForLeaderPartition, capped: bool) -> EpochEndOffset:
    try:
        epoch, end = _look_up(exchange, topic, asked, capped)
    except KafkaError as error:
        return EpochEndOffset(error.error_code, asked.partition)
    return EpochEndOffset(0, asked.partition, epoch, end)


def _look_up(exchange: Exchange, topic: str, asked: OffsetForLeaderPartition, capped: bool) -> tuple[int, int]:
    """E-2: unknown 3, epoch 74 or 75, not the leader 6; then the look-up of E-3."""
    node = exchange.node
    partition = node.replicas.find(topic, asked.partition)
    if partition is None:
        partition = node.replicas.leader_or_error(node.image, topic, asked.partition)
    error = partition.check_leader_epoch(asked.current_leader_epoch)
    if error:
        raise KafkaError(error)
    if not partition.is_leader:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    epoch, end = partition.log.end_offset_for_epoch(asked.leader_epoch)
    return (epoch, _capped(partition, epoch, end)) if capped and epoch >= 0 else (epoch, end)


def _capped(partition: Partition, epoch: int, end: int) -> int:
    """D4: never beyond the high watermark; 78 for the latest epoch while a new leader does not know its own yet."""
    if epoch == partition.leader_epoch and partition.high_watermark_unknown():
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
    return min(end, partition.log.high_watermark)
