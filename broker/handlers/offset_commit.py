"""OffsetCommit (key 8, versions 0-9): keep how far a group has read.

v1 generation and member, a timestamp per partition (v1 only); v2 to v4 a retention time; v3 throttle time; v6 leader
epochs; v7 static members; v8 flexible; v9 lets the generation be a member epoch, which classic groups do not have.
Behaviour: who may commit, `group.commits`. Partitions that do not exist answer 3. v0 meant ZooKeeper: 35, as a KRaft
broker answers.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.placement import refusal
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

FIRST_VERSION_IN_KAFKA = 1
NOT_GIVEN = -1


def _failed(exchange: Exchange, request: OffsetCommitRequest, error_code: int) -> Reply:
    return _response(request, {}, error_code)


@register(ApiKey.OFFSET_COMMIT, 0, 9, _failed)
def offset_commit(exchange: Exchange, request: OffsetCommitRequest) -> Reply:
    node = exchange.node
    if exchange.api_version < FIRST_VERSION_IN_KAFKA:
        return _failed(exchange, request, ErrorCode.UNSUPPORTED_VERSION)
    known = {
        (topic.name, p.partition_index): _committed(request, p, exchange.now_ms)
        for topic in request.topics
        for p in topic.partitions
        if node.image.partition(topic.name, p.partition_index) is not None
    }
    error = refusal(node.cluster, node.broker_id, request.group_id) if known else 0
    if error:
        results: dict[PartitionKey, int] = dict.fromkeys(known, error)
    else:
        results = _commit(exchange, request, known) if known else {}
    return _response(request, results, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _commit(
    exchange: Exchange, request: OffsetCommitRequest, offsets: dict[PartitionKey, CommittedOffset]
) -> dict[PartitionKey, int]:
    return exchange.node.cluster.groups.commits.commit(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        offsets,
        exchange.now_ms,
    )


def _committed(request: OffsetCommitRequest, asked: OffsetCommitRequestPartition, now_ms: int) -> CommittedOffset:
    return CommittedOffset(
        asked.committed_offset,
        asked.committed_leader_epoch,
        asked.committed_metadata or "",
        now_ms if asked.commit_timestamp == NOT_GIVEN else asked.commit_timestamp,
        None if request.retention_time_ms == NOT_GIVEN else now_ms + request.retention_time_ms,
    )


def _response(request: OffsetCommitRequest, results: dict[PartitionKey, int], otherwise: int) -> Reply:
    topics = [
        OffsetCommitResponseTopic(
            topic.name,
            partitions=[
                OffsetCommitResponsePartition(
                    p.partition_index, int(results.get((topic.name, p.partition_index), otherwise))
                )
                for p in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return Reply(OffsetCommitResponse(topics=topics))
