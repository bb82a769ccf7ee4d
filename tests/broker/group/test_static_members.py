"""Static group members (KIP-345): rejoining with the same group.instance.id, and fencing of the old process."""

from __future__ import annotations

import pytest

from kafkaproto.broker.group.results import LeavingMember
from kafkaproto.hash_order import scala_table_order
from kafkaproto.partitioner import java_hash_bits
from tests.support.broker.group_bench import DELAY_MS, SESSION_MS, Bench

ILLEGAL_GENERATION, INCONSISTENT, UNKNOWN_MEMBER, REBALANCING, FENCED = 22, 23, 25, 27, 82
BOTH = (("range", b"m"), ("rr", b"m"))


def stable(bench: Bench, protocols: tuple[tuple[str, bytes], ...] = BOTH) -> tuple[str, str]:
    """Return the member ids of a stable group with the static members "leader" and "follower"."""
    joins = [bench.join(instance=name, protocols=protocols) for name in ("leader", "follower")]
    bench.advance(DELAY_MS * 3)
    leader, follower = (j.answer.member_id for j in joins)
    bench.settle([leader, follower], 1)
    return leader, follower


def test_static_member_other_than_the_leader_keeps_its_assignment_when_it_rejoins(bench: Bench) -> None:
    leader, follower = stable(bench)
    result = bench.join(instance="follower", protocols=BOTH).answer
    assert (result.error_code, result.generation_id, result.leader_id) == (0, 1, leader)
    assert result.member_id != follower and result.member_id.startswith("follower-")
    assert bench.state == "Stable" and bench.heartbeat(leader, 1) == 0
    assert bench.sync(result.member_id, 1, instance="follower").answer.assignment == follower.encode()


def test_requests_with_the_old_member_id_of_a_restarted_static_member_are_fenced(bench: Bench) -> None:
    _, old = stable(bench)
    new = bench.join(instance="follower", protocols=BOTH).answer.member_id
    assert bench.heartbeat(old, 1, "follower") == FENCED
    assert bench.sync(old, 1, instance="follower").answer.error_code == FENCED
    assert bench.join(old, BOTH, instance="follower").answer.error_code == FENCED
    commit = bench.commit("g", 1, old, "follower", {("t", 0): None})  # type: ignore
    assert commit == {("t", 0): FENCED}
    assert bench.leave(LeavingMember(old, "follower")) == [FENCED]
    # Without its instance id it is an unknown member.
    assert bench.heartbeat(old, 1) == UNKNOWN_MEMBER
    assert bench.heartbeat(new, 1, "follower") == 0


def test_request_with_an_unknown_group_instance_id_gets_error_unknown_member_id(bench: Bench) -> None:
    leader, _ = stable(bench)
    assert bench.heartbeat(leader, 1, "nobody") == UNKNOWN_MEMBER
    assert bench.join(leader, BOTH, instance="nobody").answer.error_code == UNKNOWN_MEMBER


def test_rejoining_static_leader_gets_its_old_member_id_as_leader_id_in_the_response(bench: Bench) -> None:
    leader, follower = stable(bench)
    result = bench.join(instance="leader", protocols=BOTH).answer
    assert result.leader_id == leader != result.member_id
    assert (list(result.members), result.skip_assignment) == ([], False)
    assert bench.sync(result.member_id, 1).answer.assignment == leader.encode()
    # It still leads, as the next generation shows.
    join = bench.join(result.member_id, BOTH, instance="leader")
    bench.join(follower, BOTH, instance="follower")
    assert join.answer.leader_id == result.member_id and len(join.answer.members) == 2


def test_KIP814_join_group_v9_returns_skip_assignment_true_to_a_static_group_leader(bench: Bench) -> None:
    leader, _ = stable(bench)
    result = bench.join(instance="leader", protocols=BOTH, skip=True).answer
    assert result.leader_id == result.member_id != leader
    assert result.skip_assignment and len(result.members) == 2
    other = bench.join(instance="follower", protocols=BOTH, skip=True).answer
    assert not other.skip_assignment and list(other.members) == [] and other.leader_id == result.member_id


@pytest.mark.rule("GC-28")
def test_join_group_lists_members_in_hash_order_of_member_ids_after_a_static_rejoin(bench: Bench) -> None:
    _, follower = stable(bench)
    are_leaders_first = set()
    for _ in range(20):
        result = bench.join(instance="leader", protocols=BOTH, skip=True).answer
        listed_ids = [member.member_id for member in result.members]
        assert listed_ids == scala_table_order([result.member_id, follower], java_hash_bits)
        are_leaders_first.add(listed_ids[1] == follower)
    assert are_leaders_first == {False, True}


def test_static_rejoin_that_changes_the_group_protocol_starts_a_rebalance(bench: Bench) -> None:
    leader, _ = stable(bench)
    join = bench.join(instance="follower", protocols=(("rr", b"m"),))
    assert join == [] and bench.heartbeat(leader, 1, "leader") == REBALANCING
    bench.join(leader, BOTH, instance="leader")
    assert join.answer.generation_id == 2 and join.answer.protocol_name == "rr"


@pytest.mark.rule("GC-31")
def test_metadata_that_a_static_member_changes_applies_from_the_next_generation_on(bench: Bench) -> None:
    leader, _ = stable(bench)
    changed = (("range", b"changed"), ("rr", b"m"))
    follower = bench.join(instance="follower", protocols=changed).answer.member_id
    assert bench.state == "Stable"
    join = bench.join(leader, BOTH, instance="leader")
    bench.join(follower, changed, instance="follower")
    assert [m.metadata for m in join.answer.members] == [b"m", b"changed"]


def test_static_rejoin_before_the_group_leader_syncs_starts_a_new_rebalance(bench: Bench) -> None:
    joins = [bench.join(instance=name) for name in ("leader", "follower")]
    bench.advance(DELAY_MS * 3)
    old = joins[1].answer.member_id
    waiting = bench.sync(old, 1, instance="follower")
    new = bench.join(instance="follower")
    assert waiting.answer.error_code == FENCED
    assert new == [] and bench.state == "PreparingRebalance"
    assert bench.sync(joins[0].answer.member_id, 1, {}).answer.error_code == REBALANCING
    bench.join(joins[0].answer.member_id, instance="leader")
    assert new.answer.generation_id == 2


def test_parked_join_of_a_static_member_is_fenced_when_that_member_joins_again(bench: Bench) -> None:
    first = bench.join(instance="leader")
    second = bench.join(instance="leader")
    assert first.answer.error_code == FENCED and second == []
    bench.advance(DELAY_MS)
    assert [m.group_instance_id for m in second.answer.members] == ["leader"]


def test_static_member_can_join_without_requesting_a_member_id_first(bench: Bench) -> None:
    join = bench.join(instance="leader", require_id=True)
    bench.advance(DELAY_MS)
    assert join.answer.error_code == 0


def test_static_member_that_does_not_rejoin_remains_in_the_group_after_a_rebalance(bench: Bench) -> None:
    long = {"session_ms": 100_000, "rebalance_ms": 10_000}
    joins = [bench.join(instance=name, **long) for name in ("leader", "follower")]  # type: ignore[arg-type]
    bench.advance(DELAY_MS * 3)
    leader, follower = (j.answer.member_id for j in joins)
    bench.settle([leader, follower], 1)
    join = bench.join(leader, instance="leader", **long)  # type: ignore[arg-type]
    bench.advance(10_000)
    assert {m.group_instance_id for m in join.answer.members} == {"leader", "follower"}
    assert bench.heartbeat(follower, 1, "follower") == ILLEGAL_GENERATION
    assert bench.heartbeat(follower, 2, "follower") == 0


@pytest.mark.rule("GC-25")
def test_rebalance_of_static_members_waits_until_at_least_one_member_rejoins(bench: Bench) -> None:
    long = {"session_ms": 100_000, "rebalance_ms": 10_000}
    joins = [bench.join(instance=name, **long) for name in ("a", "b", "c")]  # type: ignore[arg-type]
    bench.advance(DELAY_MS * 4)
    a, b, c = (j.answer.member_id for j in joins)
    bench.settle([a, b, c], 1)
    bench.leave(LeavingMember(c, "c"))
    bench.advance(35_000)
    assert bench.state == "PreparingRebalance"
    join = bench.join(b, instance="b", **long)  # type: ignore[arg-type]
    bench.advance(5_000)
    # The leader has not rejoined, so another member leads; the old leader remains a member.
    assert join.answer.leader_id == b and len(join.answer.members) == 2


def test_static_member_is_removed_by_a_leave_group_that_names_its_instance_id(bench: Bench) -> None:
    leader, _ = stable(bench)
    assert bench.leave(LeavingMember("", "follower"), LeavingMember("", "nobody")) == [0, UNKNOWN_MEMBER]
    assert len(bench.join(leader, BOTH, instance="leader").answer.members) == 1


def test_static_member_without_heartbeats_is_removed_after_its_session_timeout(bench: Bench) -> None:
    leader, _ = stable(bench)
    bench.heartbeat(leader, 1, "leader")
    bench.advance(SESSION_MS - 1)
    bench.heartbeat(leader, 1, "leader")
    bench.advance(1)
    assert bench.heartbeat(leader, 1, "leader") == REBALANCING


def test_static_member_that_rejoins_but_never_syncs_is_removed_at_rebalance_timeout(bench: Bench) -> None:
    long = {"session_ms": 100_000, "rebalance_ms": 20_000}
    joins = [bench.join(instance=name, **long) for name in ("leader", "follower")]  # type: ignore[arg-type]
    bench.advance(DELAY_MS * 2)
    leader = joins[0].answer.member_id
    bench.sync(leader, 1, {}, instance="leader")
    new = bench.join(instance="follower", **long).answer.member_id  # type: ignore[arg-type]
    assert bench.state == "Stable"
    bench.advance(20_000)
    assert bench.heartbeat(new, 1, "follower") == UNKNOWN_MEMBER
    assert bench.heartbeat(leader, 1, "leader") == REBALANCING


@pytest.mark.parametrize("protocols", [(("other", b""),), ()])
def test_static_member_that_rejoins_with_incompatible_protocols_is_rejected(
    bench: Bench, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    stable(bench)
    assert bench.join(instance="follower", protocols=protocols).answer.error_code == INCONSISTENT
