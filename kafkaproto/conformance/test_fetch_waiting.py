"""Long polls: when a Fetch does not wait, what wakes it, and what it is told then."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.scene import follow, held, make_lead, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, batch_of_bytes, errors, fetch, flat, produce, sizes
from kafkaproto.messages.delete_topics import DeleteTopicsRequest


@pytest.mark.rule("F-28")
def test_which_fetches_do_not_wait(subject: Subject) -> None:
    """Scenario 8: an unknown topic alone or a readable error is told at once; beside an idle partition the unknown waits."""
    topic = new_topic(subject, 2)
    topic.fill(batch(b"a"))
    unknown, idle, beyond = ("no-such-topic", 0, 0), (topic.name, 1, 0), (topic.name, 0, 9)
    connection = topic.connect()
    for asked, wait_ms, wanted in [
        ([unknown], 0, [3]),
        ([beyond, idle], 0, [1, 0]),
        ([unknown, idle], 400, [0, 3]),
        ([idle], 400, [0]),
        ([(topic.name, 0, 0), idle], 0, [0, 0]),
    ]:
        subject.send(connection, fetch(*asked, max_wait_ms=400), 11)
        answer = subject.answer(connection)
        assert errors(answer.message) == wanted
        subject.assert_took(answer, wait_ms)
    for max_wait_ms, min_bytes in ((0, 1), (-1, 1), (5000, 0)):
        subject.send(connection, fetch(idle, max_wait_ms=max_wait_ms, min_bytes=min_bytes), 11)
        subject.assert_took(subject.answer(connection), 0)


@pytest.mark.rule("F-29")
def test_an_append_wakes_who_waits_with_all_that_is_there_then(subject: Subject) -> None:
    """Scenario 7. What does not reach min_bytes wakes nobody."""
    topic = new_topic(subject, 2)
    waiting, writer = topic.connect(), topic.connect()
    both = (topic.name, 0, 0), (topic.name, 1, 0)
    subject.send(waiting, fetch(*both, max_wait_ms=20_000, min_bytes=250), 11)
    subject.pass_ms(200)
    subject.ask(writer, produce(topic.name, batch_of_bytes(200)), 9)
    assert subject.answer_or_none(waiting, 100) is None
    subject.ask(writer, produce(topic.name, batch_of_bytes(70), 1), 9)
    answer = subject.answer(waiting)
    subject.assert_took(answer, 300)
    assert sizes(answer.message) == [200, 70]


@pytest.mark.rule("F-29", "F-30")
def test_what_is_not_committed_wakes_followers_but_no_consumer(subject: Subject) -> None:
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


@pytest.mark.rule("F-30")
def test_only_the_limits_of_partitions_count_while_waiting(subject: Subject) -> None:
    topic = new_topic(subject, 2)
    for index in (0, 1):
        topic.fill(*[batch_of_bytes(500)] * 4, index=index)
    connection = topic.connect()
    both = (topic.name, 0, 0), (topic.name, 1, 0)
    for partition_max, min_bytes, max_bytes, wait_ms, wanted in [
        (1000, 2001, 1 << 30, 400, [1000, 1000]),
        (1000, 2000, 1 << 30, 0, [1000, 1000]),
        (1500, 1200, 1000, 0, [1000, 0]),  # min_bytes is cut to the limit (F-5)
        (2000, 900, 800, 0, [800, 0]),
    ]:
        asked = fetch(*both, partition_max=partition_max, min_bytes=min_bytes, max_bytes=max_bytes, max_wait_ms=400)
        subject.send(connection, asked, 11)
        answer = subject.answer(connection)
        subject.assert_took(answer, wait_ms)
        assert sizes(answer.message) == wanted


@pytest.mark.rule("F-29")
def test_another_leader_or_a_topic_that_goes_wakes_who_waits(subject: Subject) -> None:
    topic = new_topic(subject, replication=2)
    gone = new_topic(subject)
    epoch = topic.partition().leader_epoch
    fenced, waiting = topic.connect(), gone.connect()
    subject.send(fenced, fetch((topic.name, 0, 0), max_wait_ms=20_000, epoch=epoch), 11)
    subject.send(waiting, fetch((gone.name, 0, 0), max_wait_ms=20_000), 11)
    assert subject.answer_or_none(fenced, 50) is None
    make_lead(topic, 1)
    assert errors(subject.answer(fenced, 5000).message) == [74]
    [deleted] = subject.ask(
        subject.connect(), DeleteTopicsRequest(topic_names=[gone.name], timeout_ms=5000), 3
    ).responses
    assert deleted.error_code == 0
    assert errors(subject.answer(waiting, 5000).message) == [3]


@pytest.mark.rule("F-29")
def test_an_append_beyond_the_segment_of_the_fetch_wakes_it_below_min_bytes(subject: Subject) -> None:
    topic = new_topic(subject, segment_bytes="300")
    topic.fill(batch_of_bytes(200))
    waiting = topic.connect()
    subject.send(waiting, fetch((topic.name, 0, 0), max_wait_ms=20_000, min_bytes=10_000), 11)
    assert subject.answer_or_none(waiting, 50) is None
    topic.fill(batch_of_bytes(201))
    assert sizes(subject.answer(waiting, 1000).message) == [200]


@pytest.mark.rule("F-29")
def test_there_is_no_waiting_where_one_read_cannot_get_further(subject: Subject) -> None:
    """In an older segment, or where enough is there that does not fit the request's limit."""
    topic = new_topic(subject, 2, segment_bytes="1000")
    topic.fill(*[batch_of_bytes(800)] * 2)
    topic.fill(batch_of_bytes(100), index=1)
    connection = topic.connect()
    subject.send(connection, fetch((topic.name, 0, 0), min_bytes=2000, max_wait_ms=5000), 11)
    answer = subject.answer(connection)
    subject.assert_took(answer, 0)
    assert sizes(answer.message) == [800]
    both = (topic.name, 1, 0), (topic.name, 0, 1)
    subject.send(connection, fetch(*both, min_bytes=300, max_bytes=300, max_wait_ms=5000), 11)
    answer = subject.answer(connection)
    subject.assert_took(answer, 0)
    assert sizes(answer.message) == [100, 0]
