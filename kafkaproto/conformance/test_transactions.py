"""Tests of transactions: epochs, partitions, commits, aborts, and what consumers see (KIP-98, KIP-360, KIP-890)."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import Topic, list_offsets, new_topic, read, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import Producer, bumps_epochs, producers, visible, write_markers
from kafkaproto.conformance.wire import produced
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.describe_transactions import DescribeTransactionsRequest
from kafkaproto.messages.end_txn import EndTxnRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest

UNKNOWN_TOPIC = 3
INVALID_REQUEST, OUT_OF_ORDER, OLD_EPOCH, INVALID_STATE, UNKNOWN_MAPPING, INVALID_TIMEOUT = 42, 45, 47, 48, 49, 50
CONCURRENT, COORDINATOR_FENCED, NOT_ATTEMPTED, FENCED = 51, 52, 55, 90
NOT_FOUND, ABORTABLE, INVALID_REGULAR_EXPRESSION = 105, 120, 128
NO_PRODUCER = (-1, -1)
TOPIC, BROKER = 2, 4
"""The resource types of a topic and of a broker in DescribeConfigs."""


def begun(subject: Subject, topic: Topic) -> Producer:
    """Return a producer with an open transaction, which has one record at sequence 0 of partition 0."""
    producer = Producer(subject)
    producer.init()
    producer.add_once_free(topic)
    assert producer.send(topic, 0)[0] == 0
    return producer


@pytest.mark.rule("TX-10", "SN-45")
def test_init_producer_id_requests_with_invalid_timeouts_or_ids_are_rejected(subject: Subject) -> None:
    producer = Producer(subject)
    assert producer.init_once(timeout_ms=0)[0] == INVALID_TIMEOUT
    assert producer.init_once(timeout_ms=900_001)[0] == INVALID_TIMEOUT
    assert producer.init_once(5, -1) == (INVALID_REQUEST, *NO_PRODUCER)
    assert producer.init_once(-1, 5) == (INVALID_REQUEST, *NO_PRODUCER)
    response = producer.ask(InitProducerIdRequest("", 60_000), 4)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (INVALID_REQUEST, *NO_PRODUCER)


@pytest.mark.rule("TX-13", "TX-14", "TX-21", "TX-28", "TX-37", "TX-69", "SN-46")
def test_transactional_produce_and_end_txn_are_rejected_without_an_open_transaction(subject: Subject) -> None:
    topic, producer = new_topic(subject), Producer(subject)
    producer_id, epoch = producer.init()
    assert epoch == 0
    assert producer.init() == (producer_id, 1)
    assert producer.end(commit=True) == (INVALID_STATE, *NO_PRODUCER)
    assert producer.send(topic, 0, version=11) == (ABORTABLE, -1)
    assert producer.send(topic, 0, version=10) == (INVALID_STATE, -1)
    unknown = Producer(subject)
    assert unknown.describe().error_code == NOT_FOUND
    [nameless] = unknown.ask(DescribeTransactionsRequest([""]), 0).transaction_states
    assert nameless.error_code == INVALID_REQUEST
    assert unknown.end(commit=True, producer_id=1, epoch=0)[0] == UNKNOWN_MAPPING
    assert unknown.add({topic.name: [0]}, producer_id=1, epoch=0) == {(topic.name, 0): UNKNOWN_MAPPING}
    assert producer.ask(EndTxnRequest("", producer_id, 1, True), 3).error_code == INVALID_REQUEST


@pytest.mark.rule("TX-20", "TX-21", "TX-22", "SN-47")
def test_add_partitions_to_txn_rejects_unknown_partitions_and_wrong_producers(subject: Subject) -> None:
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


@pytest.mark.rule("TX-34", "TX-53", "TX-55", "TX-56", "TX-69", "TX-72", "TX-74", "SN-48")
def test_records_of_an_open_transaction_are_hidden_from_read_committed_consumers(subject: Subject) -> None:
    topic = new_topic(subject)
    producer = begun(subject, topic)
    own = producer.producer_id, producer.epoch
    assert producer.send(topic, 1, transactional=False)[0] == INVALID_STATE
    description = producer.describe()
    assert (description.transaction_state, description.transaction_timeout_ms) == ("Ongoing", 60_000)
    assert description.transaction_start_time_ms > 0
    assert (description.producer_id, description.producer_epoch) == own
    assert [(entry.topic, entry.partitions) for entry in description.topics] == [(topic.name, [0])]
    states = producer.listed(state_filters=["Ongoing"]).transaction_states
    assert (producer.id, own[0], "Ongoing") in [
        (t.transactional_id, t.producer_id, t.transaction_state) for t in states
    ]
    unknown = producer.listed(1, state_filters=["Foo"])
    assert (unknown.unknown_state_filters, unknown.transaction_states) == (["Foo"], [])
    response = producer.listed(1, duration_filter=100_000, producer_id_filters=[own[0]])
    assert response.transaction_states == []
    assert producers(topic) == (0, [(*own, 0, -1, 0)])
    assert producers(topic, 9) == (UNKNOWN_TOPIC, [])
    assert visible(topic) == (1, 0, [], 0)
    data = read(topic, 0)
    assert data.aborted_transactions is None and len(data.records) == 69
    assert list_offsets(topic, -1, isolation=1).offset == 0


@pytest.mark.rule("TX-37", "TX-39", "TX-50", "TX-51", "TX-71", "TX-75", "SN-50")
def test_records_of_a_transaction_are_visible_after_its_commit_markers_are_written(subject: Subject) -> None:
    topic = new_topic(subject)
    producer = begun(subject, topic)
    producer.finish(commit=True)
    description = producer.describe()
    assert description.topics == [] and description.transaction_start_time_ms > 0
    [(producer_id, epoch, sequence, coordinator_epoch, start)] = producers(topic)[1]
    assert (producer_id, epoch, sequence, start) == (producer.producer_id, producer.epoch, 0, -1)
    assert coordinator_epoch >= 0
    assert visible(topic) == (2, 2, [], 147)
    assert len(read(topic, 0).records) == 147
    assert producer.end(commit=True)[0] == 0
    assert producer.end(commit=False)[0] == INVALID_STATE


@pytest.mark.rule("TX-13", "TX-18", "SN-51")
def test_repeated_init_producer_id_with_the_previous_epoch_returns_the_current_epoch(subject: Subject) -> None:
    producer = Producer(subject)
    producer_id, _ = producer.init()
    producer.init()
    assert producer.init_once(producer_id, 1) == (0, producer_id, 2)
    assert producer.init_once(producer_id, 1) == (0, producer_id, 2)
    assert producer.init_once(producer_id, 0) == (FENCED, *NO_PRODUCER)
    assert producer.init_once(producer_id, 0, version=3) == (OLD_EPOCH, *NO_PRODUCER)
    assert producer.init_once(producer_id + 77, 0) == (FENCED, *NO_PRODUCER)


@pytest.mark.rule("TX-51", "TX-53", "TX-54", "TX-64", "TX-67", "SN-52", "SN-53")
def test_new_producer_epoch_starts_at_sequence_zero_and_fences_the_old_epoch(subject: Subject) -> None:
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
    data = read(topic, 0)
    assert data.aborted_transactions is None and len(data.records) == 294
    producer.add_once_free(topic)
    assert producer.send(topic, 1) == (0, 4)


@pytest.mark.rule("TX-16", "TX-22", "TX-36", "TX-52", "SN-54")
def test_new_producer_with_the_same_transactional_id_aborts_the_open_transaction(subject: Subject) -> None:
    topic = new_topic(subject)
    old_producer = begun(subject, topic)
    new_producer = Producer(subject, old_producer.id)
    assert new_producer.init_once() == (CONCURRENT, *NO_PRODUCER)
    assert new_producer.init() == (old_producer.producer_id, old_producer.epoch + 2)
    assert old_producer.add({topic.name: [0]}) == {(topic.name, 0): FENCED}
    assert old_producer.end(commit=True)[0] == FENCED
    assert old_producer.end(commit=True, version=1)[0] == OLD_EPOCH
    assert old_producer.send(topic, 1)[0] == OLD_EPOCH
    [(_, epoch, sequence, _, start)] = producers(topic)[1]
    assert (epoch, sequence, start) == (old_producer.epoch + 1, -1, -1)
    assert visible(topic) == (2, 2, [(old_producer.producer_id, 0)], 147)


@pytest.mark.rule("TX-53", "TX-54", "TX-55", "SN-57")
def test_last_stable_offset_is_the_first_offset_of_the_oldest_open_transaction(subject: Subject) -> None:
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


@pytest.mark.rule("TX-47", "TX-48", "SN-59")
def test_write_txn_markers_rejects_unknown_topics_and_old_producer_epochs(subject: Subject) -> None:
    topic = new_topic(subject)
    producer = Producer(subject)
    producer_id, _ = producer.init()
    assert write_markers(topic, producer_id, 1, "nope") == [0, UNKNOWN_TOPIC]
    assert write_markers(topic, producer_id, 0) == [OLD_EPOCH]
    assert write_markers(topic, producer_id, 1, coordinator_epoch=-1) == [COORDINATOR_FENCED]


@pytest.mark.rule("TX-19", "TX-23", "SN-60")
def test_verify_only_add_partitions_to_txn_fails_for_partitions_not_in_transaction(subject: Subject) -> None:
    topic, producer = new_topic(subject, partitions=2), Producer(subject)
    producer.init()
    name = topic.name
    assert producer.verify({name: [0]}) == {(name, 0): ABORTABLE}
    assert producer.verify({name: [0]}, adds=True) == {(name, 0): 0}
    assert producer.verify({name: [0, 1]}) == {(name, 0): 0, (name, 1): ABORTABLE}


def _end(producer: Producer, commit: bool, offset: int, version: int) -> tuple[int, int]:
    """Send EndTxn and return (error code, epoch in the response).

    commit: False aborts the transaction. offset: the number added to the producer's epoch in the request.
    """
    error_code, _, epoch = producer.end(commit=commit, epoch=producer.epoch + offset, version=version)
    return error_code, epoch


@pytest.mark.rule("TX-37", "SN-55")
@pytest.mark.parametrize(
    ("state", "commit_error", "abort_error"),
    [
        ("Empty", INVALID_STATE, INVALID_STATE),
        ("CompleteCommit", 0, INVALID_STATE),
        ("CompleteAbort", INVALID_STATE, 0),
    ],
)
def test_repeated_end_txn_succeeds_but_abort_after_commit_gets_invalid_txn_state(
    subject: Subject, state: str, commit_error: int, abort_error: int
) -> None:
    topic = new_topic(subject)
    producer = Producer(subject)
    producer.init()
    if state != "Empty":
        producer.add_once_free(topic)
        producer.finish(commit=state == "CompleteCommit")
    assert _end(producer, True, 0, 3)[0] == commit_error
    assert _end(producer, False, 0, 3)[0] == abort_error
    assert _end(producer, True, 1, 3)[0] == _end(producer, False, -1, 3)[0] == FENCED


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("TX-38", "SN-55")
def test_end_txn_v5_raises_the_epoch_and_accepts_the_old_epoch_only_in_a_retry(subject: Subject) -> None:
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


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("TX-31", "TX-32", "TX-33", "TX-38", "TX-41", "TX-75", "SN-56")
def test_produce_in_transaction_version_2_adds_its_partition_to_the_transaction(subject: Subject) -> None:
    topic, group, producer = new_topic(subject, partitions=2), Group(subject), Producer(subject)
    producer.init()
    assert producer.send(topic, 0, version=12) == (0, 0)
    assert producer.send(topic, 3, version=12, index=1) == (OUT_OF_ORDER, -1)
    assert producer.commit_offsets(group, {(topic.name, 0): 1}, version=5) == {(topic.name, 0): 0}
    description = producer.describe()
    partitions_by_topic: Any = {entry.topic: sorted(entry.partitions) for entry in description.topics}
    assert partitions_by_topic == {topic.name: [0, 1], "__consumer_offsets": [group.index]}
    assert producer.end(commit=True, version=5) == (0, producer.producer_id, producer.epoch + 1)
    producer.wait_for("CompleteCommit")
    for index in (0, 1):
        [(_, epoch, sequence, _, start)] = producers(topic, index)[1]
        assert (epoch, sequence, start) == (producer.epoch + 1, -1, -1)
    assert producer.send(topic, 1, version=12) == (OLD_EPOCH, -1)
    assert group.committed() == {(topic.name, 0): 1}


@pytest.mark.rule("TX-49")
def test_transaction_completes_without_the_partitions_of_a_deleted_topic(subject: Subject) -> None:
    deleted, topic = new_topic(subject), new_topic(subject)
    producer = begun(subject, deleted)
    producer.add_once_free(topic)
    assert producer.send(topic, 0) == (0, 0)
    request = DeleteTopicsRequest(topic_names=[deleted.name], timeout_ms=5000)
    assert subject.ask_once(request, 3).responses[0].error_code == 0
    coordinator = producer.coordinator()
    text = f"broker {coordinator} knows that topic {deleted.name} is deleted"
    wait_until(subject, lambda: deleted.metadata(coordinator).error_code == UNKNOWN_TOPIC, text)
    producer.finish(commit=True)
    assert (visible(topic)[:2], list(producer.describe().topics)) == ((2, 2), [])


@pytest.mark.rule("TX-70")
def test_init_producer_id_resets_the_transaction_start_time_only_from_kafka_4_0_on(subject: Subject) -> None:
    producer = begun(subject, new_topic(subject))
    started_ms = producer.describe().transaction_start_time_ms
    assert started_ms > 0
    producer.finish(commit=True)
    assert producer.describe().transaction_start_time_ms == started_ms
    producer.init()
    assert producer.describe().transaction_start_time_ms == (-1 if bumps_epochs(subject) else started_ms)


@pytest.mark.rule("TX-26", "TX-35")
def test_transactional_produce_accepts_acks_1_but_not_batches_of_two_producer_ids(subject: Subject) -> None:
    topic = new_topic(subject, partitions=2)
    first, second = begun(subject, topic), Producer(subject)
    second.init()
    request = first.produce_request(topic, 1, acks=1)
    assert produced(subject.ask_once(request, 11, topic.leader())).error_code == 0
    other = second.produce_request(topic, 0, index=1)
    request.topic_data[0].partition_data += other.topic_data[0].partition_data
    response = subject.ask_once(request, 11, topic.leader())
    assert {p.error_code for t in response.responses for p in t.partition_responses} == {UNKNOWN_MAPPING}


@pytest.mark.rule("TX-72", "TX-73", "SN-64")
def test_list_transactions_filters_by_producer_id_and_by_duration(subject: Subject) -> None:
    topic, idle = new_topic(subject), Producer(subject)
    idle.init()
    producer = begun(subject, topic)

    def listed(queried: Producer, **filters: Any) -> list[str]:
        return [s.transactional_id for s in queried.listed(1, **filters).transaction_states]

    assert listed(producer, producer_id_filters=[producer.producer_id]) == [producer.id]
    assert listed(producer, producer_id_filters=[producer.producer_id + 10_000]) == []
    assert producer.id not in listed(producer, duration_filter=100_000)
    subject.pass_ms(300)
    assert producer.id in listed(producer, duration_filter=200)
    assert idle.id in listed(idle, duration_filter=100_000)  # it has no start time, which counts as long ago
    producer.finish(commit=True)


@pytest.mark.rule("TX-72")
def test_list_transactions_response_lists_each_unknown_state_filter_once(subject: Subject) -> None:
    """Up to four unknown states are returned in the order of the request, more than four in the order of a Scala hash table.

    The state "Empty" is known, so it is not among the returned states.
    """
    producer = Producer(subject)
    producer.init()
    two_unknown = producer.listed(state_filters=["Foo", "Bar", "Foo", "Empty"])
    assert list(two_unknown.unknown_state_filters) == ["Foo", "Bar"]
    assert producer.id in [entry.transactional_id for entry in two_unknown.transaction_states]
    four_unknown = producer.listed(state_filters=["Foo", "Bar", "Foo", "Baz", "Qux", "Quux"])
    assert list(four_unknown.unknown_state_filters) == ["Quux", "Bar", "Foo", "Qux", "Baz"]


@pytest.mark.releases(first="4.1")
@pytest.mark.rule("TX-72", "SN-64")
def test_list_transactions_filters_by_a_pattern_of_the_transactional_id(subject: Subject) -> None:
    producer = Producer(subject)
    producer.init()
    for pattern, ids in ((producer.id[:-2] + ".*", [producer.id]), (producer.id[:-1], [])):
        response = producer.listed(2, transactional_id_pattern=pattern)
        assert (response.error_code, [s.transactional_id for s in response.transaction_states]) == (0, ids)
    assert producer.listed(2, transactional_id_pattern="(").error_code == INVALID_REGULAR_EXPRESSION


@pytest.mark.releases(first="4.1")
@pytest.mark.rule("TX-72")
@pytest.mark.parametrize(
    ("end", "matching", "others"),
    [
        ("a\nb", ["[^b]+b", "(?s).*", ".*\n.*", "(?m).*a$\n^b"], [".*", ".*a$\n^b", "a\nb"]),
        (" \u00c9\u4e2d\U0001f601", [".*\\p{Lu}\\p{Han}\\p{So}", "(?i).*\u00e9..", ".*[^\\x{0}-\\x{ff}]{2}"], [".*\\w", ".*\\p{L}"]),
    ],
    ids=["newline", "beyond ASCII"],
)  # fmt: skip
def test_list_transactions_pattern_matches_ids_with_newlines_and_non_ascii_letters(
    subject: Subject, end: str, matching: list[str], others: list[str]
) -> None:
    producer = Producer(subject, subject.new_name("x") + end)
    producer.init()
    is_listed = {
        pattern: producer.id in [s.transactional_id for s in producer.listed(2, transactional_id_pattern=pattern).transaction_states]
        for pattern in [*matching, *others]
    }  # fmt: skip
    assert is_listed == dict.fromkeys(matching, True) | dict.fromkeys(others, False)


@pytest.mark.rule("TX-2")
def test_transaction_state_topic_uses_broker_settings_for_segment_bytes_and_min_isr(subject: Subject) -> None:
    Producer(subject).init()
    fixed = {"cleanup.policy": "compact", "compression.type": "uncompressed", "unclean.leader.election.enable": "false"}
    sizes = {
        "segment.bytes": "transaction.state.log.segment.bytes",
        "min.insync.replicas": "transaction.state.log.min.isr",
    }
    resources = [
        DescribeConfigsResource(TOPIC, "__transaction_state", [*fixed, *sizes]),
        DescribeConfigsResource(BROKER, "0", list(sizes.values())),
    ]
    of_topic, of_broker = [
        {config.name: config.value for config in resource.configs}
        for resource in subject.ask_once(DescribeConfigsRequest(resources), 2).results
    ]
    assert of_topic == fixed | {name: of_broker[setting] for name, setting in sizes.items()}
