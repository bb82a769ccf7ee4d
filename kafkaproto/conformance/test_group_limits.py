"""Tests of settings of the group coordinator: the initial delay of a rebalance, the size of a group, and the acks that a commit waits for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkaproto.conformance.group_log import CLASSIC_GROUP, GroupLog
from kafkaproto.conformance.groups import Group, commit, has_new_coordinator
from kafkaproto.conformance.internal_topics import reassign
from kafkaproto.conformance.scene import held, make_lead, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.coordinator_records import write_key, write_value
from kafkaproto.data.group_metadata_key import GroupMetadataKey
from kafkaproto.records.batch import NewRecord, build_batch

PROFILE = "groups"
pytestmark = pytest.mark.needs("group.initial.rebalance.delay.ms", "group.max.size", offsets_topic=True)
DELAY_MS = 1_500
REBALANCE_MS = 4_000
ADMIN_CLIENT = "__admin_client"
"""The client id of producers that may write to internal topics. Kafka's broker compares it with `AdminUtils.ADMIN_CLIENT_ID`."""


@pytest.mark.rule("GC-23", "SN-7")
def test_first_join_group_of_a_group_is_answered_after_the_initial_rebalance_delay(subject: Subject) -> None:
    """The JoinGroup response arrives `group.initial.rebalance.delay.ms` after the request (scenario SN-7 with one member)."""
    client = Group(subject).client(version=3, rebalance_ms=300_000)
    client.send_join()
    subject.assert_took(client.join_response(), DELAY_MS)


@pytest.mark.rule("GC-23", "SN-7")
@pytest.mark.parametrize(("rebalance_ms", "expected_ms"), [(300_000, 2 * DELAY_MS), (2_500, 2_500)])
def test_new_member_extends_the_initial_rebalance_delay_up_to_the_rebalance_timeout(
    subject: Subject, rebalance_ms: int, expected_ms: int
) -> None:
    """A second member extends the delay, but the whole delay does not exceed the rebalance timeout (scenario SN-7 with two members).

    rebalance_ms: the rebalance timeout of both members. expected_ms: the expected time from the first JoinGroup request to both responses.
    """
    group = Group(subject)
    a, b = (group.client(version=3, rebalance_ms=rebalance_ms) for _ in range(2))
    start_ms = subject.now_ms()
    a.send_join()
    subject.pass_ms(500)
    b.send_join()
    sent_ms = subject.now_ms() - start_ms
    first, second = a.join_response(), b.join_response()
    subject.assert_took(first, expected_ms)
    assert abs(second.elapsed_ms + sent_ms - first.elapsed_ms) <= 1 + subject.slack_ms
    assert (first.message.generation_id, second.message.generation_id) == (1, 1)
    assert (len(first.message.members), len(second.message.members)) == (2, 0)


@pytest.mark.rule("GC-23", "GC-24", "SN-7")
def test_member_that_joins_after_the_initial_rebalance_delay_starts_a_rebalance(subject: Subject) -> None:
    """Member A is alone in generation 1. The response to member B's join arrives only after A has joined again (SN-7 with a late member)."""
    group = Group(subject)
    a, b = (group.client(version=3, rebalance_ms=300_000) for _ in range(2))
    a.send_join()
    response = a.join_response()
    subject.assert_took(response, DELAY_MS)
    assert response.message.generation_id == 1
    b.send_join()
    assert b.is_parked()
    assert a.heartbeat() == 27
    assert a.join().generation_id == b.joined().generation_id == 2


@pytest.mark.rule("GC-15", "GC-30", "SN-19")
def test_member_beyond_group_max_size_is_rejected(subject: Subject) -> None:
    """A third member gets GROUP_MAX_SIZE_REACHED at once, without a member id; the two members stay (scenario SN-19)."""
    group = Group(subject)
    a, b = group.client(version=3), group.client(version=3)
    a.send_join()
    b.send_join()
    responses = a.joined(), b.joined()
    assert [response.generation_id for response in responses] == [1, 1]
    leader, follower = (a, b) if responses[0].members else (b, a)
    full_responses = [group.client().join()]
    assert group.state() == ("CompletingRebalance", 2)
    follower.send_sync()
    assert (leader.sync({}).error_code, follower.synced().error_code) == (0, 0)
    full_responses.append(group.client().join())
    assert group.state() == ("Stable", 2)
    assert [(r.error_code, r.member_id, r.generation_id) for r in full_responses] == [(81, "", -1)] * 2
    assert a.heartbeat() == b.heartbeat() == 0
    assert follower.join().error_code == 0


@pytest.mark.rule("GC-30", "GC-31")
def test_full_group_rejects_a_static_member_that_restarts_without_its_member_id(subject: Subject) -> None:
    """The group has two members, the maximum. After the rejected join, the static member can still join again with its member id."""
    group = Group(subject)
    old, other = group.client(instance="i1"), group.client(instance="i2")
    old.send_join()
    other.send_join()
    responses = old.joined(), other.joined()
    assert [(response.error_code, response.generation_id) for response in responses] == [(0, 1)] * 2
    leader, follower = (old, other) if responses[0].members else (other, old)
    follower.send_sync()
    assert (leader.sync({}).error_code, follower.synced().error_code) == (0, 0)
    restarted = group.client(instance="i1").join()
    assert (restarted.error_code, restarted.member_id, restarted.generation_id) == (81, "", -1)
    assert (old.heartbeat(), group.state()) == (0, ("Stable", 2))
    group.leave(("", "i2"))
    group.wait_for("PreparingRebalance", 1)
    assert old.join().error_code == 0
    restarted = group.client(instance="i1").join()
    assert (restarted.error_code, restarted.member_id == old.member_id) == (0, False)


@pytest.mark.rule("GC-19", "GC-30")
def test_member_id_rejected_by_a_full_group_is_unknown_even_after_a_member_has_left(subject: Subject) -> None:
    """Three clients get a member id, and two of them join. The third is rejected, and its member id stays unknown, even after a member has left."""
    group = Group(subject)
    a, b, c = (group.client() for _ in range(3))
    assert [client.join().error_code for client in (a, b, c)] == [79] * 3
    a.send_join()
    b.send_join()
    group.wait_for("PreparingRebalance", 2)
    response = c.join()
    assert (response.error_code, response.member_id) == (81, "")
    assert a.joined().error_code == b.joined().error_code == 0
    group.leave((b.member_id, None))
    assert c.join().error_code == 25


@pytest.mark.rule("GC-24", "GC-30")
def test_scala_coordinator_ends_the_join_phase_when_the_pending_member_is_rejected(subject: Subject) -> None:
    """A join phase waits only for a pending member: a client that has got a member id, but has not joined with it yet.

    The client then joins, and is rejected because the group is full. With Kafka's group coordinator in Scala, the join phase then ends at once. With
    the coordinator in Java, the join phase lasts until the end of the rebalance timeout.
    """
    group = Group(subject)
    a, b = (group.client(version=3, rebalance_ms=REBALANCE_MS) for _ in range(2))
    pending = group.client()
    assert pending.join().error_code == 79
    a.send_join()
    b.send_join()
    assert a.joined().generation_id == b.joined().generation_id == 1
    a.protocols = [("range", b"new")]
    a.send_join()
    group.wait_for("PreparingRebalance", 2)
    b.send_join()
    assert b.is_parked()
    assert pending.join().error_code == 81
    response = a.join_response()
    assert response.message.generation_id == b.joined().generation_id == 2
    if has_new_coordinator(subject):
        subject.assert_took(response, REBALANCE_MS)
    else:
        assert response.elapsed_ms < REBALANCE_MS / 2


@pytest.mark.rule("GC-30")
def test_new_coordinator_rebalances_a_loaded_group_that_exceeds_group_max_size(subject: Subject) -> None:
    """The test adds a third member to a stable group of two members, and then moves the coordinator.

    To add the member, the test writes a record to the offsets topic. It uses the client id of Kafka's own admin client, because other clients may not
    write to internal topics. The next coordinator loads the group with three members and starts a rebalance. The first two members that join again
    stay, and the third member is rejected.
    """
    group = Group(subject, 0)
    before = group.coordinator()
    after = (before + 1) % len(subject.bootstrap)
    subject.need_broker(1)
    log = GroupLog(group)
    a, b, third = (group.client(version=3, session_ms=60_000, rebalance_ms=2 * REBALANCE_MS) for _ in range(3))
    a.send_join()
    b.send_join()
    leader, follower = (a, b) if a.joined().members else (b, a)
    assert b.joined().generation_id == 1
    follower.send_sync()
    assert (leader.sync({}).error_code, follower.synced().error_code) == (0, 0)
    *_, (_, _, version, stored) = [record for record in log.new() if record[0] == CLASSIC_GROUP]
    assert version is not None
    third.member_id, third.generation = "third", 1
    stored.members.append(replace(stored.members[0], member_id=third.member_id))
    key, value = write_key(GroupMetadataKey(group.id), CLASSIC_GROUP), write_value(stored, version)
    group.offsets.fill(build_batch([NewRecord(value, key, subject.epoch_ms())]), client_id=ADMIN_CLIENT)
    reassign(group.offsets, before, after)
    try:
        make_lead(group.offsets, after)
        assert group.coordinator() == after
        assert group.state() == ("PreparingRebalance", 3)
        for client in (a, b, third):
            client.connection = group.connect()
        assert [client.heartbeat() for client in (a, b, third)] == [27, 27, 27]
        a.send_join()
        b.send_join()
        assert a.is_parked() and b.is_parked()
        assert third.join().error_code == 81
        responses = a.joined(), b.joined()
        assert [(response.error_code, response.generation_id) for response in responses] == [(0, 2)] * 2
        assert group.state() == ("CompletingRebalance", 2)
        assert third.heartbeat() == 25
    finally:
        reassign(group.offsets, before)


@pytest.mark.rule("GO-23")
@pytest.mark.needs("offsets.commit.required.acks")
@pytest.mark.releases(before="4.0")
def test_offset_commit_awaits_no_follower_if_offsets_commit_required_acks_is_1(subject: Subject) -> None:
    """The test suspends the follower of the group's offsets partition. With the default acks, -1, the commit would wait for this follower."""
    topic = new_topic(subject).name
    group = Group(subject, 0)
    coordinator = group.coordinator()
    follower = 1 if coordinator != 1 else 2  # requests go to broker 0
    subject.need_broker(follower)
    reassign(group.offsets, coordinator, follower)
    try:
        assert commit(group, {topic: {0: (5, "")}}) == {(topic, 0): 0}
        with held(subject, group.offsets, follower):
            start_ms = subject.now_ms()
            assert commit(group, {topic: {0: (6, "")}}) == {(topic, 0): 0}
            assert subject.now_ms() - start_ms < DELAY_MS
    finally:
        subject.restore()
        reassign(group.offsets, coordinator)
