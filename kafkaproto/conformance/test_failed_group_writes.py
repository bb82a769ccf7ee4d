"""Tests of group coordinators whose partition of the offsets topic rejects records, or does not replicate them: commits and assignments fail."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.groups import (
    Group,
    commit,
    enter_together,
    has_new_coordinator,
    make_stable,
    two_replicas,
)
from kafkaproto.conformance.internal_topics import reassign, topic_setting
from kafkaproto.conformance.scene import held, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

pytestmark = pytest.mark.needs("group.initial.rebalance.delay.ms", offsets_topic=True)

UNKNOWN_SERVER_ERROR, TIMED_OUT, NOT_AVAILABLE, REBALANCE, TOO_LARGE, FENCED = -1, 7, 15, 27, 28, 82
COMMIT_TIMEOUT_MS = 5_000
"""The default of `offsets.commit.timeout.ms`: the time in ms after which an offset commit fails if its record is not replicated."""


@pytest.mark.rule("GC-39", "GO-23")
def test_offset_commit_and_sync_group_fail_while_too_few_replicas_are_in_sync(subject: Subject) -> None:
    """While a replica is stopped, the SyncGroup requests of both members of a group and an offset commit for another group get an error.

    Commits succeed again when the replica is back. After the failed SyncGroup requests, the group rebalances. The coordinator in Scala rejects
    the records at once. The one in Java appends the records, and the requests time out, but the offset commit takes effect when the replica is back.
    """
    topic = new_topic(subject).name
    syncing, alone = Group(subject, 0), Group(subject, 0)
    coordinator = alone.coordinator()
    stopped = 1 if coordinator != 1 else 2  # requests go to broker 0
    subject.need_broker(stopped)
    reassign(alone.offsets, coordinator, stopped)
    try:
        leader, follower = syncing.client(), syncing.client()
        enter_together(leader, follower)
        assert commit(alone, {topic: {0: (5, "")}}) == {(topic, 0): 0}
        with topic_setting(alone.offsets, "min.insync.replicas", "2"):
            subject.stop_broker(stopped)
            wait_until(
                subject,
                lambda: alone.offsets.partition().isr_nodes == [coordinator],
                f"broker {coordinator} is the only in-sync replica of __consumer_offsets-0",
            )
            follower.send_sync()
            assert follower.is_parked()
            begun_ms = subject.now_ms()
            failed = leader.sync({leader.member_id: b"a", follower.member_id: b"b"}), follower.synced()
            assert [(synced.error_code, synced.assignment) for synced in failed] == [(NOT_AVAILABLE, b"")] * 2
            waits = has_new_coordinator(subject)
            assert (subject.now_ms() - begun_ms >= COMMIT_TIMEOUT_MS - subject.early_ms) is waits
            assert syncing.state() == ("PreparingRebalance", 2)
            if not waits:  # a heartbeat waits for all earlier records of the partition (GC-66)
                assert (leader.heartbeat(), follower.heartbeat()) == (REBALANCE, REBALANCE)
            begun_ms = subject.now_ms()
            assert commit(alone, {topic: {0: (6, "")}}) == {(topic, 0): NOT_AVAILABLE}
            assert (subject.now_ms() - begun_ms >= COMMIT_TIMEOUT_MS - subject.early_ms) is waits
            assert alone.committed() == {(topic, 0): 5}
            subject.start_broker(stopped)
            wait_until(
                subject,
                lambda: len(alone.offsets.partition().isr_nodes) == 2,
                "both replicas of __consumer_offsets-0 are in sync",
            )
        offset = 6 if waits else 5
        wait_until(
            subject,
            lambda: alone.committed() == {(topic, 0): offset},
            f"the committed offset of group {alone.id} for {topic}-0 is {offset}",
        )
        assert commit(alone, {topic: {0: (7, "")}}) == {(topic, 0): 0}
        assert alone.committed() == {(topic, 0): 7}
    finally:
        subject.restore()
        reassign(alone.offsets, coordinator)


@pytest.mark.rule("GO-23")
def test_offset_commit_that_exceeds_max_message_bytes_of_its_topic_is_rejected(subject: Subject) -> None:
    """The commit gets INVALID_COMMIT_OFFSET_SIZE (28) from Kafka's group coordinator in Scala, UNKNOWN_SERVER_ERROR from the one in Java."""
    topic = new_topic(subject).name
    group = Group(subject)
    assert commit(group, {topic: {0: (5, "")}}) == {(topic, 0): 0}
    error = UNKNOWN_SERVER_ERROR if has_new_coordinator(subject) else TOO_LARGE
    with topic_setting(group.offsets, "max.message.bytes", "100"):
        assert commit(group, {topic: {0: (6, "m" * 100)}}) == {(topic, 0): error}
        assert group.committed() == {(topic, 0): 5}
    assert commit(group, {topic: {0: (7, "m" * 100)}}) == {(topic, 0): 0}


@pytest.mark.rule("GO-23")
def test_offset_commit_that_is_not_replicated_in_time_gets_an_error(subject: Subject) -> None:
    topic = new_topic(subject).name
    group = Group(subject, 0)
    with two_replicas(group) as follower:
        client = group.client()
        with held(subject, group.offsets, follower):
            partition = OffsetCommitRequestPartition(0, 6)
            request = OffsetCommitRequest(group.id, topics=[OffsetCommitRequestTopic(topic, partitions=[partition])])
            subject.send(client.connection, request, 8)
            response = subject.answer(client.connection)
        subject.assert_took(response, COMMIT_TIMEOUT_MS)
        error = NOT_AVAILABLE if has_new_coordinator(subject) else TIMED_OUT
        assert response.message.topics[0].partitions[0].error_code == error


@pytest.mark.rule("GC-39")
def test_sync_group_whose_assignment_is_not_replicated_in_time_gets_an_error(subject: Subject) -> None:
    """SyncGroup gets REBALANCE_IN_PROGRESS from Kafka's group coordinator in Scala, COORDINATOR_NOT_AVAILABLE from the one in Java.

    In both cases, the group then rebalances.
    """
    group = Group(subject, 0)
    with two_replicas(group) as follower:
        client = group.client()
        assert client.enter().error_code == 0
        # The coordinator in Java finds a group only after its first record is replicated, and joins the member before that.
        group.wait_for("CompletingRebalance", 1)
        with held(subject, group.offsets, follower):
            client.send_sync({client.member_id: b"a"})
            response = subject.answer(client.connection)
        subject.assert_took(response, COMMIT_TIMEOUT_MS)
        error = NOT_AVAILABLE if has_new_coordinator(subject) else REBALANCE
        assert (response.message.error_code, response.message.assignment) == (error, b"")
        assert group.state() == ("PreparingRebalance", 1)
        assert (client.heartbeat(), client.join().generation_id) == (REBALANCE, 2)


@pytest.mark.rule("GC-34")
def test_static_member_keeps_its_old_member_id_if_its_new_id_is_not_replicated(subject: Subject) -> None:
    """A static member restarts while its new member id is not replicated in time: JoinGroup gets an error, and the old member id is valid again.

    After another restart, the JoinGroup response with the new member id arrives only when the id is replicated.
    """
    group = Group(subject, 0)
    with two_replicas(group) as follower:
        old, new = (group.client(instance="i1", session_ms=60_000) for _ in range(2))
        make_stable(old)
        with held(subject, group.offsets, follower):
            new.send_join()
            response = new.join_response()
        subject.assert_took(response, COMMIT_TIMEOUT_MS)
        error = NOT_AVAILABLE if has_new_coordinator(subject) else REBALANCE
        failed = response.message
        assert (failed.error_code, failed.member_id, failed.members) == (error, "", [])
        assert (failed.generation_id, failed.protocol_name, failed.leader) == (1, "range", old.member_id)
        description = group.describe()
        assert (description.group_state, [m.member_id for m in description.members]) == ("Stable", [old.member_id])
        assert (old.heartbeat(), old.sync().assignment) == (0, b"a0")
        with held(subject, group.offsets, follower):
            new.send_join()
            assert new.is_parked()
        reply = new.joined()
        assert (reply.error_code, reply.generation_id, reply.leader) == (0, old.generation, old.member_id)
        assert (old.heartbeat(), new.heartbeat(), new.sync().assignment) == (FENCED, 0, b"a0")
