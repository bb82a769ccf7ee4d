"""Tests of EndTxn in every state of a transaction, and of requests that arrive before the transaction is complete."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.scene import Topic, held, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_transactions import begun
from kafkaproto.conformance.transactions import Producer, bumps_epochs, visible, write_markers

OLD_EPOCH, INVALID_STATE, UNKNOWN_MAPPING, CONCURRENT, FENCED = 47, 48, 49, 51, 90
NO_PRODUCER = (-1, -1)


def stuck(subject: Subject, *, commit: bool, version: int = 3) -> tuple[Producer, Topic]:
    """Return a producer whose transaction stays in the state PrepareCommit or PrepareAbort, and the topic of the transaction.

    A partition of the topic already has a marker with a newer producer epoch, so the partition rejects the marker of the coordinator. version: the
    version of the EndTxn request. commit: whether the transaction is committed (PrepareCommit) or aborted (PrepareAbort).
    """
    topic, producer = new_topic(subject, partitions=2), Producer(subject)
    producer.init()
    producer.add_once_free(topic)
    assert write_markers(topic, producer.producer_id, producer.epoch + 5) == [0]
    assert producer.end(commit=commit, version=version)[0] == 0
    assert producer.describe().transaction_state == ("PrepareCommit" if commit else "PrepareAbort")
    return producer, topic


@pytest.mark.rule("TX-37", "SN-55")
@pytest.mark.parametrize("commit", [True, False])
def test_end_txn_below_v5_during_a_commit_or_abort_gets_concurrent_transactions(subject: Subject, commit: bool) -> None:
    producer, _ = stuck(subject, commit=commit)
    for version in range(5):
        for is_commit in (True, False):
            assert producer.end(commit=is_commit, version=version) == (CONCURRENT, *NO_PRODUCER)
            for epoch in (producer.epoch - 1, producer.epoch + 1):
                error = OLD_EPOCH if version < 2 else FENCED
                assert producer.end(commit=is_commit, epoch=epoch, version=version) == (error, *NO_PRODUCER)
            other_id = producer.producer_id + 1
            assert producer.end(commit=is_commit, producer_id=other_id, version=version)[0] == UNKNOWN_MAPPING


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("TX-38", "SN-55")
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [3, 5])
def test_end_txn_v5_with_any_epoch_during_a_commit_gets_concurrent_transactions(
    subject: Subject, commit: bool, version: int
) -> None:
    producer, _ = stuck(subject, commit=commit, version=version)
    for is_commit in (True, False):
        for offset in (-1, 0, 1, 2):
            epoch = producer.epoch + offset
            assert producer.end(commit=is_commit, epoch=epoch, version=5) == (CONCURRENT, *NO_PRODUCER)
        assert producer.end(commit=is_commit, producer_id=producer.producer_id + 1, version=5)[0] == CONCURRENT


@pytest.mark.rule("TX-37", "TX-38", "SN-55")
def test_end_txn_with_a_wrong_epoch_is_fenced_while_the_transaction_is_open(subject: Subject) -> None:
    topic = new_topic(subject)
    producer = begun(subject, topic)
    for version in (3, 5) if bumps_epochs(subject) else (3,):
        for commit in (True, False):
            for epoch in (producer.epoch - 1, producer.epoch + 1):
                assert producer.end(commit=commit, epoch=epoch, version=version) == (FENCED, *NO_PRODUCER)
    assert producer.describe().transaction_state == "Ongoing"
    producer.finish(commit=True)
    assert visible(topic)[:2] == (2, 2)


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("TX-38", "SN-55")
def test_end_txn_v5_without_an_open_transaction_accepts_an_abort_but_no_commit(subject: Subject) -> None:
    producer = Producer(subject)
    producer.init()
    producer_id, epoch = producer.init()
    for offset, commit, error in ((0, True, INVALID_STATE), (-1, True, FENCED), (-1, False, FENCED)):
        assert producer.end(commit=commit, epoch=epoch + offset, version=5) == (error, *NO_PRODUCER)
    assert producer.describe().transaction_state == "Empty"
    assert producer.end(commit=False, version=5) == (0, producer_id, epoch + 1)
    producer.wait_for("CompleteAbort")
    description = producer.describe()
    assert (description.producer_epoch, description.topics) == (epoch + 1, [])


@pytest.mark.rule("TX-16", "TX-21", "TX-25", "TX-39", "SN-50")
@pytest.mark.parametrize("commit", [True, False])
def test_new_transaction_is_rejected_until_the_previous_markers_are_replicated(subject: Subject, commit: bool) -> None:
    producer = Producer(subject)
    follower = 1 if producer.coordinator() != 1 else 2  # requests go to broker 0, which must not be held
    subject.need_broker(follower)
    topic = new_topic(subject, assignment={0: [0, follower]})
    own = producer.init()
    producer.add_once_free(topic)
    assert producer.send(topic, 0) == (0, 0)
    with held(subject, topic, follower):
        assert producer.end(commit=commit)[0] == 0
        for _ in range(2):
            assert producer.add({topic.name: [0]}) == {(topic.name, 0): CONCURRENT}
        assert producer.init_once(*own) == (CONCURRENT, *NO_PRODUCER)
        assert producer.init_once() == (CONCURRENT, *NO_PRODUCER)
        assert producer.describe().transaction_state == ("PrepareCommit" if commit else "PrepareAbort")
    producer.wait_for("CompleteCommit" if commit else "CompleteAbort")
    assert visible(topic)[:2] == (2, 2)
    producer.add_once_free(topic)
    assert producer.send(topic, 1) == (0, 2)
