"""OffsetFetch (key 9, versions 0-10): the committed offsets of groups.

v2 accepts null for all topics, and adds an error for the group; v3 adds throttle time; v5 adds leader epochs; v6 is flexible; v7 adds
`require_stable`, with which partitions get UNSTABLE_OFFSET_COMMIT while a commit is not replicated or its transaction is open (GO-29, TX-43); v8
takes many groups; v9 adds member ids and epochs, which only groups of the new protocol (KIP-848) check (GO-31); v10 names topics by id, and does not
return offsets that were committed for another id (GO-34). Behaviour: a partition without a committed offset has offset -1, whatever the group's
state. Before 4.0 a request without groups gets no response (GO-35). In Kafka, v0 read offsets from ZooKeeper; this broker rejects v0 with error
UNSUPPORTED_VERSION (35), as a KRaft broker does. GO-36 describes the order of topics and partitions in a response.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol, cast

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.metadata.image import NO_TOPIC_ID, Image
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import hash_order, java_order, partition_hash_bits, scala_copy_order, scala_map_order
from kafkaproto.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

FIRST_VERSION_IN_KAFKA = 1
FIRST_VERSION_WITH_GROUP_ERROR = 2
FIRST_VERSION_WITH_MANY_GROUPS = 8
FIRST_VERSION_BY_ID = 10


class _RequestedTopic(Protocol):
    name: str
    partition_indexes: list[int]


class _Fetched(NamedTuple):
    """The result of OffsetFetch for one partition: committed offset (-1 for none), its leader epoch and metadata, and an error code."""

    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error_code: int = 0


class _TopicOffsets(NamedTuple):
    """The results for one topic: a pair of partition index and result for each partition. topic_id: used from version 10 on, instead of the name."""

    name: str
    partitions: Sequence[tuple[int, _Fetched]]
    topic_id: bytes = NO_TOPIC_ID


class _GroupOffsets(NamedTuple):
    """The result of OffsetFetch for one group: its topics in order, and an error code for the whole group (0 for none)."""

    topics: Sequence[_TopicOffsets]
    error_code: int = 0


def _failed(exchange: Exchange, request: OffsetFetchRequest, error_code: int) -> Reply:
    many = exchange.api_version >= FIRST_VERSION_WITH_MANY_GROUPS
    return _response(exchange, request, [_GroupOffsets((), int(error_code))] * (len(request.groups) if many else 1))


@register(ApiKey.OFFSET_FETCH, _failed)
def offset_fetch(exchange: Exchange, request: OffsetFetchRequest) -> Reply | Delayed:
    if exchange.api_version < FIRST_VERSION_IN_KAFKA:
        return _failed(exchange, request, ErrorCode.UNSUPPORTED_VERSION)
    if exchange.api_version >= FIRST_VERSION_BY_ID:
        for group in request.groups:
            for topic in group.topics or ():
                topic.name = exchange.node.image.topic_names.get(topic.topic_id, "")
    is_empty = exchange.api_version >= FIRST_VERSION_WITH_MANY_GROUPS and not request.groups
    if is_empty and not exchange.node.groups.is_release_4:
        return Delayed()  # Kafka never responds to it (GO-35)
    if request.require_stable and exchange.node.groups.is_new_coordinator and not is_empty:
        return _fetch_when_stable(exchange, request)
    return _response(exchange, request, _fetch_all(exchange, request))


def _fetch_when_stable(exchange: Exchange, request: OffsetFetchRequest) -> Reply | Delayed:
    """Look up the committed offsets now, and respond when all earlier changes of the groups are replicated, as Kafka 4 does (GO-29)."""
    offsets_of_groups = _fetch_all(exchange, request)
    waiting_indexes = [index for index, offsets in enumerate(offsets_of_groups) if not offsets.error_code]
    if not waiting_indexes:
        return _response(exchange, request, offsets_of_groups)
    names = [group.group_id for group in request.groups] or [request.group_id]
    delayed = Delayed()

    def done(index: int, error_code: int, at_ms: int) -> None:
        waiting_indexes.remove(index)
        if error_code:
            offsets_of_groups[index] = _GroupOffsets((), error_code)
        if not waiting_indexes:
            delayed.complete(lambda: _response(exchange, request, offsets_of_groups), at_ms)

    for index in [*waiting_indexes]:
        exchange.node.groups.commits.await_stable(names[index], exchange.now_ms, partial(done, index))
    return delayed


def _fetch_all(exchange: Exchange, request: OffsetFetchRequest) -> list[_GroupOffsets]:
    """Return the committed offsets of all groups in an OffsetFetch request."""
    if exchange.api_version < FIRST_VERSION_WITH_MANY_GROUPS:
        return [_fetch(exchange, request.group_id, request.topics, request.require_stable)]
    return [
        _fetch(exchange, group.group_id, group.topics, request.require_stable, group.member_id, group.member_epoch)
        for group in request.groups
    ]


def _fetch(
    exchange: Exchange,
    group_id: str,
    topics: Sequence[_RequestedTopic] | None,
    require_stable: bool,
    member_id: str | None = None,
    member_epoch: int = -1,
) -> _GroupOffsets:
    node = exchange.node
    commits = node.groups.commits
    error = node.refuses_group(group_id) or commits.refuses_fetch(
        group_id, member_id, member_epoch, require_stable=require_stable
    )
    if error:
        return _GroupOffsets((), int(error))
    unstable = commits.unstable(group_id) if require_stable else ()
    keys = None if topics is None else [(topic.name, index) for topic in topics for index in topic.partition_indexes]
    names_ids = exchange.api_version >= FIRST_VERSION_BY_ID
    topics_with_ids = cast("Sequence[OffsetFetchRequestTopics] | None", topics) if names_ids else None
    topic_ids = {topic.name: topic.topic_id for topic in topics_with_ids or ()}
    committed = commits.fetch(group_id, keys, topic_ids, require_stable=require_stable)
    results = {key: _fetched(offset, key in unstable) for key, offset in committed.items()}
    if names_ids:
        return _GroupOffsets(_by_id(node.image, topics_with_ids, results))
    if topics is not None and node.groups.is_new_coordinator:
        return _GroupOffsets([_of_topic(topic, results) for topic in topics])
    if node.groups.is_new_coordinator:
        return _GroupOffsets(_by_name(results))
    order = scala_copy_order if topics is None else scala_map_order
    return _GroupOffsets(_by_name({key: results[key] for key in order(results, partition_hash_bits)}))


def _of_topic(topic: _RequestedTopic, results: Mapping[PartitionKey, _Fetched]) -> _TopicOffsets:
    return _TopicOffsets(topic.name, [(index, results[(topic.name, index)]) for index in topic.partition_indexes])


def _by_name(results: Mapping[PartitionKey, _Fetched]) -> list[_TopicOffsets]:
    """Group the results by topic, in the order in which the topics first appear."""
    topics: dict[str, list[tuple[int, _Fetched]]] = {}
    for (name, index), fields in results.items():
        topics.setdefault(name, []).append((index, fields))
    return [_TopicOffsets(name, partitions) for name, partitions in topics.items()]


def _by_id(
    image: Image, topics: Sequence[OffsetFetchRequestTopics] | None, results: Mapping[PartitionKey, _Fetched]
) -> list[_TopicOffsets]:
    """Return the results by topic id: first those of existing topics, then those of topic ids that do not exist, as in Kafka (GO-34).

    topics: the topics of the request, with the names of those that exist; None if the request asks for all topics with committed offsets.
    """
    if topics is None:
        return [
            topic._replace(topic_id=image.topics[topic.name].topic_id)
            for topic in _by_name(results)
            if topic.name in image.topics
        ]
    unknown = _Fetched(error_code=ErrorCode.UNKNOWN_TOPIC_ID)
    return [_of_topic(topic, results)._replace(topic_id=topic.topic_id) for topic in topics if topic.name] + [
        _TopicOffsets("", [(index, unknown) for index in topic.partition_indexes], topic.topic_id)
        for topic in topics
        if not topic.name
    ]


def _fetched(committed: CommittedOffset | None, is_unstable: bool) -> _Fetched:
    if is_unstable:
        return _Fetched(error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    return _Fetched() if committed is None else _Fetched(committed.offset, committed.leader_epoch, committed.metadata)


def _response(exchange: Exchange, request: OffsetFetchRequest, fetched: Sequence[_GroupOffsets]) -> Reply:
    if exchange.api_version >= FIRST_VERSION_WITH_MANY_GROUPS:
        groups = [
            OffsetFetchResponseGroup(group.group_id, _topics_of_group(offsets.topics), offsets.error_code)
            for group, offsets in zip(request.groups, fetched, strict=True)
        ]
        return Reply(OffsetFetchResponse(groups=groups))
    offsets = fetched[0]
    if offsets.error_code and exchange.api_version < FIRST_VERSION_WITH_GROUP_ERROR:
        if exchange.api_version >= FIRST_VERSION_IN_KAFKA and not exchange.node.groups.is_release_4:
            return Reply(OffsetFetchResponse())  # the response of version 1 is empty (GO-32)
        failed_offset = _Fetched(error_code=offsets.error_code)
        return Reply(OffsetFetchResponse(topics=_topics(_all_failed(exchange, request, failed_offset))))
    return Reply(OffsetFetchResponse(topics=_topics(offsets.topics), error_code=offsets.error_code))


def _topics(topics: Iterable[_TopicOffsets]) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            topic.name, [OffsetFetchResponsePartition(index, *fields) for index, fields in topic.partitions]
        )
        for topic in topics
    ]


def _topics_of_group(topics: Iterable[_TopicOffsets]) -> list[OffsetFetchResponseTopics]:
    return [
        OffsetFetchResponseTopics(
            topic.name,
            topic.topic_id,
            [OffsetFetchResponsePartitions(index, *fields) for index, fields in topic.partitions],
        )
        for topic in topics
    ]


def _all_failed(exchange: Exchange, request: OffsetFetchRequest, failed: _Fetched) -> list[_TopicOffsets]:
    """Return the same result, `failed`, for each partition of a request.

    From Kafka 4.0 on, the results have the order of the request. Before 4.0, a repeated partition has one result, and topics and partitions are in
    the order of Kafka's hash tables (GO-36).
    """
    topics = request.topics or ()
    if exchange.node.groups.is_release_4:
        return [_TopicOffsets(t.name, [(index, failed) for index in t.partition_indexes]) for t in topics]
    keys = java_order(((t.name, index) for t in topics for index in t.partition_indexes), partition_hash_bits)
    by_name = {topic.name: topic for topic in _by_name(dict.fromkeys(keys, failed))}
    return [by_name[name] for name in hash_order(by_name)]
