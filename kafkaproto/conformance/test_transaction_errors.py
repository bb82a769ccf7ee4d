"""Tests of the errors that requests of transactional producers get in each version of their API."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import Topic, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_end_txn import stuck
from kafkaproto.conformance.test_transactions import begun
from kafkaproto.conformance.transactions import Producer, bumps_epochs, write_markers
from kafkaproto.conformance.wire import produced
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest

NOT_COORDINATOR, NOT_ENOUGH_REPLICAS, OLD_EPOCH, UNKNOWN_MAPPING, CONCURRENT, FENCED = 16, 19, 47, 49, 51, 90
NOT_FOUND = 105


class Misdirected(Producer):
    """A transactional producer that sends its requests to a broker that is not its transaction coordinator."""

    def __init__(self, producer: Producer) -> None:
        super().__init__(producer.subject, producer.id)
        self.producer_id, self.epoch = producer.producer_id, producer.epoch
        self._broker_id = (producer.coordinator() + 1) % len(self.subject.bootstrap)

    def coordinator(self) -> int:
        return self._broker_id


class MisdirectedGroup(Group):
    """A consumer group whose requests go to a broker that is not its group coordinator."""

    def coordinator(self) -> int:
        return (super().coordinator() + 1) % len(self.subject.bootstrap)


def like(producer: Producer, producer_id: int, epoch: int) -> Producer:
    """Return a producer with the transactional id of `producer`, and with the given producer id and epoch."""
    other = Producer(producer.subject, producer.id)
    other.producer_id, other.epoch = producer_id, epoch
    return other


def errors(producer: Producer, topic: Topic, group: Group) -> dict[str, list[int]]:
    """Send every kind of request of a transactional producer, each in several versions. Returns {name of the API: error codes, lowest version first}.

    topic: the requests name its first partition. group: the requests commit offsets of this group.
    """
    newer = bumps_epochs(producer.subject)
    key = topic.name, 0
    return {
        "InitProducerId": [
            producer.init_once(producer.producer_id, producer.epoch, version=version)[0] for version in (3, 4, 5)
        ],
        "AddPartitionsToTxn": [producer.add({topic.name: [0]}, version=version)[key] for version in range(4)],
        "AddOffsetsToTxn": [producer.add_offsets(group, version) for version in range(5)],
        "TxnOffsetCommit": [
            producer.commit_offsets(group, {key: 7}, version=version)[key] for version in range(6 if newer else 5)
        ],
        "EndTxn": [producer.end(commit=True, version=version)[0] for version in range(6 if newer else 5)],
        "Produce": [producer.send(topic, 0, version=version)[0] for version in ((9, 11, 12) if newer else (9, 11))],
    }


def without_change(subject: Subject, error: int, old: int, **others: list[int]) -> dict[str, list[int]]:
    """Return the expected result of `errors` if old versions of the APIs return the error code `old`, and all other versions return `error`.

    The old versions are version 3 of InitProducerId, and versions 0 and 1 of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn. The result maps the name
    of an API to the error codes of its tested versions, lowest version first. others: entries of the result that replace those of the same API.
    """
    newer = bumps_epochs(subject)
    return {
        "InitProducerId": [old, error, error],
        "AddPartitionsToTxn": [old, old, error, error],
        "AddOffsetsToTxn": [old, old, error, error, error],
        "TxnOffsetCommit": [error] * (6 if newer else 5),
        "EndTxn": [old, old, *([error] * (4 if newer else 3))],
        "Produce": [error] * (3 if newer else 2),
    } | others


@pytest.mark.rule("TX-18", "TX-22", "TX-36", "TX-64", "TX-68")
def test_stale_epoch_gets_invalid_producer_epoch_in_old_versions_of_txn_requests(subject: Subject) -> None:
    topic, group, newer = new_topic(subject), Group(subject), bumps_epochs(subject)
    producer = Producer(subject)
    for _ in range(3):
        producer.init()
    producer.add_once_free(topic)
    producer.finish(commit=True)
    stale = like(producer, producer.producer_id, 0)
    assert errors(stale, topic, group) == without_change(
        subject,
        FENCED,
        OLD_EPOCH,
        TxnOffsetCommit=[OLD_EPOCH] * (6 if newer else 5),
        Produce=[OLD_EPOCH] * (3 if newer else 2),
    )
    assert write_markers(topic, producer.producer_id, 0) == [OLD_EPOCH]


@pytest.mark.rule("TX-21", "TX-68")
def test_wrong_producer_id_gets_invalid_producer_id_mapping_in_transaction_requests(subject: Subject) -> None:
    topic, group = new_topic(subject), Group(subject)
    producer = Producer(subject)
    producer.init()
    other = like(producer, producer.producer_id + 1, producer.epoch)
    init = [OLD_EPOCH, FENCED, FENCED]
    assert errors(other, topic, group) == without_change(subject, UNKNOWN_MAPPING, UNKNOWN_MAPPING, InitProducerId=init)


@pytest.mark.rule("TX-21", "TX-25", "TX-28", "TX-41", "TX-68")
@pytest.mark.parametrize("commit", [True, False])
def test_requests_for_a_transaction_that_is_already_ending_get_a_retriable_error(
    subject: Subject, commit: bool
) -> None:
    producer, topic = stuck(subject, commit=commit)
    text = "Unable to verify the partition has been added to the transaction. Underlying error: CONCURRENT_TRANSACTIONS"
    too_few_replicas = NOT_ENOUGH_REPLICAS, text
    expected_errors = [too_few_replicas, too_few_replicas, *([(CONCURRENT, None)] if bumps_epochs(subject) else [])]
    received = errors(producer, topic, Group(subject))
    del received["Produce"]  # the partition has the newer epoch of the marker that keeps the transaction from ending
    expected = without_change(subject, CONCURRENT, CONCURRENT)
    del expected["Produce"]
    assert received == expected
    versions = (9, 11, 12) if bumps_epochs(subject) else (9, 11)
    request = producer.produce_request(topic, 0, index=1)
    results = [produced(subject.ask_once(request, version, topic.leader(1))) for version in versions]
    assert [(result.error_code, result.error_message) for result in results] == expected_errors


@pytest.mark.rule("TX-1", "TX-3", "TX-68")
def test_transactional_requests_to_a_non_coordinator_get_the_error_not_coordinator(subject: Subject) -> None:
    subject.need_broker(1)
    topic = new_topic(subject)
    producer = begun(subject, topic)
    response = subject.ask_once(FindCoordinatorRequest(producer.id, key_type=1), 3)
    assert response.node_id == producer.log.leader(producer.index)
    misdirected = Misdirected(producer)
    received = errors(misdirected, topic, MisdirectedGroup(subject))
    del received["Produce"]  # it goes to the leader of the topic
    expected = without_change(subject, NOT_COORDINATOR, NOT_COORDINATOR)
    del expected["Produce"]
    assert received == expected
    for adds in (True, False):
        assert misdirected.verify({topic.name: [0]}, adds=adds) == {(topic.name, 0): NOT_COORDINATOR}
    description = misdirected.describe()
    assert (description.error_code, description.transaction_state, description.topics) == (NOT_COORDINATOR, "", [])
    assert producer.id not in [state.transactional_id for state in misdirected.listed().transaction_states]
    producer.finish(commit=True)
