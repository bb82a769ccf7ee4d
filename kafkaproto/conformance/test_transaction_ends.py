"""Tests of transactions that their producer does not end: timeouts, hanging transactions (KIP-664), expired transactional ids."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import LATEST, list_offsets, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transaction_log import ONGOING, PREPARE_ABORT, logged, values
from kafkaproto.conformance.transactions import Producer, bumps_epochs, producers, visible, write_markers
from kafkaproto.messages.describe_producers import DescribeProducersRequest, TopicRequest

PROFILE = "transactions"
pytestmark = pytest.mark.needs(
    "transaction.partition.verification.enable",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "transactional.id.expiration.ms",
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    "producer.id.expiration.ms",
    "producer.id.expiration.check.interval.ms",
    offsets_topic=True,
)

UNKNOWN, UNKNOWN_TOPIC, NOT_LEADER, INVALID_TOPIC, NOT_AUTHORIZED, OLD_EPOCH = -1, 3, 6, 17, 29, 47
INVALID_STATE, UNKNOWN_MAPPING, NOT_ATTEMPTED, FENCED, NOT_FOUND = 48, 49, 55, 90, 105
OUT_OF_ORDER, LONGER_TIMEOUT_MS = 45, 2000
TIMEOUT_MS, CHECK_MS = 500, 500


@pytest.mark.rule("TX-58", "TX-59", "TX-60", "SN-58")
def test_transaction_that_times_out_is_aborted_and_the_producer_epoch_is_raised(subject: Subject) -> None:
    topic, producer = new_topic(subject), Producer(subject)
    producer.init(timeout_ms=TIMEOUT_MS)
    begun_ms = subject.now_ms()
    producer.add_once_free(topic)
    started_ms = producer.describe().transaction_start_time_ms
    producer.wait_for("CompleteAbort")
    assert subject.now_ms() - begun_ms >= TIMEOUT_MS - subject.early_ms
    description = producer.describe()
    assert (description.producer_epoch, description.transaction_start_time_ms) == (1, started_ms)
    assert producer.end(commit=True)[0] == FENCED
    assert producers(topic) == (0, [(producer.producer_id, 1, -1, 0, -1)])
    next_init = producer.init_once(producer.producer_id, 0)
    assert next_init == ((0, producer.producer_id, 1) if bumps_epochs(subject) else (FENCED, -1, -1))


@pytest.mark.rule("TX-59")
@pytest.mark.releases(first="4.0")
@pytest.mark.parametrize("commit", [True, False])
def test_end_txn_v5_after_a_transaction_timeout_may_abort_but_not_commit(subject: Subject, commit: bool) -> None:
    """A transaction times out. The coordinator aborts it and raises the producer's epoch. The producer then sends EndTxn with the old epoch.

    The coordinator treats this EndTxn as a repeated request for a transaction that has already ended. A commit fails, because the transaction was
    aborted. An abort succeeds and returns the new epoch, with which the producer continues. commit: whether EndTxn requests a commit.
    """
    topic, producer = new_topic(subject), Producer(subject)
    producer.init(timeout_ms=TIMEOUT_MS)
    assert producer.send(topic, 0, version=12)[0] == 0
    producer.wait_for("CompleteAbort")
    error, producer_id, epoch = producer.end(commit=commit, version=5)
    assert (error, producer_id, epoch) == ((INVALID_STATE, -1, -1) if commit else (0, producer.producer_id, 1))
    assert producer.send(topic, 1, version=12)[0] == OLD_EPOCH
    if not commit:
        producer.epoch = epoch
        assert producer.send(topic, 0, version=12)[0] == 0
        assert producer.end(commit=True, version=5)[0] == 0


@pytest.mark.rule("TX-58", "TX-61")
def test_transaction_timeout_is_not_extended_by_later_requests(subject: Subject) -> None:
    topic, producer = new_topic(subject, partitions=2), Producer(subject)
    producer.init(timeout_ms=LONGER_TIMEOUT_MS)
    producer.add_once_free(topic)
    for sequence in range(3):
        subject.pass_ms(LONGER_TIMEOUT_MS / 4)
        assert producer.add({topic.name: [0, 1]}) == {(topic.name, 0): 0, (topic.name, 1): 0}
        assert producer.send(topic, sequence)[0] == 0
    producer.wait_for("CompleteAbort")
    begun, *_, aborted = [value for value in values(producer) if value.transaction_status in (ONGOING, PREPARE_ABORT)]
    took_ms = aborted.transaction_last_update_timestamp_ms - begun.transaction_last_update_timestamp_ms
    assert LONGER_TIMEOUT_MS <= took_ms <= LONGER_TIMEOUT_MS + CHECK_MS + subject.slack_ms
    assert aborted.transaction_start_timestamp_ms == begun.transaction_start_timestamp_ms


@pytest.mark.rule("TX-33", "TX-63")
def test_leader_removes_the_state_of_an_idle_producer_unless_its_transaction_is_open(subject: Subject) -> None:
    topic, ended, still_open = new_topic(subject), Producer(subject), Producer(subject)
    for producer in (ended, still_open):
        producer.init()
        producer.add_once_free(topic)
        assert producer.send(topic, 0)[0] == 0
    ended.finish(commit=True)
    assert len(producers(topic)[1]) == 2
    wait_until(
        subject,
        lambda: len(producers(topic)[1]) < 2,
        f"the leader of {topic.name}-0 has removed the state of the producer of transactional id {ended.id}",
    )
    assert producers(topic) == (0, [(still_open.producer_id, 0, 0, -1, 1)])
    assert visible(topic)[:2] == (3, 1)
    if bumps_epochs(subject):  # only transaction version 2 needs sequence 0 of a producer without state
        assert ended.send(topic, 7, version=12) == (OUT_OF_ORDER, -1)
        assert ended.send(topic, 0, version=12) == (0, 3)
    else:
        assert ended.send(topic, 7, version=9) == (0, 3)
    still_open.finish(commit=True)
    assert visible(topic)[:2] == (5, 3)


@pytest.mark.rule("TX-29", "TX-76", "SN-63")
def test_hanging_transaction_blocks_the_last_stable_offset_until_a_marker_is_written(subject: Subject) -> None:
    topic, producer = new_topic(subject), Producer(subject)
    producer.init()
    assert producer.send(topic, 0, version=9) == (0, 0)
    assert visible(topic)[:2] == (1, 0)
    assert producer.describe().transaction_state == "Empty"
    assert producers(topic) == (0, [(producer.producer_id, 0, 0, -1, 0)])
    assert write_markers(topic, producer.producer_id, 0) == [0]
    assert visible(topic) == (2, 2, [(producer.producer_id, 0)], 147)
    assert producers(topic) == (0, [(producer.producer_id, 0, 0, 0, -1)])


@pytest.mark.rule("TX-29", "TX-37")
@pytest.mark.parametrize("commit", [True, False])
def test_end_txn_does_not_end_a_hanging_transaction_of_its_own_producer(subject: Subject, commit: bool) -> None:
    topic, producer = new_topic(subject, partitions=2), Producer(subject)
    producer.init()
    assert producer.send(topic, 0, version=9) == (0, 0)
    assert producer.end(commit=commit)[0] == INVALID_STATE
    producer.add_once_free(topic, 1)
    assert producer.send(topic, 0, index=1, version=9) == (0, 0)
    producer.finish(commit=commit)
    assert [list_offsets(topic, LATEST, isolation=1, index=index).offset for index in (0, 1)] == [0, 2]
    assert producers(topic) == (0, [(producer.producer_id, 0, 0, -1, 0)])
    assert write_markers(topic, producer.producer_id, 0) == [0]
    assert visible(topic)[:2] == (2, 2)


@pytest.mark.rule("TX-4", "TX-62", "SN-62")
def test_unused_transactional_id_expires_and_is_then_unknown(subject: Subject) -> None:
    producer = Producer(subject)
    first_id, _ = producer.init()
    wait_until(
        subject, lambda: producer.describe().error_code == NOT_FOUND, f"the transactional id {producer.id} has expired"
    )
    assert producer.end(commit=True)[0] == UNKNOWN_MAPPING
    first, tombstone = logged(producer)
    assert first.value is not None and tombstone.value is None
    second_id, epoch = producer.init()
    assert second_id != first_id and epoch == 0


@pytest.mark.rule("TX-48")
@pytest.mark.releases(first="4.2")
def test_transaction_version_2_marker_needs_a_higher_epoch_than_the_open_transaction(subject: Subject) -> None:
    topic, producer = new_topic(subject), Producer(subject)
    producer.init()

    def write(epoch: int, transaction_version: int) -> int:
        return write_markers(topic, producer.producer_id, epoch, version=2, transaction_version=transaction_version)[0]

    assert producer.send(topic, 0, version=9) == (0, 0)
    assert [write(0, 2), write(0, 3), write(1, 2)] == [OLD_EPOCH, OLD_EPOCH, 0]
    assert visible(topic)[:2] == (2, 2)
    assert [write(1, 2), write(1, 2), write(0, 2), write(0, 1)] == [0, 0, OLD_EPOCH, OLD_EPOCH]
    assert visible(topic)[:2] == (4, 4)
    producer.epoch = 1
    assert producer.send(topic, 0, version=9) == (0, 4)
    assert [write(1, 2), write(1, 1)] == [OLD_EPOCH, 0]
    assert visible(topic)[:2] == (6, 6)


@pytest.mark.rule("TX-48")
def test_write_txn_markers_without_producer_id_or_epoch_gets_unknown_server_error(subject: Subject) -> None:
    topic = new_topic(subject)
    for producer_id, epoch in ((-1, 0), (77_000_000, -1), (-1, -1)):
        assert write_markers(topic, producer_id, epoch) == [UNKNOWN]
    assert write_markers(topic, -1, 0, "nope") == [UNKNOWN, UNKNOWN]
    assert visible(topic)[:2] == (0, 0)


@pytest.mark.rule("TX-43")
def test_txn_offset_commit_sent_last_wins_even_if_its_transaction_commits_first(subject: Subject) -> None:
    topic, group = new_topic(subject), Group(subject)
    first, second = Producer(subject), Producer(subject)
    for order in ((first, second), (second, first)):
        for producer, offset in ((first, 5), (second, 9)):
            producer.init()
            assert producer.add_offsets(group) == 0
            assert producer.commit_offsets(group, {(topic.name, 0): offset}) == {(topic.name, 0): 0}
        for producer in order:
            producer.finish(commit=True)
        assert group.committed() == {(topic.name, 0): 9}


@pytest.mark.rule("TX-20")
def test_clients_cannot_add_partitions_of_internal_topics_to_a_transaction(subject: Subject) -> None:
    topic, producer = new_topic(subject), Producer(subject)
    producer.init()
    for internal in ("__transaction_state", "__consumer_offsets"):
        for version in (0, 3):
            assert producer.add({internal: [0], topic.name: [0], "nope": [0]}, version=version) == {
                (internal, 0): NOT_AUTHORIZED,
                (topic.name, 0): NOT_ATTEMPTED,
                ("nope", 0): UNKNOWN_TOPIC,
            }
    assert producer.describe().transaction_state == "Empty"


@pytest.mark.needs(racks=True)
@pytest.mark.rule("TX-74")
def test_describe_producers_lists_the_same_producers_on_leader_and_followers(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [0, 1]})
    producer = Producer(subject)
    producer.init()
    producer.add_once_free(topic)
    assert producer.send(topic, 0, version=9) == (0, 0)

    def described(broker_id: int) -> Any:
        request = DescribeProducersRequest([TopicRequest(topic.name, [0])])
        [partition] = subject.ask_once(request, 0, broker_id).topics[0].partitions
        return partition.error_code, [(p.producer_id, p.current_txn_start_offset) for p in partition.active_producers]

    assert described(0) == (0, [(producer.producer_id, 0)])
    wait_until(
        subject,
        lambda: described(1) == described(0),
        f"brokers 0 and 1 return the same producers of {topic.name}-0 in DescribeProducers",
    )
    assert described(2) == (NOT_LEADER, [])


@pytest.mark.rule("TX-74")
def test_describe_producers_rejects_unknown_and_illegal_topics_with_a_message(subject: Subject) -> None:
    def described(name: str, index: int = 0) -> tuple[int, str | None]:
        request = DescribeProducersRequest([TopicRequest(name, [index])])
        [partition] = subject.ask_once(request, 0).topics[0].partitions
        return partition.error_code, partition.error_message

    assert described("nope") == (UNKNOWN_TOPIC, "This server does not host this topic-partition.")
    assert described(new_topic(subject).name, 5) == (UNKNOWN_TOPIC, None)
    characters = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    for name, reason in {
        "a b": f"'a b' {characters}",
        "": "the empty string is not allowed",
        ".": "'.' is not allowed",
        "..": "'..' is not allowed",
        "a" * 250: f"the length of '{'a' * 250}' is longer than the max allowed length 249",
    }.items():
        assert described(name) == (INVALID_TOPIC, f"Topic name is invalid: {reason}")
