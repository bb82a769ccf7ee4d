"""A view of a frame is invalid after `begin` returns: code that parks, runs later or reports later must copy what it keeps.

See docs/explanation/architecture.md.
Two modes check this. `poison` overwrites the bytes of every frame after it is handled, on real sockets, and all results must still be
correct. `take back` gives each frame its own memory and releases that memory, which fails if a view is still held.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from kafkaproto.api import APIS
from kafkaproto.broker.requests import pipeline
from kafkaproto.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.messages.describe_groups import DescribeGroupsRequest
from kafkaproto.messages.fetch import FetchRequest
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkaproto.testing import async_cluster
from tests.support.raw import client_of
from tests.support.wire import batch, fetch, flat, metadata, produce, produced

POISON = 0xA5
Begin = Callable[[Any, Any, memoryview, int], None]
real_begin: Begin = pipeline.begin


def poisoning(node: Any, asker: Any, frame: memoryview, now_ms: int) -> None:
    real_begin(node, asker, frame, now_ms)
    frame[:] = bytes([POISON]) * len(frame)


def taking_back(node: Any, asker: Any, frame: memoryview, now_ms: int) -> None:
    lent = bytearray(frame)
    view = memoryview(lent)
    key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
    real_begin(node, asker, view, now_ms)
    view.release()
    try:
        lent.clear()
    except BufferError:
        raise AssertionError(f"{APIS[key].name} v{version} keeps a view of its frame") from None


@pytest.fixture(params=[poisoning, taking_back], ids=["poison", "take back"], autouse=True)
def _frames_die(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "begin", request.param)


async def test_handler_that_keeps_a_memoryview_is_detected_by_overwriting_request_buffers(
    monkeypatch: pytest.MonkeyPatch, errors_expected: list[str]
) -> None:
    """A handler that keeps a view is detected by its overwritten text or by memory that is not released."""
    errors_expected.append("a request failed")
    kept_views = []

    def keeping(node: Any, asker: Any, frame: memoryview, now_ms: int) -> None:
        kept_views.append(frame[-1:])
        original(node, asker, frame, now_ms)

    original = real_begin
    monkeypatch.setitem(globals(), "real_begin", keeping)
    async with async_cluster() as cluster, client_of(cluster) as client:
        await client.send(metadata(), 1)
        await cluster.wait_for(lambda journal: journal.requests())
        await cluster.server.loop.settle()
        assert not cluster.state.nodes[0].connections or bytes(kept_views[0]) == bytes([POISON])


@pytest.mark.rule("P-13")
async def test_waiting_produce_stores_its_records_although_its_request_buffer_is_reused() -> None:
    async with async_cluster(3, {"topic-of-the-test": {"replication_factor": 3}}, clock="manual") as cluster:
        for follower in (1, 2):
            cluster.follower("topic-of-the-test", 0, follower).hold()
        leader = cluster.partition("topic-of-the-test", 0).leader
        async with client_of(cluster, leader) as client:
            data = batch(b"first" * 100, b"second" * 100)
            await client.send(produce("topic-of-the-test", data, acks=-1, timeout_ms=60_000), 9)
            await client.send_bytes(client.frame(metadata(["other"]), 4))
            await cluster.server.loop.settle()
            assert cluster.journal.requests() == []
            for follower in (1, 2):
                cluster.follower("topic-of-the-test", 0, follower).release()
            response = (await client.answer()).message
            assert response.responses[0].name == "topic-of-the-test"
            assert produced(response).error_code == 0
            assert [r.value for r in cluster.records("topic-of-the-test")] == [b"first" * 100, b"second" * 100]
            assert [s.client_id for s in cluster.journal.requests("Produce")] == ["raw"]


@pytest.mark.rule("F-29")
@pytest.mark.parametrize("version", [4, 11, 12, 13, 17])
async def test_waiting_fetch_returns_new_records_although_its_request_buffer_is_reused(version: int) -> None:
    async with async_cluster(topics={"alpha": 1, "beta": 1}, clock="manual") as cluster:
        ids = {name: topic.topic_id for name, topic in cluster.state.controller.image.topics.items()}
        async with client_of(cluster, client_id="the reader") as client, client_of(cluster) as writer:
            session = (0, 0) if version >= 7 else (0, -1)
            first = await client.ask(
                fetch(("alpha", 0, 0), ("beta", 0, 0), session=session, topic_ids=ids, version=version), version
            )
            again: FetchRequest = fetch(("alpha", 0, 0), ("beta", 0, 0), max_wait_ms=60_000, version=version)
            if version >= 7:
                again = fetch(session=(first.session_id, 1), max_wait_ms=60_000, version=version)
            await client.send(again, version)
            await cluster.wait_for(lambda journal: journal.events("parked"))
            await writer.ask(metadata(["noise" * 40]), 4)
            await writer.ask(produce("beta", batch(b"news")), 9)
            response = (await client.answer()).message
            topics = {t.topic_id if version >= 13 else t.topic: t for t in response.responses}
            news = topics[ids["beta"] if version >= 13 else "beta"].partitions[0]
            assert bytes(news.records)[-8:].find(b"news") >= 0
            assert cluster.journal.events("parked")[0].facts["client_id"] == "the reader"


META_OF_ONE, META_OF_TWO = (struct.pack(">hii", 0, 0, len(data)) + data for data in (b"meta of one", b"meta of two"))
"""Subscriptions without topics, with user data."""


def join(member_id: str = "", name: str = "range", metadata_bytes: bytes = b"") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="the-group",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name, metadata_bytes)],
    )


async def test_group_keeps_its_members_and_offsets_although_request_buffers_are_reused() -> None:
    async with (
        async_cluster(topics={"t": 2}, clock="manual") as cluster,
        client_of(cluster, client_id="one") as client_a,
        client_of(cluster, client_id="two") as two,
    ):
        await client_a.ask(FindCoordinatorRequest(key="the-group"), 2)
        first = await client_a.ask(join(metadata_bytes=META_OF_ONE), 3)
        assert (first.error_code, first.member_id[:4]) == (0, "one-")
        await two.send(join(metadata_bytes=META_OF_TWO), 3)
        await client_a.ask(HeartbeatRequest("the-group", first.generation_id, first.member_id), 2)
        await client_a.send(join(first.member_id, metadata_bytes=META_OF_ONE), 3)
        leader, follower = (await client_a.answer()).message, (await two.answer()).message
        metadata_by_member = {m.member_id: bytes(m.metadata) for m in leader.members}
        assert metadata_by_member == {first.member_id: META_OF_ONE, follower.member_id: META_OF_TWO}

        await two.send(SyncGroupRequest("the-group", follower.generation_id, follower.member_id), 2)
        await cluster.server.loop.settle()
        assignments = [
            SyncGroupRequestAssignment(leader.member_id, b"for one"),
            SyncGroupRequestAssignment(follower.member_id, b"for two"),
        ]
        synced = await client_a.ask(
            SyncGroupRequest("the-group", leader.generation_id, leader.member_id, None, None, None, assignments), 2
        )
        assert (bytes(synced.assignment), bytes((await two.answer()).message.assignment)) == (b"for one", b"for two")

        partition = OffsetCommitRequestPartition(1, 77, committed_metadata="what I remember")
        commit = OffsetCommitRequest(
            "the-group",
            leader.generation_id,
            leader.member_id,
            topics=[OffsetCommitRequestTopic("t", partitions=[partition])],
        )
        await client_a.ask(commit, 7)
        await client_a.ask(metadata(["noise" * 40]), 4)
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup("the-group", topics=[OffsetFetchRequestTopics("t", partition_indexes=[1])])]
        )
        [group] = (await two.ask(request, 8)).groups
        [place] = group.topics[0].partitions
        assert (group.topics[0].name, place.committed_offset, place.metadata) == ("t", 77, "what I remember")
        [described] = (await two.ask(DescribeGroupsRequest(["the-group"]), 0)).groups
        assert (described.group_id, described.protocol_type, described.protocol_data) == (
            "the-group",
            "consumer",
            "range",
        )
        assert {m.client_id: bytes(m.member_metadata) for m in described.members} == {
            "one": META_OF_ONE,
            "two": META_OF_TWO,
        }
        [listed] = (await two.ask(ListGroupsRequest(), 0)).groups
        assert listed.group_id == "the-group"


async def test_topics_keep_their_names_and_settings_although_request_buffers_are_reused() -> None:
    async with async_cluster() as cluster, client_of(cluster) as client:
        topic = CreatableTopic("made-here", 2, 1, configs=[CreatableTopicConfig("max.message.bytes", "12345")])
        await client.ask(CreateTopicsRequest([topic]), 4)
        await client.ask(metadata(["auto-made"]), 4)
        await client.ask(metadata(["noise" * 40]), 4)
        response = await client.ask(metadata(None), 4)
        assert {"made-here", "auto-made"} <= {t.name for t in response.topics}
        assert cluster.state.controller.image.topics["made-here"].configs == {"max.message.bytes": "12345"}
        await client.ask(DeleteTopicsRequest(topic_names=["made-here"], timeout_ms=1000), 1)
        assert "made-here" not in cluster.state.controller.image.topics


@pytest.mark.rule("P-17")
async def test_resent_idempotent_batch_is_stored_once_although_request_buffers_are_reused() -> None:
    async with async_cluster(topics={"t": 1}) as cluster, client_of(cluster) as client:
        init_response = await client.ask(InitProducerIdRequest(None, 60_000), 1)
        for sequence in range(3):
            options = {"producer_id": init_response.producer_id, "producer_epoch": 0, "base_sequence": sequence}
            response = await client.ask(produce("t", batch(b"%d" % sequence, **options)), 9)
            assert produced(response).error_code == 0
            again = await client.ask(produce("t", batch(b"%d" % sequence, **options)), 9)
            assert (produced(again).error_code, produced(again).base_offset) == (0, sequence)
        assert [r.value for r in cluster.records("t")] == [b"0", b"1", b"2"]


@pytest.mark.rule("Q-4")
async def test_quota_still_throttles_a_client_id_although_request_buffers_are_reused() -> None:
    async with (
        async_cluster(topics={"t": 1}, clock="manual") as cluster,
        client_of(cluster, client_id="limited") as client,
    ):
        cluster.set_quota(client_id="limited", producer_byte_rate=1000.0)
        first = await client.ask(produce("t", batch(bytes(15_000))), 9)
        assert first.throttle_time_ms > 0
        await cluster.clock.advance(first.throttle_time_ms)
        second = await client.ask(produce("t", batch(bytes(15_000))), 9)
        assert second.throttle_time_ms > first.throttle_time_ms
        assert [request.client_id for request in cluster.journal.requests(client_id="limited")] == [
            "limited",
            "limited",
        ]


@pytest.mark.rule("W-9")
async def test_pipelined_produces_keep_their_records_although_request_buffers_are_reused() -> None:
    """Pipelined frames are adjacent in one buffer; large ones move into their own buffer."""
    async with async_cluster(topics={"t": 1}) as cluster, client_of(cluster) as client:
        values = [bytes([i]) * size for i, size in enumerate([10, 70_000, 600_000, 3, 900_000, 100] * 3)]
        await client.send_bytes(b"".join(client.frame(produce("t", batch(value)), 9) for value in values))
        for _ in values:
            assert produced((await client.answer()).message).error_code == 0
        assert [r.value for r in cluster.records("t")] == values
        [(_, data)] = flat(await client.ask(fetch(("t", 0, 0), partition_max=1 << 30), 11))
        assert all(value in bytes(data.records) for value in values)
