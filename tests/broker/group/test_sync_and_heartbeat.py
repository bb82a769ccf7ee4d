"""SyncGroup, Heartbeat, member sessions and LeaveGroup."""

from __future__ import annotations

import pytest

from kafkaproto.broker.group.results import LeaveResult, LeavingMember
from tests.support.broker.group_bench import DELAY_MS, SESSION_MS, Bench

NOT_COORDINATOR, ILLEGAL_GENERATION, INCONSISTENT, INVALID_GROUP, UNKNOWN_MEMBER, REBALANCING = 16, 22, 23, 24, 25, 27


def completing(bench: Bench, count: int = 2, **join: object) -> list[str]:
    joins = [bench.join(**join) for _ in range(count)]  # type: ignore[arg-type]
    bench.advance(DELAY_MS * (count + 1))
    assert bench.state == "CompletingRebalance"
    return [j.answer.member_id for j in joins]


def test_sync_group_of_a_member_waits_for_the_assignment_sent_by_the_group_leader(bench: Bench) -> None:
    leader, two, three = completing(bench, 3, session_ms=60_000)
    second = bench.sync(two, 1)
    assert second == []
    first = bench.sync(leader, 1, {leader: b"1", two: b"2", "stranger": b"3"})
    assert (first.answer.assignment, second.answer.assignment) == (b"1", b"2")
    assert (first.answer.protocol_type, first.answer.protocol_name) == ("consumer", "range")
    assert bench.state == "Stable"
    assert bench.sync(three, 1).answer.assignment == b""


def test_sync_of_a_stable_group_returns_the_current_assignment(bench: Bench) -> None:
    leader, follower = bench.stable(2)
    assert bench.sync(follower, 1).answer.assignment == follower.encode()
    # A second assignment by the leader is ignored.
    assert bench.sync(leader, 1, {follower: b"other"}).answer.assignment == leader.encode()
    assert bench.sync(follower, 1).answer.assignment == follower.encode()


def test_sync_group_with_a_wrong_generation_or_protocol_or_member_id_is_rejected(bench: Bench) -> None:
    assert bench.sync("m", 1, group="").answer.error_code == INVALID_GROUP
    assert bench.sync("m", 1).answer.error_code == UNKNOWN_MEMBER
    leader, follower = bench.stable(2)
    assert bench.sync("m", 1).answer.error_code == UNKNOWN_MEMBER
    assert bench.sync(leader, 2).answer.error_code == ILLEGAL_GENERATION
    assert bench.sync(leader, 1, kind="connect").answer.error_code == INCONSISTENT
    assert bench.sync(leader, 1, name="rr").answer.error_code == INCONSISTENT
    assert bench.sync(leader, 1, kind="consumer", name="range").answer.error_code == 0
    bench.join(leader)
    assert bench.sync(follower, 1).answer.error_code == REBALANCING


def test_new_rebalance_completes_parked_syncs_with_error_rebalance_in_progress(bench: Bench) -> None:
    first, second = completing(bench)
    waiting = bench.sync(second, 1)
    bench.join()
    assert waiting.answer.error_code == REBALANCING and waiting.answer.assignment == b""
    assert bench.heartbeat(first, 1) == REBALANCING


@pytest.mark.rule("GC-24")
def test_second_sync_of_a_member_leaves_its_first_parked_sync_without_a_response(bench: Bench) -> None:
    leader, two = completing(bench)
    first, second = bench.sync(two, 1), bench.sync(two, 1)
    assert (first, second) == ([], [])
    bench.sync(leader, 1, {two: b"2"})
    assert second.answer.assignment == b"2" and first == []


@pytest.mark.rule("GC-24")
def test_second_join_of_a_member_leaves_its_first_parked_join_without_a_response(bench: Bench) -> None:
    leader, two = bench.stable(2)
    first = bench.join(two, (("range", b"new"),))
    second = bench.join(two, (("range", b"new"),))
    assert (first, second, bench.state) == ([], [], "PreparingRebalance")
    bench.join(leader)
    assert (second.answer.error_code, second.answer.generation_id, first) == (0, 2, [])


@pytest.mark.rule("GC-49")
def test_parked_sync_of_a_member_that_leaves_never_gets_a_response(bench: Bench) -> None:
    leader, two = completing(bench)
    parked = bench.sync(two, 1)
    assert bench.leave(LeavingMember(two, None)) == [0]
    assert bench.join(leader).answer.generation_id == 2
    bench.sync(leader, 2, {leader: b"1"})
    assert (bench.state, parked) == ("Stable", [])


def test_members_that_do_not_sync_in_time_are_removed_and_other_members_must_rejoin(bench: Bench) -> None:
    first, second = completing(bench, session_ms=600_000, rebalance_ms=20_000)
    at_ms = bench.now_ms
    waiting = bench.sync(second, 1)
    bench.advance(20_000 - DELAY_MS - 1)
    assert bench.state == "CompletingRebalance" and waiting == []
    bench.advance(1)
    assert bench.now_ms - at_ms == 20_000 - DELAY_MS
    assert waiting.answer.error_code == REBALANCING and bench.state == "PreparingRebalance"
    assert bench.heartbeat(first, 1) == UNKNOWN_MEMBER
    assert bench.join(second, session_ms=600_000).answer.leader_id == second


def test_members_that_do_not_sync_in_time_are_removed_even_from_a_stable_group(bench: Bench) -> None:
    first, second = completing(bench, session_ms=600_000, rebalance_ms=20_000)
    bench.sync(first, 1, {first: b"1", second: b"2"})
    assert bench.state == "Stable"
    bench.advance(20_000)
    assert bench.state == "PreparingRebalance"
    assert (bench.heartbeat(first, 1), bench.heartbeat(second, 1)) == (REBALANCING, UNKNOWN_MEMBER)


def test_sync_timeout_removes_no_member_after_all_members_have_synced(bench: Bench) -> None:
    bench.stable(2, session_ms=600_000, rebalance_ms=20_000)
    bench.advance(100_000)
    assert bench.state == "Stable"


def test_heartbeat_is_rejected_if_member_or_generation_is_wrong_or_group_rebalances(bench: Bench) -> None:
    assert bench.heartbeat("m", 1, group="") == INVALID_GROUP
    assert bench.heartbeat("m", 1) == UNKNOWN_MEMBER
    bench.join(require_id=True)
    assert bench.heartbeat("m", 0) == UNKNOWN_MEMBER
    (member,) = completing(bench, 1)
    assert bench.heartbeat(member, 1) == 0
    assert bench.heartbeat(member, 2) == ILLEGAL_GENERATION
    bench.sync(member, 1, {member: b""})
    assert bench.heartbeat(member, 1) == 0
    bench.join()
    assert bench.heartbeat(member, 1) == REBALANCING


def test_member_session_expires_exactly_after_the_session_timeout(bench: Bench) -> None:
    (member,) = bench.stable(1)
    assert bench.heartbeat(member, 1) == 0
    bench.advance(SESSION_MS - 1)
    assert bench.heartbeat(member, 1) == 0
    bench.advance(SESSION_MS - 1)
    assert bench.state == "Stable"
    bench.advance(1)
    assert bench.state == "Empty" and bench.heartbeat(member, 1) == UNKNOWN_MEMBER


def test_each_group_member_expires_after_the_session_timeout_that_it_requested(bench: Bench) -> None:
    first = bench.join(session_ms=6_000)
    two = bench.join(session_ms=20_000)
    bench.advance(DELAY_MS * 2)
    ids = [first.answer.member_id, two.answer.member_id]
    bench.settle(ids, 1)
    bench.advance(6_000)
    assert (bench.heartbeat(ids[0], 1), bench.heartbeat(ids[1], 1)) == (UNKNOWN_MEMBER, REBALANCING)


@pytest.mark.parametrize("sign", ["sync", "commit", "heartbeat"])
@pytest.mark.rule("GC-45")
def test_member_session_is_renewed_by_sync_group_by_offset_commit_and_by_heartbeat(bench: Bench, sign: str) -> None:
    (member,) = bench.stable(1)
    for _ in range(3):
        bench.advance(SESSION_MS - 1)
        if sign == "sync":
            assert bench.sync(member, 1).answer.error_code == 0
        elif sign == "commit":
            assert bench.commit("g", 1, member, None, {}) == {}
        else:
            assert bench.heartbeat(member, 1) == 0
    assert bench.state == "Stable"


@pytest.mark.rule("GC-29")
def test_session_of_a_member_with_a_parked_join_does_not_expire(bench: Bench) -> None:
    leader, follower = bench.stable(2, session_ms=6_000)
    join = bench.join(leader, session_ms=6_000)
    for _ in range(5):
        bench.advance(5_000)
        assert bench.heartbeat(follower, 1) == REBALANCING
    bench.join(follower, session_ms=6_000)
    assert join.answer.generation_id == 2
    bench.settle([leader, follower], 2)
    bench.advance(5_999)
    assert bench.state == "Stable"


def test_session_timeout_of_a_member_starts_anew_when_its_parked_sync_completes(bench: Bench) -> None:
    first, second = completing(bench, session_ms=10_000)
    waiting = bench.sync(second, 1)
    for _ in range(6):
        bench.advance(6_000)
        assert bench.heartbeat(first, 1) == 0
    bench.sync(first, 1)
    assert waiting.answer.error_code == 0
    bench.advance(9_999)
    assert bench.heartbeat(first, 1) == 0 and bench.heartbeat(second, 1) == 0


def test_group_leader_that_does_not_sync_is_removed_when_its_session_expires(bench: Bench) -> None:
    first, second = completing(bench)
    waiting = bench.sync(second, 1)
    bench.advance(SESSION_MS)
    assert waiting.answer.error_code == REBALANCING
    assert bench.heartbeat(first, 1) == UNKNOWN_MEMBER


def test_member_that_leaves_starts_a_rebalance_of_the_other_members(bench: Bench) -> None:
    leader, follower = bench.stable(2)
    assert bench.leave(LeavingMember(leader)) == [0]
    assert bench.heartbeat(follower, 1) == REBALANCING
    assert bench.join(follower).answer.leader_id == follower


def test_rebalance_stops_waiting_for_a_member_that_leaves(bench: Bench) -> None:
    leader, follower = bench.stable(2)
    join = bench.join(leader)
    assert bench.leave(LeavingMember(follower)) == [0]
    assert len(join.answer.members) == 1


@pytest.mark.rule("GC-49")
def test_parked_join_of_a_member_that_leaves_gets_error_unknown_member_id(bench: Bench) -> None:
    leader, _ = bench.stable(2)
    join = bench.join(leader)
    assert bench.leave(LeavingMember(leader)) == [0]
    assert join.answer.error_code == UNKNOWN_MEMBER


def test_leave_group_rejects_an_empty_group_id_and_unknown_members(bench: Bench) -> None:
    results: list[LeaveResult] = []
    bench.coordinator.leave("", [LeavingMember("m")], 0, lambda result, at_ms: results.append(result))
    assert [result.error_code for result in results] == [INVALID_GROUP]
    assert bench.leave(LeavingMember("m"), LeavingMember("", "i")) == [UNKNOWN_MEMBER] * 2
    (member,) = bench.stable(1)
    assert bench.leave(LeavingMember("m"), LeavingMember("", "i"), LeavingMember("", None)) == [UNKNOWN_MEMBER] * 3
    assert bench.leave(LeavingMember(member, "i")) == [UNKNOWN_MEMBER]
    assert bench.state == "Stable"


def test_stopped_coordinator_completes_parked_requests_with_error_not_coordinator(bench: Bench) -> None:
    first, second = completing(bench)
    sync = bench.sync(second, 1)
    join = bench.join(group="other")
    bench.join(group="third", require_id=True)
    bench.coordinator.stop(bench.now_ms)
    assert sync.answer.error_code == join.answer.error_code == NOT_COORDINATOR
    assert len(bench.timers) == 0 and bench.coordinator.list_groups() == []
    assert bench.heartbeat(first, 1) == UNKNOWN_MEMBER
