"""Tests of transactional batches: which batches the leader verifies with the coordinator, and what happens if DeleteRecords removes some."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.scene import list_offsets, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import Producer, bumps_epochs, producers, visible, write_markers
from kafkaproto.conformance.wire import batch
from kafkaproto.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafkaproto.messages.end_txn import EndTxnRequest

OLD_EPOCH, NOT_IN_TRANSACTION, UNKNOWN_MAPPING, CONCURRENT = 47, 48, 49, 51
ATTEMPTS = 200
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


@pytest.mark.rule("TX-27")
def test_leader_verifies_no_batch_of_a_transaction_already_open_in_the_partition(subject: Subject) -> None:
    """If a transaction is open in a partition, the leader accepts batches with the transaction's producer id and epoch without verification.

    The test also sends batches with a transactional id that the coordinator does not know. The leader accepts such a batch only if it does not ask
    the coordinator to verify the batch.
    """
    topic, producer, newer = new_topic(subject), Producer(subject), bumps_epochs(subject)
    producer.init()
    producer.init()
    producer.add_once_free(topic)
    assert producer.send(topic, 0) == (0, 0)
    producer.finish(commit=True)
    stranger = Producer(subject)
    stranger.producer_id, stranger.epoch = producer.producer_id, producer.epoch
    assert stranger.send(topic, 1) == (UNKNOWN_MAPPING, -1)
    assert stranger.send(topic, 1, epoch=producer.epoch - 1) == (OLD_EPOCH if newer else UNKNOWN_MAPPING, -1)
    producer.add_once_free(topic)
    assert producer.send(topic, 1) == (0, 2)
    assert stranger.send(topic, 2) == (0, 3)  # not verified: the transaction is open in the partition
    assert stranger.send(topic, 3, epoch=producer.epoch - 1) == (OLD_EPOCH, -1)
    next_epoch = producer.epoch + 1
    assert stranger.send(topic, 0, epoch=next_epoch) == ((UNKNOWN_MAPPING, -1) if newer else (0, 4))
    coordinator_epoch = producers(topic)[1][0][3]
    assert write_markers(topic, producer.producer_id, next_epoch, coordinator_epoch=coordinator_epoch) == [0]
    assert stranger.send(topic, 0, epoch=next_epoch) == (UNKNOWN_MAPPING, -1)  # no transaction is open


@pytest.mark.rule("TX-54", "TX-57")
@pytest.mark.parametrize("commits_first", [True, False])
def test_last_stable_offset_is_log_start_if_records_of_open_transaction_are_deleted(
    subject: Subject, commits_first: bool
) -> None:
    topic, first, second = new_topic(subject), Producer(subject), Producer(subject)
    for producer in (first, second):
        producer.init()
        producer.add_once_free(topic)
    topic.fill(batch(b"plain"))
    assert first.send(topic, 0) == (0, 1)
    topic.fill(batch(b"plain"))
    assert second.send(topic, 0) == (0, 3)
    assert first.send(topic, 1) == (0, 4)
    assert visible(topic)[:2] == (5, 1)
    topics = [DeleteRecordsTopic(topic.name, [DeleteRecordsPartition(0, 3)])]
    [deleted] = subject.ask_once(DeleteRecordsRequest(topics, 5000), 2, topic.leader()).topics[0].partitions
    assert (deleted.error_code, deleted.low_watermark) == (0, 3)
    assert visible(topic, 3) == (5, 3, [], 0)
    assert [list_offsets(topic, which, isolation=1).offset for which in (EARLIEST, LATEST)] == [3, 3]
    starts = {producer_id: start for producer_id, _, _, _, start in producers(topic)[1]}
    assert starts == {first.producer_id: 1, second.producer_id: 3}
    first.finish(commit=commits_first)
    assert visible(topic, 3) == (6, 3, [], 0)
    second.finish(commit=not commits_first)
    aborted = (second.producer_id, 3) if commits_first else (first.producer_id, 1)
    assert visible(topic, 3) == (7, 7, [aborted], 294)


@pytest.mark.rule("TX-56", "L-6")
def test_list_offsets_for_read_committed_finds_no_timestamp_in_an_open_transaction(subject: Subject) -> None:
    topic, producer = new_topic(subject), Producer(subject)
    topic.fill(batch(timestamp=1000))
    producer.init()
    producer.add_once_free(topic, 0)
    assert producer.send(topic, 0) == (0, 1)

    def looked_up(timestamp: int, isolation: int) -> tuple[int, int]:
        response = list_offsets(topic, timestamp, 7, isolation=isolation)
        return response.error_code, response.offset

    assert [looked_up(timestamp, 0) for timestamp in (1000, 1001, MAX_TIMESTAMP)] == [(0, 0), (0, 1), (0, 1)]
    assert [looked_up(timestamp, 1) for timestamp in (1000, 1001, MAX_TIMESTAMP)] == [(0, 0), (0, -1), (0, -1)]
    producer.finish(commit=True)
    ended = [looked_up(timestamp, 1) for timestamp in (1000, 1001, MAX_TIMESTAMP)]
    assert ended == [(0, 0), (0, 1), (0, 2)]  # the marker has the largest timestamp


@pytest.mark.rule("TX-30")
@pytest.mark.releases(first="4.0")
def test_batch_is_rejected_if_its_transaction_ends_before_the_batch_is_appended(subject: Subject) -> None:
    """A Produce request has batches for two partitions, and the transaction is open only in the first one.

    So the leader asks the transaction coordinator to verify the second batch. Just before the Produce request, the test sends EndTxn version 4, which
    keeps the producer's epoch. If the transaction marker is written while the leader waits for the coordinator, the leader rejects the first batch.
    This depends on the timing, so the test repeats until it happens.
    """
    topic, producer = new_topic(subject, assignment={0: [0], 1: [0]}), Producer(subject)
    producer.init()
    coordinator, leader = subject.open(producer.coordinator()), subject.open(0)
    sequences, outcomes = {0: 0, 1: 0}, set[tuple[int, ...]]()

    def is_open() -> bool:
        return producer.send(topic, sequences[0], version=12)[0] == 0

    for attempt in range(ATTEMPTS):
        wait_until(
            subject, is_open, f"{topic.name}-0 accepts a batch of a transaction of transactional id {producer.id}"
        )
        sequences[0] += 1
        request = producer.produce_request(topic, sequences[0])
        second = producer.produce_request(topic, sequences[1], index=1)
        request.topic_data[0].partition_data += second.topic_data[0].partition_data
        subject.send(coordinator, EndTxnRequest(producer.id, producer.producer_id, producer.epoch, True), 4)
        if attempt % 4:
            subject.pass_ms(attempt % 4)
        subject.send(leader, request, 12)
        is_ended = subject.answer(coordinator).message.error_code == 0
        results = sorted(subject.answer(leader).message.responses[0].partition_responses, key=lambda each: each.index)
        errors = tuple(result.error_code for result in results)
        for index, error in enumerate(errors):
            sequences[index] += error == 0
        if is_ended:
            outcomes.add(errors)
        if 0 in errors or not is_ended:
            wait_until(
                subject,
                lambda: producer.end(commit=True)[0] == 0,
                f"EndTxn commits the transaction of transactional id {producer.id}",
            )
            producer.wait_for("CompleteCommit")
        if errors == (NOT_IN_TRANSACTION, 0):
            assert (results[0].error_message, results[0].log_start_offset) == (None, 0)
            break
    both_verified, still_ending = (0, 0), {(error, CONCURRENT) for error in (0, NOT_IN_TRANSACTION, CONCURRENT)}
    assert (NOT_IN_TRANSACTION, 0) in outcomes <= {(NOT_IN_TRANSACTION, 0), both_verified, *still_ending}


@pytest.mark.rule("TX-31")
@pytest.mark.releases(first="4.0")
def test_produce_v12_right_after_end_txn_v5_is_accepted(subject: Subject) -> None:
    """When a Produce request arrives, the coordinator may still be writing the marker of the previous transaction.

    The leader then repeats its request to the coordinator to add the partition, until the marker is written.
    """
    topic, producer = new_topic(subject), Producer(subject)
    producer.init()
    for base_offset in (0, 2, 4):
        assert producer.send(topic, 0, version=12) == (0, base_offset)
        error, _, producer.epoch = producer.end(commit=True, version=5)
        assert error == 0
    producer.wait_for("CompleteCommit")
    assert visible(topic)[:2] == (6, 6)
