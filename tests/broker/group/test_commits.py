"""Committed offsets: which commits are accepted, and when offsets expire (KIP-211)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.results import LeavingMember, TransactionalCommit
from kafkaproto.broker.group.subscription import have_impossible_size, subscribed_topics
from kafkaproto.errors import EncodeError
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
    codes = set(bench.commit("g", generation, member, None, offsets).values())
    assert len(codes) == 1
    return int(codes.pop())


def fetched(bench: Bench, key: PartitionKey = T0) -> int | None:
    committed_offset = bench.coordinator.commits.fetch("g", [key])[key]
    return None if committed_offset is None else committed_offset.offset


def test_offset_commit_to_an_unknown_group_creates_the_group_and_stores_the_offset(bench: Bench) -> None:
    assert commit(bench, 5) == 0
    assert [tuple(g) for g in bench.coordinator.list_groups()] == [("g", "", "Empty", "classic")]
    assert fetched(bench) == 5 and fetched(bench, T1) is None
    assert commit(bench, 3) == 0 and fetched(bench) == 3


def test_offset_commit_with_a_generation_is_rejected_if_the_group_does_not_exist(bench: Bench) -> None:
    assert commit(bench, 5, "m", 1) == ILLEGAL_GENERATION
    assert bench.coordinator.list_groups() == []
    commit(bench, 5)
    assert commit(bench, 6, "m", 1) == UNKNOWN_MEMBER


def test_offset_commit_to_a_group_with_members_needs_the_current_generation(bench: Bench) -> None:
    (member,) = bench.stable(1)
    assert commit(bench, 1) == UNKNOWN_MEMBER
    assert commit(bench, 1, "m", 1) == UNKNOWN_MEMBER
    assert commit(bench, 1, member, 0) == ILLEGAL_GENERATION
    assert commit(bench, 1, member, -1) == ILLEGAL_GENERATION
    assert fetched(bench) is None
    assert commit(bench, 1, member, 1) == 0 and fetched(bench) == 1


def test_offset_commit_during_a_rebalance_is_accepted_until_the_generation_changes(bench: Bench) -> None:
    leader, follower = bench.stable(2)
    joins = [bench.join(leader)]
    # While members join, a commit is accepted: a consumer commits before it rejoins.
    assert commit(bench, 7, follower, 1) == 0
    joins.append(bench.join(follower))
    assert joins[1].answer.generation_id == 2
    assert commit(bench, 8, follower, 1) == ILLEGAL_GENERATION
    assert commit(bench, 8, follower, 2) == REBALANCING
    assert fetched(bench) == 7


def test_offset_commit_rejects_only_the_partitions_whose_metadata_exceeds_the_limit() -> None:
    bench = Bench(offset_metadata_max_bytes=10)
    offsets = {
        T0: committed(bench, 1, "x" * 11),
        T1: committed(bench, 2, "x" * 10),
        ("t", 2): committed(bench, 3, "é" * 10),
        ("t", 3): committed(bench, 4, "\N{GRINNING FACE}" * 6),
    }
    codes = bench.commit("g", -1, "", None, offsets)
    assert codes == {T0: METADATA_TOO_LARGE, T1: 0, ("t", 2): 0, ("t", 3): METADATA_TOO_LARGE}
    assert fetched(bench) is None and fetched(bench, T1) == 2


@pytest.mark.rule("GO-29")
def test_offset_commit_whose_record_cannot_be_encoded_leaves_no_unstable_offset() -> None:
    """The record of an offset has room for 32,767 bytes of metadata. A larger `offset.metadata.max.bytes` allows longer metadata."""
    bench = Bench(offset_metadata_max_bytes=100_000)
    with pytest.raises(EncodeError, match="metadata"):
        commit(bench, 5, metadata="x" * 40_000)
    request = TransactionalCommit("g", 1, 0, -1, "", None)
    with pytest.raises(EncodeError, match="metadata"):
        bench.coordinator.commits.transactional.commit(
            request, {T0: committed(bench, 5, "x" * 40_000)}, bench.now_ms, lambda *_: None
        )
    assert not bench.coordinator.commits.unstable("g")
    assert commit(bench, 6) == 0 and fetched(bench) == 6
    assert not bench.coordinator.commits.unstable("g")


def test_offset_fetch_for_all_topics_returns_all_committed_offsets_of_the_group(bench: Bench) -> None:
    assert bench.coordinator.commits.fetch("g", None) == {}
    assert bench.coordinator.commits.fetch("g", [T0]) == {T0: None}
    commit(bench, 5, keys=(T0, T1))
    assert {k: v.offset for k, v in bench.coordinator.commits.fetch("g", None).items() if v} == {T0: 5, T1: 5}


def test_deleting_a_topic_deletes_its_committed_offsets(bench: Bench) -> None:
    commit(bench, 5, keys=(T0, ("kept", 0)))
    bench.coordinator.commits.deletions.forget_topics(["t"], bench.now_ms)
    assert fetched(bench) is None and fetched(bench, ("kept", 0)) == 5


def test_KIP211_each_offset_of_an_empty_group_expires_by_the_age_of_its_own_commit(bench: Bench) -> None:
    commit(bench, 5)
    bench.advance(CHECK_MS)
    commit(bench, 6, keys=(T1,))
    bench.advance(RETENTION_MS - CHECK_MS - 1)
    assert fetched(bench) == 5
    bench.advance(1)
    assert fetched(bench) is None and fetched(bench, T1) == 6
    bench.advance(CHECK_MS)
    assert bench.coordinator.list_groups() == [] and len(bench.timers) == 0


@pytest.mark.rule("GO-24")
def test_KIP211_offset_retention_starts_when_the_last_member_leaves(bench: Bench) -> None:
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


def test_KIP211_stable_group_expires_only_offsets_of_topics_without_a_subscriber(bench: Bench) -> None:
    (member,) = bench.stable(1, protocols=(("range", subscription("read", "also")),), session_ms=1_800_000)
    commit(bench, 5, member, 1, keys=(("read", 0), ("also", 1), ("unread", 0)))
    keep_alive(bench, member, RETENTION_MS + CHECK_MS)
    assert fetched(bench, ("read", 0)) == fetched(bench, ("also", 1)) == 5
    assert fetched(bench, ("unread", 0)) is None


@pytest.mark.parametrize(("kind", "metadata"), [("consumer", b"\x00"), ("connect", b"m")])
@pytest.mark.rule("GC-61", "GO-24")
def test_KIP211_no_offset_of_a_stable_group_expires_if_its_subscription_is_unknown(
    bench: Bench, kind: str, metadata: bytes
) -> None:
    (member,) = bench.stable(1, protocols=(("p", metadata),), session_ms=1_800_000, kind=kind)
    commit(bench, 5, member, 1)
    keep_alive(bench, member, RETENTION_MS + CHECK_MS)
    assert fetched(bench) == 5


def test_offset_commit_can_set_the_expiration_time_of_its_offsets(bench: Bench) -> None:
    bench.join(require_id=True)
    commit(bench, 5, expire_ms=bench.now_ms + CHECK_MS)
    commit(bench, 6, keys=(T1,), expire_ms=bench.now_ms + CHECK_MS + 1)
    bench.advance(CHECK_MS)
    assert fetched(bench) is None and fetched(bench, T1) == 6


def test_subscribed_topics_are_none_if_the_subscription_of_a_member_is_malformed() -> None:
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
    assert not have_impossible_size([subscription("a"), b"", b"\0\1\x7f\xff\xff\xff"])
    assert have_impossible_size([subscription("a"), b"\0\1\x7f\xff\xff\xff", b""])


def test_list_groups_and_describe_groups_return_state_members_and_metadata(bench: Bench) -> None:
    (member,) = bench.stable(1, protocols=(("range", b"meta"),), instance="i")
    bench.join(group="other", require_id=True)
    c = bench.coordinator
    assert {g.group_id: g.state for g in c.list_groups()} == {"g": "Stable", "other": "Empty"}
    assert [g.group_id for g in c.list_groups(states=["STABLE", "dead"])] == ["g"]
    assert len(c.list_groups(types=["Classic"])) == 2 and c.list_groups(types=["consumer"]) == []
    description = c.describe("g")
    assert (description.state, description.error_code) == ("Stable", 0)
    assert (description.protocol_type, description.protocol_name) == ("consumer", "range")
    assert [tuple(m) for m in description.members] == [(member, "i", "client", "/1.2.3.4", b"meta", member.encode())]
    bench.join(member, instance="i", protocols=(("range", b"meta"),))
    description = c.describe("g")
    assert (description.state, description.protocol_name) == ("CompletingRebalance", "")
    assert [(m.metadata, m.assignment) for m in description.members] == [(b"", b"")]
    assert (c.describe("nobody").state, c.describe("nobody").error_code) == ("Dead", 0)


def test_delete_groups_deletes_empty_groups_and_rejects_groups_with_members(bench: Bench) -> None:
    (member,) = bench.stable(1)
    commit(bench, 5, member, 1)
    delete = bench.coordinator.commits.deletions.delete_groups
    assert delete(["g", "nobody"], bench.now_ms) == {"g": NON_EMPTY_GROUP, "nobody": GROUP_NOT_FOUND}
    bench.leave(LeavingMember(member))
    assert delete(["g", "g"], bench.now_ms) == {"g": 0}
    assert fetched(bench) is None and bench.state == "Dead" and len(bench.timers) == 0
    join = bench.join()
    bench.advance(DELAY_MS)
    assert join.answer.generation_id == 1
