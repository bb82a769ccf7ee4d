"""Reading topics, groups and offsets of a test cluster and waiting for them (A7); `produce` and `delete_topic` (A8, A9)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.testing.threaded import TestCluster
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkaproto.pipeline.ask import ask
from kafkaproto.testing import GroupSeen, async_cluster, cluster


def commit(c: TestCluster, group: str, **offsets: int) -> None:
    """Commit offsets of partition 0 of topics without being a member."""
    ask(c.bootstrap, FindCoordinatorRequest(group), 3)
    topics = [
        OffsetCommitRequestTopic(topic, partitions=[OffsetCommitRequestPartition(0, offset)])
        for topic, offset in offsets.items()
    ]
    ask(c.bootstrap, OffsetCommitRequest(group, topics=topics), 8)


def test_method_topics_lists_internal_topics_only_if_argument_internal_is_true() -> None:
    with cluster(topics={"orders": 2, "payments": 1}) as c:
        commit(c, "g", orders=0)
        assert c.topics() == {"orders": 2, "payments": 1}
        assert c.topics(internal=True) == {"orders": 2, "payments": 1, "__consumer_offsets": 4}


def test_method_group_returns_committed_offsets_and_lag_of_each_partition() -> None:
    with cluster(topics={"orders": 2, "payments": 1}) as c:
        c.produce("orders", ["a", "b", "c"], partition=0)
        commit(c, "readers", orders=1, payments=0)
        assert c.committed("readers") == {("orders", 0): 1, ("payments", 0): 0}
        assert c.lag("readers") == {("orders", 0): 2, ("payments", 0): 0}
        assert c.committed("nobody") == {}
        with pytest.raises(
            KafkaError, match=r"Group nobody has no committed offsets. Existing groups: readers\."
        ) as raised:
            c.lag("nobody")
        assert raised.value.error_code == 69
        committed, lag = {("orders", 0): 1, ("payments", 0): 0}, {("orders", 0): 2, ("payments", 0): 0}
        expected = GroupSeen("readers", "Empty", "", "", (), "classic", 0, 0, 0, committed, lag)
        assert c.groups() == {"readers": expected}
        assert c.group("readers") == expected


def test_lag_of_a_group_leaves_out_negative_committed_offsets() -> None:
    with cluster(topics={"orders": 1, "other": 1}) as c:
        c.produce("orders", ["a", "b", "c"])
        commit(c, "readers", orders=-1, other=0)
        assert c.lag("readers") == c.group("readers").lag == {("other", 0): 0}
        assert c.committed("readers") == {("orders", 0): -1, ("other", 0): 0}


def test_members_of_a_kafka_connect_group_are_returned_with_an_empty_assignment() -> None:
    with cluster() as c:
        ask(c.bootstrap, FindCoordinatorRequest("workers"), 3)
        protocols = [JoinGroupRequestProtocol("v1", b"anything")]
        first = ask(c.bootstrap, JoinGroupRequest("workers", 10_000, 10_000, "", None, "connect", protocols), 4)
        join = JoinGroupRequest("workers", 10_000, 10_000, first.member_id, None, "connect", protocols)
        joined = ask(c.bootstrap, join, 4)
        assignments = [SyncGroupRequestAssignment(joined.member_id, b"\xff\xff\xff")]
        ask(
            c.bootstrap, SyncGroupRequest("workers", joined.generation_id, joined.member_id, assignments=assignments), 3
        )
        group = c.wait_for_group("workers", members=1, state="Stable")
        [member] = group.members
        assert (group.protocol_type, group.protocol, member.assignment) == ("connect", "v1", ())
        assert (member.member_id, member.group_instance_id) == (joined.member_id, None)


async def test_method_wait_for_group_waits_for_a_stable_group_and_later_for_an_empty_group() -> None:
    async with async_cluster(topics={"orders": 2}) as c:
        c.produce("orders", ["a"], partition=1)
        waiting = asyncio.create_task(c.wait_for_group("readers", members=2, state="Stable"))

        def consumer(client_id: str) -> Any:
            return AIOKafkaConsumer(
                "orders",
                bootstrap_servers=c.bootstrap,
                group_id="readers",
                client_id=client_id,
                auto_offset_reset="earliest",
                heartbeat_interval_ms=100,
            )

        first, second = consumer("one"), consumer("two")
        await first.start()
        await second.start()
        group = await waiting
        assert (group.group_id, group.state, group.protocol_type) == ("readers", "Stable", "consumer")
        assert sorted(member.client_id for member in group.members) == ["one", "two"]
        assert sorted(partition for member in group.members for partition in member.assignment) == [
            ("orders", 0),
            ("orders", 1),
        ]
        await second.stop()
        await c.wait_for_group("readers", members=1, state="Stable")
        assert (await asyncio.wait_for(first.getone(), 10)).value == b"a"
        await first.commit()
        assert c.committed("readers")["orders", 1] == 1
        assert set(c.lag("readers").values()) == {0}
        await first.stop()
        assert (await c.wait_for_group("readers", state="Empty")).members == ()


def test_timeout_error_of_method_wait_for_group_contains_the_state_of_the_group() -> None:
    with cluster(topics={"orders": 1}) as c:
        commit(c, "readers", orders=0)
        with pytest.raises(TimeoutError) as raised:
            c.wait_for_group("readers", members=2, state="Stable", timeout_s=0.05)
        assert str(raised.value).startswith(
            "group readers is Empty with 0 members, and did not reach 2 members and state Stable within 0.05 s; last requests:\n"
        )
        assert "OffsetCommit v8 group readers orders-0 offset 0" in str(raised.value)
        with pytest.raises(TimeoutError, match="group nobody is Dead with 0 members"):
            c.wait_for_group("nobody", timeout_s=0.05)


STATES = "'Empty', 'PreparingRebalance', 'CompletingRebalance', 'Stable', 'Dead', 'Assigning' or 'Reconciling'"


async def never(journal: object) -> None:
    """Return None: a condition that is never fulfilled."""


@pytest.mark.parametrize(
    ("wait", "error", "text"),
    [
        (
            lambda c: c.wait_for_group("g", state="stable"),
            ValueError,
            f"state must be {STATES} (got 'stable'); did you mean 'Stable'?",
        ),
        (
            lambda c: c.wait_for_group("g", state="Sable"),
            ValueError,
            f"state must be {STATES} (got 'Sable'); did you mean 'Stable'?",
        ),
        (
            lambda c: c.wait_for_group("g", state=3),
            ValueError,
            f"state must be {STATES} (got 3); for example state='Stable'",
        ),
        (lambda c: c.wait_for_group("g", members="2"), TypeError, "members must be an int (got '2'); for example 2"),
        (lambda c: c.wait_for_group("g", members=-1), ValueError, "members must be at least 0 (got -1)"),
        (
            lambda c: c.wait_for_group("g", members=2, state="Empty"),
            ValueError,
            "members must be 0 for a group that is Empty (got 2); leave members or state out",
        ),
        (
            lambda c: c.wait_for_group("g", members=0, state="Stable"),
            ValueError,
            "members must be at least 1 for a group that is Stable (got 0); leave members or state out",
        ),
        (lambda c: c.wait_for_group(["g"]), TypeError, "group_id must be a str (got ['g']); for example 'readers'"),
        (
            lambda c: c.wait_for_group("g", timeout_s=None),
            TypeError,
            "timeout_s must be a number of seconds (got None); for example timeout_s=30",
        ),
        (lambda c: c.wait_for_records("t", 1, timeout_s=-1), ValueError, "timeout_s must be 0 to "),
        (lambda c: c.wait_for_records("t", 1, timeout_s=float("inf")), ValueError, "timeout_s must be 0 to "),
        (lambda c: c.wait_for_records("t", "1"), TypeError, "count must be an int (got '1'); for example 3"),
        (
            lambda c: c.wait_for_records("t", 1, partition="0"),
            TypeError,
            "partition must be an int (got '0'); for example 0",
        ),
        (lambda c: c.wait_for(True), TypeError, "condition must be a function of the journal (got True); for example "),
        (
            lambda c: c.wait_for(never),
            TypeError,
            "condition must be a plain function (got the coroutine function never)",
        ),
    ],
    ids=lambda value: value[:50] if isinstance(value, str) else None,
)
async def test_wait_methods_reject_invalid_or_unsatisfiable_arguments_immediately(
    wait: Any, error: type[Exception], text: str
) -> None:
    with cluster() as c, pytest.raises(error) as raised:
        wait(c)
    assert str(raised.value)[: len(text)] == text
    async with async_cluster() as in_loop:
        with pytest.raises(error) as raised:
            await wait(in_loop)
    assert str(raised.value)[: len(text)] == text


def test_wait_for_group_error_counts_members_and_create_topic_error_counts_brokers() -> None:
    with cluster() as c:
        with pytest.raises(TimeoutError, match="with 0 members, and did not reach 1 member within"):
            c.wait_for_group("g", members=1, timeout_s=0)
        with pytest.raises(
            KafkaError, match=r"replication factor of 3 cannot be reached because only 1 broker\(s\) are registered"
        ):
            c.create_topic("t", replication_factor=3)
    with cluster(brokers=2) as c, pytest.raises(KafkaError, match=r"only 2 broker\(s\) are registered"):
        c.create_topic("t", replication_factor=3)


async def test_method_wait_for_records_returns_when_the_last_record_is_written() -> None:
    async with async_cluster(topics={"orders": 2}) as c:
        waiting = asyncio.create_task(c.wait_for_records("orders", 3, timeout_s=5))
        partition_wait = asyncio.create_task(c.wait_for_records("orders", 2, partition=1, timeout_s=5))
        for value in ("a", "b", "c"):
            assert not waiting.done()
            c.produce("orders", [value], partition=0 if value == "a" else 1)
            await asyncio.sleep(0)
        assert [record.value for record in await waiting] == [b"a", b"b", b"c"]
        assert [record.value for record in await partition_wait] == [b"b", b"c"]


def test_timeout_error_of_method_wait_for_records_contains_the_number_of_records() -> None:
    with cluster(topics={"orders": 2}) as c:
        c.produce("orders", ["a"], partition=1)
        assert [record.value for record in c.wait_for_records("orders", 1)] == [b"a"]
        assert c.wait_for_records("orders", 0) != []
        with pytest.raises(TimeoutError, match=r"orders has 1 record, and did not reach 2 within 0\.05 s"):
            c.wait_for_records("orders", 2, timeout_s=0.05)
        with pytest.raises(TimeoutError, match=r"orders-0 has 0 records, and did not reach 1 within"):
            c.wait_for_records("orders", 1, partition=0, timeout_s=0.05)
        with pytest.raises(TimeoutError, match=r"none has 0 records"):
            c.wait_for_records("none", 1, timeout_s=0.05)


# ---- produce and delete --------------------------------------------------------------------------------------------------------------


def test_method_produce_creates_a_missing_topic_only_if_auto_creation_is_enabled() -> None:
    with cluster() as c:
        c.produce("new", ["a"])
        assert c.topics() == {"new": 1}
    with cluster(config={"auto.create.topics.enable": False}) as c:
        with pytest.raises(
            KafkaError,
            match=r"There is no topic new, and auto\.create\.topics\.enable is false; call create_topic first\.",
        ) as raised:
            c.produce("new", ["a"])
        assert raised.value.error_code == 3
        assert c.topics() == {}


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["a", {"a": 1}], "values[1] must be bytes, str or None (got dict); encode it, for example json.dumps(...)"),
        ([7], "values[0] must be bytes, str or None (got int); encode it, for example json.dumps(...)"),
        (["a", ("k", 7)], "the value of values[1] must be bytes, str or None (got int)"),
        ([(7, "v")], "the key of values[0] must be bytes, str or None (got int)"),
        ([("a", "b", "c")], "values[0] must be a value, a (key, value) pair, or a NewRecord"),
    ],
)
def test_method_produce_rejects_values_of_wrong_type_before_writing_any_record(values: Any, text: str) -> None:
    with cluster(topics={"orders": 1}) as c:
        with pytest.raises(TypeError) as raised:
            c.produce("orders", values)
        assert str(raised.value).startswith(text)
        with pytest.raises(TypeError):
            c.produce("new", values)
        assert c.records("orders") == []
        assert c.topics() == {"orders": 1}


def test_method_produce_stores_text_and_bytes_and_bytearray_and_memoryview_and_none() -> None:
    with cluster(topics={"orders": 1}) as c:
        c.produce("orders", [b"a", "ä", None, bytearray(b"c"), memoryview(b"d")])  # type: ignore[list-item]
        assert [record.value for record in c.records("orders")] == [b"a", "ä".encode(), None, b"c", b"d"]


def test_error_for_deleting_an_unknown_topic_lists_the_existing_topics() -> None:
    with cluster(topics={"orders": 1}) as c:
        with pytest.raises(KafkaError, match=r"There is no topic nope\. Existing topics: orders\.") as raised:
            c.delete_topic("nope")
        assert raised.value.error_code == 3
