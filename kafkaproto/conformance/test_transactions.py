"""Tests of transactions with the first transaction version: epochs, partitions, commits, aborts, and what consumers see (KIP-98, KIP-360)."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import Topic, list_offsets, new_topic, read
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import Producer, need_second_version, producers, write_markers
from kafkaproto.messages.end_txn import EndTxnRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest

UNKNOWN_TOPIC, NOT_COORDINATOR = 3, 16
INVALID_REQUEST, OUT_OF_ORDER, OLD_EPOCH, INVALID_STATE, UNKNOWN_MAPPING, INVALID_TIMEOUT = 42, 45, 47, 48, 49, 50
CONCURRENT, COORDINATOR_FENCED, NOT_ATTEMPTED, UNSTABLE, FENCED = 51, 52, 55, 88, 90
NOT_FOUND, ABORTABLE = 105, 120
NO_PRODUCER = (-1, -1)


def visible(topic: Topic, offset: int = 0) -> tuple[int, int, list[tuple[int, int]], int]:
    """Return what a read_committed fetch returns: high watermark, last stable offset, (producer id, first offset) of aborted ones, bytes."""
    data = read(topic, offset, isolation=1)
    aborted = [(entry.producer_id, entry.first_offset) for entry in data.aborted_transactions]
    return data.high_watermark, data.last_stable_offset, aborted, len(data.records)


def begun(subject: Subject, topic: Topic) -> Producer:
    """Return a producer with an open transaction, which has one record at sequence 0 of partition 0."""
    producer = Producer(subject)
    producer.init()
    producer.add_once_free(topic)
    assert producer.send(topic, 0)[0] == 0
    return producer


@pytest.mark.rule("TX-10")
def test_producer_id_requests_with_invalid_timeouts_or_ids_are_rejected(subject: Subject) -> None:
    # scenario SN-45
    producer = Producer(subject)
    assert producer.init_once(timeout_ms=0)[0] == INVALID_TIMEOUT
    assert producer.init_once(timeout_ms=900_001)[0] == INVALID_TIMEOUT
    assert producer.init_once(5, -1) == (INVALID_REQUEST, *NO_PRODUCER)
    answer = producer.ask(InitProducerIdRequest("", 60_000), 4)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (INVALID_REQUEST, *NO_PRODUCER)


@pytest.mark.rule("TX-13", "TX-14", "TX-21", "TX-28", "TX-37", "TX-69")
def test_producer_without_a_transaction_cannot_end_or_produce(subject: Subject) -> None:
    # scenario SN-46
    topic, producer = new_topic(subject), Producer(subject)
    producer_id, epoch = producer.init()
    assert epoch == 0
    assert producer.init() == (producer_id, 1)
    assert producer.end(commit=True) == (INVALID_STATE, *NO_PRODUCER)
    assert producer.send(topic, 0, version=11) == (ABORTABLE, -1)
    assert producer.send(topic, 0, version=10) == (INVALID_STATE, -1)
    unknown = Producer(subject)
    assert unknown.describe().error_code == NOT_FOUND
    assert unknown.end(commit=True, producer_id=1, epoch=0)[0] == UNKNOWN_MAPPING
    assert unknown.add({topic.name: [0]}, producer_id=1, epoch=0) == {(topic.name, 0): UNKNOWN_MAPPING}
    assert producer.ask(EndTxnRequest("", producer_id, 1, True), 3).error_code in (INVALID_REQUEST, NOT_COORDINATOR)


@pytest.mark.rule("TX-20", "TX-21", "TX-22")
def test_unknown_partitions_and_wrong_producers_add_nothing_to_a_transaction(subject: Subject) -> None:
    # scenario SN-47
    topic, producer = new_topic(subject), Producer(subject)
    producer.init()
    producer.init()
    name = topic.name
    assert producer.add({"nope": [0]}) == {("nope", 0): UNKNOWN_TOPIC}
    assert producer.add({name: [0, 9]}) == {(name, 0): NOT_ATTEMPTED, (name, 9): UNKNOWN_TOPIC}
    assert producer.add({name: [0]}, epoch=0) == {(name, 0): FENCED}
    assert producer.add({name: [0]}, epoch=0, version=1) == {(name, 0): OLD_EPOCH}
    assert producer.add({name: [0]}, producer_id=producer.producer_id + 1) == {(name, 0): UNKNOWN_MAPPING}
    assert producer.describe().transaction_state == "Empty"


@pytest.mark.rule("TX-34", "TX-53", "TX-55", "TX-56", "TX-69", "TX-72", "TX-74")
def test_open_transaction_is_described_listed_and_hidden_from_read_committed(subject: Subject) -> None:
    # scenario SN-48
    topic = new_topic(subject)
    producer = begun(subject, topic)
    own = producer.producer_id, producer.epoch
    assert producer.send(topic, 1, transactional=False)[0] == INVALID_STATE
    described = producer.describe()
    assert (described.transaction_state, described.transaction_timeout_ms) == ("Ongoing", 60_000)
    assert described.transaction_start_time_ms > 0
    assert (described.producer_id, described.producer_epoch) == own
    assert [(entry.topic, entry.partitions) for entry in described.topics] == [(topic.name, [0])]
    listed = producer.listed(state_filters=["Ongoing"]).transaction_states
    assert (producer.id, own[0], "Ongoing") in [
        (t.transactional_id, t.producer_id, t.transaction_state) for t in listed
    ]
    unknown = producer.listed(1, state_filters=["Foo"])
    assert (unknown.unknown_state_filters, unknown.transaction_states) == (["Foo"], [])
    old = producer.listed(1, duration_filter=100_000, producer_id_filters=[own[0]])
    assert old.transaction_states == []
    assert producers(topic) == (0, [(*own, 0, -1, 0)])
    assert producers(topic, 9) == (UNKNOWN_TOPIC, [])
    assert visible(topic) == (1, 0, [], 0)
    data = read(topic, 0)
    assert data.aborted_transactions is None and len(data.records) == 69
    assert list_offsets(topic, -1, isolation=1).offset == 0


@pytest.mark.rule("TX-24", "TX-41", "TX-43", "TX-45")
def test_offsets_in_a_transaction_are_pending_until_it_commits(subject: Subject) -> None:
    # scenario SN-49
    topic, group = new_topic(subject, partitions=2), Group(subject)
    producer = begun(subject, topic)
    assert producer.commit_offsets(group, {(topic.name, 0): 7}) == {(topic.name, 0): INVALID_STATE}
    assert producer.commit_offsets(group, {(topic.name, 0): 7}, version=4) == {(topic.name, 0): ABORTABLE}
    assert producer.add_offsets(group) == 0
    assert producer.commit_offsets(group, {(topic.name, 0): 7}) == {(topic.name, 0): 0}
    assert stable_offsets(group, topic) == {0: (UNSTABLE, -1), 1: (0, -1)}
    assert group.committed({topic.name: [0]}) == {(topic.name, 0): -1}
    assert group.state() == ("Empty", 0)
    producer.finish(commit=True)
    assert stable_offsets(group, topic) == {0: (0, 7), 1: (0, -1)}
    assert group.committed() == {(topic.name, 0): 7}


def stable_offsets(group: Group, topic: Topic) -> dict[int, tuple[int, int]]:
    """Return (error, offset) of two partitions for an OffsetFetch that requires stable offsets."""
    request = group.fetch_request({topic.name: [0, 1]}, require_stable=True)
    [fetched] = group.ask(request, 8).groups
    return {p.partition_index: (p.error_code, p.committed_offset) for t in fetched.topics for p in t.partitions}


@pytest.mark.rule("TX-43", "TX-54")
def test_offsets_of_an_aborted_transaction_are_dropped(subject: Subject) -> None:
    topic, group = new_topic(subject, partitions=2), Group(subject)
    producer = begun(subject, topic)
    assert producer.add_offsets(group) == 0
    assert producer.commit_offsets(group, {(topic.name, 0): 7}) == {(topic.name, 0): 0}
    producer.finish(commit=False)
    assert stable_offsets(group, topic) == {0: (0, -1), 1: (0, -1)}
    assert visible(topic) == (2, 2, [(producer.producer_id, 0)], 147)


@pytest.mark.rule("TX-37", "TX-39", "TX-50", "TX-71", "TX-75")
def test_commit_is_complete_when_its_markers_are_written(subject: Subject) -> None:
    # scenario SN-50
    topic = new_topic(subject)
    producer = begun(subject, topic)
    producer.finish(commit=True)
    described = producer.describe()
    assert described.topics == [] and described.transaction_start_time_ms > 0
    [(producer_id, epoch, sequence, coordinator_epoch, start)] = producers(topic)[1]
    assert (producer_id, epoch, sequence, start) == (producer.producer_id, producer.epoch, 0, -1)
    assert coordinator_epoch >= 0
    assert visible(topic) == (2, 2, [], 147)
    assert producer.end(commit=True)[0] == 0
    assert producer.end(commit=False)[0] == INVALID_STATE


@pytest.mark.rule("TX-13", "TX-18")
def test_producer_that_repeats_its_request_keeps_its_epoch(subject: Subject) -> None:
    # scenario SN-51
    producer = Producer(subject)
    producer_id, _ = producer.init()
    producer.init()
    assert producer.init_once(producer_id, 1) == (0, producer_id, 2)
    assert producer.init_once(producer_id, 1) == (0, producer_id, 2)
    assert producer.init_once(producer_id, 0) == (FENCED, *NO_PRODUCER)
    assert producer.init_once(producer_id, 0, version=3) == (OLD_EPOCH, *NO_PRODUCER)
    assert producer.init_once(producer_id + 77, 0) == (FENCED, *NO_PRODUCER)


@pytest.mark.rule("TX-53", "TX-54", "TX-64", "TX-67")
def test_new_epoch_starts_at_sequence_zero_and_an_abort_is_listed(subject: Subject) -> None:
    # scenario SN-52 and SN-53
    topic = new_topic(subject)
    producer = begun(subject, topic)
    producer.finish(commit=True)
    producer.init()
    producer.add_once_free(topic)
    assert producer.send(topic, 5) == (OUT_OF_ORDER, -1)
    assert producer.send(topic, 0) == (0, 2)
    for version in (11, 9):
        assert producer.send(topic, 1, epoch=producer.epoch - 1, version=version) == (OLD_EPOCH, -1)
    producer.finish(commit=False)
    assert visible(topic) == (4, 4, [(producer.producer_id, 2)], 294)
    assert read(topic, 0).aborted_transactions is None
    producer.add_once_free(topic)
    assert producer.send(topic, 1) == (0, 4)


@pytest.mark.rule("TX-16", "TX-22", "TX-36", "TX-52")
def test_new_producer_fences_the_open_transaction_of_the_old_one(subject: Subject) -> None:
    # scenario SN-54
    topic = new_topic(subject)
    old = begun(subject, topic)
    new = Producer(subject, old.id)
    assert new.init_once() == (CONCURRENT, *NO_PRODUCER)
    assert new.init() == (old.producer_id, old.epoch + 2)
    assert old.add({topic.name: [0]}) == {(topic.name, 0): FENCED}
    assert old.end(commit=True)[0] == FENCED
    assert old.end(commit=True, version=1)[0] == OLD_EPOCH
    assert old.send(topic, 1)[0] == OLD_EPOCH
    [(_, epoch, sequence, _, start)] = producers(topic)[1]
    assert (epoch, sequence, start) == (old.epoch + 1, -1, -1)
    assert visible(topic) == (2, 2, [(old.producer_id, 0)], 147)


@pytest.mark.rule("TX-53", "TX-54", "TX-55")
def test_last_stable_offset_stays_at_the_first_open_transaction_of_two(subject: Subject) -> None:
    # scenario SN-57
    topic = new_topic(subject)
    first, second = begun(subject, topic), begun(subject, topic)
    assert visible(topic) == (2, 0, [], 0)
    first.finish(commit=True)
    assert visible(topic) == (3, 1, [], 69)
    second.finish(commit=False)
    aborted = [(second.producer_id, 1)]
    assert visible(topic) == (4, 4, aborted, 294)
    assert visible(topic, 2) == (4, 4, aborted, 156)
    assert visible(topic, 3) == (4, 4, aborted, 78)
    assert visible(topic, 4) == (4, 4, [], 0)


@pytest.mark.rule("TX-47", "TX-48")
def test_write_txn_markers_rejects_unknown_partitions_and_old_epochs(subject: Subject) -> None:
    # scenario SN-59
    topic = new_topic(subject)
    producer = Producer(subject)
    producer_id, _ = producer.init()
    assert write_markers(topic, producer_id, 1, "nope") == [0, UNKNOWN_TOPIC]
    assert write_markers(topic, producer_id, 0) == [OLD_EPOCH]
    assert write_markers(topic, producer_id, 1, coordinator_epoch=-1) == [COORDINATOR_FENCED]


@pytest.mark.rule("TX-19", "TX-23")
def test_add_partitions_of_brokers_verifies_or_adds_partitions(subject: Subject) -> None:
    # scenario SN-60
    topic, producer = new_topic(subject, partitions=2), Producer(subject)
    producer.init()
    name = topic.name
    assert producer.verify({name: [0]}) == {(name, 0): ABORTABLE}
    assert producer.verify({name: [0]}, adds=True) == {(name, 0): 0}
    assert producer.verify({name: [0, 1]}) == {(name, 0): 0, (name, 1): ABORTABLE}


def _end(producer: Producer, commit: bool, offset: int, version: int) -> tuple[int, int]:
    """Send EndTxn with the producer's epoch plus `offset`. Returns the error, and the epoch in the response."""
    error_code, _, epoch = producer.end(commit=commit, epoch=producer.epoch + offset, version=version)
    return error_code, epoch


@pytest.mark.rule("TX-37")
@pytest.mark.parametrize(
    ("state", "commit_error", "abort_error"),
    [
        ("Empty", INVALID_STATE, INVALID_STATE),
        ("CompleteCommit", 0, INVALID_STATE),
        ("CompleteAbort", INVALID_STATE, 0),
    ],
)
def test_repeated_end_succeeds_and_the_opposite_end_is_an_invalid_state(
    subject: Subject, state: str, commit_error: int, abort_error: int
) -> None:
    # scenario SN-55
    topic = new_topic(subject)
    producer = Producer(subject)
    producer.init()
    if state != "Empty":
        producer.add_once_free(topic)
        producer.finish(commit=state == "CompleteCommit")
    assert _end(producer, True, 0, 3)[0] == commit_error
    assert _end(producer, False, 0, 3)[0] == abort_error
    assert _end(producer, True, 1, 3)[0] == _end(producer, False, -1, 3)[0] == FENCED


@pytest.mark.rule("TX-38")
def test_end_raises_the_epoch_and_accepts_the_epoch_before_only_as_a_repetition(subject: Subject) -> None:
    # scenario SN-55
    need_second_version(subject)
    topic, producer = new_topic(subject), Producer(subject)
    producer.init()
    assert _end(producer, True, 0, 5) == (INVALID_STATE, -1)
    assert _end(producer, True, -1, 5) == _end(producer, False, -1, 5) == (FENCED, -1)
    for commit, state, other in ((True, "CompleteCommit", False), (False, "CompleteAbort", True)):
        producer.add_once_free(topic)
        assert _end(producer, commit, 0, 5) == (0, producer.epoch + 1)
        producer.wait_for(state)
        producer.epoch += 1
        assert _end(producer, commit, -1, 5) == (0, producer.epoch)
        assert _end(producer, other, -1, 5) == (INVALID_STATE, -1)
        assert _end(producer, True, 0, 5) == (INVALID_STATE, -1)
        assert _end(producer, True, -2, 5) == _end(producer, False, 1, 5) == (FENCED, -1)
        assert _end(producer, False, 0, 5) == (0, producer.epoch + 1)
        producer.wait_for("CompleteAbort")
        producer.epoch += 1


@pytest.mark.rule("TX-31", "TX-32", "TX-33", "TX-38", "TX-41", "TX-75")
def test_batches_and_offset_commits_add_their_partitions_in_the_second_version(subject: Subject) -> None:
    # scenario SN-56
    need_second_version(subject)
    topic, group, producer = new_topic(subject, partitions=2), Group(subject), Producer(subject)
    producer.init()
    assert producer.send(topic, 0, version=12) == (0, 0)
    assert producer.send(topic, 3, version=12, index=1) == (OUT_OF_ORDER, -1)
    assert producer.commit_offsets(group, {(topic.name, 0): 1}, version=5) == {(topic.name, 0): 0}
    described = producer.describe()
    listed: Any = {entry.topic: sorted(entry.partitions) for entry in described.topics}
    assert listed == {topic.name: [0, 1], "__consumer_offsets": [group.index]}
    assert producer.end(commit=True, version=5) == (0, producer.producer_id, producer.epoch + 1)
    producer.wait_for("CompleteCommit")
    for index in (0, 1):
        [(_, epoch, sequence, _, start)] = producers(topic, index)[1]
        assert (epoch, sequence, start) == (producer.epoch + 1, -1, -1)
    assert producer.send(topic, 1, version=12) == (OLD_EPOCH, -1)
    assert group.committed() == {(topic.name, 0): 1}
