"""Tests of a broker with small limits: fetch.max.bytes, few fetch session slots, small frames, short idle timeouts."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.client import Connection
from kafkaproto.conformance.scene import Topic, limited, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, batch_of_bytes, errors, fetch, flat, produce, produced, sizes
from kafkaproto.records.batch import batches, complete_bytes, records

PROFILE = "small"
SLOTS = 16
REQUEST_MAX_BYTES = 65_536
IDLE_MS = 2000


@pytest.mark.needs("fetch.max.bytes")
@pytest.mark.rule("F-4")
def test_fetch_response_obeys_broker_fetch_max_bytes_if_the_request_allows_more(subject: Subject) -> None:
    """A response has as many complete batches as fit into the broker's `fetch.max.bytes`, but at least one. The requests allow more bytes.

    Corresponds to Kafka's test `FetchRequestMaxBytesTest`.
    """
    topic = new_topic(subject)
    lengths = 1, 500, 1040, 500, 50
    topic.fill(*[batch(b"x" * length) for length in lengths])
    connection = topic.connect()
    for offset, expected in ((0, [1, 500]), (2, [1040]), (3, [500, 50])):
        requested = fetch((topic.name, 0, offset), partition_max=2**31 - 1, max_bytes=2**31 - 1)
        for version in (4, 11):
            [(_, data)] = flat(subject.ask(connection, requested, version))
            whole = bytes(data.records)[: complete_bytes(data.records)]
            assert [
                len(record.value or b"") for whole_batch in batches(whole) for record in records(whole_batch.view)
            ] == expected


@pytest.mark.needs("fetch.max.bytes")
@pytest.mark.rule("F-4", "F-5")
def test_fetch_min_bytes_above_the_broker_limit_is_lowered_to_the_limit(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(*[batch(b"x" * 500)] * 3)
    connection = topic.connect()
    subject.send(connection, fetch((topic.name, 0, 0), min_bytes=100_000, max_wait_ms=10_000), 11)
    response = subject.answer(connection)
    subject.assert_took(response, 0)
    assert sizes(response.message) == [1024]
    subject.send(connection, fetch((topic.name, 0, 2), min_bytes=100_000, max_wait_ms=300), 11)
    subject.assert_took(subject.answer(connection), 300)


def open_session(subject: Subject, connection: Connection, topic: Topic, partitions: int = 1, **more: Any) -> int:
    """Fetch the first partitions of a topic in a new session. Returns the session id, or 0 if the broker creates no session.

    partitions: the number of partitions to fetch. more: further arguments of `wire.fetch`. Checks that the fetch has records and no error.
    """
    requested = [(topic.name, index, 0) for index in range(partitions)]
    response = subject.ask(connection, fetch(*requested, session=(0, 0), **more), 11)
    assert errors(response) == [0] * partitions and any(sizes(response))
    return int(response.session_id)


@pytest.mark.needs("max.incremental.fetch.session.cache.slots")
@pytest.mark.rule("S-12", "S-13")
def test_full_fetch_session_cache_gives_sessions_to_followers_but_not_to_consumers(subject: Subject) -> None:
    """A consumer that finds no free slot gets its data without a session. A follower that finds no free slot evicts the session of a consumer.

    The session cache has 16 slots. Since Kafka 3.8 the slots are divided into shards of two slots each. New sessions go to the shards in turn, so
    that all shards fill up equally: 16 sessions find a slot if the cache was empty before.
    """
    topic = new_topic(subject, 2)
    topic.fill(batch(b"v"))
    connection = subject.connect()
    session_ids = [open_session(subject, connection, topic) for _ in range(SLOTS)]
    assert all(session_ids) and len(set(session_ids)) == SLOTS
    assert [open_session(subject, connection, topic, partitions) for partitions in (1, 2)] == [0, 0]
    requested = fetch((topic.name, 0, 0), (topic.name, 1, 0), session=(0, 0), replica_id=1)
    followers = subject.ask(connection, requested, 11).session_id
    assert followers != 0
    remaining_ids = [
        session_id
        for session_id in session_ids
        if subject.ask(connection, fetch(session=(session_id, 1)), 11).error_code == 0
    ]
    assert len(remaining_ids) == SLOTS - 1
    closing = fetch((topic.name, 0, 0), session=(remaining_ids[0], -1))
    assert subject.ask(connection, closing, 11).session_id == 0
    assert subject.ask(connection, fetch(session=(remaining_ids[0], 2)), 11).error_code == 70
    new_session_ids = [open_session(subject, connection, topic) for _ in range(SLOTS)]
    assert sum(map(bool, new_session_ids)) == 1  # the slot of the closed session
    for session_id in [*remaining_ids[1:], followers, *filter(None, new_session_ids)]:
        subject.ask(connection, fetch(session=(session_id, -1)), 11)


@pytest.mark.needs("socket.request.max.bytes")
@pytest.mark.rule("W-1")
def test_frame_above_socket_request_max_bytes_closes_the_connection_immediately(subject: Subject) -> None:
    topic = new_topic(subject)
    room = REQUEST_MAX_BYTES - (len(topic.connect().frame(produce(topic.name, batch_of_bytes(9000)), 9)) - 4 - 9000) - 2
    fits = topic.connect()
    data = fits.frame(produce(topic.name, batch_of_bytes(room)), 9)
    assert REQUEST_MAX_BYTES - 8 <= len(data) - 4 <= REQUEST_MAX_BYTES
    fits.send_bytes(data)
    assert produced(subject.answer(fits).message).error_code == 0
    too_big = topic.connect()
    too_big.send_bytes((REQUEST_MAX_BYTES + 1).to_bytes(4, "big"))
    assert subject.closed(too_big)


@pytest.mark.needs("connections.max.idle.ms")
@pytest.mark.rule("W-11", "T-11")
def test_idle_connection_is_closed_even_if_a_fetch_is_parked_on_that_connection(subject: Subject) -> None:
    """A connection without requests, or with a parked fetch, is closed after the idle timeout. A connection with regular requests stays open."""
    topic = new_topic(subject)
    silent, waiting, speaking = (topic.connect() for _ in range(3))
    subject.ask(silent, fetch((topic.name, 0, 0)), 11)
    subject.send(waiting, fetch((topic.name, 0, 0), max_wait_ms=60_000), 11)
    for _ in range(4):
        subject.pass_ms(IDLE_MS / 4)
        subject.ask(speaking, fetch((topic.name, 0, 0)), 11)
    assert subject.closed(silent, IDLE_MS) and subject.closed(waiting, IDLE_MS)
    subject.ask(speaking, fetch((topic.name, 0, 0)), 11)


@pytest.mark.needs("connections.max.idle.ms")
@pytest.mark.rule("T-11", "T-7")
def test_request_sent_during_a_throttle_is_lost_when_the_idle_connection_is_closed(subject: Subject) -> None:
    """A connection is muted for five seconds, but closed after its idle timeout of two seconds. The request sent during the mute is never handled."""
    topic = new_topic(subject)
    client_id = subject.new_name("idle")
    with limited(subject, ({"client-id": client_id}, {"producer_byte_rate": 1000.0})):
        connection = topic.connect(client_id=client_id)
        request = produce(topic.name, batch(b"x" * 14_900))
        begun = subject.now_ms()
        subject.send(connection, request, 9)
        subject.send(connection, produce(topic.name, batch(b"never")), 9)
        throttle_ms = subject.answer(connection).message.throttle_time_ms
        assert throttle_ms > 2 * IDLE_MS
        assert subject.closed(connection, IDLE_MS + 1000)
        waited = subject.now_ms() - begun
        assert IDLE_MS - 1 <= waited <= IDLE_MS + 300 + subject.slack_ms
        subject.pass_ms(max(0, throttle_ms - waited))
        [(_, data)] = flat(subject.ask(topic.connect(), fetch((topic.name, 0, 0), min_bytes=0), 11))
        assert data.high_watermark == 1
