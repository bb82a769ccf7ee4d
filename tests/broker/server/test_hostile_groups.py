"""Cut, damaged and oversized bodies of the group APIs, in all versions: as in Kafka, only the client that sent them is affected (W-5, W-8).

Each of these APIs changes or shows groups, so the tests also check that a group with a member and committed offsets stays as it is.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.client import key_of
from kafkaproto.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkaproto.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkaproto.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafkaproto.testing import AsyncTestCluster, async_cluster
from tests.support.hostile import MIB, cases_of, check_cuts, check_lengths, missing_versions, rest_of, send_noise
from tests.support.memory import memory_left_within
from tests.support.raw import RawClient, client_of, open_sockets, until

GROUP, MEMBER, TOPIC, OFFSET = "group", "member", "t", 7
FIRST_WITH_GROUPS = 8
"""The first version of OffsetFetch with several groups."""
UNKNOWN_TOPIC, OFFSET_METADATA_TOO_LARGE, INVALID_REQUEST, NO_GROUP, UNSUPPORTED_ASSIGNOR = 3, 12, 42, 69, 112
MANY = 5_000


def requests() -> Iterator[tuple[Any, range]]:
    """Yield one request of each API with its versions; every array has items."""
    places = [ConsumerGroupHeartbeatRequestTopicPartitions(bytes(range(16)), [0, 1])]
    yield (
        ConsumerGroupHeartbeatRequest("other", "m", 0, "i", "rack", 1000, [TOPIC, "u"], None, "range", places),
        range(2),
    )
    yield ConsumerGroupDescribeRequest(["other", "another"]), range(2)
    yield DeleteGroupsRequest(["other", "another"]), range(3)
    deleted = OffsetDeleteRequestTopic(TOPIC, [OffsetDeleteRequestPartition(0), OffsetDeleteRequestPartition(1)])
    yield OffsetDeleteRequest("other", [deleted]), range(1)
    committed = [OffsetCommitRequestPartition(i, committed_offset=3, committed_metadata="x" * 5) for i in range(2)]
    topics = [OffsetCommitRequestTopic(TOPIC, partitions=committed)]
    yield OffsetCommitRequest("other", 3, "m", topics=topics), range(11)
    old = OffsetFetchRequest("other", [OffsetFetchRequestTopic(TOPIC, [0, 1])])
    yield old, range(FIRST_WITH_GROUPS)
    fetched = OffsetFetchRequestGroup("other", topics=[OffsetFetchRequestTopics(TOPIC, partition_indexes=[0, 1])])
    yield OffsetFetchRequest(groups=[fetched, fetched]), range(FIRST_WITH_GROUPS, 11)


CASES = cases_of(requests())


@asynccontextmanager
async def cluster_with_a_group(release: str) -> AsyncIterator[tuple[AsyncTestCluster, RawClient]]:
    """Yield a cluster and a healthy client of its group, which has a member and a committed offset; check both at the end."""
    config = {"group.coordinator.rebalance.protocols": "classic,consumer", "offsets.topic.num.partitions": "1"}
    async with (
        async_cluster(topics={TOPIC: 2}, config=config, release=release) as cluster,
        client_of(cluster) as healthy,
    ):
        cluster.state.coordinator_of(GROUP)
        joined = await healthy.ask(
            ConsumerGroupHeartbeatRequest(
                GROUP, MEMBER, 0, rebalance_timeout_ms=1000, subscribed_topic_names=[TOPIC], topic_partitions=[]
            ),
            0,
        )
        assert joined.error_code == 0
        partition = OffsetCommitRequestPartition(0, committed_offset=OFFSET)
        topics = [OffsetCommitRequestTopic(TOPIC, partitions=[partition])]
        committed = await healthy.ask(OffsetCommitRequest(GROUP, joined.member_epoch, MEMBER, topics=topics), 9)
        assert committed.topics[0].partitions[0].error_code == 0
        yield cluster, healthy
        await check_group(healthy)


async def check_group(healthy: RawClient) -> None:
    beat = await healthy.ask(ConsumerGroupHeartbeatRequest(GROUP, MEMBER, 1), 0)
    assert (beat.error_code, beat.member_epoch) == (0, 1)
    response = await healthy.ask(OffsetFetchRequest(GROUP, [OffsetFetchRequestTopic(TOPIC, [0])]), 5)
    assert response.topics[0].partitions[0].committed_offset == OFFSET


def test_examples_of_malformed_group_requests_cover_every_supported_version() -> None:
    keys = {key_of(request) for request, _ in requests()}
    assert {ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.OFFSET_DELETE} <= keys
    assert missing_versions(CASES.values()) == set()


@pytest.mark.rule("W-5")
@pytest.mark.parametrize("name", CASES)
async def test_group_request_cut_at_any_byte_closes_the_connection_and_changes_no_group(name: str) -> None:
    case = CASES[name]
    async with cluster_with_a_group(case.release) as (cluster, _):
        groups = sorted(group.group_id for group in cluster.state.nodes[0].groups.groups)
        await check_cuts(cluster, case)
        assert sorted(group.group_id for group in cluster.state.nodes[0].groups.groups) == groups
        assert await rest_of(cluster, case.payload) != b""
        await until(lambda: open_sockets(cluster) == 1)


@pytest.mark.slow
@pytest.mark.rule("W-5", "W-8")
@pytest.mark.parametrize("name", CASES)
async def test_huge_length_anywhere_in_a_group_request_uses_at_most_4_mib_of_memory(name: str) -> None:
    case = CASES[name]
    async with cluster_with_a_group(case.release) as (cluster, healthy):
        await check_lengths(cluster, case)
        await check_group(healthy)


@pytest.mark.rule("W-5", "W-8")
@pytest.mark.parametrize("name", CASES)
async def test_group_requests_with_random_bodies_leak_no_memory(name: str) -> None:
    case, rng = CASES[name], random.Random(name)
    async with cluster_with_a_group(case.release) as (cluster, healthy):
        await send_noise(cluster, case, rng, 20)
        await healthy.ask(DeleteGroupsRequest(["", "\0"]), 0)
        with memory_left_within(MIB):
            await send_noise(cluster, case, rng, 100)
            await until(lambda: open_sockets(cluster) == 1)


def large_requests() -> Iterator[tuple[Any, int, set[int]]]:
    """Yield valid requests with very many items: the request, its version, and the errors in its response."""
    indexes = range(10, 10 + MANY)
    names = [f"group-{i}" for i in range(MANY)]
    yield DeleteGroupsRequest(names), 2, {NO_GROUP}
    yield ConsumerGroupDescribeRequest(names), 0, {NO_GROUP}
    join = ConsumerGroupHeartbeatRequest("other", "m", 0, rebalance_timeout_ms=1000, topic_partitions=[])
    join.subscribed_topic_names, join.server_assignor = names, "none"
    yield join, 0, {UNSUPPORTED_ASSIGNOR}
    owned = [ConsumerGroupHeartbeatRequestTopicPartitions(bytes([i % 256]) * 16, [i]) for i in range(MANY)]
    yield (
        ConsumerGroupHeartbeatRequest(
            "other", "m", 0, rebalance_timeout_ms=1000, subscribed_topic_names=names, topic_partitions=owned
        ),
        0,
        {INVALID_REQUEST},
    )
    deleted = [OffsetDeleteRequestPartition(i) for i in indexes]
    yield OffsetDeleteRequest(GROUP, [OffsetDeleteRequestTopic(TOPIC, deleted)]), 0, {0, UNKNOWN_TOPIC}
    committed = [OffsetCommitRequestPartition(i, committed_offset=1, committed_metadata="x" * 100) for i in indexes]
    yield (
        OffsetCommitRequest("other", topics=[OffsetCommitRequestTopic(TOPIC, partitions=committed)]),
        8,
        {UNKNOWN_TOPIC},
    )
    too_long = [OffsetCommitRequestPartition(0, committed_offset=1, committed_metadata="x" * 32_767)]
    topics = [OffsetCommitRequestTopic(TOPIC, partitions=too_long)]
    yield OffsetCommitRequest(GROUP, 1, MEMBER, topics=topics), 9, {OFFSET_METADATA_TOO_LARGE}
    fetched = OffsetFetchRequestGroup(
        "other", topics=[OffsetFetchRequestTopics(TOPIC, partition_indexes=list(indexes))]
    )
    yield OffsetFetchRequest(groups=[fetched]), 9, {0}


def errors_in(message: Any) -> set[int]:
    """Return all error codes of a response."""
    errors = {message.error_code} if hasattr(message, "error_code") else set()
    for items in ("results", "groups", "topics", "partitions"):
        for item in getattr(message, items, None) or ():
            errors |= errors_in(item)
    return errors


@pytest.mark.slow
@pytest.mark.rule("W-8", "GO-21")
@pytest.mark.parametrize("number", range(len(list(large_requests()))))
async def test_group_request_with_very_many_items_gets_an_error_and_leaks_no_memory(number: int) -> None:
    request, version, errors = list(large_requests())[number]
    async with cluster_with_a_group("3.9") as (cluster, healthy), client_of(cluster) as client:
        assert errors_in(await client.ask(request, version)) == errors
        spare_bytes = 4 * MIB  # buffers that the server keeps for later frames, whatever their number
        with memory_left_within(MIB + spare_bytes):
            for _ in range(6):
                response = await client.ask(request, version)
                assert errors_in(response) == errors
            del response
            await check_group(healthy)


@pytest.mark.rule("W-5")
@pytest.mark.parametrize("version", [8, 9])
async def test_group_request_with_an_overlong_string_closes_the_connection(version: int) -> None:
    """A compact string may announce more than 32767 bytes, which Kafka refuses to read."""
    case = CASES[f"OffsetCommit {version}"]
    text = b"x" * 32_768
    length = bytes([0x81, 0x80, 0x02])  # 32769, one more than the length, as a varint
    async with cluster_with_a_group(case.release) as (cluster, _):
        assert await rest_of(cluster, case.payload[: case.body] + length + text + bytes(100)) == b""
