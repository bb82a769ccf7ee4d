"""Tests of offsets that producers commit in transactions with TxnOffsetCommit, and of commits that are rejected (KIP-447)."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.groups import Group, has_new_coordinator, make_stable, moving, two_replicas
from kafkaproto.conformance.scene import Topic, held, make_lead, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_transactions import begun
from kafkaproto.conformance.test_unreplicated_changes import commit_of
from kafkaproto.conformance.transactions import Producer, bumps_epochs, visible, write_markers
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

UNKNOWN, UNKNOWN_TOPIC, ILLEGAL_GENERATION, INVALID_GROUP_ID, UNKNOWN_MEMBER, OLD_EPOCH, INVALID_STATE = (
    -1,
    3,
    22,
    24,
    25,
    47,
    48,
)
UNKNOWN_MAPPING, CONCURRENT, UNSTABLE, ABORTABLE = 49, 51, 88, 120
TIMED_OUT = 7
RETRIED_MS = 80
"""An offset commit that takes less than this time in ms shows that the broker has not repeated the verification of the transaction.

A broker that repeats a verification does so every 20 ms (`add.partitions.to.txn.retry.backoff.ms`) until 100 ms have passed
(`add.partitions.to.txn.retry.backoff.max.ms`). The last repetition is thus at least 80 ms after the request.
"""


def commit(producer: Producer, group: Group, topic: Topic, offset: int, **options: Any) -> int:
    """Commit an offset of partition 0 in the transaction of a producer, and return the error. options: further fields of the request."""
    return producer.commit_offsets(group, {(topic.name, 0): offset}, **options)[(topic.name, 0)]


@pytest.mark.rule("TX-24", "TX-41", "TX-43", "TX-45", "SN-49")
def test_offsets_committed_in_a_transaction_are_pending_until_the_commit(subject: Subject) -> None:
    topic, group = new_topic(subject, partitions=2), Group(subject)
    producer = begun(subject, topic)
    assert producer.commit_offsets(group, {(topic.name, 0): 7}) == {(topic.name, 0): INVALID_STATE}
    assert producer.commit_offsets(group, {(topic.name, 0): 7}, version=4) == {(topic.name, 0): ABORTABLE}
    assert producer.add_offsets(group) == 0
    assert producer.commit_offsets(group, {(topic.name, 0): 7}) == {(topic.name, 0): 0}
    assert stable_offsets(group, topic) == {0: (UNSTABLE, -1), 1: (0, -1)}
    assert group.committed({topic.name: [0]}) == {(topic.name, 0): -1}
    assert group.state() == ("Empty", 0)
    assert group.fetch(None, require_stable=True).topics == []
    [group_entry] = [entry for entry in group.ask(ListGroupsRequest(), 4).groups if entry.group_id == group.id]
    assert (group_entry.protocol_type, group_entry.group_state) == ("", "Empty")
    producer.finish(commit=True)
    assert stable_offsets(group, topic) == {0: (0, 7), 1: (0, -1)}
    assert group.committed() == {(topic.name, 0): 7}


def stable_offsets(group: Group, topic: Topic) -> dict[int, tuple[int, int]]:
    """Fetch the stable offsets of partitions 0 and 1 (OffsetFetch with `require_stable`). Returns a dict of partitions to (error, offset)."""
    request = group.fetch_request({topic.name: [0, 1]}, require_stable=True)
    [offsets] = group.ask(request, 8).groups
    return {p.partition_index: (p.error_code, p.committed_offset) for t in offsets.topics for p in t.partitions}


@pytest.mark.rule("TX-43", "TX-54")
def test_offsets_committed_in_an_aborted_transaction_are_discarded(subject: Subject) -> None:
    topic, group = new_topic(subject, partitions=2), Group(subject)
    producer = begun(subject, topic)
    assert producer.add_offsets(group) == 0
    assert producer.commit_offsets(group, {(topic.name, 0): 7}) == {(topic.name, 0): 0}
    producer.finish(commit=False)
    assert stable_offsets(group, topic) == {0: (0, -1), 1: (0, -1)}
    assert visible(topic) == (2, 2, [(producer.producer_id, 0)], 147)


@pytest.mark.rule("GC-64", "TX-43")
def test_offset_delete_of_pending_transactional_offsets_keeps_the_empty_group(subject: Subject) -> None:
    topic, group = new_topic(subject), Group(subject)
    producer = begun(subject, topic)
    assert producer.add_offsets(group) == 0
    assert commit(producer, group, topic, 3) == 0
    assert group.delete_offsets({topic.name: [0]}) == (0, {(topic.name, 0): 0})
    assert group.state() == ("Empty", 0)
    producer.finish(commit=True)
    assert group.state() == ("Empty", 0) and group.committed() == {}
    assert group.ask(DeleteGroupsRequest([group.id]), 2).results[0].error_code == 0
    assert group.state() == ("Dead", 0)


@pytest.mark.rule("TX-43")
@pytest.mark.parametrize("deletion", ["OffsetDelete", "DeleteGroups", "DeleteTopics"])
def test_deletion_of_pending_offsets_is_undone_by_a_new_coordinator_before_4_0(subject: Subject, deletion: str) -> None:
    """The coordinator in Scala (default before 4.0) does not store the deletion. So the offsets are back when another broker loads the group.

    The coordinator in Java stores the deletion, and the offsets stay deleted. deletion: the request that deletes the offsets, which are committed in
    an open transaction.
    """
    topic, other, group = new_topic(subject), new_topic(subject), Group(subject, 0)
    producer = begun(subject, topic)
    assert producer.add_offsets(group) == 0
    with moving(group) as (after, _):
        assert commit(producer, group, other, 3) == 0
        if deletion == "OffsetDelete":
            assert group.delete_offsets({other.name: [0]}) == (0, {(other.name, 0): 0})
        elif deletion == "DeleteGroups":
            assert group.ask(DeleteGroupsRequest([group.id]), 2).results[0].error_code == 0
        else:
            request = DeleteTopicsRequest(topic_names=[other.name], timeout_ms=5000)
            assert subject.ask_once(request, 3).responses[0].error_code == 0
        wait_until(
            subject, lambda: stable_offsets(group, other)[0] == (0, -1), f"the offset of {other.name}-0 is not pending"
        )
        make_lead(group.offsets, after)
        wait_until(
            subject, lambda: group.coordinator() == after, f"broker {after} is the coordinator of group {group.id}"
        )
        producer.finish(commit=True)
        expected = {} if has_new_coordinator(subject) else {(other.name, 0): 3}
        wait_until(subject, lambda: group.committed() == expected, f"the committed offsets are {expected}")


@pytest.mark.rule("TX-43")
@pytest.mark.parametrize("in_transactions", [[False, True], [True, False], [True, True]])
def test_later_of_two_offset_commits_counts_if_both_are_replicated_at_once(
    subject: Subject, in_transactions: list[bool]
) -> None:
    """in_transactions: whether the commit of offset 7, and the later one of offset 8, are in the transaction."""
    topic, group = new_topic(subject, partitions=2), Group(subject, 0)
    producer = begun(subject, topic)
    _verify(producer, group, (topic.name, 1))
    with two_replicas(group) as follower:
        with held(subject, group.offsets, follower):
            clients = []
            for offset, in_transaction in zip((7, 8), in_transactions, strict=True):
                clients.append(group.client())
                if in_transaction:
                    subject.send(clients[-1].connection, producer.offsets_request(group, {(topic.name, 0): offset}), 3)
                else:
                    subject.send(clients[-1].connection, commit_of(group, topic.name, offset), 8)
                assert clients[-1].is_parked()
        for client in clients:
            assert subject.answer(client.connection).message.topics[0].partitions[0].error_code == 0
        producer.finish(commit=True)
        wait_until(
            subject,
            lambda: group.committed() == {(topic.name, 0): 8, (topic.name, 1): 3},
            f"the committed offset of {topic.name}-0 is 8",
        )


@pytest.mark.rule("TX-43")
@pytest.mark.releases(before="4.0")
def test_timed_out_txn_offset_commit_of_a_deleted_group_spares_the_new_group(subject: Subject) -> None:
    topic, group = new_topic(subject, partitions=3), Group(subject, 0)
    producer = begun(subject, topic)
    _verify(producer, group, (topic.name, 2))
    with two_replicas(group) as follower:
        with held(subject, group.offsets, follower):
            clients = [group.client(), group.client()]
            subject.send(clients[0].connection, producer.offsets_request(group, {(topic.name, 0): 7}), 3)
            assert clients[0].is_parked()
            assert group.ask(DeleteGroupsRequest([group.id]), 2).results[0].error_code == 0
            subject.pass_ms(2_000)
            subject.send(clients[1].connection, producer.offsets_request(group, {(topic.name, 1): 8}), 3)
            response = subject.answer(clients[0].connection)
            assert response.message.topics[0].partitions[0].error_code == TIMED_OUT
        assert subject.answer(clients[1].connection).message.topics[0].partitions[0].error_code == 0
        producer.finish(commit=True)
        wait_until(
            subject,
            lambda: group.committed() == {(topic.name, 1): 8},
            f"only {topic.name}-1 has a committed offset",
        )


@pytest.mark.rule("GC-60", "TX-43")
@pytest.mark.releases(before="4.0")
@pytest.mark.parametrize("in_transaction", [False, True], ids=["OffsetCommit", "TxnOffsetCommit"])
def test_offset_delete_makes_a_commit_ineffective_that_is_not_replicated_before_4_0(
    subject: Subject, in_transaction: bool
) -> None:
    topic, group = new_topic(subject, partitions=2), Group(subject, 0)
    producer = begun(subject, topic)
    if in_transaction:
        _verify(producer, group, (topic.name, 1))
    with two_replicas(group) as follower:
        with held(subject, group.offsets, follower):
            client = group.client()
            if in_transaction:
                subject.send(client.connection, producer.offsets_request(group, {(topic.name, 0): 7}), 3)
            else:
                subject.send(client.connection, commit_of(group, topic.name, 7), 8)
            assert client.is_parked()
            assert group.delete_offsets({topic.name: [0]}) == (0, {(topic.name, 0): 0})
            assert group.state() == ("Empty" if in_transaction else "Dead", 0)
        assert subject.answer(client.connection).message.topics[0].partitions[0].error_code == 0
        producer.finish(commit=True)
        assert group.committed() == ({(topic.name, 1): 3} if in_transaction else {})


def _verify(producer: Producer, group: Group, partition: tuple[str, int]) -> None:
    """Commit offset 3 of a partition in the transaction, so that the group's coordinator verifies the transaction now.

    Later commits then need no request to the transaction's coordinator, which may be on a broker that the test suspends.
    """
    assert producer.add_offsets(group) == 0
    assert producer.commit_offsets(group, {partition: 3}) == {partition: 0}


@pytest.mark.rule("TX-42")
def test_offset_commit_in_a_transaction_needs_the_current_group_generation(subject: Subject) -> None:
    topic, group = new_topic(subject), Group(subject)
    producer = begun(subject, topic)
    assert producer.add_offsets(group) == 0

    def committed(**member: Any) -> int:
        return producer.commit_offsets(group, {(topic.name, 0): 7}, **member)[(topic.name, 0)]

    is_new = has_new_coordinator(subject)
    assert committed(generation_id=5, member_id="nobody") == (ILLEGAL_GENERATION if is_new else UNKNOWN_MEMBER)
    assert group.state() == ("Dead" if is_new else "Empty", 0)
    make_stable(member := group.client())
    assert committed(generation_id=member.generation + 1, member_id=member.member_id) == ILLEGAL_GENERATION
    assert committed(generation_id=member.generation, member_id="nobody") == UNKNOWN_MEMBER
    assert committed(generation_id=member.generation, member_id=member.member_id) == 0
    assert committed() == 0  # a request without a member is not checked
    producer.finish(commit=True)
    assert group.committed() == {(topic.name, 0): 7}


@pytest.mark.rule("TX-41", "TX-42")
def test_kip_848_coordinator_creates_no_group_for_a_rejected_txn_offset_commit(
    subject: Subject,
) -> None:
    topic, group = new_topic(subject), Group(subject)
    producer = begun(subject, topic)
    created = "Dead" if has_new_coordinator(subject) else "Empty"
    assert commit(producer, group, topic, 5) == INVALID_STATE
    assert group.state()[0] == created
    for version, error in ((3, INVALID_STATE), (4, ABORTABLE)):
        other = Group(subject)
        assert commit(producer, other, topic, 5, version=version) == error
        assert (
            commit(producer, other, topic, 5, version=version, producer_id=producer.producer_id + 1) == UNKNOWN_MAPPING
        )
        assert other.state()[0] == created


@pytest.mark.rule("TX-41")
def test_txn_offset_commit_with_an_empty_group_id_gets_invalid_group_id(subject: Subject) -> None:
    """A request that also has a wrong producer id gets the same error: the coordinator checks the group id before it verifies the transaction."""
    topic, group = new_topic(subject), Group(subject)
    producer = begun(subject, topic)
    partitions = [TxnOffsetCommitRequestPartition(index, 7) for index in (0, 9)]
    topics = [TxnOffsetCommitRequestTopic(topic.name, partitions)]
    for version in range(6 if bumps_epochs(subject) else 5):
        for producer_id in (producer.producer_id, producer.producer_id + 1):
            request = TxnOffsetCommitRequest(producer.id, "", producer_id, producer.epoch, topics=topics)
            [answered] = group.ask(request, version).topics
            errors = {p.partition_index: p.error_code for p in answered.partitions}
            assert errors == {0: INVALID_GROUP_ID, 9: UNKNOWN_TOPIC}


@pytest.mark.rule("TX-43")
def test_kip_848_coordinator_keeps_pending_offsets_if_a_txn_offset_commit_is_fenced(
    subject: Subject,
) -> None:
    topic, group = new_topic(subject), Group(subject)
    producer = Producer(subject)
    producer.init()
    producer.init()
    producer.add_once_free(topic)
    assert producer.add_offsets(group) == 0
    assert commit(producer, group, topic, 5) == 0
    assert stable_offsets(group, topic)[0] == (UNSTABLE, -1)
    is_new = has_new_coordinator(subject)
    assert commit(producer, group, topic, 6, producer_epoch=-1) == (OLD_EPOCH if is_new else UNKNOWN)
    assert stable_offsets(group, topic)[0] == (UNSTABLE, -1)
    assert commit(producer, group, topic, 6, producer_epoch=producer.epoch - 1) == OLD_EPOCH
    assert stable_offsets(group, topic)[0] == (UNSTABLE if is_new else 0, -1)
    producer.finish(commit=True)
    assert group.committed({topic.name: [0]}) == {(topic.name, 0): 5 if is_new else -1}


@pytest.mark.rule("TX-43")
def test_txn_offset_commit_with_epoch_minus_1_gets_unknown_server_error_in_scala(subject: Subject) -> None:
    """With the coordinator in Scala, every entry of the request gets error UNKNOWN_SERVER_ERROR (-1), in the order of the request.

    With the coordinator in Java, existing partitions get INVALID_PRODUCER_EPOCH (47), and unknown partitions get UNKNOWN_TOPIC_OR_PARTITION (3).
    """
    topic, group = new_topic(subject, partitions=6), Group(subject)
    producer = begun(subject, topic)
    assert producer.add_offsets(group) == 0
    assert commit(producer, group, topic, 1) == 0  # so that later requests of the transaction are not verified
    requested = [(topic.name, [5, 0, 9, 3, 5]), ("unknown", [0]), (topic.name, [1])]
    topics = [
        TxnOffsetCommitRequestTopic(name, [TxnOffsetCommitRequestPartition(index, 1) for index in indexes])
        for name, indexes in requested
    ]
    request = TxnOffsetCommitRequest(producer.id, group.id, producer.producer_id, -1, topics=topics)
    response = group.ask(request, 3)
    received = [(t.name, [(p.partition_index, p.error_code) for p in t.partitions]) for t in response.topics]
    if has_new_coordinator(subject):
        errors = {(name, index): error for name, entries in received for index, error in entries}
        known = {(topic.name, index): OLD_EPOCH for index in (0, 1, 3, 5)}
        assert errors == known | {(topic.name, 9): UNKNOWN_TOPIC, ("unknown", 0): UNKNOWN_TOPIC}
    else:
        assert received == [(name, [(index, UNKNOWN) for index in indexes]) for name, indexes in requested]


@pytest.mark.rule("TX-41", "TX-49")
def test_txn_offset_commit_gets_concurrent_transactions_while_the_transaction_ends(subject: Subject) -> None:
    topic, group, producer = new_topic(subject), Group(subject), Producer(subject)
    producer.init()
    producer.add_once_free(topic)
    assert write_markers(topic, producer.producer_id, producer.epoch + 5) == [0]
    assert (
        producer.end(commit=True)[0] == 0
    )  # the marker is refused because of its older epoch: the transaction does not end
    assert producer.describe().transaction_state == "PrepareCommit"
    for version in range(6 if bumps_epochs(subject) else 5):
        durations_ms = []
        for _ in range(5):
            start_ms = subject.now_ms()
            assert commit(producer, group, topic, 7, version=version) == CONCURRENT
            durations_ms.append(subject.now_ms() - start_ms)
        assert min(durations_ms) < RETRIED_MS
