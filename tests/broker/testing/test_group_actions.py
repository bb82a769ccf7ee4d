"""Groups of both protocols through the test API: what `group` shows, the history, and members and coordinators that a test changes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafkaproto.broker.testing.threaded import TestCluster
from kafkaproto.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkaproto.pipeline.ask import ask
from kafkaproto.testing import (
    AsyncTestCluster,
    Cause,
    CauseKind,
    GroupSeen,
    MemberSeen,
    RebalanceSeen,
    async_cluster,
    cluster,
)
from tests.support.broker.group_bench import subscription

NONE, NOT_COORDINATOR, UNKNOWN_MEMBER, FENCED_INSTANCE, FENCED_EPOCH = 0, 16, 25, 82, 110
ALL = (("orders", 0), ("orders", 1), ("orders", 2), ("orders", 3))
NEW = {"release": "4.2", "topics": {"orders": 4}}


def address(c: TestCluster, group_id: str) -> str:
    """Return the host:port of the group's coordinator."""
    [coordinator] = ask(c.bootstrap_servers[0], FindCoordinatorRequest(coordinator_keys=[group_id]), 4).coordinators
    return f"{coordinator.host}:{coordinator.port}"


def beat(c: TestCluster, member_id: str, epoch: int, owned: list[int] | None = None, **options: Any) -> Any:
    """Send ConsumerGroupHeartbeat for group `readers`, with a subscription to `orders` if the member joins (epoch 0)."""
    request = ConsumerGroupHeartbeatRequest("readers", member_id, epoch, **options)
    if epoch == 0:
        request.rebalance_timeout_ms, request.subscribed_topic_names = 60_000, ["orders"]
    if owned is not None:
        topic_id = c.run_in_loop(lambda: c.state.controller.image.topics["orders"].topic_id)
        request.topic_partitions = [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id, owned)] if owned else []
    return ask(address(c, "readers"), request, 1)


def join_classic(c: TestCluster, instance: str | None = None) -> str:
    """Make classic group `readers` Stable with one member, and return its member id."""
    protocols = [JoinGroupRequestProtocol("range", subscription("orders"))]
    coordinator_address = address(c, "readers")
    joined = ask(
        coordinator_address,
        JoinGroupRequest("readers", 10_000, 10_000, "", instance, "consumer", protocols),
        5 if instance else 3,
    )
    assignments = [
        SyncGroupRequestAssignment(
            joined.member_id, subscription("orders")[:-4] + b"\x00\x00\x00\x01\x00\x00\x00\x02" + b"\xff" * 4
        )
    ]
    ask(
        coordinator_address,
        SyncGroupRequest("readers", joined.generation_id, joined.member_id, assignments=assignments),
        2,
    )
    return str(joined.member_id)


def heartbeat(c: TestCluster, member_id: str, generation: int, instance: str | None = None) -> int:
    request = HeartbeatRequest("readers", generation, member_id, instance)
    return int(ask(address(c, "readers"), request, 3).error_code)


# ---- group -------------------------------------------------------------------------------------------------------------------


def test_method_group_returns_the_assignment_and_lag_of_a_consumer_group() -> None:
    with cluster(**NEW) as c:
        c.produce("orders", ["a", "b", "c"], partition=1)
        beat(c, "A", 0, [])
        partition = OffsetCommitRequestPartition(1, 1)
        commit = OffsetCommitRequest(
            "readers", 1, "A", topics=[OffsetCommitRequestTopic("orders", partitions=[partition])]
        )
        assert ask(address(c, "readers"), commit, 9).topics[0].partitions[0].error_code == NONE
        beat(c, "B", 0, [], instance_id="two")
        beat(c, "A", 1, [0, 1, 2, 3])
        group = c.group("readers")
        first, second = group.members
        assert (group.state, group.group_type, group.protocol_type, group.protocol) == (
            "Reconciling",
            "consumer",
            "consumer",
            "uniform",
        )
        assert (group.epoch, group.assignment_epoch, group.coordinator) == (2, 2, 0)
        assert (group.committed, group.lag) == ({("orders", 1): 1}, {("orders", 1): 2})
        assert set(first.target) | set(second.target) == set(ALL) and len(first.target) == 2
        assert (first.assignment, first.member_epoch) == (first.target, 1)
        assert set(first.pending_revocation) == set(second.target)
        assert second == MemberSeen(
            "B", "two", "kafkaproto", "/127.0.0.1", (), ("orders",), 2, second.target, ()
        )._replace(client_id=second.client_id)
        assert c.groups() == {"readers": group}


def test_method_group_returns_generation_and_coordinator_and_topics_of_classic_group() -> None:
    with cluster(topics={"orders": 4}) as c:
        member_id = join_classic(c)
        group = c.group("readers")
        [member] = group.members
        assert (group.group_type, group.state, group.protocol) == ("classic", "Stable", "range")
        assert (group.epoch, group.assignment_epoch, group.coordinator) == (1, 1, 0)
        assert (member.member_id, member.topics, member.member_epoch) == (member_id, ("orders",), None)
        assert member.assignment == member.target == (("orders", 2),)
        assert member.pending_revocation == ()


def test_lag_attribute_of_a_group_omits_partitions_without_leader() -> None:
    with cluster(brokers=2, topics={"orders": {"assignment": {0: [0], 1: [1]}}}) as c:
        topics = [OffsetCommitRequestTopic("orders", partitions=[OffsetCommitRequestPartition(i, 0) for i in (0, 1)])]
        ask(address(c, "readers"), OffsetCommitRequest("readers", topics=topics), 8)
        c.broker(1).stop()
        group = c.group("readers")
        assert (group.committed, group.lag) == ({("orders", 0): 0, ("orders", 1): 0}, {("orders", 0): 0})


# ---- history -----------------------------------------------------------------------------------------------------------------


def test_causes_of_rebalances_can_still_be_queried_after_the_cluster_has_stopped() -> None:
    with cluster(**NEW, clock="manual") as c:
        beat(c, "A", 0, [])
        c.clock.advance(2000)
        beat(c, "A", -1)
        rebalances = c.rebalances("readers")
        assert [type(entry) for entry in rebalances] == [RebalanceSeen, RebalanceSeen]
        assert [(entry.from_epoch, entry.to_epoch, entry.causes) for entry in rebalances] == [
            (0, 1, (Cause(CauseKind.JOINED, "A"),)),
            (1, 2, (Cause(CauseKind.LEFT, "A"),)),
        ]
        assert [entry.elapsed_ms for entry in rebalances] == [0, 2000]
        lines = c.explain().splitlines()
        assert lines[-2:] == [
            "+0.000 s broker 0 group readers: epoch 0 to 1, Stable after 0 ms with A: member A joined",
            "+2.000 s broker 0 group readers: epoch 1 to 2, Empty after 0 ms with no members: member A left",
        ]
        assert [line for line in c.explain(1).splitlines() if " group readers: epoch" in line] == lines[-1:]
        assert "group readers: epoch" not in c.explain(0)
    assert c.rebalances("readers") == rebalances
    assert c.explain().splitlines()[-1] == lines[-1]


def test_method_rebalances_returns_an_empty_list_for_a_group_without_members() -> None:
    with cluster(topics={"orders": 1}) as c:
        topics = [OffsetCommitRequestTopic("orders", partitions=[OffsetCommitRequestPartition(0, 0)])]
        ask(address(c, "readers"), OffsetCommitRequest("readers", topics=topics), 8)
        assert c.rebalances("readers") == []
        c.reset()
        with pytest.raises(ValueError, match="group_id must be the id of an existing group"):
            c.rebalances("readers")


# ---- expire and fence --------------------------------------------------------------------------------------------------------


def test_method_expire_member_removes_a_kip_848_member_which_must_then_join_again() -> None:
    with cluster(**NEW) as c:
        beat(c, "A", 0, [])
        c.expire_member("readers", "A")
        assert c.group("readers").state == "Empty"
        assert beat(c, "A", 1).error_code == UNKNOWN_MEMBER
        assert c.rebalances("readers")[-1].causes == (Cause(CauseKind.SESSION_TIMED_OUT, "A"),)


def test_method_expire_member_removes_a_classic_member_which_must_then_join_again() -> None:
    with cluster(topics={"orders": 4}) as c:
        member_id = join_classic(c)
        c.expire_member("readers", member_id)
        assert c.wait_for_group("readers", members=0, state="Empty").epoch == 2
        assert heartbeat(c, member_id, 1) == UNKNOWN_MEMBER
        assert c.rebalances("readers")[-1].causes == (Cause(CauseKind.SESSION_TIMED_OUT, member_id),)


@pytest.mark.parametrize("instance", [None, "one"])
def test_fenced_kip_848_member_gets_error_fenced_member_epoch_until_it_joins_again(instance: str | None) -> None:
    with cluster(**NEW) as c:
        beat(c, "A", 0, [], instance_id=instance)
        c.fence_member("readers", "A")
        assert c.group("readers").members == ()
        for _ in range(2):
            refused = beat(c, "A", 1, instance_id=instance)
            assert (refused.error_code, refused.error_message) == (
                FENCED_EPOCH,
                "Member A of group readers was fenced. The member must abandon all its partitions and rejoin.",
            )
        assert beat(c, "X", 1).error_code == UNKNOWN_MEMBER
        assert beat(c, "A", 0, [], instance_id=instance).member_epoch == 3
        assert beat(c, "A", 3, instance_id=instance).error_code == NONE
        assert [entry.causes for entry in c.rebalances("readers")] == [
            (Cause(CauseKind.JOINED, "A"),),
            (Cause(CauseKind.FENCED, "A"),),
            (Cause(CauseKind.JOINED, "A"),),
        ]


def test_fenced_static_member_of_a_classic_group_gets_fenced_instance_id_error() -> None:
    with cluster(topics={"orders": 4}, clock="manual") as c:
        member_id = join_classic(c, "one")
        c.fence_member("readers", member_id)
        assert heartbeat(c, member_id, 1, "one") == FENCED_INSTANCE
        [second] = c.group("readers").members
        assert (second.group_instance_id, second.member_id != member_id) == ("one", True)
        assert second.assignment == (("orders", 2),)
        assert c.journal.events("group")[-1].facts["causes"] == [
            f"member {second.member_id} replaced static member {member_id}"
        ]
        c.clock.advance(10_000)
        assert c.group("readers").state == "Empty"


def test_method_fence_member_rejects_a_dynamic_member_of_a_classic_group() -> None:
    with cluster(topics={"orders": 4}) as c:
        member_id = join_classic(c)
        with pytest.raises(ValueError) as raised:
            c.fence_member("readers", member_id)
        assert str(raised.value) == (
            f"member_id must be a static member of classic group 'readers' (got the dynamic member '{member_id}'); "
            "set group.instance.id in the client, or call expire_member"
        )
        assert heartbeat(c, member_id, 1) == NONE


# ---- coordinators ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("load_ms", [0, 50])
def test_after_method_move_coordinator_the_old_coordinator_rejects_group_requests(load_ms: int) -> None:
    with cluster(brokers=2, config={"kafkaproto.group.load.ms": load_ms}, **NEW) as c:
        while beat(c, "A", 0, []).error_code:  # the first coordinator is loading, too
            pass
        old_address, old = address(c, "readers"), c.group("readers").coordinator
        assert old is not None
        moved = c.move_coordinator("readers", 1 - old)
        assert isinstance(moved, GroupSeen) and (moved.coordinator, moved.epoch) == (1 - old, 1)
        assert address(c, "readers") != old_address
        request = ConsumerGroupHeartbeatRequest("readers", "A", 1)
        assert ask(old_address, request, 1).error_code == NOT_COORDINATOR
        assert beat(c, "A", 1).error_code == NONE
        assert c.move_coordinator("readers", 1 - old).coordinator == 1 - old


def test_method_move_coordinator_raises_timeout_error_if_the_group_loads_too_slowly() -> None:
    with cluster(brokers=2, clock="manual", config={"kafkaproto.group.load.ms": 500}, **NEW) as c:
        beat(c, "A", 0, [])
        c.clock.advance(500)
        assert beat(c, "A", 0, []).error_code == NONE
        old = c.group("readers").coordinator
        assert old is not None
        text = f"group readers is not loaded by any broker, and broker {1 - old} did not load it within 0.05 s"
        with pytest.raises(TimeoutError, match=text):
            c.move_coordinator("readers", 1 - old, timeout_s=0.05)
        c.clock.advance(500)
        assert c.group("readers").coordinator == 1 - old


def test_coordinator_cannot_move_to_a_stopped_broker_or_a_broker_without_a_replica() -> None:
    with cluster(brokers=2, config={"offsets.topic.replication.factor": 1}, **NEW) as c:
        beat(c, "A", 0, [])
        old = c.group("readers").coordinator
        assert old is not None
        with pytest.raises(ValueError) as raised:
            c.move_coordinator("readers", 1 - old)
        text = str(raised.value)
        assert text.startswith("broker_id must be a running broker with an in-sync replica of __consumer_offsets-")
        assert text.endswith(
            f", the partition of group 'readers' (got {1 - old}; in sync are [{old}]); choose one of them, start broker {1 - old}, or raise "
            "offsets.topic.replication.factor"
        )
    with cluster(brokers=2, **NEW) as c:
        beat(c, "A", 0, [])
        old = c.group("readers").coordinator
        assert old is not None
        c.broker(1 - old).stop()
        with pytest.raises(ValueError, match="broker_id must be a running broker"):
            c.move_coordinator("readers", 1 - old)


async def test_async_method_move_coordinator_returns_the_group_at_its_new_coordinator() -> None:
    async with async_cluster(brokers=2, config={"kafkaproto.group.load.ms": 50}, **NEW) as c:
        old = c.run_in_loop(lambda: c.state.coordinator_of("readers"))
        await asyncio.sleep(0.2)
        topics = [OffsetCommitRequestTopic("orders", partitions=[OffsetCommitRequestPartition(0, 0)])]
        bootstrap = c.bootstrap_servers[old]
        await asyncio.to_thread(ask, bootstrap, OffsetCommitRequest("readers", topics=topics), 8)
        assert c.group("readers").coordinator == old
        moved = await c.move_coordinator("readers", 1 - old)
        assert (moved.coordinator, moved.committed) == (1 - old, {("orders", 0): 0})


# ---- waiting -----------------------------------------------------------------------------------------------------------------


async def test_method_wait_for_group_accepts_each_state_of_a_consumer_group() -> None:
    with cluster(**NEW) as c:

        async def waiting(state: str, members: int) -> asyncio.Task[GroupSeen]:
            task = asyncio.create_task(asyncio.to_thread(c.wait_for_group, "readers", members, state))
            await asyncio.sleep(0.1)
            return task

        stable = await waiting("Stable", 1)
        await asyncio.to_thread(beat, c, "A", 0, [])
        assert (await stable).epoch == 1
        reconciling = await waiting("Reconciling", 2)
        await asyncio.to_thread(beat, c, "B", 0, [])
        assert (await reconciling).epoch == 2
        assigning = await waiting("Assigning", 1)
        await asyncio.to_thread(beat, c, "B", -1)
        assigning_group = await assigning
        assert (assigning_group.epoch, assigning_group.assignment_epoch) == (3, 2)
        empty = await waiting("Empty", 0)
        c.expire_member("readers", "A")
        assert (await empty).members == ()


@pytest.mark.parametrize("state", ["Assigning", "Reconciling"])
def test_method_wait_for_group_rejects_0_members_in_state_assigning_or_reconciling(state: str) -> None:
    text = rf"members must be at least 1 for a group that is {state} \(got 0\); leave members or state out"
    with cluster() as c, pytest.raises(ValueError, match=text):
        c.wait_for_group("readers", members=0, state=state)


def test_method_wait_for_group_sees_an_empty_group_after_the_only_member_expires() -> None:
    with cluster(**NEW, clock="manual") as c:
        beat(c, "A", 0, [])
        c.clock.advance(45_000)
        assert c.wait_for_group("readers", members=0, state="Empty").epoch == 2


# ---- wrong arguments ---------------------------------------------------------------------------------------------------------


WRONG = [
    (
        "group",
        ("readrs",),
        ValueError,
        "group_id must be the id of an existing group (got 'readrs'); did you mean 'readers'?",
    ),
    ("group", ("x",), ValueError, "group_id must be the id of an existing group (got 'x'); known are 'readers'"),
    ("group", (7,), TypeError, "group_id must be a str (got 7); for example 'readers'"),
    ("group", ("",), ValueError, "group_id must not be empty; for example 'readers'"),
    ("rebalances", ("x",), ValueError, "group_id must be the id of an existing group (got 'x'); known are 'readers'"),
    ("rebalances", (["readers"],), TypeError, "group_id must be a str (got ['readers']); for example 'readers'"),
    (
        "expire_member",
        ("x", "A"),
        ValueError,
        "group_id must be the id of an existing group (got 'x'); known are 'readers'",
    ),
    (
        "expire_member",
        ("readers", "X"),
        ValueError,
        "member_id must be the id of a member of group 'readers' (got 'X'); known are 'member-A', 'member-B'",
    ),
    (
        "fence_member",
        ("readers", "member-C"),
        ValueError,
        "member_id must be the id of a member of group 'readers' (got 'member-C'); did you mean 'member-B'?",
    ),
    (
        "fence_member",
        ("readers", None),
        TypeError,
        "member_id must be a str (got None); for example 'consumer-1-a0b1c2'",
    ),
    (
        "move_coordinator",
        ("x", 0),
        ValueError,
        "group_id must be the id of an existing group (got 'x'); known are 'readers'",
    ),
    ("move_coordinator", ("readers", 2), ValueError, "there is no broker 2: ids are 0 to 1"),
    ("move_coordinator", ("readers", "1"), TypeError, "broker_id must be an int (got '1'); for example 0"),
    ("move_coordinator", ("readers", 0, -1), ValueError, "timeout_s must be 0 to "),
]


@pytest.fixture(scope="module")
def readers() -> Any:
    with cluster(brokers=2, **NEW) as c:
        beat(c, "member-A", 0, [])
        beat(c, "member-B", 0, [])
        yield c


@pytest.mark.parametrize(("method", "arguments", "error", "text"), WRONG, ids=[f"{w[0]}{w[1]}" for w in WRONG])
def test_error_for_an_unknown_group_or_member_or_broker_says_how_to_correct_the_call(
    readers: TestCluster, method: str, arguments: tuple[Any, ...], error: type[Exception], text: str
) -> None:
    before = readers.group("readers")
    with pytest.raises(error) as raised:
        getattr(readers, method)(*arguments)
    assert str(raised.value)[: len(text)] == text
    assert readers.group("readers") == before


async def test_async_cluster_offers_the_same_group_methods_as_the_threaded_cluster() -> None:
    async with async_cluster(topics={"orders": 4}) as c:
        assert isinstance(c, AsyncTestCluster)
        with pytest.raises(
            ValueError, match=r"group_id must be the id of an existing group \(got 'readers'\); there is none yet"
        ):
            c.group("readers")
        protocols = [JoinGroupRequestProtocol("range", subscription("orders"))]
        join = JoinGroupRequest("readers", 10_000, 10_000, "", None, "consumer", protocols)
        await asyncio.to_thread(ask, c.bootstrap, FindCoordinatorRequest(coordinator_keys=["readers"]), 4)
        joined = await asyncio.to_thread(ask, c.bootstrap, join, 3)
        assert c.group("readers").state == "CompletingRebalance"
        c.expire_member("readers", joined.member_id)
        assert (await c.wait_for_group("readers", state="Empty")).epoch == 2
        assert len(c.rebalances("readers")) == 2
        with pytest.raises(ValueError, match="there is none yet"):
            c.fence_member("readers", joined.member_id)
