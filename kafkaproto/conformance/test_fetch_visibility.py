"""Tests of Fetch: which records are visible, which broker responds, and which error takes precedence."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.needs import SESSION_SLOTS
from kafkaproto.conformance.scene import follow, held, make_lead, new_topic, read
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, errors, fetch, flat

UNKNOWN_ID = b"\x01" * 16


def offsets(data: object) -> tuple[int, int, int]:
    """Return (high watermark, last stable offset, log start offset) of one partition's entry in a Fetch response."""
    return data.high_watermark, data.last_stable_offset, data.log_start_offset  # type: ignore[attr-defined]


@pytest.mark.rule("F-16", "F-19", "F-22", "D3")
def test_fetch_at_log_end_is_empty_and_beyond_log_end_is_out_of_range(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(batch(b"a", b"b"))
    at_end = read(topic, 2)
    assert (at_end.error_code, at_end.records, offsets(at_end)) == (0, b"", (2, 2, 0))
    for offset in (3, -1, 2**62):
        result = read(topic, offset)
        real = (2, 2, 0) if subject.semantics == "kip" else (-1, -1, -1)
        assert (result.error_code, result.records, offsets(result), result.preferred_read_replica) == (1, b"", real, -1)


@pytest.mark.rule("F-20")
@pytest.mark.needs("replica.selector.class", racks=True)
def test_list_of_aborted_transactions_is_null_unless_a_fetch_uses_read_committed(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [0, 1]})
    topic.fill(batch())
    assert read(topic, 0).aborted_transactions is None
    for offset in (0, 1):
        assert read(topic, offset, isolation=1).aborted_transactions == []
    assert read(topic, 9, isolation=1).aborted_transactions is None
    requested = fetch((topic.name, 0, 0), ("no-such-topic", 0, 0), isolation=1)
    result = [data.aborted_transactions for _, data in flat(subject.ask(topic.connect(), requested, 11))]
    assert result == [[], []]
    requested.isolation_level = 0
    result = [data.aborted_transactions for _, data in flat(subject.ask(topic.connect(), requested, 11))]
    assert result == [None, []]  # errors found before reading have an empty list for all clients
    preferred = read(topic, 0, isolation=1, rack="r1")
    assert (preferred.preferred_read_replica, preferred.aborted_transactions) == (1, None)


@pytest.mark.rule("F-15", "F-17", "F-18", "X-2", "D1")
def test_consumers_read_to_the_high_watermark_and_followers_to_the_log_end(subject: Subject) -> None:
    """The follower stops fetching, and two more records are produced. They stay uncommitted, so a consumer does not get them.

    A fetch that the test sends with the follower's id returns them (N-12).
    """
    topic = new_topic(subject, replication=2)
    topic.fill(batch(b"a"), batch(b"b"))
    with held(subject, topic, 1):
        topic.fill(batch(b"c"), batch(b"d"), acks=1)
        consumers: list[dict[str, Any]] = [{}, {"isolation": 1}, {"replica_id": -2}]
        for consumer in consumers:
            result = read(topic, 0, **consumer)
            assert (len(result.records), offsets(result)) == (2 * len(batch(b"a")), (2, 2, 0))
        above, at = read(topic, 3), read(topic, 2)
        assert (at.error_code, at.records, offsets(at)) == (0, b"", (2, 2, 0))
        assert (above.error_code, above.records) == (78 if subject.semantics == "kip" else 0, b"")
        assert read(topic, 4).error_code == above.error_code and read(topic, 5).error_code == 1
        connection = topic.connect()
        subject.send(connection, fetch((topic.name, 0, 3), max_wait_ms=5000), 11)
        subject.assert_took(subject.answer(connection), 0)  # waiting would not help
        behind = follow(topic, 1, 2)
        assert (len(behind.records), behind.high_watermark) == (2 * len(batch(b"c")), 2)
        assert follow(topic, 1, 3).high_watermark == 2  # as it was before this fetch moved it
        assert offsets(read(topic, 2)) == (3, 3, 0)
        assert follow(topic, 1, 1).high_watermark == 3
        assert offsets(read(topic, 3)) == (3, 3, 0)  # the high watermark never decreases


@pytest.mark.rule("F-21", "F-24")
def test_follower_accepts_consumer_fetches_only_from_version_11_on(subject: Subject) -> None:
    """A leader serves all consumers and all followers with a replica. A follower serves no other follower, and consumers only from version 11 on.

    A broker without a replica rejects every fetch.
    """
    topic = new_topic(subject, replication=2)
    topic.fill(batch(b"a"))
    epoch = topic.leader_epoch
    for version in (4, 10, 11, 12, 17):
        at = [read(topic, 0, version, broker_id=broker_id).error_code for broker_id in range(3)]
        assert at == [0, 0 if version >= 11 else 6, 6], version
    assert read(topic, 0, broker_id=2, epoch=epoch + 7).error_code == 6
    assert read(topic, 0, broker_id=1, replica_id=1).error_code == 6
    for version in (11, 17):
        assert read(topic, 0, version, replica_id=1, epoch=epoch).error_code == 0
        assert read(topic, 0, version, broker_id=1, replica_id=0).error_code == 6
    # a follower that is not one of the replicas
    assert read(topic, 0, replica_id=2).error_code == 6
    assert read(topic, 0, replica_id=2, epoch=epoch).error_code == 75
    # the epoch is checked before leadership, leadership before the offset range
    assert [read(topic, 0, 10, broker_id=1, epoch=epoch + step).error_code for step in (-1, 1)] == [
        74 if epoch else 6,
        75,
    ]
    assert read(topic, 99, 10, broker_id=1).error_code == 6
    assert read(topic, 99, epoch=epoch + 1).error_code == 75


@pytest.mark.needs(at_least={"max.incremental.fetch.session.cache.slots": SESSION_SLOTS})
@pytest.mark.rule("F-25")
def test_leader_and_follower_both_reject_fetches_with_a_wrong_leader_epoch(subject: Subject) -> None:
    """An old epoch gets FENCED_LEADER_EPOCH (74), an unknown future epoch UNKNOWN_LEADER_EPOCH (75), with and without a fetch session.

    Corresponds to Kafka's test `FetchRequestTest.testCurrentEpochValidation`.
    """
    topic = new_topic(subject, replication=2)
    topic.fill(batch(b"a"))
    epoch = make_lead(topic, 1)
    for version, broker_id in ((9, 1), (11, 0), (11, 1), (17, 0), (17, 1)):
        result = [read(topic, 1, version, broker_id, epoch=e) for e in (-1, epoch, epoch - 1, epoch + 1)]
        assert [data.error_code for data in result] == [0, 0, 74, 75]
        assert [offsets(data) for data in result[2:]] == [(-1, -1, -1)] * 2
    assert read(topic, 0, 8, epoch=epoch + 1).error_code == 0  # the field came with version 9
    connection = topic.connect()
    opened = subject.ask(connection, fetch((topic.name, 0, 0), session=(0, 0), epoch=epoch), 11)
    for step, (claimed, expected) in enumerate([(epoch - 1, 74), (epoch + 1, 75), (epoch, 0)], start=1):
        requested = fetch((topic.name, 0, 0), session=(opened.session_id, step), epoch=claimed)
        assert errors(subject.ask(connection, requested, 11)) == [expected]


@pytest.mark.rule("F-26")
def test_fetch_with_a_diverging_last_epoch_is_answered_immediately_without_records(subject: Subject) -> None:
    """A fetch names the epoch of the client's last record. If that epoch ended below the fetch offset on the leader, no records are returned.

    The response is sent at once, and has the end offset of that epoch in the leader's log (E-3). The log of the test has three epochs.
    """
    topic = new_topic(subject, replication=2)
    starts: dict[int, int] = {topic.leader_epoch: 0}
    topic.fill(*[batch(b"a")] * 3)
    for leader, end in ((1, 3), (0, 5)):
        starts[make_lead(topic, leader)] = end
        topic.fill(*[batch(b"b")] * 2)
    first, second, last = starts
    for epoch, offset, expected in [
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
        result = read(topic, offset, 12, last_epoch=epoch)
        divergence = result.diverging_epoch.epoch, result.diverging_epoch.end_offset
        assert (result.error_code, divergence) == (0, expected or (-1, -1)), (epoch, offset)
        assert expected is None or result.records == b""
    assert read(topic, 5, 12, last_epoch=last + 1).error_code == 1
    connection = topic.connect()
    requested = fetch((topic.name, 0, 5), last_epoch=first, max_wait_ms=5000, min_bytes=2**30)
    subject.send(connection, requested, 12)
    subject.assert_took(subject.answer(connection), 0)


@pytest.mark.rule("F-23", "F-27")
def test_fetch_response_lists_partitions_with_errors_after_all_other_partitions(subject: Subject) -> None:
    """Partitions with an unknown topic, topic id or index come last in the response, wherever the request names them.

    Consecutive partitions of one topic share a topic entry. A topic that comes again after another topic has a second entry.
    """
    a, b = new_topic(subject, 2), new_topic(subject)
    requested = fetch(("no-such-topic", 0, 0), (a.name, 0, 0), (a.name, 7, 0), (b.name, 0, 0), (a.name, 1, 0))
    response = subject.ask(subject.connect(), requested, 11)
    order = [(name, data.partition_index, data.error_code) for name, data in flat(response)]
    assert order[:3] == [(a.name, 0, 0), (b.name, 0, 0), (a.name, 1, 0)]
    assert sorted(order[3:]) == sorted([("no-such-topic", 0, 3), (a.name, 7, 3)])
    assert [topic.topic for topic in response.responses[:3]] == [a.name, b.name, a.name]
    assert all(offsets(data) == (-1, -1, -1) for _, data in flat(response)[3:])
    merged_response = subject.ask(subject.connect(), fetch((a.name, 0, 0), (a.name, 1, 0), (b.name, 0, 0)), 11)
    assert [(topic.topic, len(topic.partitions)) for topic in merged_response.responses] == [(a.name, 2), (b.name, 1)]
    by_id = fetch(("x", 0, 0), (a.name, 0, 0), version=13, topic_ids={"x": UNKNOWN_ID, a.name: a.topic_id})
    response = subject.ask(subject.connect(), by_id, 13)
    assert [(topic.topic_id, topic.partitions[0].error_code) for topic in response.responses] == [
        (a.topic_id, 0),
        (UNKNOWN_ID, 100),
    ]


@pytest.mark.rule("F-2", "F-37")
def test_fetch_v16_for_a_moved_partition_returns_the_new_leader_and_its_address(subject: Subject) -> None:
    topic = new_topic(subject, assignment={0: [1]})
    for version in (15, 16, 17):
        requested = fetch((topic.name, 0, 0), version=version, topic_ids={topic.name: topic.topic_id})
        response = subject.ask(subject.connect(0), requested, version)
        assert errors(response) == [6]
        leader = response.responses[0].partitions[0].current_leader
        endpoints = [(node.node_id, node.host, node.port) for node in response.node_endpoints]
        if version == 15:
            assert (leader.leader_id, endpoints) == (-1, [])
        else:
            assert (leader.leader_id, leader.leader_epoch) == (1, topic.leader_epoch)
            assert endpoints == [(1, *subject.bootstrap[1])]


@pytest.mark.rule("F-37")
@pytest.mark.parametrize(
    "has_endpoints",
    [
        pytest.param(True, marks=pytest.mark.releases(before="4.0"), id="endpoints"),
        pytest.param(False, marks=pytest.mark.releases(first="4.0"), id="no-endpoints"),
    ],
)
def test_follower_fetch_sent_to_a_non_leader_gets_no_leader_endpoint_from_4_0_on(
    subject: Subject, has_endpoints: bool
) -> None:
    topic = new_topic(subject, assignment={0: [1]})
    for version in (16, 17):
        requested = fetch((topic.name, 0, 0), version=version, topic_ids={topic.name: topic.topic_id}, replica_id=2)
        response = subject.ask(subject.connect(0), requested, version)
        assert errors(response) == [6]
        leader = response.responses[0].partitions[0].current_leader
        assert (leader.leader_id, leader.leader_epoch) == (1, topic.leader_epoch)
        assert [node.node_id for node in response.node_endpoints] == [1] * has_endpoints
