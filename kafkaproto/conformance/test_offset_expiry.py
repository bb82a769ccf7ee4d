"""Tests of the expiry of committed offsets after their retention time (KIP-211)."""

from __future__ import annotations

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.consumer_groups import LEAVE_EPOCH, ConsumerGroup
from kafkaproto.conformance.group_log import CLASSIC_GROUP, OffsetLog
from kafkaproto.conformance.groups import Group, commit, has_new_coordinator, make_stable, subscription, two_replicas
from kafkaproto.conformance.internal_topics import reassign
from kafkaproto.conformance.scene import held, make_lead, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.table_order import is_table_order
from kafkaproto.conformance.test_group_limits import ADMIN_CLIENT
from kafkaproto.conformance.test_offset_batches import in_tables
from kafkaproto.conformance.test_transactions import begun
from kafkaproto.conformance.test_unreplicated_changes import commit_of, send
from kafkaproto.coordinator_records import write_key, write_value
from kafkaproto.data.group_metadata_key import GroupMetadataKey
from kafkaproto.data.group_metadata_value import GroupMetadataValue
from kafkaproto.hash_order import partition_hash_bits, scala_copy_order, timeline_order
from kafkaproto.partitioner import java_hash_bits
from kafkaproto.records.batch import NewRecord, build_batch

PROFILE = "maintenance"
pytestmark = pytest.mark.needs("offsets.retention.minutes", "offsets.retention.check.interval.ms", offsets_topic=True)
RETENTION_MS = 60_000
SEVERAL_CHECKS_MS = 1_500
HEARTBEAT_MS = 5_000
ONE_JOIN = 3
"""The last version of JoinGroup without MEMBER_ID_REQUIRED, so that a member joins with one request.

In later versions a member joins twice. Between the two requests, the check for expired offsets could delete the group.
"""
NOT_AVAILABLE = 15
"""COORDINATOR_NOT_AVAILABLE: the error that Kafka returns until enough replicas of a new partition of `__consumer_offsets` are in sync."""
NOT_FOUND = 69
WITH_TIME = 1
"""The version of OffsetCommit whose request contains the commit time, so that a test can commit an offset with a commit time in the past.

Kafka 4 does not support this version. With Kafka 4, the test commits without a time and waits until the retention time has passed.
"""
WITH_RETENTION, AT_ONCE_MS = 4, 2**63 - 1
"""The last version of OffsetCommit with a retention time, and a retention time with which an offset expires at the next check (GO-14)."""
SHORT_RETENTION_MS = 2_500
"""A retention time in ms that passes before an OffsetCommit fails because it is not replicated (`offsets.commit.timeout.ms`, 5000 by default)."""
WITH_TIMESTAMP = 3
"""A version of GroupMetadataValue that every release writes. It contains the time at which the group became Empty."""
WITH_EPOCH = 9
"""The first version of OffsetCommit that members of a group of the new protocol (KIP-848) can use."""


@pytest.mark.rule("GO-14", "GO-24", "GC-14", "SN-26")
def test_committed_offsets_expire_for_empty_groups_and_for_unsubscribed_topics(subject: Subject) -> None:
    """Offsets of topics that a member of the group subscribes to do not expire (scenario SN-26).

    Other offsets expire when the retention time has passed since their commit or, if the last member has left the
    group, since that member left.
    """
    t1, t2 = new_topic(subject).name, new_topic(subject).name
    group, alone = Group(subject), Group(subject)
    client = group.client(version=ONE_JOIN, protocols=[("range", subscription(t1))])
    make_stable(client)
    version = subject.version(ApiKey.OFFSET_COMMIT, WITH_TIME)
    old_ms = subject.epoch_ms() - 10 * RETENTION_MS if version == WITH_TIME else -1
    client.commit({t1: {0: (5, "")}, t2: {0: (6, "")}}, version, timestamp=old_ms)
    assert wait_until(
        subject,
        lambda: _errors_unless_unavailable(alone, t1, version, old_ms),
        f"the coordinator of group {alone.id} is available",
    ) == {(t1, 0): 0}
    for _ in range(0, 0 if version == WITH_TIME else RETENTION_MS, HEARTBEAT_MS):
        subject.pass_ms(HEARTBEAT_MS)
        assert client.heartbeat() == 0
    _wait_until_deleted(alone)
    wait_until(
        subject,
        lambda: group.committed() == {(t1, 0): 5},
        f"{t1}-0 is the only partition with a committed offset of group {group.id}",
    )
    subject.pass_ms(SEVERAL_CHECKS_MS)
    assert group.committed() == {(t1, 0): 5}

    commit(alone, {t1: {0: (7, "")}})
    assert group.leave((client.member_id, None))[0] == 0
    subject.pass_ms(RETENTION_MS - 2 * SEVERAL_CHECKS_MS)
    assert (group.committed(), alone.committed()) == ({(t1, 0): 5}, {(t1, 0): 7})
    for each in (group, alone):
        _wait_until_deleted(each)
        assert each.committed() == {}


def _errors_unless_unavailable(
    group: Group, topic: str, version: int, time_ms: int, **fields: int
) -> dict[tuple[str, int], int]:
    """Commit offset 7 of partition 0 and return the errors by (topic, partition), or {} for COORDINATOR_NOT_AVAILABLE.

    version: the version of the OffsetCommit request. time_ms: the commit time. fields: further fields of the request.
    """
    errors = commit(group, {topic: {0: (7, "")}}, version, timestamp=time_ms, **fields)
    return {} if errors == {(topic, 0): NOT_AVAILABLE} else errors


@pytest.mark.rule("GO-14", "GO-24", "SN-26")
def test_committed_offset_expires_after_the_retention_time_in_the_offset_commit(subject: Subject) -> None:
    """The retention time in an OffsetCommit of version 2 to 4 replaces the broker's `offsets.retention.minutes` (scenario SN-26)."""
    t1, t2 = new_topic(subject).name, new_topic(subject).name
    group = Group(subject)
    client = group.client(version=ONE_JOIN, protocols=[("range", subscription(t1))])
    make_stable(client)
    for version in (2, 3, 4):
        client.commit({t1: {0: (5, "")}, t2: {0: (6, "")}}, version, retention_time_ms=1_500)
        assert group.committed() == {(t1, 0): 5, (t2, 0): 6}
        wait_until(
            subject,
            lambda: group.committed() == {(t1, 0): 5},
            f"{t1}-0 is the only partition with a committed offset of group {group.id}",
        )


@pytest.mark.rule("GO-14", "GO-24")
def test_offset_committed_with_int64_max_retention_time_expires_at_the_next_check(subject: Subject) -> None:
    """The time of expiry exceeds the largest int64 and wraps around to a time in the past, as Java's `long` does."""
    topic = new_topic(subject).name
    group = Group(subject)
    assert wait_until(
        subject,
        lambda: _errors_unless_unavailable(group, topic, 4, -1, retention_time_ms=2**63 - 1),
        f"the coordinator of group {group.id} is available",
    ) == {(topic, 0): 0}
    _wait_until_deleted(group)
    assert group.committed() == {}


@pytest.mark.rule("GO-24", "TX-43")
@pytest.mark.releases(first="4.0")
def test_committed_offset_does_not_expire_while_a_transaction_has_a_commit_for_it(subject: Subject) -> None:
    """The retention time of both offsets of a group has passed, and an open transaction has committed an offset for partition 0.

    The offset of partition 1 expires at the next check. That of partition 0 expires after the transaction has been aborted.
    """
    topic, group = new_topic(subject, partitions=2), Group(subject)
    producer = begun(subject, topic)
    assert producer.add_offsets(group) == 0
    pending, other = (topic.name, 0), (topic.name, 1)
    wait_until(
        subject,
        lambda: producer.commit_offsets(group, {pending: 7}) == {pending: 0},
        f"the coordinator of group {group.id} is available",
    )
    errors = commit(group, {topic.name: {0: (5, ""), 1: (6, "")}}, WITH_RETENTION, retention_time_ms=AT_ONCE_MS)
    assert errors == {pending: 0, other: 0}
    wait_until(subject, lambda: other not in group.committed(), f"the offset of {topic.name}-1 has expired")
    subject.pass_ms(SEVERAL_CHECKS_MS)
    assert group.committed() == {pending: 5}
    producer.finish(commit=False)
    _wait_until_deleted(group)


@pytest.mark.rule("GO-24", "TX-43")
@pytest.mark.releases(before="4.0")
@pytest.mark.parametrize("moves", [False, True], ids=["same-coordinator", "new-coordinator"])
def test_scala_coordinator_expires_an_offset_but_keeps_a_transactions_commit_for_it(
    subject: Subject, moves: bool
) -> None:
    """A transaction commits an offset. Then a commit outside the transaction sets another offset of the same partition, which expires at once.

    When the transaction is committed, the transaction's offset becomes the committed offset of the partition. moves: whether another coordinator
    loads the group before that.
    """
    topic, group = new_topic(subject), Group(subject, 0)
    subject.need_broker(1)
    producer = begun(subject, topic)
    assert producer.add_offsets(group) == 0
    partition = (topic.name, 0)
    wait_until(
        subject,
        lambda: producer.commit_offsets(group, {partition: 7}) == {partition: 0},
        f"the coordinator of group {group.id} is available",
    )
    errors = commit(group, {topic.name: {0: (5, "")}}, WITH_RETENTION, retention_time_ms=AT_ONCE_MS)
    assert errors == {partition: 0}
    wait_until(subject, lambda: group.committed() == {}, f"the offset of {topic.name}-0 has expired")
    assert group.state() == ("Empty", 0)
    before = group.coordinator()
    after = (before + 1) % len(subject.bootstrap)
    if moves:
        reassign(group.offsets, before, after)
    try:
        if moves:
            make_lead(group.offsets, after)
            assert group.coordinator() == after
        producer.finish(commit=True)
        wait_until(
            subject,
            lambda: group.committed() == {partition: 7},
            f"the transaction's offset of {topic.name}-0 is committed",
        )
    finally:
        if moves:
            reassign(group.offsets, before)


@pytest.mark.rule("GO-24")
@pytest.mark.releases(before="4.0")
def test_scala_coordinator_keeps_an_expired_offset_during_an_unreplicated_commit(subject: Subject) -> None:
    topic, group = new_topic(subject).name, Group(subject, 0)
    wait_until(
        subject, lambda: _errors_unless_unavailable(group, topic, 8, -1), f"the coordinator of {group.id} is available"
    )
    with two_replicas(group) as follower:
        errors = commit(group, {topic: {0: (5, "")}}, WITH_RETENTION, retention_time_ms=SHORT_RETENTION_MS)
        assert errors == {(topic, 0): 0}
        with held(subject, group.offsets, follower):
            client = send(group, commit_of(group, topic, 6), 8)
            assert client.is_parked()
            subject.pass_ms(SHORT_RETENTION_MS + 1_000)
            assert group.committed() == {(topic, 0): 5}
        assert subject.answer(client.connection).message.topics[0].partitions[0].error_code == 0
        assert group.committed() == {(topic, 0): 6}


@pytest.mark.rule("GC-14", "TX-45")
def test_expiry_check_keeps_a_group_whose_pending_transactional_offsets_are_deleted(subject: Subject) -> None:
    """Only the coordinator in Scala keeps it, until the transaction ends."""
    topic, group = new_topic(subject), Group(subject)
    producer = begun(subject, topic)
    assert producer.add_offsets(group) == 0
    wait_until(
        subject,
        lambda: producer.commit_offsets(group, {(topic.name, 0): 7}) == {(topic.name, 0): 0},
        f"the coordinator of group {group.id} is available",
    )
    assert group.delete_offsets({topic.name: [0]}) == (0, {(topic.name, 0): 0})
    subject.pass_ms(SEVERAL_CHECKS_MS)
    assert group.state() == (("Dead", 0) if has_new_coordinator(subject) else ("Empty", 0))
    producer.finish(commit=False)
    _wait_until_deleted(group)


@pytest.mark.rule("GO-11", "GO-24")
def test_new_coordinator_counts_retention_from_the_time_when_the_group_became_empty(subject: Subject) -> None:
    """The test commits an offset, and then writes a record which says that the group became Empty two retention times ago.

    The coordinator does not apply this record to the group in its memory, so it keeps the offset. Another coordinator then loads the group from its
    records, and deletes the offset at one of its next checks. To write the record, the test uses the client id of Kafka's own admin client.
    """
    group, topic = Group(subject, 0), new_topic(subject).name
    before = group.coordinator()
    after = (before + 1) % len(subject.bootstrap)
    subject.need_broker(1)
    assert wait_until(
        subject, lambda: _errors_unless_unavailable(group, topic, 8, -1), f"the coordinator of {group.id} is available"
    ) == {(topic, 0): 0}
    empty_since_ms = subject.epoch_ms() - 2 * RETENTION_MS
    value = write_value(GroupMetadataValue("consumer", 1, None, None, empty_since_ms), WITH_TIMESTAMP)
    record = NewRecord(value, write_key(GroupMetadataKey(group.id), CLASSIC_GROUP), subject.epoch_ms())
    group.offsets.fill(build_batch([record]), client_id=ADMIN_CLIENT)
    subject.pass_ms(SEVERAL_CHECKS_MS)
    assert group.committed() == {(topic, 0): 7}
    reassign(group.offsets, before, after)
    try:
        make_lead(group.offsets, after)
        assert group.coordinator() == after
        _wait_until_deleted(group)
        assert group.committed() == {}
    finally:
        reassign(group.offsets, before)


@pytest.mark.rule("GO-9", "GO-24")
@pytest.mark.parametrize(("count", "kept"), [(2, 0), (9, 0), (2, 12), (4, 12), (9, 12)])
def test_tombstones_of_expired_offsets_have_the_hash_order_of_kafka(subject: Subject, count: int, kept: int) -> None:
    """The coordinator in Scala orders the tombstones by a hash table of the expired offsets, the one in Java by its tables of all offsets.

    count: how many offsets of the first topic expire. kept: how many offsets of the first topic, in other partitions, do not expire.
    """
    first, second = new_topic(subject, partitions=kept + count).name, new_topic(subject, partitions=2).name
    group = Group(subject, 0)
    if kept:
        wait_until(
            subject,
            lambda: set(commit(group, {first: dict.fromkeys(range(kept), (5, ""))}).values()) == {0},
            f"the coordinator of group {group.id} is available",
        )
    indexes = {first: list(range(kept, kept + count))[::-1], second: [1, 0]}
    offsets = {name: dict.fromkeys(indexes[name], (5, "")) for name in indexes}
    log = OffsetLog(group)
    wait_until(
        subject,
        lambda: set(commit(group, offsets, 4, retention_time_ms=2**63 - 1).values()) == {0},
        f"the coordinator of group {group.id} is available",
    )
    assert len(log.new()) == 1
    wait_until(subject, lambda: len(group.committed()) == kept, f"the last offsets of group {group.id} have expired")
    expired = [(name, index) for name in indexes for index in indexes[name]]
    if has_new_coordinator(subject):
        expected = [
            key for key in in_tables([(first, [*range(kept), *indexes[first]]), (second, [1, 0])]) if key in expired
        ]
    else:
        expected = scala_copy_order(expired, partition_hash_bits)
    assert wait_until(subject, log.new, f"the tombstones of group {group.id} are replicated") == [expected]


@pytest.mark.rule("GO-9", "GO-24")
def test_tombstones_of_expired_offsets_list_groups_in_the_order_of_kafkas_tables(subject: Subject) -> None:
    """The coordinator in Java writes the tombstones of all groups as one batch, the one in Scala a batch for each group.

    The tables also contain groups of other tests. The test accepts every order that the tables can have. All offsets expire at the same
    time.
    """
    topic, groups = new_topic(subject, partitions=2).name, [Group(subject, 0) for _ in range(9)]
    end_ms = subject.epoch_ms() + SEVERAL_CHECKS_MS
    for group in groups:
        retention_ms = end_ms - subject.epoch_ms()
        errors = commit(group, {topic: {1: (5, ""), 0: (5, "")}}, WITH_RETENTION, retention_time_ms=retention_ms)
        assert set(errors.values()) == {0}
    log = OffsetLog(groups[0])
    is_java, written = has_new_coordinator(subject), log.of_groups(groups, 2 * len(groups))
    group_ids = list(dict.fromkeys(group_id for batch in written for group_id, _, _ in batch))
    ids = [group.id for group in groups]
    assert sorted(group_ids) == sorted(ids)
    if is_java:
        assert group_ids in [timeline_order(ids, java_hash_bits, 3 * 2**power) for power in range(16)]
    else:
        assert is_table_order(group_ids)
    if is_java:
        keys = [*in_tables([(topic, [1, 0])]), None]
        assert written == [[(group_id, key, None) for group_id in group_ids for key in keys]]
    else:
        ordered_keys = scala_copy_order([(topic, 1), (topic, 0)], partition_hash_bits)
        assert written == [[(group_id, key, None) for key in ordered_keys] for group_id in group_ids]


@pytest.mark.rule("GC-14", "GO-24")
@pytest.mark.releases(first="4.0")
def test_offsets_of_a_kip_848_group_expire_by_commit_age_with_or_without_members(subject: Subject) -> None:
    """A committed offset expires when the retention time has passed since its commit, even if the group has members.

    An exception is an offset of a topic that a member subscribes to, which does not expire. When the last member has left, the exception ends: the
    next check deletes such an offset if the retention time has passed since its commit.
    """
    group, other = ConsumerGroup(subject), new_topic(subject).name
    own = group.topic.name
    epoch, _ = group.enter("A")
    errors = commit(
        group,
        {own: {0: (5, "")}, other: {0: (6, "")}},
        WITH_EPOCH,
        generation_id_or_member_epoch=epoch,
        member_id="A",
    )
    assert errors == {(own, 0): 0, (other, 0): 0}
    for _ in range(HEARTBEAT_MS, RETENTION_MS, HEARTBEAT_MS):
        subject.pass_ms(HEARTBEAT_MS)
        assert group.beat("A", epoch)[0] == epoch
    assert group.committed() == {(own, 0): 5, (other, 0): 6}
    subject.pass_ms(HEARTBEAT_MS)
    wait_until(
        subject,
        lambda: group.committed() == {(own, 0): 5},
        f"{own}-0 is the only partition with a committed offset of group {group.id}",
    )
    assert group.beat("A", epoch)[0] == epoch
    subject.pass_ms(SEVERAL_CHECKS_MS)
    assert group.committed() == {(own, 0): 5}

    assert group.heartbeat("A", LEAVE_EPOCH).error_code == 0
    wait_until(subject, lambda: group.committed() == {}, f"group {group.id} has no committed offsets")
    wait_until(subject, lambda: group.described().error_code == NOT_FOUND, f"group {group.id} is deleted")


@pytest.mark.rule("GC-14")
def test_offset_expiry_check_deletes_a_group_that_has_only_a_pending_member(subject: Subject) -> None:
    group = Group(subject)
    client = group.client(session_ms=30_000)
    # A check between the creation of the group and of its pending member deletes it: COORDINATOR_NOT_AVAILABLE (15).
    wait_until(
        subject,
        lambda: client.join().error_code == 79,
        f"the coordinator of group {group.id} gives the new member an id",
    )
    _wait_until_deleted(group)
    # Kafka returns COORDINATOR_NOT_AVAILABLE (15) until it has removed the dead group from its memory.
    wait_until(
        subject,
        lambda: client.join().error_code == 25,
        f"the coordinator of group {group.id} no longer knows member {client.member_id}",
    )


def _wait_until_deleted(group: Group) -> None:
    wait_until(group.subject, lambda: group.describe().group_state == "Dead", f"group {group.id} is deleted")
