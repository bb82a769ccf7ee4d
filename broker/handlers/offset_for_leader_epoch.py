"""OffsetForLeaderEpoch (key 23, versions 0-4): the end offset of a leader epoch, to which a diverging log is truncated.

v1 adds the epoch to the response; v2 adds the client's current leader epoch and throttle time; v3 adds replica_id (-1: a consumer); v4 is flexible.
Behaviour: the leader returns the largest epoch that is not above the requested one, and its end offset (E-1 to E-5). If the broker follows the KIPs
(`semantics=kip`), a consumer gets no offset beyond the high watermark (D4).
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


@register(ApiKey.OFFSET_FOR_LEADER_EPOCH, _failed)
def offset_for_leader_epoch(exchange: Exchange, request: OffsetForLeaderEpochRequest) -> Reply:
    from_consumer = exchange.api_version >= FIRST_VERSION_WITH_REPLICA_ID and request.replica_id == CONSUMER
    capped = from_consumer and exchange.node.cluster.strict_kip
    topics = [
        OffsetForLeaderTopicResult(
            topic.topic, [_epoch_end(exchange, topic.topic, p, capped) for p in topic.partitions]
        )
        for topic in request.topics
    ]
    return Reply(OffsetForLeaderEpochResponse(topics=topics))


def _epoch_end(exchange: Exchange, topic: str, requested: OffsetForLeaderPartition, capped: bool) -> EpochEndOffset:
    try:
        epoch, end = _look_up(exchange, topic, requested, capped)
    except KafkaError as error:
        return EpochEndOffset(error.error_code, requested.partition)
    return EpochEndOffset(0, requested.partition, epoch, end)


def _look_up(exchange: Exchange, topic: str, requested: OffsetForLeaderPartition, capped: bool) -> tuple[int, int]:
    """Return the largest leader epoch that this broker knows and that is not above the requested one, with its end offset (E-3).

    capped: whether the end offset is limited to the high watermark.

    Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) for an unknown partition, FENCED_LEADER_EPOCH (74) or UNKNOWN_LEADER_EPOCH (75) for a wrong
    current leader epoch, NOT_LEADER_OR_FOLLOWER (6) if this broker is not the leader (E-2).
    """
    node = exchange.node
    partition = node.replicas.find(topic, requested.partition)
    if partition is None:
        partition = node.replicas.leader_or_error(node.image, topic, requested.partition)
    error = partition.check_leader_epoch(requested.current_leader_epoch)
    if error:
        raise KafkaError(error)
    if not partition.is_leader:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    epoch, end = partition.log.end_offset_for_epoch(requested.leader_epoch)
    return (epoch, _capped(partition, epoch, end)) if capped and epoch >= 0 else (epoch, end)


def _capped(partition: Partition, epoch: int, end: int) -> int:
    """Return the end offset of a leader epoch for a consumer: at most the high watermark.

    epoch: the leader epoch for which the offset is returned. end: the end offset of this epoch in the log. Raises KafkaError OFFSET_NOT_AVAILABLE
    (78) if `epoch` is the current epoch and the leader does not know the high watermark yet (D4).
    """
    if epoch == partition.leader_epoch and partition.high_watermark_unknown():
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
    return min(end, partition.log.high_watermark)
