"""Tests of rebalances: what starts a rebalance, for which members it waits, and the timeouts of members."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.groups import Client, Group, enter_together, has_new_coordinator, make_stable
from kafkaproto.conformance.scene import new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.hash_order import java_order, scala_table_order
from kafkaproto.partitioner import java_hash_bits

pytestmark = pytest.mark.needs("group.initial.rebalance.delay.ms", offsets_topic=True)
REBALANCE_MS = 2_000
SESSION_MS = 6_000
NO_RESPONSE_MS = 1_000
"""The time in ms without a response after which a test assumes that the request never gets one."""


@pytest.mark.rule("GC-16", "GC-24", "GC-26", "GC-38", "GC-43", "GC-52", "SN-5")
def test_heartbeats_get_rebalance_in_progress_when_a_second_member_joins(subject: Subject) -> None:
    """When a second member joins, the first gets REBALANCE_IN_PROGRESS and joins again (scenario SN-5).

    The first member, which leads the group, then assigns partitions only to itself, so the second member gets an empty assignment.
    """
    group = Group(subject)
    a, b = group.client(), group.client()
    make_stable(a)
    [member] = group.describe().members
    assert (member.member_metadata, member.member_assignment) == (b"m", b"a0")
    b.send_enter()
    assert b.is_parked()
    assert group.state() == ("PreparingRebalance", 2)
    assert a.heartbeat() == 27
    assert a.sync().error_code == 27
    at_a, at_b = a.join(), b.joined()
    assert [(r.error_code, r.generation_id, r.leader) for r in (at_a, at_b)] == [(0, 2, a.member_id)] * 2
    assert sorted(m.member_id for m in at_a.members) == sorted([a.member_id, b.member_id])
    assert at_b.members == []
    b.send_sync()
    assert b.is_parked()
    assert a.sync({a.member_id: b"x"}).assignment == b"x"
    left_out = b.synced()
    assert (left_out.error_code, left_out.assignment) == (0, b"")
    assert group.state() == ("Stable", 2)


@pytest.mark.rule("GC-20", "GC-24", "SN-6")
def test_rejoin_by_the_group_leader_or_with_new_metadata_starts_a_rebalance(subject: Subject) -> None:
    """A JoinGroup of the leader, or of a follower with new metadata, starts a rebalance. With unchanged metadata, a follower starts none (SN-6)."""
    group = Group(subject)
    a, b = group.client(), group.client()
    make_stable(a, b)
    generation = a.generation
    unchanged = b.join()
    assert (unchanged.error_code, unchanged.generation_id, unchanged.members) == (0, generation, [])
    assert group.state() == ("Stable", 2)
    a.send_join()
    assert a.is_parked()
    assert group.state() == ("PreparingRebalance", 2)
    assert b.heartbeat() == 27
    responses = b.join(), a.joined()
    assert [(r.error_code, r.generation_id) for r in responses] == [(0, generation + 1)] * 2
    assert [r.leader for r in responses] == [a.member_id] * 2
    b.send_sync()
    assert a.sync({}).error_code == b.synced().error_code == 0
    b.protocols = [("range", b"new")]
    b.send_join()
    assert b.is_parked()
    assert a.heartbeat() == 27
    response = a.join()
    assert (response.generation_id, b.joined().generation_id) == (generation + 2, generation + 2)
    assert {m.member_id: m.metadata for m in response.members} == {a.member_id: b"m", b.member_id: b"new"}


@pytest.mark.rule("GC-20", "GC-41")
def test_rejoin_with_new_metadata_between_join_and_sync_starts_a_rebalance(subject: Subject) -> None:
    group = Group(subject)
    a, b = group.client(), group.client()
    enter_together(a, b)
    b.send_sync()
    assert b.is_parked()
    a.protocols = [("range", b"new")]
    a.send_join()
    response = b.synced()
    assert (response.error_code, response.protocol_type, response.assignment) == (27, None, b"")
    assert b.join().generation_id == a.joined().generation_id == 3


@pytest.mark.rule("GC-22", "GC-25", "GC-28", "GC-35", "SN-8")
def test_rebalance_timeout_removes_dynamic_members_but_keeps_static_members(subject: Subject) -> None:
    """One of three members joins again. After the rebalance timeout, the new generation has this member and the static member (scenario SN-8)."""
    group = Group(subject)
    a, b = (group.client(rebalance_ms=REBALANCE_MS) for _ in range(2))
    s = group.client(rebalance_ms=REBALANCE_MS, instance="i1")
    make_stable(a, b, s)
    generation = a.generation
    a.protocols = [("range", b"new")]
    a.send_join()
    group.wait_for("PreparingRebalance", 3)
    assert (b.heartbeat(), s.heartbeat()) == (27, 27)
    response = a.join_response()
    subject.assert_took(response, REBALANCE_MS)
    assert (response.message.error_code, response.message.generation_id) == (0, generation + 1)
    assert {m.member_id for m in response.message.members} == {a.member_id, s.member_id}
    assert (b.heartbeat(), s.heartbeat()) == (25, 22)
    assert group.state() == ("CompletingRebalance", 2)


@pytest.mark.rule("GC-25", "GC-28")
def test_another_member_becomes_group_leader_if_the_leader_does_not_rejoin(subject: Subject) -> None:
    group = Group(subject)
    a, b = (group.client(rebalance_ms=REBALANCE_MS) for _ in range(2))
    make_stable(a, b)
    b.protocols = [("range", b"new")]
    b.send_join()
    response = b.join_response()
    subject.assert_took(response, REBALANCE_MS)
    assert (response.message.leader, len(response.message.members)) == (b.member_id, 1)
    assert a.heartbeat() == 25


@pytest.mark.rule("GC-22")
def test_join_group_v0_member_has_its_session_timeout_as_rebalance_timeout(subject: Subject) -> None:
    """Member A joined with version 0, which has no rebalance timeout. B joins, and A sends only heartbeats.

    A's session timeout is longer than B's rebalance timeout. So the join phase lasts as long as A's session timeout, and then A is removed.
    """
    group = Group(subject)
    a, b = group.client(version=0, session_ms=SESSION_MS), group.client(version=3, rebalance_ms=REBALANCE_MS)
    make_stable(a)
    b.send_join()
    subject.pass_ms(SESSION_MS / 2)
    assert a.heartbeat() == 27
    response = b.join_response()
    subject.assert_took(response, SESSION_MS)
    assert (response.message.error_code, [m.member_id for m in response.message.members]) == (0, [b.member_id])
    assert a.heartbeat() == 25


@pytest.mark.rule("GC-22")
@pytest.mark.parametrize("factors", [(1, 2), (2, 1)])
def test_join_phase_lasts_as_long_as_the_longest_rebalance_timeout_of_all_members(
    subject: Subject, factors: tuple[int, int]
) -> None:
    """The leader joins again with another protocol. The other member sends only heartbeats, and is removed after the longer of the two timeouts.

    factors: the rebalance timeouts of both members, the leader's first, in units of 2 s (`REBALANCE_MS`).
    """
    group = Group(subject)
    leader, silent = (group.client(rebalance_ms=factor * REBALANCE_MS) for factor in factors)
    make_stable(leader, silent)
    leader.protocols = [("range", b"new")]
    leader.send_join()
    group.wait_for("PreparingRebalance", 2)
    assert silent.heartbeat() == 27
    response = leader.join_response()
    subject.assert_took(response, 2 * REBALANCE_MS)
    assert [member.member_id for member in response.message.members] == [leader.member_id]
    assert silent.heartbeat() == 25


@pytest.mark.rule("GC-25")
def test_rebalance_timeout_of_static_members_restarts_until_one_of_them_rejoins(subject: Subject) -> None:
    """One of three static members leaves, and the others do not join again. When the rebalance timeout ends without a join, it restarts.

    One of the two joins again during the third timeout. When this timeout ends, a new generation starts, with both members.
    """
    group = Group(subject)
    members = [group.client(instance=f"i{i}", session_ms=60_000, rebalance_ms=REBALANCE_MS) for i in range(3)]
    make_stable(*members)
    leader, member, _ = members
    generation = leader.generation
    start_ms = subject.now_ms()
    assert group.leave(("", "i2")) == (0, [("", "i2", 0)])
    subject.pass_ms(2.5 * REBALANCE_MS)
    assert group.state() == ("PreparingRebalance", 2)
    assert (leader.heartbeat(), member.heartbeat()) == (27, 27)
    response = member.join()
    assert 3 * REBALANCE_MS - 200 <= subject.now_ms() - start_ms <= 3 * REBALANCE_MS + subject.slack_ms + 100
    assert (response.error_code, response.generation_id, response.leader) == (0, generation + 1, member.member_id)
    assert {m.group_instance_id for m in response.members} == {"i0", "i1"}


@pytest.mark.rule("GC-40", "GC-41", "GC-42", "GC-44", "SN-9")
def test_group_leader_that_does_not_sync_in_time_is_removed_from_the_group(subject: Subject) -> None:
    """The leader sends heartbeats, but no SyncGroup within the rebalance timeout. The group removes the leader and rebalances (scenario SN-9)."""
    group = Group(subject)
    a, b = (group.client(rebalance_ms=REBALANCE_MS) for _ in range(2))
    enter_together(a, b)
    start_ms = subject.now_ms()
    b.send_sync()
    assert a.heartbeat() == 0
    response = subject.answer(b.connection).message
    assert (response.error_code, response.protocol_type, response.protocol_name) == (27, None, None)
    assert REBALANCE_MS - 200 <= subject.now_ms() - start_ms <= REBALANCE_MS + subject.slack_ms
    assert a.heartbeat() == 25
    assert group.state() == ("PreparingRebalance", 1)


@pytest.mark.rule("GC-11", "GC-35", "GC-45", "SN-10")
@pytest.mark.parametrize("instance", [None, "i1"])
def test_member_without_heartbeats_is_removed_after_its_session_timeout(subject: Subject, instance: str | None) -> None:
    """The only member of a group sends no heartbeats. After its session timeout the group is Empty (scenario SN-10).

    The change to Empty starts generation 2, so the next member joins in generation 3. instance: the group instance id of the first member; None for a
    dynamic member.
    """
    group = Group(subject)
    client = group.client(session_ms=SESSION_MS, instance=instance)
    make_stable(client)
    start_ms = subject.now_ms()
    subject.pass_ms(SESSION_MS - 500)
    assert group.state() == ("Stable", 1)
    wait_until(
        subject, lambda: group.state() == ("Empty", 0), f"member {client.member_id} is removed from group {group.id}"
    )
    assert SESSION_MS - 200 <= subject.now_ms() - start_ms <= SESSION_MS + subject.slack_ms + 100
    assert client.heartbeat() == 25
    assert group.client().enter().generation_id == 3


@pytest.mark.rule("GC-45")
def test_member_that_only_commits_offsets_outlives_its_session_timeout(subject: Subject) -> None:
    topic, group = new_topic(subject).name, Group(subject)
    client = group.client(session_ms=SESSION_MS)
    make_stable(client)
    for offset in range(3):
        subject.pass_ms(SESSION_MS / 2)
        assert client.commit({topic: {0: (offset, "")}}) == {(topic, 0): 0}
    assert group.state() == ("Stable", 1)
    assert client.heartbeat() == 0


@pytest.mark.rule("GC-29", "GC-45")
def test_member_with_a_parked_join_outlives_its_session_timeout(subject: Subject) -> None:
    """Member A joins again. A's request waits for member B, which sends only heartbeats. The wait is longer than A's session timeout.

    A stays in the group. When B also joins again, the rebalance ends, and A's session timeout starts again.
    """
    group = Group(subject)
    a, b = group.client(session_ms=SESSION_MS), group.client(session_ms=60_000)
    make_stable(a, b)
    generation = a.generation
    a.send_join()
    start_ms = subject.now_ms()
    while subject.now_ms() - start_ms < SESSION_MS + 1_000:
        assert a.is_parked()
        assert b.heartbeat() == 27
        subject.pass_ms(350)
    assert group.state() == ("PreparingRebalance", 2)
    assert (b.join().generation_id, a.joined().generation_id) == (generation + 1, generation + 1)
    b.send_sync()
    assert (a.sync({}).error_code, b.synced().error_code) == (0, 0)
    assert (a.heartbeat(), group.state()) == (0, ("Stable", 2))


@pytest.mark.rule("GC-19", "GC-24")
def test_rebalance_waits_for_a_pending_member_until_the_member_leaves(subject: Subject) -> None:
    group = Group(subject)
    a, pending = group.client(), group.client()
    make_stable(a)
    assert pending.join().error_code == 79
    a.send_join()
    assert a.is_parked()
    assert group.leave((pending.member_id, None)) == (0, [(pending.member_id, None, 0)])
    assert a.joined().generation_id == 2


@pytest.mark.rule("GC-49")
def test_parked_join_of_a_member_that_is_removed_gets_unknown_member_id(subject: Subject) -> None:
    group = Group(subject)
    a, b, c = group.client(), group.client(), group.client()
    make_stable(a, b, c)
    a.send_join()
    assert a.is_parked()
    result = group.leave((a.member_id, None), (b.member_id, None))
    assert result == (0, [(a.member_id, None, 0), (b.member_id, None, 0)])
    assert _error_of(a) == 25
    assert (c.heartbeat(), c.join().generation_id) == (27, 3)


@pytest.mark.rule("GC-24")
def test_first_of_two_parked_join_groups_of_a_member_never_gets_a_response(subject: Subject) -> None:
    """A member sends JoinGroup over two connections while the other member has not joined. Only the second request gets a response."""
    group = Group(subject)
    a, b = group.client(), group.client()
    make_stable(a, b)
    again = group.client(a.member_id)
    a.send_join()
    assert a.is_parked()
    again.send_join()
    assert again.is_parked()
    assert _gets_no_response(a)
    assert group.state() == ("PreparingRebalance", 2)
    b.send_join()
    assert (b.joined().generation_id, again.joined().generation_id) == (3, 3)
    assert _gets_no_response(a)
    assert (again.heartbeat(), group.state()) == (0, ("CompletingRebalance", 2))


@pytest.mark.rule("GC-24")
def test_first_of_two_parked_sync_groups_of_a_member_never_gets_a_response(subject: Subject) -> None:
    """A member sends SyncGroup over three connections before the leader does. Only the last request gets a response.

    The second connection is closed before the leader sends the assignment. This does not affect the last request.
    """
    group = Group(subject)
    leader, first = group.client(), group.client()
    enter_together(leader, first)
    closed, last = group.client(first.member_id), group.client(first.member_id)
    closed.generation = last.generation = first.generation
    for client in (first, closed, last):
        client.send_sync()
        assert client.is_parked()
    assert _gets_no_response(first)
    closed.connection.close()
    assert leader.sync({first.member_id: b"x"}).error_code == 0
    assert last.synced().assignment == b"x"
    assert _gets_no_response(first)
    assert (leader.heartbeat(), last.heartbeat(), group.state()) == (0, 0, ("Stable", 2))


@pytest.mark.rule("GC-49")
def test_parked_sync_of_a_member_that_is_removed_never_gets_a_response(subject: Subject) -> None:
    """The other member, which leads the group, joins and syncs again without the removed member."""
    group = Group(subject)
    leader, removed = group.client(), group.client()
    enter_together(leader, removed)
    removed.send_sync()
    assert removed.is_parked()
    assert group.leave((removed.member_id, None)) == (0, [(removed.member_id, None, 0)])
    assert _gets_no_response(removed)
    assert leader.heartbeat() == 27
    assert leader.join().generation_id == leader.generation == 3
    assert leader.sync({leader.member_id: b"x"}).assignment == b"x"
    assert _gets_no_response(removed)


def _gets_no_response(client: Client) -> bool:
    """Return whether the client's request gets no response within a second (`NO_RESPONSE_MS`)."""
    return client.subject.answer_or_none(client.connection, NO_RESPONSE_MS) is None


def _error_of(client: Client) -> int:
    return int(client.joined().error_code)


@pytest.mark.rule("GC-26", "GC-28", "GC-52")
@pytest.mark.parametrize("count", [4, 12, 13])
def test_members_are_listed_in_hash_order_and_the_first_replaces_a_leaving_leader(subject: Subject, count: int) -> None:
    """JoinGroup and DescribeGroups list the members in the order of the hash table in which the coordinator stores them.

    With the coordinator in Java, this is a hash table of Java, otherwise one of Scala. The table does not shrink when a member leaves. Two counts
    show this: with 12 members the table of Scala has just become larger, with 13 members that of Java. count: the number of members.
    """
    group = Group(subject)
    leader, *others = (group.client(session_ms=30_000, rebalance_ms=30_000) for _ in range(count))
    assert leader.enter().error_code == 0
    for number, client in enumerate(others, 2):
        client.send_enter()
        group.wait_for("PreparingRebalance", number)
    response = leader.join()
    member_ids = [leader.member_id, *(client.joined().member_id for client in others)]
    order = java_order if has_new_coordinator(subject) else scala_table_order
    assert [member.member_id for member in response.members] == order(member_ids, java_hash_bits)
    assert [member.member_id for member in group.describe().members] == order(member_ids, java_hash_bits)

    assert group.leave((leader.member_id, None))[0] == 0
    remaining_ids = order(member_ids[1:], java_hash_bits, most=count)
    for client in others:
        client.send_join()
    responses = {client.member_id: client.joined() for client in others}
    assert {each.leader for each in responses.values()} == {remaining_ids[0]}
    assert [member.member_id for member in responses[remaining_ids[0]].members] == remaining_ids
