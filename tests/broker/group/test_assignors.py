"""The assignors of consumer groups: balance, stickiness, and the examples of the rules."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.broker.group.assignment import Assignment
from kafkaproto.broker.group.assignors import (
    Assignor,
    assign_range,
    assign_uniform,
)
from kafkaproto.broker.group.member_subscription import AssignmentFailed, MemberSubscription

T, U, V = b"T" * 16, b"U" * 16, b"V" * 16
TOPICS = (T, U, V)


def member(
    member_id: str, *topics: bytes, instance: str | None = None, **target: tuple[int, ...]
) -> MemberSubscription:
    current = {{"T": T, "U": U, "V": V}[name]: frozenset(indexes) for name, indexes in target.items()}
    return MemberSubscription(member_id, instance, frozenset(topics or (T,)), current)


def shown(targets: Mapping[str, Assignment]) -> dict[str, dict[str, list[int]]]:
    return {
        member_id: {topic_id.decode()[0]: sorted(indexes) for topic_id, indexes in target.items()}
        for member_id, target in sorted(targets.items())
    }


@pytest.mark.parametrize(
    ("members", "counts", "targets"),
    [
        (["a", "b", "c"], {T: 7}, {"a": {"T": [0, 1, 2]}, "b": {"T": [3, 4]}, "c": {"T": [5, 6]}}),
        (["a", "b"], {T: 1, U: 1}, {"a": {"T": [0], "U": [0]}, "b": {}}),
    ],
)
def test_range_assignor_gives_consecutive_partitions_to_members_in_order(
    members: list[str], counts: dict[bytes, int], targets: dict[str, dict[str, list[int]]]
) -> None:
    assert shown(assign_range([member(name, *counts) for name in reversed(members)], counts)) == targets


def test_range_assignor_orders_static_members_by_instance_id_before_dynamic_members() -> None:
    members = [member("a"), member("z", instance="2"), member("y", instance="3")]
    assert shown(assign_range(members, {T: 3})) == {"a": {"T": [2]}, "y": {"T": [1]}, "z": {"T": [0]}}


def test_uniform_assignor_moves_only_an_equal_share_of_partitions_to_a_new_member() -> None:
    first = assign_uniform([member("A")], {T: 6})
    assert shown(first) == {"A": {"T": [0, 1, 2, 3, 4, 5]}}
    second = assign_uniform([member("A", T=tuple(range(6))), member("B")], {T: 6})
    assert shown(second) == {"A": {"T": [0, 1, 2]}, "B": {"T": [3, 4, 5]}}
    third = assign_uniform([member("A", T=(0, 1, 2)), member("B", T=(3, 4, 5)), member("C")], {T: 6})
    assert shown(third) == {"A": {"T": [0, 1]}, "B": {"T": [3, 4]}, "C": {"T": [2, 5]}}


def test_uniform_assignor_moves_no_partition_if_two_members_own_1_and_2_partitions() -> None:
    targets = assign_uniform([member("A", T=(0,)), member("B", T=(1, 2))], {T: 3})
    assert shown(targets) == {"A": {"T": [0]}, "B": {"T": [1, 2]}}


def test_uniform_assignor_counts_partitions_of_all_topics_when_it_balances_members() -> None:
    targets = assign_uniform([member("A", T, T=(0, 1, 2)), member("B", T, U, T=(3, 4, 5))], {T: 6, U: 6})
    assert shown(targets) == {"A": {"T": [0, 1, 2, 3, 4, 5]}, "B": {"U": [0, 1, 2, 3, 4, 5]}}


counts_of_topics = st.fixed_dictionaries({topic_id: st.integers(0, 9) for topic_id in TOPICS})


@st.composite
def groups(draw: st.DrawFn, *, homogeneous: bool) -> tuple[list[MemberSubscription], dict[bytes, int]]:
    """Draw members with targets that an earlier assignment may have left: each partition at one member, some of topics that are gone."""
    counts = draw(counts_of_topics)
    names = draw(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=7, unique=True))
    some_topics = st.frozensets(st.sampled_from(TOPICS))
    shared = draw(some_topics)
    places = [(topic_id, index) for topic_id in TOPICS for index in range(12)]
    owners = draw(st.lists(st.sampled_from([*names, None]), min_size=len(places), max_size=len(places)))
    members = []
    for name in names:
        target: dict[bytes, set[int]] = {}
        for (topic_id, index), owner in zip(places, owners, strict=True):
            if owner == name:
                target.setdefault(topic_id, set()).add(index)
        topics = shared if homogeneous else draw(some_topics)
        previous = {topic_id: frozenset(indexes) for topic_id, indexes in target.items()}
        members.append(MemberSubscription(name, None, topics, previous))
    return members, counts


def assert_complete(
    members: list[MemberSubscription], counts: dict[bytes, int], targets: Mapping[str, Assignment]
) -> None:
    assert set(targets) == {m.member_id for m in members}
    given_out = [
        (topic_id, index) for target in targets.values() for topic_id, indexes in target.items() for index in indexes
    ]
    subscribed = {topic_id for m in members for topic_id in m.topic_ids}
    assert sorted(given_out) == sorted((t, index) for t in subscribed for index in range(counts[t]))
    for m in members:
        assert set(targets[m.member_id]) <= m.topic_ids


@pytest.mark.parametrize("assignor", [assign_range, assign_uniform], ids=["range", "uniform"])
@given(group=groups(homogeneous=False))
def test_assignors_give_every_partition_to_exactly_one_subscriber(
    assignor: Assignor, group: tuple[list[MemberSubscription], dict[bytes, int]]
) -> None:
    members, counts = group
    assert_complete(members, counts, assignor(members, counts))


@given(group=groups(homogeneous=False))
def test_range_assignor_computes_the_same_targets_for_any_order_of_the_members(
    group: tuple[list[MemberSubscription], dict[bytes, int]],
) -> None:
    members, counts = group
    assert assign_range(list(reversed(members)), counts) == assign_range(members, counts)


@given(group=groups(homogeneous=False))
def test_kafka_3_9_uniform_assignor_gives_each_partition_of_new_group_to_one_member(
    group: tuple[list[MemberSubscription], dict[bytes, int]],
) -> None:
    """It cannot fail for a group without current targets."""
    members, counts = group
    with suppress(AssignmentFailed):
        assert_complete(members, counts, assign_uniform(members, counts, is_release_4=False, is_release_4_1=False))
    new = [member._replace(target={}) for member in members]
    assert_complete(new, counts, assign_uniform(new, counts, is_release_4=False, is_release_4_1=False))


def test_uniform_assignor_orders_topics_as_in_a_hash_table_sized_by_the_topic_count() -> None:
    """The topics are in buckets 18 and 3 of 32, or in buckets 2 and 3 of 16. The first member gets the partition of the topic in the first bucket."""
    late, early = bytes(15) + b"\x12", bytes(15) + b"\x03"
    for subscribed, first in ((2, late), (13, early)):
        members = [MemberSubscription(name, None, (late, early), subscribed=subscribed) for name in "AB"]
        assert assign_uniform(members, {late: 1, early: 1})["A"] == {first: frozenset({0})}


@pytest.mark.parametrize("is_release_4_1", [False, True])
@given(group=groups(homogeneous=True))
def test_uniform_assignor_gives_members_partition_counts_that_differ_by_at_most_1(
    group: tuple[list[MemberSubscription], dict[bytes, int]], is_release_4_1: bool
) -> None:
    members, counts = group
    targets = assign_uniform(members, counts, is_release_4_1=is_release_4_1)
    sizes = [sum(map(len, target.values())) for target in targets.values()]
    assert max(sizes) - min(sizes) <= 1
    lower = min(sizes)
    for m in members:
        owned = {
            (t, index) for t, indexes in m.target.items() if t in m.topic_ids for index in indexes if index < counts[t]
        }
        kept = {(t, index) for t, indexes in targets[m.member_id].items() for index in indexes} & owned
        assert len(kept) >= min(len(owned), lower)  # a member loses partitions only if it has more than its share
    again = [m._replace(target=targets[m.member_id]) for m in members]
    assert assign_uniform(again, counts, is_release_4_1=is_release_4_1) == targets


@given(group=groups(homogeneous=False))
def test_uniform_assignor_keeps_its_last_assignment_if_no_member_or_topic_changed(
    group: tuple[list[MemberSubscription], dict[bytes, int]],
) -> None:
    members, counts = group
    targets = assign_uniform(members, counts)
    again = [m._replace(target=targets[m.member_id]) for m in members]
    assert assign_uniform(again, counts) == targets


@pytest.mark.rule("GN-38")
@pytest.mark.parametrize(
    ("first", "second", "is_equal"),
    [
        (("t", ""), ("t", ""), True),
        (("", "t.*"), ("", "t.*"), True),
        (("t", ""), ("t,missing", ""), False),
        (("t", ""), ("", "t.*"), False),
        (("t", "t.*"), ("t", "t.*"), False),
    ],
)
def test_uniform_assignor_assigns_consecutive_partitions_if_subscriptions_are_equal(
    first: tuple[str, str], second: tuple[str, str], is_equal: bool
) -> None:
    """Partitions of equal subscriptions are consecutive, those of different ones alternate."""
    members = [
        MemberSubscription(name, None, frozenset({T}), {}, frozenset(filter(None, names.split(","))), regex)
        for name, (names, regex) in (("A", first), ("B", second))
    ]
    assert (assign_uniform(members, {T: 6})["A"] == {T: frozenset({0, 1, 2})}) == is_equal
