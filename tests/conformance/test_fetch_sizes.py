"""Size limits of Fetch (KIP-74): how much comes, of which partitions, in which order."""

from __future__ import annotations

from tests.broker.wire import batch, batch_of_bytes, errors, fetch, flat, sizes
from tests.conformance.scene import new_topic
from tests.conformance.subjects import Subject


def test_F6_F7_F8_F11_partitions_come_in_order_until_the_request_limit_is_used_up(subject: Subject) -> None:
    topics = [new_topic(subject, 6) for _ in range(5)]
    for topic in topics:
        for index in range(6):
            topic.fill(*[batch(b"small")] * 9, index=index)
    asked = [(topic.name, index, 0) for topic in topics for index in range(6)]
    answer = subject.ask(
        topics[0].connect(), fetch(*asked, partition_max=190, max_bytes=800, min_bytes=0, max_wait_ms=2**31 - 1), 11
    )
    assert [(name, data.partition_index, 0) for name, data in flat(answer)] == asked
    assert sizes(answer) == [190] * 4 + [0] * 26
    assert set(errors(answer)) == {0} and all(data.high_watermark == 9 for _, data in flat(answer))


def test_F7_F10_the_first_batch_comes_whole_even_if_it_is_larger_than_every_limit(subject: Subject) -> None:
    topic = new_topic(subject, 2)
    topic.fill(batch_of_bytes(770))
    topic.fill(batch_of_bytes(770), index=1)
    connection = topic.connect()
    both = (topic.name, 0, 0), (topic.name, 1, 0)
    assert sizes(subject.ask(connection, fetch(*both, partition_max=190, max_bytes=300), 11)) == [770, 0]
    assert sizes(subject.ask(connection, fetch(*both, partition_max=0, max_bytes=0), 4)) == [770, 0]


def test_F7_F8_the_privilege_survives_empty_and_wrong_partitions(subject: Subject) -> None:
    topic = new_topic(subject, 2)
    topic.fill(batch_of_bytes(5000), index=1)
    asked = ("no-such-topic", 0, 0), (topic.name, 0, 0), (topic.name, 1, 0)
    answer = subject.ask(topic.connect(), fetch(*asked, partition_max=100, max_bytes=100), 11)
    assert sorted(zip(errors(answer), sizes(answer), strict=True)) == [(0, 0), (0, 5000), (3, 0)]


def test_F28_F30_min_bytes_that_cannot_be_reached_waits_its_time(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(batch_of_bytes(5000))
    connection = topic.connect()
    subject.send(connection, fetch((topic.name, 0, 0), partition_max=1000, min_bytes=10_000, max_wait_ms=700), 11)
    answer = subject.answer(connection)
    subject.assert_took(answer, 700)
    assert sizes(answer.message) == [5000]
    subject.send(connection, fetch((topic.name, 0, 1), min_bytes=0, max_wait_ms=700), 11)
    subject.assert_took(subject.answer(connection), 0)
