"""Tests of the records that transaction coordinators write to `__transaction_state`."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transaction_log import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    logged,
    values,
)
from kafkaproto.conformance.transactions import TIMEOUT_MS, Producer, bumps_epochs
from kafkaproto.data.transaction_log_value import TransactionLogValue

Partitions = dict[str, list[int]]


def partitions_of(value: TransactionLogValue) -> Partitions | None:
    """Return the partitions of a transaction by topic; None if the record has no list of partitions."""
    topics = value.transaction_partitions
    return None if topics is None else {topic.topic: sorted(topic.partition_ids) for topic in topics}


def states(producer: Producer) -> list[tuple[int, int, Partitions | None]]:
    """Return (state, epoch, partitions by topic) of each record that the coordinator wrote for a producer's transactional id.

    The state is a number, the value of the field `transaction_status`. The partitions are None if the record has no list of partitions.
    """
    return [(value.transaction_status, value.producer_epoch, partitions_of(value)) for value in values(producer)]


@pytest.mark.rule("TX-4", "TX-5")
def test_each_transaction_state_change_writes_a_record_that_lists_the_partitions(subject: Subject) -> None:
    topic, group, producer = new_topic(subject, partitions=2), Group(subject), Producer(subject)
    producer.init()
    producer.init()
    producer.add_once_free(topic)
    assert set(producer.add({topic.name: [0, 1]}).values()) == {0}
    assert set(producer.add({topic.name: [1]}).values()) == {0}  # nothing changes
    assert producer.add_offsets(group) == 0
    producer.finish(commit=True)
    producer.add_once_free(topic)
    producer.finish(commit=False)
    first, both = {topic.name: [0]}, {topic.name: [0, 1]}
    all_partitions = both | {"__consumer_offsets": [group.index]}
    assert states(producer) == [
        (EMPTY, 0, None),
        (EMPTY, 1, None),
        (ONGOING, 1, first),
        (ONGOING, 1, both),
        (ONGOING, 1, all_partitions),
        (PREPARE_COMMIT, 1, all_partitions),
        (COMPLETE_COMMIT, 1, {}),
        (ONGOING, 1, first),
        (PREPARE_ABORT, 1, first),
        (COMPLETE_ABORT, 1, {}),
    ]


@pytest.mark.rule("TX-4")
def test_transaction_log_records_have_format_version_1_if_transaction_version_is_2(subject: Subject) -> None:
    topic, producer = new_topic(subject), Producer(subject)
    producer_id, _ = producer.init()
    producer.add_once_free(topic)
    started_ms = producer.describe().transaction_start_time_ms
    producer.finish(commit=True)
    assert {entry.version for entry in logged(producer)} == {1 if bumps_epochs(subject) else 0}
    records = values(producer)
    assert [value.transaction_start_timestamp_ms for value in records] == [-1, started_ms, started_ms, started_ms]
    updates = [value.transaction_last_update_timestamp_ms for value in records]
    assert updates == sorted(updates) and updates[1] == started_ms
    assert {(value.producer_id, value.transaction_timeout_ms) for value in records} == {(producer_id, TIMEOUT_MS)}
    unused = {(v.previous_producer_id, v.next_producer_id, v.next_producer_epoch) for v in records}
    assert unused == {(-1, -1, -1)}


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("TX-4", "TX-38")
def test_transaction_log_record_contains_the_transaction_version_of_its_producer(subject: Subject) -> None:
    topic, producer = new_topic(subject), Producer(subject)
    producer.init()
    producer.add_once_free(topic)
    producer.finish(commit=True)
    assert producer.send(topic, 0, version=12) == (0, 1)
    assert producer.end(commit=True, version=5)[0] == 0
    producer.wait_for("CompleteCommit")
    producer.epoch += 1
    assert producer.end(commit=False, version=5)[0] == 0
    producer.wait_for("CompleteAbort")
    records = values(producer)
    assert [value.client_transaction_version for value in records] == [0] * 4 + [2] * 5
    assert states(producer)[4:] == [
        (ONGOING, 0, {topic.name: [0]}),
        (PREPARE_COMMIT, 1, {topic.name: [0]}),
        (COMPLETE_COMMIT, 1, {}),
        (PREPARE_ABORT, 2, {}),
        (COMPLETE_ABORT, 2, {}),
    ]
