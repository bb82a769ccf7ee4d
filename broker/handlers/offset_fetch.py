"""OffsetFetch (key 9, versions 0-9): the committed offsets of groups.

v2 accepts null topics for all, and adds an error for the group; v3 throttle time; v5 leader epochs; v6 is flexible; v7 adds `require_stable`, which
refuses partitions with a commit that is not replicated yet, or whose transaction is open (GO-29, TX-43); v8 takes many groups; v9 adds member ids and
epochs, which only groups of the new protocol check (GO-31).
Behaviour: an offset that was never committed is -1, whatever the group's state. In Kafka, v0 read offsets from ZooKeeper; here it gets error
UNSUPPORTED_VERSION (35), as from a KRaft broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple, Protocol

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.offset_fetch import (
    OffsetFetchRequest,
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


class _AskedTopic(Protocol):
    name: str
    partition_indexes: list[int]


class _Fetched(NamedTuple):
    """The result for one partition: the fields of the response in their order, after the partition index."""

    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error_code: int = 0


class _GroupOffsets(NamedTuple):
    """The result for one group, independent of the response version: its partitions in order, or the error code of the whole group (else 0)."""

    partitions: Sequence[tuple[PartitionKey, _Fetched]]
    error_code: int = 0


def _failed(exchange: Exchange, request: OffsetFetchRequest, error_code: int) -> Reply:
    many = exchange.api_version >= FIRST_VERSION_WITH_MANY_GROUPS
    return _response(exchange, request, [_GroupOffsets((), int(error_code))] * (len(request.groups) if many else 1))


@register(ApiKey.OFFSET_FETCH, 0, 9, _failed)
def offset_fetch(exchange: Exchange, request: OffsetFetchRequest) -> Reply | Delayed:
    if exchange.api_version < FIRST_VERSION_IN_KAFKA:
        return _failed(exchange, request, ErrorCode.UNSUPPORTED_VERSION)
    is_empty = exchange.api_version >= FIRST_VERSION_WITH_MANY_GROUPS and not request.groups
    if request.require_stable and exchange.node.groups.is_release_4 and not is_empty:
        return _fetch_when_stable(exchange, request)
    return _fetch_all(exchange, request, {})


def _fetch_when_stable(exchange: Exchange, request: OffsetFetchRequest) -> Delayed:
    """Fetch offsets when no commit for a requested partition is being written any more, as the coordinator of Kafka 4 does (GO-29)."""
    many = exchange.api_version >= FIRST_VERSION_WITH_MANY_GROUPS
    requested = [(g.group_id, g.topics) for g in request.groups] if many else [(request.group_id, request.topics)]
    delayed, errors = Delayed(), dict[str, int]()
    waiting = len(requested)

    def done(group_id: str, error_code: int, at_ms: int) -> None:
        nonlocal waiting
        waiting -= 1
        if error_code:
            errors[group_id] = error_code
        if not waiting:
            delayed.complete(lambda: _fetch_all(exchange, request, errors), at_ms)

    for group_id, topics in requested:
        keys = (
            None if topics is None else {(topic.name, index) for topic in topics for index in topic.partition_indexes}
        )
        exchange.node.groups.commits.await_stable(group_id, keys, exchange.now_ms, partial(done, group_id))
    return delayed


def _fetch_all(exchange: Exchange, request: OffsetFetchRequest, errors: Mapping[str, int]) -> Reply:
    """Fetch the offsets of all groups in a request. errors: maps the groups whose offsets cannot be fetched to the error code."""
    if exchange.api_version >= FIRST_VERSION_WITH_MANY_GROUPS:
        fetched = [
            _fetch(exchange, group.group_id, group.topics, request.require_stable, group.member_id, group.member_epoch)
            for group in request.groups
        ]
    else:
        fetched = [_fetch(exchange, request.group_id, request.topics, request.require_stable)]
    if errors:
        names = [group.group_id for group in request.groups] or [request.group_id]
        fetched = [
            _GroupOffsets((), errors[name]) if name in errors else offsets
            for name, offsets in zip(names, fetched, strict=True)
        ]
    return _response(exchange, request, fetched)


def _fetch(
    exchange: Exchange,
    group_id: str,
    topics: Sequence[_AskedTopic] | None,
    require_stable: bool,
    member_id: str | None = None,
    member_epoch: int = -1,
) -> _GroupOffsets:
    node = exchange.node
    error = node.refuses_group(group_id) or node.groups.commits.refuses_fetch(group_id, member_id, member_epoch)
    if error:
        return _GroupOffsets((), int(error))
    commits = node.groups.commits
    unstable = commits.unstable(group_id) if require_stable else ()
    if topics is None:
        offsets = commits.fetch(group_id, None)
    else:
        offsets = commits.fetch(
            group_id, [(topic.name, index) for topic in topics for index in topic.partition_indexes]
        )
    return _GroupOffsets([(key, _fetched(committed, key in unstable)) for key, committed in offsets.items()])


def _fetched(committed: CommittedOffset | None, is_unstable: bool) -> _Fetched:
    if is_unstable:
        return _Fetched(error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    return _Fetched() if committed is None else _Fetched(committed.offset, committed.leader_epoch, committed.metadata)


def _response(exchange: Exchange, request: OffsetFetchRequest, fetched: Sequence[_GroupOffsets]) -> Reply:
    if exchange.api_version >= FIRST_VERSION_WITH_MANY_GROUPS:
        groups = [
            OffsetFetchResponseGroup(group.group_id, _topics_of_group(offsets.partitions), offsets.error_code)
            for group, offsets in zip(request.groups, fetched, strict=True)
        ]
        return Reply(OffsetFetchResponse(groups=groups))
    offsets = fetched[0]
    if offsets.error_code and exchange.api_version < FIRST_VERSION_WITH_GROUP_ERROR:
        return Reply(OffsetFetchResponse(topics=_all_failed(request, offsets.error_code)))
    return Reply(OffsetFetchResponse(topics=_topics(offsets.partitions), error_code=offsets.error_code))


def _by_topic(
    partitions: Iterable[tuple[PartitionKey, _Fetched]],
) -> list[tuple[str, list[tuple[int, _Fetched]]]]:
    by_name = sorted(partitions, key=lambda entry: entry[0][0])
    return [
        (name, [(key[1], committed) for key, committed in entries])
        for name, entries in groupby(by_name, key=lambda entry: entry[0][0])
    ]


def _topics(partitions: Iterable[tuple[PartitionKey, _Fetched]]) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(name, [OffsetFetchResponsePartition(index, *fetched) for index, fetched in entries])
        for name, entries in _by_topic(partitions)
    ]


def _topics_of_group(partitions: Iterable[tuple[PartitionKey, _Fetched]]) -> list[OffsetFetchResponseTopics]:
    return [
        OffsetFetchResponseTopics(
            name,
            partitions=[OffsetFetchResponsePartitions(index, *fetched) for index, fetched in entries],
        )
        for name, entries in _by_topic(partitions)
    ]


def _all_failed(request: OffsetFetchRequest, error_code: int) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            topic.name,
            [OffsetFetchResponsePartition(index, -1, -1, "", error_code) for index in topic.partition_indexes],
        )
        for topic in request.topics or ()
    ]
