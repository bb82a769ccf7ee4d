"""TxnOffsetCommit (key 28, versions 0-5): commit offsets of a group as a part of a producer's transaction.

v2 adds leader epochs; v3 is flexible and adds the group member on whose behalf the producer commits; v4 returns TRANSACTION_ABORTABLE if the group
was not added to the transaction; with v5 the broker itself adds the group to the transaction (transaction version 2, KIP-890).
Behaviour: the group coordinator of this broker stores the offsets, which become visible when the transaction commits (TX-41 to TX-43, TX-45, TX-46).
"""

from __future__ import annotations

from collections.abc import Callable

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey, commit_order, errors_by_topic
from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.broker.group.repeated_offsets import OffsetsToStore
from kafkaproto.broker.group.results import TransactionalCommit
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.broker.requests.transaction_errors import error_for, group_error_for
from kafkaproto.broker.requests.verification import NO_SEQUENCE, Verification, verify
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

FIRST_VERSION_THAT_ADDS = 5


def _failed(exchange: Exchange, request: TxnOffsetCommitRequest, error_code: int) -> Reply:
    """Return the response with one error for every partition of the request, in the order of the request, also for unknown topics (TX-43)."""
    topics = [
        TxnOffsetCommitResponseTopic(
            topic.name,
            partitions=[TxnOffsetCommitResponsePartition(p.partition_index, error_code) for p in topic.partitions],
        )
        for topic in request.topics
    ]
    return Reply(TxnOffsetCommitResponse(topics=topics))


@register(ApiKey.TXN_OFFSET_COMMIT, _failed)
def txn_offset_commit(exchange: Exchange, request: TxnOffsetCommitRequest) -> Reply | Delayed:
    node = exchange.node
    offsets = node.groups.commits.to_store(
        [
            (
                (topic.name, p.partition_index),
                CommittedOffset(
                    p.committed_offset, p.committed_leader_epoch, p.committed_metadata or "", exchange.now_ms, None
                ),
            )
            for topic in request.topics
            for p in topic.partitions
            if node.image.partition(topic.name, p.partition_index) is not None
        ],
        checks_each=node.groups.is_new_coordinator,
    )
    error = 0
    if offsets:
        error = node.refuses_group(request.group_id) if request.group_id else ErrorCode.INVALID_GROUP_ID
    if error or not offsets:
        return _response(exchange, request, dict.fromkeys(offsets, error), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    delayed = Delayed()

    def reply(results: dict[PartitionKey, int], at_ms: int) -> None:
        delayed.complete(lambda: _checked(exchange, request, results, offsets), at_ms)

    def verified(verification: Verification, at_ms: int) -> None:
        group_error = node.refuses_group(request.group_id)
        if group_error:
            reply(dict.fromkeys(offsets, group_error), at_ms)
        elif error := verification.errors[key]:
            refusal = error_for(exchange.api_key, exchange.api_version, error)
            reply(dict.fromkeys(offsets, refusal), at_ms)
        else:
            try:
                _commit(exchange, request, offsets, at_ms, reply)
            except KafkaError as failure:
                error_code = failure.error_code
                delayed.complete(lambda: _failed(exchange, request, error_code), at_ms)

    key = OFFSETS_TOPIC, node.groups.ownership.partition_of(request.group_id)
    node.groups.commits.transactional.prepare(request.group_id, exchange.now_ms)
    verify(
        node,
        (request.transactional_id, request.producer_id, request.producer_epoch),
        {key: NO_SEQUENCE},
        exchange.now_ms,
        verified,
        adds=exchange.api_version >= FIRST_VERSION_THAT_ADDS,
    )
    return delayed


def _commit(
    exchange: Exchange,
    request: TxnOffsetCommitRequest,
    offsets: dict[PartitionKey, CommittedOffset],
    now_ms: int,
    reply: Callable[[dict[PartitionKey, int], int], None],
) -> None:
    exchange.node.groups.commits.transactional.commit(
        TransactionalCommit(
            request.group_id,
            request.producer_id,
            request.producer_epoch,
            request.generation_id,
            request.member_id,
            request.group_instance_id,
        ),
        offsets,
        now_ms,
        reply,
    )


def _checked(
    exchange: Exchange, request: TxnOffsetCommitRequest, results: dict[PartitionKey, int], offsets: OffsetsToStore
) -> Reply:
    """Return the response to a request whose offsets the coordinator has stored or refused.

    results: maps (topic, partition) to an error code. offsets: the offsets of the request, as they were passed to the coordinator. If the broker
    emulates Kafka's group coordinator in Java (default from 4.0 on), and the request names a partition more than once, each entry of this partition
    is checked: an entry with too long metadata gets OFFSET_METADATA_TOO_LARGE (12), unless this entry already has another error.
    """
    reply = _response(exchange, request, results, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert isinstance(reply.message, TxnOffsetCommitResponse)
    offsets.set_errors(((topic.name, p.partition_index), p) for topic in reply.message.topics for p in topic.partitions)
    return reply


def _response(
    exchange: Exchange, request: TxnOffsetCommitRequest, results: dict[PartitionKey, int], otherwise: int
) -> Reply:
    results = {
        key: group_error_for(exchange.api_key, exchange.api_version, error_code) for key, error_code in results.items()
    }
    topics = [(topic.name, [p.partition_index for p in topic.partitions]) for topic in request.topics]
    missing = exchange.node.image.missing(topic.name for topic in request.topics)
    repeats = exchange.node.groups.is_new_coordinator
    if not repeats:
        results = commit_order(topics, results)
    errors_of_topics = errors_by_topic(topics, results, lambda _: int(otherwise), missing, repeats=repeats)
    return Reply(
        TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name, partitions=[TxnOffsetCommitResponsePartition(index, error) for index, error in errors]
                )
                for name, errors in errors_of_topics
            ]
        )
    )
