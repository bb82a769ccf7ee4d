"""Tests of long polls: which fetches do not wait, what completes a waiting fetch, and what the response then contains."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.needs import FETCH_MAX_BYTES
from kafkaproto.conformance.scene import follow, held, make_lead, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, batch_of_bytes, errors, fetch, flat, produce, sizes
from kafkaproto.messages.delete_topics import DeleteTopicsRequest


@pytest.mark.rule("F-28")
def test_fetch_with_available_data_or_a_partition_error_is_answered_without_waiting(subject: Subject) -> None:
    """A fetch completes at once if it has data, if reading a partition gives an error, or if all its partitions are of unknown topics.

    A fetch of an unknown topic and of an existing partition without new data waits. The broker does not read an unknown topic, so the error of this
    topic does not end the wait.
    """
    topic = new_topic(subject, 2)
    topic.fill(batch(b"a"))
    unknown, idle, beyond = ("no-such-topic", 0, 0), (topic.name, 1, 0), (topic.name, 0, 9)
    connection = topic.connect()
    for requested, wait_ms, expected in [
        ([unknown], 0, [3]),
        ([beyond, idle], 0, [1, 0]),
        ([unknown, idle], 400, [0, 3]),
        ([idle], 400, [0]),
        ([(topic.name, 0, 0), idle], 0, [0, 0]),
    ]:
        subject.send(connection, fetch(*requested, max_wait_ms=400), 11)
        response = subject.answer(connection)
        assert errors(response.message) == expected
        subject.assert_took(response, wait_ms)
    for max_wait_ms, min_bytes in ((0, 1), (-1, 1), (5000, 0)):
        subject.send(connection, fetch(idle, max_wait_ms=max_wait_ms, min_bytes=min_bytes), 11)
        subject.assert_took(subject.answer(connection), 0)


@pytest.mark.rule("F-29")
def test_waiting_fetch_returns_all_partitions_when_an_append_reaches_min_bytes(subject: Subject) -> None:
    """A fetch of two partitions waits until they have 250 bytes together.

    It still waits after an append of 200 bytes to the first partition. An append of 70 bytes to the second completes the fetch. The response has
    both batches.
    """
    topic = new_topic(subject, 2)
    waiting, writer = topic.connect(), topic.connect()
    both = (topic.name, 0, 0), (topic.name, 1, 0)
    subject.send(waiting, fetch(*both, max_wait_ms=20_000, min_bytes=250), 11)
    subject.pass_ms(200)
    subject.ask(writer, produce(topic.name, batch_of_bytes(200)), 9)
    assert subject.answer_or_none(waiting, 100) is None
    subject.ask(writer, produce(topic.name, batch_of_bytes(70), 1), 9)
    response = subject.answer(waiting)
    subject.assert_took(response, 300)
    assert sizes(response.message) == [200, 70]


@pytest.mark.rule("F-29", "F-30")
def test_parked_consumer_fetch_gets_a_new_record_only_after_a_follower_stored_it(subject: Subject) -> None:
    topic = new_topic(subject, replication=2)
    with held(subject, topic, 1):
        consumer, follower = topic.connect(), topic.connect()
        subject.send(consumer, fetch((topic.name, 0, 0), max_wait_ms=20_000), 11)
        follow(topic, 1, 0)
        subject.send(follower, fetch((topic.name, 0, 0), max_wait_ms=20_000, replica_id=1), 11)
        assert subject.answer_or_none(follower, 50) is None or subject.semantics == "kip"
        topic.fill(batch(b"a"), acks=1)
        if subject.semantics == "kafka":
            assert sizes(subject.answer(follower).message) == [len(batch(b"a"))]
        assert subject.answer_or_none(consumer, 100) is None
        follow(topic, 1, 1)
        [(_, data)] = flat(subject.answer(consumer, 1000).message)
        assert (data.high_watermark, len(data.records)) == (1, len(batch(b"a")))


@pytest.mark.needs(at_least={"fetch.max.bytes": FETCH_MAX_BYTES})
@pytest.mark.rule("F-30")
def test_bytes_above_partition_max_bytes_do_not_count_towards_fetch_min_bytes(subject: Subject) -> None:
    topic = new_topic(subject, 2)
    for index in (0, 1):
        topic.fill(*[batch_of_bytes(500)] * 4, index=index)
    connection = topic.connect()
    both = (topic.name, 0, 0), (topic.name, 1, 0)
    for partition_max, min_bytes, max_bytes, wait_ms, expected in [
        (1000, 2001, 1 << 30, 400, [1000, 1000]),
        (1000, 2000, 1 << 30, 0, [1000, 1000]),
        (1500, 1200, 1000, 0, [1000, 0]),  # min_bytes is limited to max_bytes (F-5)
        (2000, 900, 800, 0, [800, 0]),
    ]:
        requested = fetch(*both, partition_max=partition_max, min_bytes=min_bytes, max_bytes=max_bytes, max_wait_ms=400)
        subject.send(connection, requested, 11)
        response = subject.answer(connection)
        subject.assert_took(response, wait_ms)
        assert sizes(response.message) == expected


@pytest.mark.rule("F-29")
def test_leader_change_or_topic_deletion_completes_parked_fetches_with_an_error(subject: Subject) -> None:
    topic = new_topic(subject, replication=2)
    deleted_topic = new_topic(subject)
    epoch = topic.leader_epoch
    fenced, waiting = topic.connect(), deleted_topic.connect()
    subject.send(fenced, fetch((topic.name, 0, 0), max_wait_ms=20_000, epoch=epoch), 11)
    subject.send(waiting, fetch((deleted_topic.name, 0, 0), max_wait_ms=20_000), 11)
    assert subject.answer_or_none(fenced, 50) is None
    make_lead(topic, 1)
    assert errors(subject.answer(fenced, 5000).message) == [74]
    [deleted] = subject.ask(
        subject.connect(), DeleteTopicsRequest(topic_names=[deleted_topic.name], timeout_ms=5000), 3
    ).responses
    assert deleted.error_code == 0
    assert errors(subject.answer(waiting, 5000).message) == [3]


@pytest.mark.rule("F-29")
def test_parked_fetch_completes_below_min_bytes_when_the_log_rolls_to_a_new_segment(subject: Subject) -> None:
    topic = new_topic(subject, segment_bytes="300")
    topic.fill(batch_of_bytes(200))
    waiting = topic.connect()
    subject.send(waiting, fetch((topic.name, 0, 0), max_wait_ms=20_000, min_bytes=10_000), 11)
    assert subject.answer_or_none(waiting, 50) is None
    topic.fill(batch_of_bytes(201))
    assert sizes(subject.answer(waiting, 1000).message) == [200]


@pytest.mark.rule("F-29")
def test_fetch_that_ends_at_a_segment_end_or_byte_limit_completes_without_waiting(subject: Subject) -> None:
    """A fetch that reaches the end of a segment other than the last does not wait for more data, because no fetch reads beyond a segment's end.

    A fetch does not wait either if more bytes are available than the request's limit permits.
    """
    topic = new_topic(subject, 2, segment_bytes="1000")
    topic.fill(*[batch_of_bytes(800)] * 2)
    topic.fill(batch_of_bytes(100), index=1)
    connection = topic.connect()
    subject.send(connection, fetch((topic.name, 0, 0), min_bytes=2000, max_wait_ms=5000), 11)
    response = subject.answer(connection)
    subject.assert_took(response, 0)
    assert sizes(response.message) == [800]
    both = (topic.name, 1, 0), (topic.name, 0, 1)
    subject.send(connection, fetch(*both, min_bytes=300, max_bytes=300, max_wait_ms=5000), 11)
    response = subject.answer(connection)
    subject.assert_took(response, 0)
    assert sizes(response.message) == [100, 0]
