"""OffsetCommit (key 8, versions 0-10): store the committed offsets of a group.

v1 adds generation and member, and a timestamp for each partition (v1 only); v2 to v4 have a retention time; v3 adds throttle time; v6 adds leader
epochs; v7 adds static members; v8 is flexible; v9 lets members of the new protocol (KIP-848) send their member epoch in the field of the generation;
v10 names topics by id, which is stored with the offset (GO-34). Behaviour: `group.commits` decides which requests may commit. Unknown partitions get
error UNKNOWN_TOPIC_OR_PARTITION (3). The response is sent when the offsets are replicated. In Kafka, v0 stored offsets in ZooKeeper; this broker
rejects v0 with error UNSUPPORTED_VERSION (35), as a KRaft broker does.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey, commit_order, errors_by_topic, expiry_ms
from kafkaproto.broker.group.repeated_offsets import OffsetsToStore
from kafkaproto.broker.requests.delayed import Delayed
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
FIRST_VERSION_WITH_MEMBER_EPOCH = 9
FIRST_VERSION_BY_ID = 10
NOT_GIVEN = -1


def _failed(exchange: Exchange, request: OffsetCommitRequest, error_code: int) -> Reply:
    return _response(exchange, request, {}, error_code)


@register(ApiKey.OFFSET_COMMIT, _failed)
def offset_commit(exchange: Exchange, request: OffsetCommitRequest) -> Reply | Delayed:
    node = exchange.node
    if exchange.api_version >= FIRST_VERSION_BY_ID:
        for topic in request.topics:
            topic.name = node.image.topic_names.get(topic.topic_id, "")
    offsets = node.groups.commits.to_store(
        [
            ((topic.name, p.partition_index), _committed(request, topic.topic_id, p, exchange.now_ms))
            for topic in request.topics
            for p in topic.partitions
            if node.image.partition(topic.name, p.partition_index) is not None
        ],
        checks_each=node.groups.is_new_coordinator,
    )
    if offsets and exchange.api_version < FIRST_VERSION_IN_KAFKA:
        return _failed(exchange, request, ErrorCode.UNSUPPORTED_VERSION)
    error = node.refuses_group(request.group_id) if offsets else 0
    if error or not offsets:
        return _response(exchange, request, dict.fromkeys(offsets, error))
    delayed = Delayed()

    def reply(results: dict[PartitionKey, int], at_ms: int) -> None:
        delayed.complete(lambda: _checked(exchange, request, results, offsets), at_ms)

    node.groups.commits.commit(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        offsets,
        exchange.now_ms,
        reply,
        has_member_epoch=exchange.api_version >= FIRST_VERSION_WITH_MEMBER_EPOCH,
    )
    return delayed


def _committed(
    request: OffsetCommitRequest, topic_id: bytes, partition: OffsetCommitRequestPartition, now_ms: int
) -> CommittedOffset:
    return CommittedOffset(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        now_ms if partition.commit_timestamp == NOT_GIVEN else partition.commit_timestamp,
        None if request.retention_time_ms == NOT_GIVEN else expiry_ms(now_ms, request.retention_time_ms),
        topic_id,
    )


def _checked(
    exchange: Exchange, request: OffsetCommitRequest, results: dict[PartitionKey, int], offsets: OffsetsToStore
) -> Reply:
    """Return the response to a request whose offsets the coordinator has stored or refused.

    results: maps (topic, partition) to an error code. offsets: the offsets of the request, as they were passed to the coordinator. If the broker
    emulates Kafka's group coordinator in Java (default from 4.0 on), and the request names a partition more than once, each entry of this partition
    is checked: an entry with too long metadata gets OFFSET_METADATA_TOO_LARGE (12), unless this entry already has another error.
    """
    reply = _response(exchange, request, results)
    if offsets.too_long:
        names = {topic.topic_id: topic.name for topic in request.topics}
        assert isinstance(reply.message, OffsetCommitResponse)
        offsets.set_errors(
            ((topic.name or names[topic.topic_id], p.partition_index), p)
            for topic in reply.message.topics
            for p in topic.partitions
        )
    return reply


def _response(
    exchange: Exchange, request: OffsetCommitRequest, results: dict[PartitionKey, int], error_code: int | None = None
) -> Reply:
    """Return the response to the request, with the result of each partition in `results`.

    results: maps (topic, partition) to an error code. error_code: the error code of all partitions that are not in `results`; None if these
    partitions are unknown, so that they get UNKNOWN_TOPIC_OR_PARTITION (3) or, in v10 for an unknown topic id, UNKNOWN_TOPIC_ID (100).
    """
    repeats = exchange.node.groups.is_new_coordinator
    if exchange.api_version >= FIRST_VERSION_BY_ID:
        return Reply(OffsetCommitResponse(topics=_topics_by_id(request, results, error_code, repeats=repeats)))
    default_error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if error_code is None else error_code
    missing = exchange.node.image.missing(topic.name for topic in request.topics)
    indexes_by_name = [(topic.name, [p.partition_index for p in topic.partitions]) for topic in request.topics]
    if not repeats:
        results = commit_order(indexes_by_name, results)
    topics = [
        OffsetCommitResponseTopic(name, partitions=_partitions(errors))
        for name, errors in errors_by_topic(indexes_by_name, results, lambda _: default_error, missing, repeats=repeats)
    ]
    return Reply(OffsetCommitResponse(topics=topics))


def _topics_by_id(
    request: OffsetCommitRequest, results: dict[PartitionKey, int], error_code: int | None, *, repeats: bool
) -> list[OffsetCommitResponseTopic]:
    names = {topic.topic_id: topic.name for topic in request.topics}
    ids = {name: topic_id for topic_id, name in names.items()}

    def otherwise(topic_id: bytes) -> int:
        if error_code is not None:
            return error_code
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if names[topic_id] else ErrorCode.UNKNOWN_TOPIC_ID

    indexes_by_id = [(topic.topic_id, [p.partition_index for p in topic.partitions]) for topic in request.topics]
    unknown = {topic_id for topic_id, name in names.items() if not name}
    by_id = {(ids[name], index): error for (name, index), error in results.items()}
    return [
        OffsetCommitResponseTopic(topic_id=topic_id, partitions=_partitions(errors))
        for topic_id, errors in errors_by_topic(indexes_by_id, by_id, otherwise, unknown, repeats=repeats)
    ]


def _partitions(errors: list[tuple[int, int]]) -> list[OffsetCommitResponsePartition]:
    return [OffsetCommitResponsePartition(index, error) for index, error in errors]
