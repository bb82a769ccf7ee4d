"""Replica assignment (`StripedReplicaPlacer`): leaders rotate over brokers, and replicas are spread over racks."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.broker.metadata.assignment import assign, by_turns_of_racks

NO_RACKS: dict[int, str | None] = {0: None, 1: None, 2: None}


def test_consecutive_partitions_have_consecutive_brokers_as_their_leaders() -> None:
    assert assign(6, 3, NO_RACKS) == [(0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (1, 0, 2), (2, 1, 0)]
    assert assign(4, 2, NO_RACKS) == [(0, 1), (1, 2), (2, 0), (0, 2)]


def test_single_broker_is_assigned_all_partitions() -> None:
    assert assign(3, 1, {7: "a"}) == [(7,)] * 3


def test_partitions_added_to_a_topic_get_the_replicas_they_would_get_at_its_creation() -> None:
    assert assign(4, 2, NO_RACKS) + assign(3, 2, NO_RACKS, first=4) == assign(7, 2, NO_RACKS)


def test_consecutive_brokers_in_the_assignment_order_are_in_different_racks() -> None:
    assert by_turns_of_racks({0: "a", 1: "a", 2: "b", 3: "b"}) == [0, 2, 1, 3]
    assert by_turns_of_racks({3: None, 1: None, 2: None}) == [1, 2, 3]
    assert by_turns_of_racks({0: "a", 1: "a", 2: "a", 3: "b"}) == [0, 3, 1, 2]


@pytest.mark.parametrize("rf", [2, 3])
def test_replicas_of_each_partition_are_on_different_racks_if_enough_racks_exist(rf: int) -> None:
    racks: dict[int, str | None] = {0: "a", 1: "a", 2: "b", 3: "b", 4: "c", 5: "c"}
    for replicas in assign(60, rf, racks):
        assert len({racks[r] for r in replicas}) == rf


@given(
    racks=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=9),
    partitions=st.integers(1, 60),
    data=st.data(),
)
def test_replicas_are_distinct_and_leader_counts_of_brokers_differ_by_at_most_1(
    racks: list[str | None], partitions: int, data: st.DataObject
) -> None:
    by_id = dict(enumerate(racks))
    rf = data.draw(st.integers(1, len(racks)))
    assignment = assign(partitions, rf, by_id)
    sizes = Counter(racks)
    leaders = Counter(replicas[0] for replicas in assignment)
    for replicas in assignment:
        assert len(set(replicas)) == len(replicas) == rf
        used = Counter(by_id[r] for r in replicas)
        for rack, size in sizes.items():
            # A rack is skipped only when it has no more brokers.
            assert used[rack] == size or used[rack] >= max(used.values()) - 1
    assert max(leaders.values()) - min(leaders.get(broker_id, 0) for broker_id in by_id) <= 1
