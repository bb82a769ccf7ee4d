"""Tests of the order of topics and partitions in OffsetFetch responses, also if the request names a partition twice."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.groups import Group, commit, has_new_coordinator
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.hash_order import hash_order, java_order, partition_hash_bits, scala_copy_order, scala_map_order
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

pytestmark = pytest.mark.needs(offsets_topic=True)

UNSUPPORTED_VERSION, NOT_COORDINATOR = 35, 16
BROKERS = 3
Requested = list[tuple[str, list[int]]]
"""The topics of an OffsetFetch request or response, each with its partitions."""


def flat(topics: Requested) -> list[tuple[str, int]]:
    return [(name, index) for name, indexes in topics for index in indexes]


def by_topic(partitions: list[tuple[str, int]]) -> Requested:
    """Group partitions by topic. The topics are in the order of their first partitions."""
    indexes: dict[str, list[int]] = {}
    for name, index in partitions:
        indexes.setdefault(name, []).append(index)
    return list(indexes.items())


def fetch_request(group: Group, topics: Requested | None) -> OffsetFetchRequest:
    """Return an OffsetFetch request of a version before 8. topics: the topics with their partitions; None for all topics."""
    return OffsetFetchRequest(group.id, None if topics is None else [OffsetFetchRequestTopic(*t) for t in topics])


def listed(response: Any) -> Requested:
    return [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics]


def requests(first: str, second: str) -> list[Requested]:
    """Return the topics and partitions of five OffsetFetch requests. All but the fourth request repeat topics or partitions.

    The first three requests have at most four different partitions, the last two have more. The number matters because an immutable `Map` of Scala
    keeps the order of up to four entries, but orders more entries by their hashes. first, second: the names of two topics.
    """
    return [
        [(first, [1, 0, 1])],
        [(first, [0]), (second, [0]), (first, [0])],
        [(second, [1, 0]), (first, []), (first, [9]), (second, [7, 1])],
        [(first, [4, 3, 0, 2, 1])],
        [(second, [0, 1]), (first, [0, 1]), (second, [2, 3, 0]), ("no-such-topic", [5, 5]), (first, [8])],
    ]


@pytest.mark.rule("GO-36", "GO-32")
def test_offset_fetch_returns_a_partition_named_twice_only_once_before_4_0(subject: Subject) -> None:
    """The coordinator in Scala (default before 4.0) returns each topic and partition once, in the order of an immutable `Map` of Scala.

    The coordinator in Java returns the topics and partitions as the request has them, also if they are repeated.
    """
    group = Group(subject)
    first, second = (new_topic(subject, partitions=9).name for _ in range(2))
    for topics in requests(first, second):
        expected = (
            topics if has_new_coordinator(subject) else by_topic(scala_map_order(flat(topics), partition_hash_bits))
        )
        for version in (1, 2, 5, 7):
            assert listed(group.ask(fetch_request(group, topics), version)) == expected, version


@pytest.mark.rule("GO-36")
@pytest.mark.releases(before="4.0")
@pytest.mark.parametrize("partitions", [3, 4, 9])
def test_offset_fetch_of_all_topics_lists_partitions_in_scala_hash_order_before_4_0(
    subject: Subject, partitions: int
) -> None:
    group = Group(subject)
    first, second = (new_topic(subject, partitions=9).name for _ in range(2))
    offsets = {first: dict.fromkeys(range(partitions - 1), (5, None)), second: {0: (5, None)}}
    assert set(commit(group, offsets).values()) == {0}
    expected = by_topic(
        scala_copy_order([(name, index) for name in offsets for index in offsets[name]], partition_hash_bits)
    )
    for version in (2, 7):
        assert listed(group.ask(fetch_request(group, None), version)) == expected


@pytest.mark.rule("GO-36")
@pytest.mark.releases(before="4.0")
def test_offset_fetch_v0_merges_repeated_partitions_and_returns_unsupported_version(subject: Subject) -> None:
    group = Group(subject)
    for topics in requests("first-topic", "second-topic"):
        response = group.ask(fetch_request(group, topics), 0)
        indexes = dict(by_topic(java_order(flat(topics), partition_hash_bits)))
        assert listed(response) == [(name, indexes[name]) for name in hash_order(indexes)]
        assert {p.error_code for t in response.topics for p in t.partitions} == {UNSUPPORTED_VERSION}


@pytest.mark.rule("GO-36")
@pytest.mark.releases(first="4.0")
def test_offset_fetch_v1_repeats_a_not_coordinator_error_for_a_repeated_partition(subject: Subject) -> None:
    group = Group(subject)
    connection = subject.connect((group.coordinator() + 1) % BROKERS)
    for topics in requests("first-topic", "second-topic"):
        response = subject.ask(connection, fetch_request(group, topics), 1)
        assert listed(response) == topics
        assert {p.error_code for t in response.topics for p in t.partitions} == {NOT_COORDINATOR}
