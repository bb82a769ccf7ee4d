"""Tests of transaction coordinators whose partition of the transaction topic rejects records: requests fail, and the transaction stays as it was."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.internal_topics import reassign, topic_setting
from kafkaproto.conformance.scene import new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import Producer, bumps_epochs, visible

NOT_AVAILABLE = 15


@pytest.mark.rule("TX-7", "TX-17")
def test_transactional_requests_fail_while_too_few_txn_state_replicas_are_in_sync(subject: Subject) -> None:
    """EndTxn, AddPartitionsToTxn for a new partition and two InitProducerId requests fail, and the transaction stays open.

    Before Kafka 4, the first InitProducerId raises the epoch in the coordinator's memory by 1; the second does not raise it again.
    """
    topic, producer = new_topic(subject, assignment={0: [0], 1: [0]}), Producer(subject, index=0)
    before = producer.log.partition().replica_nodes
    coordinator = producer.coordinator()
    stopped = 1 if coordinator != 1 else 2  # requests and records go to broker 0
    subject.need_broker(stopped)
    reassign(producer.log, coordinator, stopped)
    try:
        producer.init()
        producer.add_once_free(topic)
        assert producer.send(topic, 0) == (0, 0)
        with topic_setting(producer.log, "min.insync.replicas", "2"):
            subject.stop_broker(stopped)
            wait_until(
                subject,
                lambda: producer.log.partition().isr_nodes == [coordinator],
                f"broker {coordinator} is the only in-sync replica of __transaction_state-0",
            )
            assert producer.end(commit=True)[0] == NOT_AVAILABLE
            assert producer.add({topic.name: [0]}) == {(topic.name, 0): 0}  # a known partition needs no record
            assert producer.add({topic.name: [1]}) == {(topic.name, 1): NOT_AVAILABLE}
            assert producer.describe().transaction_state == "Ongoing"
            assert [entry.partitions for entry in producer.describe().topics] == [[0]]
            second = Producer(subject, producer.id)
            epochs = [(second.init_once()[0], producer.describe().producer_epoch) for _ in range(2)]
            assert epochs == [(NOT_AVAILABLE, producer.epoch + (not bumps_epochs(subject)))] * 2
            subject.start_broker(stopped)
            wait_until(
                subject,
                lambda: len(producer.log.partition().isr_nodes) == 2,
                "both replicas of __transaction_state-0 are in sync",
            )
        assert second.init() == (producer.producer_id, producer.epoch + 2)
        assert visible(topic) == (2, 2, [(producer.producer_id, 0)], visible(topic)[3])
    finally:
        subject.restore()
        reassign(producer.log, *before)
