"""Joining a classic group: the first rebalance, member ids, protocols and limits; the numbers are those of Kafka's GroupCoordinatorTest."""

from __future__ import annotations

import pytest

from kafkaproto.broker.group.results import JoinResult, LeavingMember
from tests.support.broker.group_bench import DELAY_MS, Bench

INCONSISTENT, INVALID_GROUP, UNKNOWN_MEMBER, INVALID_SESSION, REBALANCING = 23, 24, 25, 26, 27
MEMBER_ID_REQUIRED, GROUP_MAX_SIZE = 79, 81


def test_first_rebalance_completes_exactly_after_the_initial_rebalance_delay(bench: Bench) -> None:
    join = bench.join()
    bench.advance(DELAY_MS - 1)
    assert join == [] and bench.state == "PreparingRebalance"
    bench.advance(1)
    result = join.answer
    assert (result.error_code, result.generation_id, result.protocol_type, result.protocol_name) == (
        0,
        1,
        "consumer",
        "range",
    )
    assert result.leader_id == result.member_id and [m.member_id for m in result.members] == [result.member_id]
    assert bench.state == "CompletingRebalance"


def test_new_member_extends_the_initial_delay_up_to_the_rebalance_timeout() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=100)
    first = bench.join(rebalance_ms=250)
    for _ in range(4):
        bench.advance(50)
        bench.join(rebalance_ms=250)
    # 100, then min(100, 150) more, then min(100, 50) more: the 250 ms are used up.
    bench.advance(49)
    assert first == []
    bench.advance(1)
    assert len(first.answer.members) == 5


def test_first_join_completes_immediately_if_the_initial_rebalance_delay_is_zero() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=0)
    first = bench.join()
    assert first.answer.generation_id == 1
    second = bench.join()
    # No member has synced yet; the second member starts a new rebalance, which waits for the first.
    assert second == [] and bench.state == "PreparingRebalance"
    bench.join(first.answer.member_id)
    assert second.answer.generation_id == 2


def test_only_the_group_leader_receives_the_members_and_their_metadata(bench: Bench) -> None:
    first = bench.join(protocols=(("range", b"1"), ("rr", b"1r")))
    two = bench.join(protocols=(("rr", b"2r"),), instance="i")
    bench.advance(DELAY_MS * 2)
    assert first.answer.leader_id == two.answer.leader_id == first.answer.member_id
    assert first.answer.protocol_name == "rr"
    assert [tuple(m) for m in first.answer.members] == [
        (first.answer.member_id, None, b"1r"),
        (two.answer.member_id, "i", b"2r"),
    ]
    assert two.answer.members == ()


def test_member_ids_begin_with_client_or_instance_id_and_are_equal_for_equal_seeds() -> None:
    ids = []
    for _ in range(2):
        bench = Bench(group_initial_rebalance_delay_ms=0)
        ids.append([bench.join().answer.member_id, bench.join(instance="inst", group="h").answer.member_id])
    assert ids[0] == ids[1]
    assert ids[0][0].startswith("client-") and ids[0][1].startswith("inst-")
    assert len(ids[0][0]) == len("client-") + 36


def test_KIP394_first_join_gets_a_member_id_and_must_be_repeated_with_that_id(bench: Bench) -> None:
    first = bench.join(require_id=True).answer
    assert (first.error_code, first.generation_id) == (MEMBER_ID_REQUIRED, -1) and first.member_id
    assert bench.state == "Empty"
    join = bench.join(first.member_id, require_id=True)
    bench.advance(DELAY_MS)
    assert join.answer.error_code == 0 and join.answer.member_id == first.member_id


@pytest.mark.rule("GC-19")
def test_KIP394_assigned_member_id_expires_after_its_session_timeout_without_a_join(bench: Bench) -> None:
    expired_id = bench.join(require_id=True, session_ms=6000).answer.member_id
    bench.advance(5999)
    in_time = bench.join(require_id=True, session_ms=6000).answer.member_id
    bench.advance(1)
    assert bench.join(expired_id).answer.error_code == UNKNOWN_MEMBER
    bench.advance(5998)
    assert bench.join(in_time) == []


def test_KIP394_rebalance_waits_for_a_member_that_has_an_id_but_has_not_joined(bench: Bench) -> None:
    (leader,) = bench.stable(1)
    pending = bench.join(require_id=True).answer.member_id
    rejoin = bench.join(leader)
    assert rejoin == []
    bench.join(pending)
    assert rejoin.answer.generation_id == 2 and len(rejoin.answer.members) == 2


@pytest.mark.parametrize("how", ["timeout", "leave"])
def test_KIP394_rebalance_completes_when_the_pending_member_leaves_or_times_out(bench: Bench, how: str) -> None:
    (leader,) = bench.stable(1)
    pending = bench.join(require_id=True, session_ms=7000).answer.member_id
    rejoin = bench.join(leader)
    if how == "leave":
        assert bench.leave(LeavingMember(pending)) == [0]
    else:
        bench.advance(6999)
        assert rejoin == []
        bench.advance(1)
    assert len(rejoin.answer.members) == 1


def test_KIP394_static_member_cannot_join_with_the_id_of_a_pending_member(bench: Bench) -> None:
    pending = bench.join(require_id=True).answer.member_id
    assert bench.join(pending, instance="i").answer.error_code == -1


def test_invalid_join_group_requests_are_rejected_and_create_no_group(bench: Bench) -> None:
    assert bench.join(group="").answer.error_code == INVALID_GROUP
    assert bench.join(session_ms=5999).answer.error_code == INVALID_SESSION
    assert bench.join(session_ms=1_800_001).answer.error_code == INVALID_SESSION
    assert bench.join("who").answer.error_code == UNKNOWN_MEMBER
    assert bench.coordinator.list_groups() == []


def test_join_without_protocol_type_or_protocols_is_rejected(bench: Bench) -> None:
    assert bench.join(kind="").answer.error_code == INCONSISTENT
    assert bench.join(protocols=()).answer.error_code == INCONSISTENT


def test_join_without_a_protocol_shared_with_the_group_is_rejected(bench: Bench) -> None:
    (member,) = bench.stable(1)
    assert bench.join(kind="connect").answer.error_code == INCONSISTENT
    assert bench.join(protocols=(("rr", b""),)).answer.error_code == INCONSISTENT
    assert bench.join(member, kind="connect").answer.error_code == INCONSISTENT
    assert bench.state == "Stable"


@pytest.mark.rule("GC-27")
def test_assignment_protocol_of_a_group_is_chosen_by_the_votes_of_all_members() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=1)

    def protocols(*names: str) -> tuple[tuple[str, bytes], ...]:
        return tuple((name, b"") for name in names)

    # Common to all are b and c; two of three prefer c.
    joins = [bench.join(protocols=protocols(*names)) for names in ("abc", "cb", "xcb")]
    bench.advance(10)
    assert {j.answer.protocol_name for j in joins} == {"c"}


def test_tie_in_the_assignment_protocol_vote_is_decided_by_the_first_member() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=1)
    joins = [bench.join(protocols=tuple((name, b"") for name in names)) for names in ("ab", "ba")]
    bench.advance(10)
    assert {j.answer.protocol_name for j in joins} == {"a"}


def test_join_beyond_group_max_size_is_rejected_in_the_first_rebalance() -> None:
    bench = Bench(group_max_size=2)
    joins = [bench.join() for _ in range(3)]
    assert joins[2].answer.error_code == GROUP_MAX_SIZE and joins[2].answer.member_id == ""
    bench.advance(DELAY_MS * 3)
    assert [j.answer.error_code for j in joins[:2]] == [0, 0]


def test_stable_group_at_max_size_rejects_new_members_but_accepts_rejoins() -> None:
    bench = Bench(group_max_size=2)
    leader, _ = bench.stable(2)
    assert bench.join().answer.error_code == GROUP_MAX_SIZE
    assert bench.state == "Stable"
    assert bench.join(leader) == []


@pytest.mark.rule("GC-30")
def test_members_that_rejoin_a_group_beyond_its_lowered_max_size_are_removed() -> None:
    bench = Bench(group_max_size=2)
    leader, other = bench.stable(2)
    bench.coordinator.settings = type(bench.coordinator.settings)(group_max_size=1)
    rejoin = bench.join(leader)
    assert bench.join(other).answer.error_code == GROUP_MAX_SIZE
    assert len(rejoin.answer.members) == 1
    assert bench.heartbeat(other, 2) == UNKNOWN_MEMBER


def test_rejoin_of_the_group_leader_starts_a_rebalance_of_a_stable_group(bench: Bench) -> None:
    leader, follower = bench.stable(2)
    join = bench.join(leader)
    assert join == [] and bench.heartbeat(follower, 1) == REBALANCING
    bench.join(follower)
    assert join.answer.generation_id == 2


def test_unchanged_rejoin_of_a_non_leader_member_returns_the_generation_immediately(bench: Bench) -> None:
    leader, follower = bench.stable(2)
    result = bench.join(follower).answer
    assert (result.error_code, result.generation_id, result.leader_id, result.members) == (0, 1, leader, ())
    assert bench.state == "Stable" and bench.heartbeat(leader, 1) == 0


def test_rejoin_of_a_non_leader_member_with_changed_metadata_starts_a_rebalance(bench: Bench) -> None:
    _, follower = bench.stable(2)
    assert bench.join(follower, (("range", b"new"),)) == []
    assert bench.state == "PreparingRebalance"


def test_unchanged_rejoin_before_the_group_leader_syncs_gets_the_same_join_response(bench: Bench) -> None:
    first, second = bench.join(), bench.join()
    bench.advance(DELAY_MS * 2)
    leader, follower = first.answer.member_id, second.answer.member_id
    again = bench.join(leader).answer
    assert again == first.answer and len(again.members) == 2
    assert bench.join(follower).answer == second.answer
    assert bench.join(follower, (("range", b"new"),)) == []
    assert bench.state == "PreparingRebalance"


def test_dynamic_members_that_do_not_rejoin_are_removed_at_the_rebalance_timeout(bench: Bench) -> None:
    leader, follower = bench.stable(2, session_ms=600_000, rebalance_ms=20_000)
    join = bench.join(leader, session_ms=600_000, rebalance_ms=20_000)
    bench.advance(19_999)
    assert join == []
    bench.advance(1)
    assert [m.member_id for m in join.answer.members] == [leader]
    assert bench.heartbeat(follower, 2) == UNKNOWN_MEMBER


@pytest.mark.rule("GC-25", "GC-28")
def test_another_member_becomes_leader_if_the_group_leader_does_not_rejoin(bench: Bench) -> None:
    leader, follower = bench.stable(2, session_ms=600_000, rebalance_ms=20_000)
    join = bench.join(follower, (("range", b"new"),), session_ms=600_000, rebalance_ms=20_000)
    bench.advance(20_000)
    assert join.answer.leader_id == follower and leader not in {m.member_id for m in join.answer.members}


@pytest.mark.rule("GC-22")
def test_rebalance_waits_for_the_longest_rebalance_timeout_of_all_members(bench: Bench) -> None:
    first = bench.join(session_ms=600_000, rebalance_ms=20_000)
    bench.join(session_ms=600_000, rebalance_ms=30_000)
    bench.advance(DELAY_MS * 2)
    # Neither member syncs; both are removed after the longer timeout.
    bench.advance(29_999)
    assert bench.state == "CompletingRebalance"
    bench.advance(1)
    assert bench.state == "Empty" and bench.heartbeat(first.answer.member_id, 1) == UNKNOWN_MEMBER


@pytest.mark.rule("GC-29")
def test_new_member_is_removed_if_its_join_is_not_completed_within_five_minutes(bench: Bench) -> None:
    (leader,) = bench.stable(1, session_ms=1_800_000, rebalance_ms=600_000)
    lost = bench.join(session_ms=1_800_000, rebalance_ms=600_000)
    bench.advance(299_999)
    assert lost == []
    bench.advance(1)
    assert (lost.answer.error_code, lost.answer.member_id) == (UNKNOWN_MEMBER, "")
    assert len(bench.join(leader, session_ms=1_800_000).answer.members) == 1


def test_sync_group_sent_while_join_responses_are_delivered_gets_a_single_response(bench: Bench) -> None:
    """The other member's response is not lost, and no request gets two responses."""
    synced: list[object] = []

    def joined(result: JoinResult, at_ms: int) -> None:
        own = {result.member_id: b"x"}
        bench.sync(result.member_id, result.generation_id, own, reply=lambda r, _: synced.append(r))

    first = bench.join(reply=joined)
    two = bench.join()
    bench.advance(DELAY_MS * 2)
    assert first == [] and len(synced) == 1 and two.answer.error_code == 0
    assert bench.state == "Stable"


def test_join_to_an_emptied_group_waits_the_initial_delay_and_gets_a_new_generation(bench: Bench) -> None:
    ids = bench.stable(2)
    assert bench.leave(*(LeavingMember(i) for i in ids)) == [0, 0]
    assert bench.state == "Empty" and bench.heartbeat(ids[0], 1) == UNKNOWN_MEMBER
    join = bench.join(kind="connect")
    bench.advance(DELAY_MS - 1)
    assert join == []
    bench.advance(1)
    assert join.answer.generation_id == 3 and join.answer.protocol_type == "connect"
