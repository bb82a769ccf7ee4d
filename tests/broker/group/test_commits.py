"""Committed offsets: who may commit, what is refused, what is forgotten when (KIP-211)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.results import LeavingMember
from kafkaproto.broker.group.subscription import subscribed_topics
from tests.support.broker.group_bench import DELAY_MS, Bench, subscription

METADATA_TOO_LARGE, ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING = 12, 22, 25, 27
GROUP_NOT_FOUND, NON_EMPTY_GROUP = 69, 68
T0, T1 = ("t", 0), ("t", 1)
RETENTION_MS = 7 * 24 * 3_600_000
CHECK_MS = 600_000


def committed(bench: Bench, offset: int, metadata: str = "", expire_ms: int | None = None) -> CommittedOffset:
    return CommittedOffset(offset, -1, metadata, bench.now_ms, expire_ms)


def commit(
    bench: Bench,
    offset: int,
    member: str = "",
    generation: int = -1,
    keys: tuple[PartitionKey, ...] = (T0,),
    **more: object,
) -> int:
    offsets = {key: committed(bench, offset, **more) for key in keys}  # type: ignore[arg-type]
    codes = set(bench.coordinator.commits.commit("g", generation, member, None, offsets, bench.now_ms).values())
    assert len(codes) == 1
    return int(codes.pop())


def fetched(bench: Bench, key: PartitionKey = T0) -> int | None:
    found = bench.coordinator.commits.fetch("g", [key])[key]
    return None if found is None else found.offset


def test_without_members_anybody_may_commit_and_the_group_comes_to_be(bench: Bench) -> None:
    assert commit(bench, 5) == 0
    assert [tuple(g) for g in bench.coordinator.list_groups()] == [("g", "", "Empty")]
    assert fetched(bench) == 5 and fetched(bench, T1) is None
    assert commit(bench, 3) == 0 and fetched(bench) == 3


def test_a_generation_of_a_group_that_is_not_there(bench: Bench) -> None:
    assert commit(bench, 5, "m", 1) == ILLEGAL_GENERATION
    assert bench.coordinator.list_groups() == []
    commit(bench, 5)
    assert commit(bench, 6, "m", 1) == UNKNOWN_MEMBER


def test_with_members_only_members_of_the_generation_commit(bench: Bench) -> None:
    (member,) = bench.stable(1)
    assert commit(bench, 1) == UNKNOWN_MEMBER
    assert commit(bench, 1, "m", 1) == UNKNOWN_MEMBER
    assert commit(bench, 1, member, 0) == ILLEGAL_GENERATION
    assert commit(bench, 1, member, -1) == ILLEGAL_GENERATION
    assert fetched(bench) is None
    assert commit(bench, 1, member, 1) == 0 and fetched(bench) == 1


def test_commits_during_a_rebalance(bench: Bench) -> None:
    leader, follower = bench.stable(2)
    joins = [bench.join(leader)]
    # While members are collected a commit is welcome: it is what a consumer does before it joins again.
    assert commit(bench, 7, follower, 1) == 0
    joins.append(bench.join(follower))
    assert joins[1].answer.generation_id == 2
    assert commit(bench, 8, follower, 1) == ILLEGAL_GENERATION
    assert commit(bench, 8, follower, 2) == REBALANCING
    assert fetched(bench) == 7


def test_metadata_has_a_limit_in_utf16_units_and_the_other_partitions_are_kept() -> None:
    bench = Bench(offset_metadata_max_bytes=10)
    offsets = {
        T0: committed(bench, 1, "x" * 11),
        T1: committed(bench, 2, "x" * 10),
        ("t", 2): committed(bench, 3, "é" * 10),
        ("t", 3): committed(bench, 4, "\N{GRINNING FACE}" * 6),
    }
    codes = bench.coordinator.commits.commit("g", -1, "", None, offsets, bench.now_ms)
    assert codes == {T0: METADATA_TOO_LARGE, T1: 0, ("t", 2): 0, ("t", 3): METADATA_TOO_LARGE}
    assert fetched(bench) is None and fetched(bench, T1) == 2


def test_fetch_of_all_gives_what_was_committed_and_of_no_group_nothing(bench: Bench) -> None:
    assert bench.coordinator.commits.fetch("g", None) == {}
    assert bench.coordinator.commits.fetch("g", [T0]) == {T0: None}
    commit(bench, 5, keys=(T0, T1))
    assert {k: v.offset for k, v in bench.coordinator.commits.fetch("g", None).items() if v} == {T0: 5, T1: 5}


def test_a_deleted_topic_takes_its_offsets_along(bench: Bench) -> None:
    commit(bench, 5, keys=(T0, ("kept", 0)))
    bench.coordinator.commits.forget_topic("t")
    assert fetched(bench) is None and fetched(bench, ("kept", 0)) == 5


def test_KIP211_offsets_of_a_group_without_members_expire_by_their_own_age(bench: Bench) -> None:
    commit(bench, 5)
    bench.advance(CHECK_MS)
    commit(bench, 6, keys=(T1,))
    bench.advance(RETENTION_MS - CHECK_MS - 1)
    assert fetched(bench) == 5
    bench.advance(1)
    assert fetched(bench) is None and fetched(bench, T1) == 6
    bench.advance(CHECK_MS)
    assert bench.coordinator.list_groups() == [] and len(bench.timers) == 0


def test_KIP211_retention_counts_from_when_the_last_member_left(bench: Bench) -> None:
    (member,) = bench.stable(1)
    commit(bench, 5, member, 1)
    for _ in range(100):
        bench.advance(9_000)
        assert bench.heartbeat(member, 1) == 0
    bench.leave(LeavingMember(member))
    bench.advance(RETENTION_MS - CHECK_MS)
    assert fetched(bench) == 5
    bench.advance(2 * CHECK_MS)
    assert fetched(bench) is None and bench.state == "Dead"


def keep_alive(bench: Bench, member: str, for_ms: int) -> None:
    for _ in range(for_ms // 1_000_000 + 1):
        bench.advance(1_000_000)
        assert bench.heartbeat(member, 1) == 0


def test_KIP211_a_stable_consumer_group_keeps_what_it_reads_and_loses_the_rest(bench: Bench) -> None:
    (member,) = bench.stable(1, protocols=(("range", subscription("read", "also")),), session_ms=1_800_000)
    commit(bench, 5, member, 1, keys=(("read", 0), ("also", 1), ("unread", 0)))
    keep_alive(bench, member, RETENTION_MS + CHECK_MS)
    assert fetched(bench, ("read", 0)) == fetched(bench, ("also", 1)) == 5
    assert fetched(bench, ("unread", 0)) is None


@pytest.mark.parametrize(("kind", "metadata"), [("consumer", b"\x00"), ("connect", b"m")])
def test_KIP211_what_a_group_reads_may_not_be_known_and_then_all_is_kept(
    bench: Bench, kind: str, metadata: bytes
) -> None:
    (member,) = bench.stable(1, protocols=(("p", metadata),), session_ms=1_800_000, kind=kind)
    commit(bench, 5, member, 1)
    keep_alive(bench, member, RETENTION_MS + CHECK_MS)
    assert fetched(bench) == 5


def test_a_commit_may_bring_a_retention_of_its_own(bench: Bench) -> None:
    bench.join(require_id=True)
    commit(bench, 5, expire_ms=bench.now_ms + CHECK_MS)
    commit(bench, 6, keys=(T1,), expire_ms=bench.now_ms + CHECK_MS + 1)
    bench.advance(CHECK_MS)
    assert fetched(bench) is None and fetched(bench, T1) == 6


def test_subscriptions_that_cannot_be_read() -> None:
    assert subscribed_topics([subscription("a", "ü"), subscription("a")]) == {"a", "ü"}
    assert subscribed_topics([]) == frozenset()
    for bad in (
        b"",
        b"\0\1",
        subscription("abc")[:9],
        b"\0\1\x7f\xff\xff\xff",
        b"\0\1\xff\xff\xff\xff",
        b"\xff\xff\0\0\0\0",
    ):
        assert subscribed_topics([subscription("a"), bad]) is None
    assert subscribed_topics([b"\0\1\0\0\0\1\xff\xff"]) is None


def test_list_and_describe(bench: Bench) -> None:
    (member,) = bench.stable(1, protocols=(("range", b"meta"),), instance="i")
    bench.join(group="other", require_id=True)
    c = bench.coordinator
    assert {g.group_id: g.state for g in c.list_groups()} == {"g": "Stable", "other": "Empty"}
    assert [g.group_id for g in c.list_groups(states=["STABLE", "dead"])] == ["g"]
    assert len(c.list_groups(types=["Classic"])) == 2 and c.list_groups(types=["consumer"]) == []
    found = c.describe("g")
    assert (found.state, found.error_code) == ("Stable", 0)
    assert (found.protocol_type, found.protocol_name) == ("consumer", "range")
    assert [tuple(m) for m in found.members] == [(member, "i", "client", "/1.2.3.4", b"meta", member.encode())]
    bench.join(member, instance="i", protocols=(("range", b"meta"),))
    found = c.describe("g")
    assert (found.state, found.protocol_name) == ("CompletingRebalance", "")
    assert [(m.metadata, m.assignment) for m in found.members] == [(b"", b"")]
    assert (c.describe("nobody").state, c.describe("nobody").error_code) == ("Dead", 0)


def test_delete_groups(bench: Bench) -> None:
    (member,) = bench.stable(1)
    commit(bench, 5, member, 1)
    delete = bench.coordinator.delete
    assert delete(["g", "nobody"], bench.now_ms) == {"g": NON_EMPTY_GROUP, "nobody": GROUP_NOT_FOUND}
    bench.leave(LeavingMember(member))
    assert delete(["g", "g"], bench.now_ms) == {"g": 0}
    assert fetched(bench) is None and bench.state == "Dead" and len(bench.timers) == 0
    join = bench.join()
    bench.advance(DELAY_MS)
    assert join.answer.generation_id == 1
