"""OffsetFetch (key 9, versions 0-9): how far groups have read.

v2 null topics mean all, and an error for the group; v3 throttle time; v5 leader epochs; v6 flexible; v7 wait for open
transactions (`require_stable`: there are none yet); v8 many groups; v9 member ids, which matter only to groups that are
not classic. Behaviour: -1 for what was never committed, whatever the group's state. v0 meant ZooKeeper: 35, as a KRaft
broker answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from kafkaproto.api import ApiKey
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.placement import refusal
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
NEVER_COMMITTED = CommittedOffset(-1, -1, "", -1)


class _AskedTopic(Protocol):
    name: str
    partition_indexes: list[int]


class _Told(NamedTuple):
    """One group's answer, in no version's form: partitions in order, or an error for the group."""

    partitions: Sequence[tuple[PartitionKey, CommittedOffset]]
    error_code: int = 0


def _failed(exchange: Exchange, request: OffsetFetchRequest, error_code: int) -> Reply:
    many = exchange.api_version >= FIRST_VERSION_WITH_MANY_GROUPS
    return _response(exchange, request, [_Told((), int(error_code))] * (len(request.groups) if many else 1))


@register(ApiKey.OFFSET_FETCH, 0, 9, _failed)
def offset_fetch(exchange: Exchange, request: OffsetFetchRequest) -> Reply:
    if exchange.api_version < FIRST_VERSION_IN_KAFKA:
        return _failed(exchange, request, ErrorCode.UNSUPPORTED_VERSION)
    if exchange.api_version >= FIRST_VERSION_WITH_MANY_GROUPS:
        told = [_fetch(exchange, group.group_id, group.topics) for group in request.groups]
    else:
        told = [_fetch(exchange, request.group_id, request.topics)]
    return _response(exchange, request, told)


def _fetch(exchange: Exchange, group_id: str, topics: Sequence[_AskedTopic] | None) -> _Told:
    node = exchange.node
    error = refusal(node.cluster, node.broker_id, group_id)
    if error:
        return _Told((), int(error))
    commits = node.cluster.groups.commits
    if topics is None:
        found = commits.fetch(group_id, None)
    else:
        found = commits.fetch(group_id, [(topic.name, index) for topic in topics for index in topic.partition_indexes])
    return _Told([(key, committed or NEVER_COMMITTED) for key, committed in found.items()])


def _response(exchange: Exchange, request: OffsetFetchRequest, told: Sequence[_Told]) -> Reply:
    if exchange.api_version >= FIRST_VERSION_WITH_MANY_GROUPS:
        groups = [
            OffsetFetchResponseGroup(group.group_id, _topics_of_group(one.partitions), one.error_code)
            for group, one in zip(request.groups, told, strict=True)
        ]
        return Reply(OffsetFetchResponse(groups=groups))
    one = told[0]
    if one.error_code and exchange.api_version < FIRST_VERSION_WITH_GROUP_ERROR:
        return Reply(OffsetFetchResponse(topics=_all_failed(request, one.error_code)))
    return Reply(OffsetFetchResponse(topics=_topics(one.partitions), error_code=one.error_code))


def _by_topic(
    partitions: Iterable[tuple[PartitionKey, CommittedOffset]],
) -> list[tuple[str, list[tuple[int, CommittedOffset]]]]:
    by_name = sorted(partitions, key=lambda entry: entry[0][0])
    return [
        (name, [(key[1], committed) for key, committed in entries])
        for name, entries in groupby(by_name, key=lambda entry: entry[0][0])
    ]


def _topics(partitions: Iterable[tuple[PartitionKey, CommittedOffset]]) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            name, [OffsetFetchResponsePartition(index, c.offset, c.leader_epoch, c.metadata) for index, c in entries]
        )
        for name, entries in _by_topic(partitions)
    ]


def _topics_of_group(partitions: Iterable[tuple[PartitionKey, CommittedOffset]]) -> list[OffsetFetchResponseTopics]:
    return [
        OffsetFetchResponseTopics(
            name,
            partitions=[
                OffsetFetchResponsePartitions(index, c.offset, c.leader_epoch, c.metadata) for index, c in entries
            ],
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
