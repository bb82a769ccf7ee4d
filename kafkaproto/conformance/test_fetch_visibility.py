"""What a Fetch may see, who answers it, and which error comes first."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.scene import follow, held, make_lead, new_topic, read
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, errors, fetch, flat

UNKNOWN_ID = b"\x01" * 16


def offsets(data: object) -> tuple[int, int, int]:
    """(high watermark, last stable offset, log start offset)"""
    return data.high_watermark, data.last_stable_offset, data.log_start_offset  # type: ignore[attr-defined]


@pytest.mark.rule("F-16", "F-19", "F-22", "D3")
def test_at_the_log_end_there_is_nothing_and_beyond_it_an_error(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(batch(b"a", b"b"))
    at_end = read(topic, 2)
    assert (at_end.error_code, at_end.records, offsets(at_end)) == (0, b"", (2, 2, 0))
    for offset in (3, -1, 2**62):
        found = read(topic, offset)
        real = (2, 2, 0) if subject.semantics == "kip" else (-1, -1, -1)
        assert (found.error_code, found.records, offsets(found), found.preferred_read_replica) == (1, b"", real, -1)


@pytest.mark.rule("F-20")
def test_aborted_transactions_are_null_unless_committed_records_were_asked_for_and_told(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [0, 1]})
    topic.fill(batch())
    assert read(topic, 0).aborted_transactions is None
    for offset in (0, 1):
        assert read(topic, offset, isolation=1).aborted_transactions == []
    assert read(topic, 9, isolation=1).aborted_transactions is None
    asked = fetch((topic.name, 0, 0), ("no-such-topic", 0, 0), isolation=1)
    found = [data.aborted_transactions for _, data in flat(subject.ask(topic.connect(), asked, 11))]
    assert found == [[], []]
    asked.isolation_level = 0
    found = [data.aborted_transactions for _, data in flat(subject.ask(topic.connect(), asked, 11))]
    assert found == [None, []]  # what is wrong before reading has an empty list for everybody
    preferred = read(topic, 0, isolation=1, rack="r1")
    assert (preferred.preferred_read_replica, preferred.aborted_transactions) == (1, None)


@pytest.mark.rule("F-15", "F-17", "F-18", "X-2", "D1")
def test_consumers_see_to_the_high_watermark_and_followers_to_the_end(subject: Subject) -> None:
    """A follower is held and played (N-12), so the leader has records that are not committed."""
    topic = new_topic(subject, replication=2)
    topic.fill(batch(b"a"), batch(b"b"))
    with held(subject, topic, 1):
        topic.fill(batch(b"c"), batch(b"d"), acks=1)
        consumers: list[dict[str, Any]] = [{}, {"isolation": 1}, {"replica_id": -2}]
        for consumer in consumers:
            found = read(topic, 0, **consumer)
            assert (len(found.records), offsets(found)) == (2 * len(batch(b"a")), (2, 2, 0))
        above, at = read(topic, 3), read(topic, 2)
        assert (at.error_code, at.records, offsets(at)) == (0, b"", (2, 2, 0))
        assert (above.error_code, above.records) == (78 if subject.semantics == "kip" else 0, b"")
        assert read(topic, 4).error_code == above.error_code and read(topic, 5).error_code == 1
        connection = topic.connect()
        subject.send(connection, fetch((topic.name, 0, 3), max_wait_ms=5000), 11)
        subject.assert_took(subject.answer(connection), 0)  # there is no sense in waiting
        behind = follow(topic, 1, 2)
        assert (len(behind.records), behind.high_watermark) == (2 * len(batch(b"c")), 2)
        assert follow(topic, 1, 3).high_watermark == 2  # as it was before this fetch moved it
        assert offsets(read(topic, 2)) == (3, 3, 0)
        assert follow(topic, 1, 1).high_watermark == 3
        assert offsets(read(topic, 3)) == (3, 3, 0)  # it never goes back


@pytest.mark.rule("F-21", "F-24")
def test_who_is_answered_where(subject: Subject) -> None:
    """The leader answers all; a follower only consumers from version 11 on; who has no replica answers nobody."""
    topic = new_topic(subject, replication=2)
    topic.fill(batch(b"a"))
    epoch = topic.partition().leader_epoch
    for version in (4, 10, 11, 12, 17):
        at = [read(topic, 0, version, broker_id=broker_id).error_code for broker_id in range(3)]
        assert at == [0, 0 if version >= 11 else 6, 6], version
    assert read(topic, 0, broker_id=2, epoch=epoch + 7).error_code == 6
    assert read(topic, 0, broker_id=1, replica_id=1).error_code == 6
    for version in (11, 17):
        assert read(topic, 0, version, replica_id=1, epoch=epoch).error_code == 0
        assert read(topic, 0, version, broker_id=1, replica_id=0).error_code == 6
    # a follower that is none of the replicas
    assert read(topic, 0, replica_id=2).error_code == 6
    assert read(topic, 0, replica_id=2, epoch=epoch).error_code == 75
    # the epoch comes before leadership, leadership before the range of offsets
    assert [read(topic, 0, 10, broker_id=1, epoch=epoch + step).error_code for step in (-1, 1)] == [
        74 if epoch else 6,
        75,
    ]
    assert read(topic, 99, 10, broker_id=1).error_code == 6
    assert read(topic, 99, epoch=epoch + 1).error_code == 75


@pytest.mark.rule("F-25")
def test_leader_and_follower_check_the_epoch_of_a_fetch_alike(subject: Subject) -> None:
    """FetchRequestTest.testCurrentEpochValidation, and inside of a session."""
    topic = new_topic(subject, replication=2)
    topic.fill(batch(b"a"))
    epoch = make_lead(topic, 1)
    for version, broker_id in ((9, 1), (11, 0), (11, 1), (17, 0), (17, 1)):
        found = [read(topic, 1, version, broker_id, epoch=e) for e in (-1, epoch, epoch - 1, epoch + 1)]
        assert [data.error_code for data in found] == [0, 0, 74, 75]
        assert [offsets(data) for data in found[2:]] == [(-1, -1, -1)] * 2
    assert read(topic, 0, 8, epoch=epoch + 1).error_code == 0  # the field came with version 9
    connection = topic.connect()
    opened = subject.ask(connection, fetch((topic.name, 0, 0), session=(0, 0), epoch=epoch), 11)
    for step, (claimed, wanted) in enumerate([(epoch - 1, 74), (epoch + 1, 75), (epoch, 0)], start=1):
        asked = fetch((topic.name, 0, 0), session=(opened.session_id, step), epoch=claimed)
        assert errors(subject.ask(connection, asked, 11)) == [wanted]


@pytest.mark.rule("F-26")
def test_where_logs_part_is_told_at_once_and_counts_as_no_progress(subject: Subject) -> None:
    """A log of several epochs; what is told is the look-up of E-3 for what the client has last."""
    topic = new_topic(subject, replication=2)
    starts: dict[int, int] = {topic.partition().leader_epoch: 0}
    topic.fill(*[batch(b"a")] * 3)
    for leader, end in ((1, 3), (0, 5)):
        starts[make_lead(topic, leader)] = end
        topic.fill(*[batch(b"b")] * 2)
    first, second, last = starts
    for epoch, offset, wanted in [
        (first, 5, (first, 3)),
        (first, 4, (first, 3)),
        (second, 6, (second, 5)),
        (last, 7, None),
        (second, 5, None),
        (first, 3, None),
        (first, 0, None),
        (last, 5, None),
        (second, 1, None),
    ]:
        found = read(topic, offset, 12, last_epoch=epoch)
        told = found.diverging_epoch.epoch, found.diverging_epoch.end_offset
        assert (found.error_code, told) == (0, wanted or (-1, -1)), (epoch, offset)
        assert wanted is None or found.records == b""
    assert read(topic, 5, 12, last_epoch=last + 1).error_code == 1
    connection = topic.connect()
    asked = fetch((topic.name, 0, 5), last_epoch=first, max_wait_ms=5000, min_bytes=2**30)
    subject.send(connection, asked, 12)
    subject.assert_took(subject.answer(connection), 0)


@pytest.mark.rule("F-23", "F-27")
def test_order_and_topic_entries_of_an_answer(subject: Subject) -> None:
    """What is wrong before reading comes last; neighbours of one topic share an entry, others do not."""
    a, b = new_topic(subject, 2), new_topic(subject)
    asked = fetch(("no-such-topic", 0, 0), (a.name, 0, 0), (a.name, 7, 0), (b.name, 0, 0), (a.name, 1, 0))
    answer = subject.ask(subject.connect(), asked, 11)
    order = [(name, data.partition_index, data.error_code) for name, data in flat(answer)]
    assert order[:3] == [(a.name, 0, 0), (b.name, 0, 0), (a.name, 1, 0)]
    assert sorted(order[3:]) == sorted([("no-such-topic", 0, 3), (a.name, 7, 3)])
    assert [topic.topic for topic in answer.responses[:3]] == [a.name, b.name, a.name]
    assert all(offsets(data) == (-1, -1, -1) for _, data in flat(answer)[3:])
    joined = subject.ask(subject.connect(), fetch((a.name, 0, 0), (a.name, 1, 0), (b.name, 0, 0)), 11)
    assert [(topic.topic, len(topic.partitions)) for topic in joined.responses] == [(a.name, 2), (b.name, 1)]
    by_id = fetch(("x", 0, 0), (a.name, 0, 0), version=13, topic_ids={"x": UNKNOWN_ID, a.name: a.topic_id})
    answer = subject.ask(subject.connect(), by_id, 13)
    assert [(topic.topic_id, topic.partitions[0].error_code) for topic in answer.responses] == [
        (a.topic_id, 0),
        (UNKNOWN_ID, 100),
    ]


@pytest.mark.rule("F-2")
def test_a_partition_that_moved_tells_its_leader_and_where_it_is_from_version_16_on(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [1]})
    for version in (15, 16, 17):
        asked = fetch((topic.name, 0, 0), version=version, topic_ids={topic.name: topic.topic_id})
        answer = subject.ask(subject.connect(0), asked, version)
        assert errors(answer) == [6]
        leader = answer.responses[0].partitions[0].current_leader
        where = [(one.node_id, one.host, one.port) for one in answer.node_endpoints]
        if version == 15:
            assert (leader.leader_id, where) == (-1, [])
        else:
            assert (leader.leader_id, leader.leader_epoch) == (1, topic.partition().leader_epoch)
            assert where == [(1, *subject.bootstrap[1])]
