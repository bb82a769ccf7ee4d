"""Tests of restarted leaders, and of transaction coordinators that restart, move, or are stopped when a leader wants to verify a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafkaproto.conformance.internal_topics import reassign
from kafkaproto.conformance.scene import list_offsets, make_lead, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import Producer, producers, visible

NOT_COORDINATOR, NOT_ENOUGH_REPLICAS, OUT_OF_ORDER, ABORTABLE = 16, 19, 45, 120
EARLIEST = -2


@contextmanager
def coordinated_by_two(producer: Producer) -> Iterator[int]:
    """Place replicas of the producer's `__transaction_state` partition on brokers 0 and 1 until the end of the `with` block.

    Yields the id of the broker that is not the leader, and so not the transaction coordinator.
    """
    producer.subject.need_broker(1)
    before = producer.log.partition().replica_nodes
    reassign(producer.log, 0, 1)
    try:
        yield 1 - producer.coordinator()
    finally:
        reassign(producer.log, *before)


@pytest.mark.rule("TX-1", "TX-3", "TX-8")
@pytest.mark.parametrize("commit", [True, False])
def test_open_transaction_can_be_ended_at_the_broker_that_becomes_its_coordinator(
    subject: Subject, commit: bool
) -> None:
    topic, producer = new_topic(subject), Producer(subject, index=0)
    with coordinated_by_two(producer) as successor:
        producer.init()
        producer.add_once_free(topic)
        assert producer.send(topic, 0) == (0, 0)
        before = producer.describe()
        epoch = make_lead(producer.log, successor)
        assert producer.coordinator() == successor
        after = producer.describe()
        assert (after.transaction_state, after.producer_epoch) == ("Ongoing", before.producer_epoch)
        assert after.transaction_start_time_ms == before.transaction_start_time_ms
        assert [(t.topic, t.partitions) for t in after.topics] == [(topic.name, [0])]
        assert producer.describe(1 - successor).error_code == NOT_COORDINATOR
        producer.finish(commit=commit)
        assert producers(topic) == (0, [(producer.producer_id, 0, 0, epoch, -1)])
        assert visible(topic)[:2] == (2, 2)


@pytest.mark.rule("TX-1", "TX-8", "TX-49")
@pytest.mark.parametrize("commit", [True, False])
def test_new_coordinator_completes_a_transaction_in_prepare_commit_or_prepare_abort(
    subject: Subject, commit: bool
) -> None:
    producer = Producer(subject, index=0)
    subject.need_broker(2)
    topic = new_topic(subject, assignment={0: [2]})
    with coordinated_by_two(producer) as successor:
        producer.init()
        producer.add_once_free(topic)
        assert producer.send(topic, 0) == (0, 0)
        subject.stop_broker(2)
        assert producer.end(commit=commit)[0] == 0
        prepared = "PrepareCommit" if commit else "PrepareAbort"
        assert producer.describe().transaction_state == prepared
        epoch = make_lead(producer.log, successor)
        assert producer.describe().transaction_state == prepared
        subject.start_broker(2)
        producer.wait_for("CompleteCommit" if commit else "CompleteAbort")
        assert producers(topic) == (0, [(producer.producer_id, 0, 0, epoch, -1)])
        assert visible(topic)[:3] == (2, 2, [] if commit else [(producer.producer_id, 0)])


@pytest.mark.rule("TX-8", "TX-27", "TX-28")
def test_stopped_txn_coordinator_blocks_only_the_first_batch_in_each_partition(subject: Subject) -> None:
    subject.need_broker(1)
    topic, producer = new_topic(subject, partitions=2), Producer(subject)
    while producer.coordinator() == 0:
        producer = Producer(subject)
    producer.init()
    producer.add_once_free(topic, 0, 1)
    assert producer.send(topic, 0) == (0, 0)
    started_ms = producer.describe().transaction_start_time_ms
    coordinator = producer.coordinator()
    subject.stop_broker(coordinator)
    assert producer.send(topic, 1) == (0, 1)
    assert producer.send(topic, 0, index=1) == (NOT_ENOUGH_REPLICAS, -1)
    subject.start_broker(coordinator)
    description = producer.describe()
    assert (description.transaction_state, description.transaction_start_time_ms) == ("Ongoing", started_ms)
    assert producer.send(topic, 0, index=1) == (0, 0)
    producer.finish(commit=True)
    assert visible(topic)[:2] == (3, 3)


@pytest.mark.rule("TX-33")
@pytest.mark.parametrize("transactional", [True, False])
def test_sequence_gap_after_a_batch_that_failed_verification_fails_until_restart(
    subject: Subject, transactional: bool
) -> None:
    """The leader fails to verify the transaction of a producer's first batch, with sequence 0. It then rejects the next batch, with sequence 2.

    After a restart, the leader accepts the batch with sequence 2. transactional: whether the batch with sequence 2 is transactional.
    """
    subject.need_broker(2)
    topic, producer = new_topic(subject, assignment={0: [2]}), Producer(subject)
    while producer.coordinator() == 2:
        producer = Producer(subject)
    producer.init()
    assert producer.send(topic, 0, version=11) == (ABORTABLE, -1)
    if transactional:
        producer.add_once_free(topic)
    assert producer.send(topic, 2, version=11, transactional=transactional) == (OUT_OF_ORDER, -1)
    subject.stop_broker(2)
    subject.start_broker(2)
    wait_until(
        subject,
        lambda: list_offsets(topic, EARLIEST, broker_id=2).error_code == 0,
        f"broker 2 leads {topic.name}-0 again",
    )
    assert producer.send(topic, 2, version=11, transactional=transactional) == (0, 0)
