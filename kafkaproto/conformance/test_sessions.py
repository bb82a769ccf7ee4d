"""Tests of incremental fetch sessions (KIP-227): ids and epochs, changes by each request, contents and order of each response."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafkaproto.conformance.needs import SESSION_SLOTS
from kafkaproto.conformance.scene import Topic, limited, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, batch_of_bytes, errors, fetch, flat, produce, sizes
from kafkaproto.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.messages.fetch import ForgottenTopic

pytestmark = pytest.mark.needs(at_least={"max.incremental.fetch.session.cache.slots": SESSION_SLOTS})
NONE, NEW = (0, -1), (0, 0)


class Session:
    """The client's state of one fetch session: it counts the session epoch, and sends topic names or ids depending on the version."""

    def __init__(self, topic: Topic, version: int = 11, broker_id: int = 0) -> None:
        self.subject, self.version, self.topic = topic.subject, version, topic
        self.connection = topic.subject.connect(broker_id)
        self.ids = {topic.name: topic.topic_id}
        self.id = self.epoch = 0

    def request(self, *partitions: tuple[str, int, int], forget: tuple[int, ...] = (), **more: Any) -> Any:
        more.setdefault("session", (self.id, self.epoch))
        requested = fetch(*partitions, version=self.version, topic_ids=self.ids, **more)
        name = self.topic.name
        requested.forgotten_topics_data = [
            ForgottenTopic("", self.ids[name], [index])
            if self.version >= 13
            else ForgottenTopic(name, partitions=[index])
            for index in forget
        ]
        return requested

    def ask(self, *partitions: tuple[str, int, int], **more: Any) -> Any:
        return self.subject.ask(self.connection, self.request(*partitions, **more), self.version)

    def step(self, *partitions: tuple[str, int, int], **more: Any) -> Any:
        """Send the next valid request of the session and return the response. The first request opens the session.

        partitions: (topic, partition, fetch offset) of each partition in the request; after the first request, only new and changed partitions.
        more: further arguments of `wire.fetch`.
        """
        response = self.ask(*partitions, **more)
        assert response.error_code == 0 and (not self.id or response.session_id == self.id)
        self.id, self.epoch = response.session_id, self.epoch + 1
        return response


def summary(response: Any) -> list[tuple[int, int, int]]:
    """Return (partition, error code, size of the records in bytes) for each partition of a Fetch response, in order."""
    return [(data.partition_index, data.error_code, len(data.records)) for _, data in flat(response)]


@contextmanager
def named(subject: Subject, name: str) -> Iterator[None]:
    """Return a context in which `subject.new_name` always returns `name`, so that new topics get this name."""
    subject.new_name = lambda prefix="t": name  # type: ignore[method-assign]
    try:
        yield
    finally:
        del subject.new_name


def outcome(response: Any) -> tuple[int, int, list[Any]]:
    return response.error_code, response.session_id, response.responses


@pytest.mark.rule("S-1", "S-2", "S-3", "S-4", "S-14")
@pytest.mark.parametrize("version", [7, 12, 13, 17])
def test_fetch_session_id_is_unknown_after_the_session_is_replaced_or_closed(subject: Subject, version: int) -> None:
    """Wrong session ids and epochs get errors and do not change the session. A session that replaces another session has a new id.

    The ids of replaced and of closed sessions are unknown to the broker. Corresponds to Kafka's test `FetchSessionTest.testFetchRequests`.
    """
    topic = new_topic(subject, 2)
    both = (topic.name, 0, 0), (topic.name, 1, 0)
    session = Session(topic, version)
    opened = session.step(*both)
    assert session.id > 0 and summary(opened) == [(0, 0, 0), (1, 0, 0)]
    assert outcome(session.ask(session=(session.id, 5))) == (71, 0, [])
    assert outcome(session.ask(session=(session.id + 1, 1))) == (70, 0, [])
    assert outcome(session.step()) == (0, session.id, [])
    assert outcome(session.ask(session=(session.id, 1))) == (71, 0, [])
    assert outcome(session.step()) == (0, session.id, [])  # the session is unaffected
    sessionless = session.ask(*both, session=NONE)
    assert (sessionless.session_id, len(flat(sessionless))) == (0, 2)
    assert session.step().error_code == 0  # the error belonged to another session
    renewed = session.ask(*both, session=(session.id, 0))
    assert renewed.session_id not in (0, session.id) and len(flat(renewed)) == 2
    assert outcome(session.ask()) == (70, 0, [])
    closed = session.ask(*both, session=(renewed.session_id, -1))
    assert (closed.error_code, closed.session_id, len(flat(closed))) == (0, 0, 2)
    assert outcome(session.ask(session=(renewed.session_id, 1))) == (70, 0, [])


@pytest.mark.rule("S-1")
def test_fetch_before_version_7_creates_no_session(subject: Subject) -> None:
    topic = new_topic(subject)
    response = subject.ask(topic.connect(), fetch((topic.name, 0, 0)), 6)
    assert (response.session_id, len(flat(response))) == (0, 1)


@pytest.mark.rule("S-4", "S-6")
def test_incremental_fetch_omits_partitions_without_records_or_changed_log_offsets(subject: Subject) -> None:
    topic = new_topic(subject, 2, cleanup_policy="delete")
    name, size = topic.name, len(batch(b"v"))
    session = Session(topic)
    session.step((name, 0, 0), (name, 1, 0))
    topic.fill(batch(b"v"))
    assert summary(session.step()) == [(0, 0, size)]
    assert summary(session.step()) == [(0, 0, size)]  # fetched again from the stored offset
    assert summary(session.step((name, 0, 1))) == []  # no new records
    topic.fill(batch(b"v"), index=1)
    assert summary(session.step(partition_max=0)) == [(1, 0, size)]
    assert summary(session.step((name, 1, 1))) == []
    topic.fill(batch(b"v"), batch(b"v"))
    assert summary(session.step((name, 0, 1), partition_max=size)) == [
        (0, 0, size)
    ]  # the session stores the partition's new limit
    assert summary(session.step((name, 0, 3))) == []
    # a changed high watermark or log start is reported even without records
    topic.fill(batch(b"v"))
    assert summary(session.step((name, 0, 4))) == [(0, 0, 0)]
    assert summary(session.step()) == []
    records = [DeleteRecordsTopic(name, [DeleteRecordsPartition(0, 2)])]
    assert subject.ask(topic.connect(), DeleteRecordsRequest(records, 5000), 2).topics[0].partitions[0].error_code == 0
    [(_, data)] = flat(session.step())
    assert (data.partition_index, data.log_start_offset, data.high_watermark) == (0, 2, 4)
    assert summary(session.step()) == []
    # partitions added at the end, some forgotten, then all forgotten
    assert summary(session.step(forget=(0,))) == []
    topic.fill(batch(b"v"))
    assert summary(session.step()) == []
    assert summary(session.step((name, 0, 4))) == [(0, 0, size)]


@pytest.mark.rule("S-5")
@pytest.mark.parametrize("version", [7, 12, 13, 17])
def test_fetch_session_without_partitions_is_closed(subject: Subject, version: int) -> None:
    topic = new_topic(subject, 2)
    session = Session(topic, version)
    session.step((topic.name, 0, 0), (topic.name, 1, 0))
    assert outcome(session.step(forget=(0,))) == (0, session.id, [])
    assert outcome(session.ask(forget=(1,))) == (0, 0, [])
    assert outcome(session.ask()) == (70, 0, [])
    empty = session.ask(session=NEW)  # an empty session may be opened, and is closed by its first step
    assert empty.session_id > 0
    assert outcome(session.ask(session=(empty.session_id, 1))) == (0, 0, [])


@pytest.mark.rule("S-3")
@pytest.mark.parametrize("version", [12, 13])
def test_fetch_session_rejects_a_change_between_topic_names_and_topic_ids(subject: Subject, version: int) -> None:
    topic = new_topic(subject)
    session = Session(topic, version)
    session.step((topic.name, 0, 0))
    session.version = 25 - version
    assert outcome(session.ask((topic.name, 0, 0), session=(session.id, 9))) == (
        71,
        0,
        [],
    )  # the epoch is checked first
    response = session.ask((topic.name, 0, 0))
    assert response.error_code == 106 and response.responses == []
    session.version = version
    assert session.step().error_code == 0


@pytest.mark.rule("S-6", "S-7", "S-14")
@pytest.mark.parametrize("version", [7, 11, 12])
def test_incremental_fetch_returns_a_partition_as_long_as_it_has_an_error(subject: Subject, version: int) -> None:
    """Each response of a session contains a partition with an error, until the topic exists or the offset is in range.

    Corresponds to Kafka's test `FetchRequestTest.testCreateIncrementalFetchWithPartitionsInErrorV12`.
    """
    topic = new_topic(subject, 2)
    later = subject.new_name()
    session = Session(topic, version)
    opened = session.step((topic.name, 0, 0), (topic.name, 1, 0), (later, 0, 0))
    assert errors(opened) == [0, 0, 3]
    for _ in range(2):
        response = session.step()
        assert [(name, data.error_code) for name, data in flat(response)] == [(later, 3)]
    with named(subject, later):
        new_topic(subject)
    healed = session.step()
    assert [(name, data.error_code, data.high_watermark) for name, data in flat(healed)] == [(later, 0, 0)]
    assert flat(session.step()) == []
    # out of range is treated like other errors
    assert errors(session.step((topic.name, 0, 5))) == [1]
    assert errors(session.step()) == [1]
    assert errors(session.step((topic.name, 0, 0))) == [0]
    assert flat(session.step()) == []


@pytest.mark.rule("S-11")
def test_unknown_topic_ids_stay_in_the_fetch_session_with_an_error(subject: Subject) -> None:
    topic = new_topic(subject)
    session = Session(topic, 13)
    session.ids["ghost"] = b"\x02" * 16
    assert errors(session.step((topic.name, 0, 0), ("ghost", 0, 0))) == [0, 100]
    for _ in range(2):
        response = session.step()
        assert [(t.topic_id, t.partitions[0].error_code) for t in response.responses] == [(b"\x02" * 16, 100)]


@pytest.mark.rule("S-8")
def test_parked_incremental_fetch_fails_if_a_newer_fetch_of_the_session_is_served(subject: Subject) -> None:
    topic = new_topic(subject)
    session = Session(topic)
    session.step((topic.name, 0, 0))
    waiting = subject.connect()
    subject.send(waiting, session.request(max_wait_ms=2000), 11)
    assert subject.answer_or_none(waiting, 100) is None
    session.epoch += 1
    assert session.step().error_code == 0
    topic.fill(batch(b"v"))
    assert outcome(subject.answer(waiting).message) == (71, session.id, [])
    assert summary(session.step()) == [(0, 0, len(batch(b"v")))]


@pytest.mark.rule("S-9")
def test_fetch_session_puts_partitions_that_returned_records_at_the_end_of_its_order(subject: Subject) -> None:
    """With a limit of one batch per response, three partitions return their records in turn.

    Corresponds to Kafka's test `FetchSessionTest.testDeprioritizesPartitionsWithRecordsOnly`.
    """
    topic = new_topic(subject, 3)
    name = topic.name
    session = Session(topic)
    session.step(*[(name, index, 0) for index in range(3)])
    topic.fill(batch_of_bytes(100), index=1)
    assert summary(session.step(max_bytes=100)) == [(1, 0, 100)]
    for index in (0, 2):
        topic.fill(batch_of_bytes(100), index=index)
    assert summary(session.step(max_bytes=100)) == [
        (0, 0, 100),
        (2, 0, 0),
    ]  # order 0, 2, 1; the high watermark of 2 has changed
    assert summary(session.step(max_bytes=100)) == [(2, 0, 100)]  # 2, 1, 0
    assert summary(session.step(max_bytes=100)) == [(1, 0, 100)]  # 1, 0, 2
    assert summary(session.step((name, 0, 0), max_bytes=300)) == [(0, 0, 100), (2, 0, 100), (1, 0, 100)]


@pytest.mark.rule("S-6", "F-28")
def test_incremental_fetch_without_data_waits_for_data_until_max_wait(subject: Subject) -> None:
    topic = new_topic(subject, 2)
    session = Session(topic)
    session.step((topic.name, 0, 0), (topic.name, 1, 0))
    subject.send(session.connection, session.request(max_wait_ms=300), 11)
    response = subject.answer(session.connection)
    subject.assert_took(response, 300)
    assert outcome(response.message) == (0, session.id, [])
    session.epoch += 1
    subject.send(session.connection, session.request(max_wait_ms=20_000), 11)
    assert subject.answer_or_none(session.connection, 100) is None
    subject.ask(topic.connect(), produce(topic.name, batch_of_bytes(100)), 9)
    assert sizes(subject.answer(session.connection, 5000).message) == [100]


@pytest.mark.rule("S-10", "T-1", "T-4", "T-7", "X-5")
def test_throttled_incremental_fetch_is_empty_and_the_next_fetch_returns_the_data(subject: Subject) -> None:
    """A batch exceeds what the quota allows in ten seconds. The fetch of it is throttled and returns nothing; the next request returns the batch.

    The next request is sent at once, and is served when the throttle time is over. The client's first fetch opened the session. The broker computes
    the client's rate over ten seconds plus the time since this first fetch. The throttle time is therefore shorter than for a rate over exactly ten
    seconds, by at most the time since the first fetch.
    """
    topic = new_topic(subject)
    session = Session(topic)
    session.connection = subject.connect(0, client_id := subject.new_name("slow"))
    opened = subject.now_ms()
    session.step((topic.name, 0, 0))
    topic.fill(batch_of_bytes(10_800))
    with limited(subject, ({"client-id": client_id}, {"consumer_byte_rate": 1000.0})):
        begun = subject.now_ms()
        throttled = session.step()
        assert (throttled.error_code, throttled.session_id, throttled.responses) == (0, session.id, [])
        assert 800 - (subject.now_ms() - opened) <= throttled.throttle_time_ms <= 900
        delivered = session.step()
        assert subject.now_ms() - begun >= throttled.throttle_time_ms
        assert (summary(delivered), delivered.throttle_time_ms) == ([(0, 0, 10_800)], 0)


@pytest.mark.rule("S-11", "F-24")
def test_fetch_session_reports_an_error_for_a_deleted_and_recreated_topic(subject: Subject) -> None:
    topic = new_topic(subject)
    session = Session(topic, 13)
    session.step((topic.name, 0, 0))
    deletion = DeleteTopicsRequest(topic_names=[topic.name], timeout_ms=5000)
    assert subject.ask(subject.connect(), deletion, 3).responses[0].error_code == 0
    assert wait_until(
        subject,
        lambda: errors(session.step()),
        f"the fetch session reports an error for the deleted topic {topic.name}",
    ) == [3]  # the session keeps the topic's name
    with named(subject, topic.name):
        recreated_topic = new_topic(subject)
    assert wait_until(
        subject,
        lambda: errors(session.step()) == [103],
        f"the fetch session reports INCONSISTENT_TOPIC_ID (103) for the recreated topic {topic.name}",
    )
    assert errors(Session(topic, 13).ask((topic.name, 0, 0))) == [0]
    assert recreated_topic.topic_id != session.ids[topic.name]
    session.ids[topic.name] = bytes(reversed(session.ids[topic.name]))
    assert errors(session.ask((topic.name, 0, 0), session=NONE)) == [100]
