"""Members that a test expires or fences through the coordinator (`expire_member`, `fence_member`)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.group import GroupState
from tests.support.broker.consumer_group import ALL, Group
from tests.support.broker.group_bench import SESSION_MS, Bench

UNKNOWN_MEMBER, FULL, FENCED_INSTANCE = 25, 81, 82


def test_expired_member_whose_join_is_parked_gets_error_unknown_member_id() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=3000)
    responses = bench.join()
    [member_id] = bench.coordinator.groups.get("g").members  # type: ignore[union-attr]
    assert responses == []
    bench.coordinator.expire_member("g", member_id, bench.now_ms)
    assert responses.answer.error_code == UNKNOWN_MEMBER
    bench.advance(3000)
    assert bench.coordinator.describe("g").state == "Empty"


def test_expired_member_whose_sync_is_parked_gets_error_unknown_member_id() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=3000)
    joins = [bench.join(), bench.join()]
    bench.advance(9000)
    leader, other = (join.answer.member_id for join in joins)
    responses = bench.sync(other, 1)
    assert responses == []
    bench.coordinator.expire_member("g", other, bench.now_ms)
    assert responses.answer.error_code == UNKNOWN_MEMBER
    assert [member.member_id for member in bench.coordinator.describe("g").members] == [leader]


def test_join_phase_completes_when_the_last_member_that_has_not_rejoined_expires() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=0)
    first = bench.join().answer.member_id
    bench.sync(first, 1, {first: b"all"})
    second = bench.join()
    assert second == [] and bench.coordinator.groups.get("g").is_in(GroupState.PREPARING_REBALANCE)  # type: ignore[union-attr]
    bench.coordinator.expire_member("g", first, bench.now_ms)
    assert (second.answer.error_code, second.answer.generation_id) == (0, 2)


def test_fenced_static_member_with_parked_join_gets_error_fenced_instance_id() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=3000)
    responses = bench.join(instance="one")
    [member_id] = bench.coordinator.groups.get("g").members  # type: ignore[union-attr]
    bench.coordinator.fence_member("g", member_id, bench.now_ms)
    assert responses.answer.error_code == FENCED_INSTANCE
    [ghost] = bench.coordinator.groups.get("g").members.values()  # type: ignore[union-attr]
    assert (ghost.group_instance_id, ghost.session_timeout_ms) == ("one", SESSION_MS)


def test_expiring_or_fencing_an_unknown_group_member_raises_key_error() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=0)
    member_id = bench.join().answer.member_id
    for act in (bench.coordinator.expire_member, bench.coordinator.fence_member):
        for group_id, name in (("other", member_id), ("g", "other")):
            with pytest.raises(KeyError):
                act(group_id, name, bench.now_ms)
    with pytest.raises(ValueError, match=r"has no group\.instance\.id"):
        bench.coordinator.fence_member("g", member_id, bench.now_ms)
    assert list(bench.coordinator.groups.get("g").members) == [member_id]  # type: ignore[union-attr]


def test_fencing_a_static_member_of_a_full_group_raises_group_max_size_reached() -> None:
    bench = Bench(group_initial_rebalance_delay_ms=0, group_max_size=1)
    member_id = bench.join(instance="one").answer.member_id
    with pytest.raises(
        KafkaError, match=r"group g with the same instance id one, .* with GROUP_MAX_SIZE_REACHED"
    ) as raised:
        bench.coordinator.fence_member("g", member_id, bench.now_ms)
    assert raised.value.error_code == FULL
    assert list(bench.coordinator.groups.get("g").members) == [member_id]  # type: ignore[union-attr]


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_partitions_of_a_fenced_consumer_group_member_are_assigned_to_other_members(release: str) -> None:
    group = Group(release)
    group.join("A")
    group.join("B")
    groups = group.cluster.state.nodes[0].groups
    groups.fence_member("g", "A", group.cluster.now_ms)
    assert group.epoch_and_partitions(group.beat("B", 2, [])) == (3, ALL)
    assert group.beat("A", 1, sorted(ALL)).error_code == 110
    assert group.beat("A", -1).error_code == 110
    assert group.join("A").member_epoch == 4 and group.beat("A", 4, []).error_code == 0
    group.cluster.run()
    assert groups.groups.get_consumer("g").fenced == set()  # type: ignore[union-attr]
    with pytest.raises(KeyError):
        groups.fence_member("g", "C", group.cluster.now_ms)
    assert groups.groups.get_consumer("g").fenced == set()  # type: ignore[union-attr]
