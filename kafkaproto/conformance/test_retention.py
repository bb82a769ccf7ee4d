"""Tests of log cleanup: segments deleted by age and size, superseded records removed by compaction (F-14, N-15, CF-28)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kafkaproto.conformance.internal_topics import topic_setting
from kafkaproto.conformance.scene import Topic, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import Producer, visible
from kafkaproto.conformance.wire import errors, fetch, flat, produce, produced
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.records.batch import TRANSACTIONAL, Batch, NewRecord, batches, build_batch, records

PROFILE = "maintenance"
HOUR_MS = 3_600_000
SEVERAL_LOOKS_MS = 1000
ONE_EACH = "130"
"""A value of segment.bytes so small that every batch gets its own segment."""


def at(timestamp: int, value: bytes = b"v" * 50, key: bytes | None = None, **options: Any) -> bytes:
    return build_batch([NewRecord(value, key, timestamp)], **options)


def keyed(timestamp: int, *pairs: tuple[str, str | None], **options: Any) -> bytes:
    listed = [NewRecord(None if value is None else value.encode(), key.encode(), timestamp) for key, value in pairs]
    return build_batch(listed, **options)


def offset_of(topic: Topic, timestamp: int, broker_id: int | None = None) -> int:
    """Return the offset that ListOffsets reports for partition 0.

    timestamp: -2 for the log start, -1 for the high watermark. broker_id: the broker whose replica reports it, by default the leader.
    """
    replica_id, connection = (-1, topic.connect()) if broker_id is None else (-2, topic.subject.connect(broker_id))
    request = ListOffsetsRequest(
        replica_id, 0, [ListOffsetsTopic(topic.name, [ListOffsetsPartition(0, -1, timestamp)])]
    )
    [result] = topic.subject.ask(connection, request, 5).topics[0].partitions
    assert result.error_code == 0
    return int(result.offset)


def log_starts(topic: Topic, offset: int, broker_id: int | None = None) -> None:
    """Wait until the log of a replica starts at `offset`. broker_id: the broker with the replica, None for the leader."""
    place = "the leader" if broker_id is None else f"broker {broker_id}"
    wait_until(
        topic.subject,
        lambda: offset_of(topic, -2, broker_id) == offset,
        f"the log of {topic.name}-0 on {place} starts at offset {offset}",
    )


def stays(topic: Topic, offset: int) -> None:
    topic.subject.pass_ms(SEVERAL_LOOKS_MS)
    assert offset_of(topic, -2) == offset


def log_of(topic: Topic) -> list[Batch]:
    """Return all batches of a topic's log, with as many fetches as necessary. One fetch returns batches of only one segment."""
    result: list[Batch] = []
    offset, end = offset_of(topic, -2), offset_of(topic, -1)
    while offset < end:
        [(_, data)] = flat(topic.subject.ask(topic.connect(), fetch((topic.name, 0, offset)), 11))
        next_batches = list(batches(bytes(data.records)))
        if not next_batches:
            break
        result += next_batches
        offset = next_batches[-1].header.next_offset
    return result


@pytest.mark.needs("log.retention.check.interval.ms")
@pytest.mark.rule("N-15")
def test_segments_whose_records_are_all_expired_are_deleted(subject: Subject) -> None:
    topic = new_topic(subject, segment_bytes=ONE_EACH, retention_ms=str(HOUR_MS // 2))
    now = subject.epoch_ms()
    topic.fill(at(now - HOUR_MS), at(now - HOUR_MS), at(now), at(now - HOUR_MS), at(now))
    log_starts(topic, 2)
    stays(topic, 2)  # the first segment that is kept protects all later ones
    assert [batch.header.base_offset for batch in log_of(topic)] == [2, 3, 4]
    assert errors(subject.ask(topic.connect(), fetch((topic.name, 0, 1)), 11)) == [1]


@pytest.mark.needs("log.retention.check.interval.ms")
@pytest.mark.rule("N-15")
def test_followers_also_delete_log_segments_whose_records_are_all_expired(subject: Subject) -> None:
    topic = new_topic(subject, replication=3, segment_bytes=ONE_EACH, retention_ms=str(HOUR_MS // 2))
    now = subject.epoch_ms()
    topic.fill(at(now - HOUR_MS), at(now - HOUR_MS), at(now))
    for broker_id in range(3):
        log_starts(topic, 2, broker_id)


@pytest.mark.needs("log.retention.check.interval.ms")
def test_active_segment_is_deleted_when_all_its_records_are_expired(subject: Subject) -> None:
    topic = new_topic(subject, retention_ms=str(HOUR_MS // 2))
    now = subject.epoch_ms()
    topic.fill(at(now - HOUR_MS), at(now - HOUR_MS), at(now - HOUR_MS))
    log_starts(topic, 3)
    assert offset_of(topic, -1) == 3
    [partition_response] = topic.fill(at(now))
    assert (partition_response.base_offset, partition_response.log_start_offset) == (3, 3)
    stays(topic, 3)


@pytest.mark.needs("log.retention.check.interval.ms")
def test_segment_with_one_unexpired_record_is_not_deleted(subject: Subject) -> None:
    topic = new_topic(subject, retention_ms=str(HOUR_MS // 2))
    now = subject.epoch_ms()
    # The newest record first: a check between two appends would find a segment with only an old record, and delete it.
    topic.fill(at(now), at(now - HOUR_MS), at(now - HOUR_MS))
    stays(topic, 0)


@pytest.mark.needs("log.retention.check.interval.ms")
def test_oldest_segment_is_deleted_only_if_newer_segments_reach_retention_bytes(subject: Subject) -> None:
    now = subject.epoch_ms()
    size = len(at(now))
    for keep_bytes, start in ((3 * size, 7), (3 * size - 1, 7), (3 * size + 1, 6), (10 * size, 0), (0, 10)):
        topic = new_topic(subject, segment_bytes=ONE_EACH, retention_bytes=str(keep_bytes))
        topic.fill(*[at(now)] * 10)
        log_starts(topic, start)
        stays(topic, start)


@pytest.mark.needs("log.retention.check.interval.ms")
def test_compacted_topic_deletes_no_records_by_age_or_size(subject: Subject) -> None:
    configs: dict[str, Any] = {"segment_bytes": ONE_EACH, "retention_ms": "1000", "retention_bytes": "1"}
    topic = new_topic(subject, cleanup_policy="compact", min_compaction_lag_ms=str(HOUR_MS * 24), **configs)
    now = subject.epoch_ms()
    topic.fill(*[at(now - HOUR_MS, key=b"k")] * 3)
    stays(topic, 0)


def reads(topic: Topic) -> list[list[int]]:
    """Return the base offsets of all batches of a topic's log, one list for each segment. One fetch returns batches of only one segment (F-14)."""
    result = []
    offset, end = 0, offset_of(topic, -1)
    while offset < end:
        [(_, data)] = flat(topic.subject.ask(topic.connect(), fetch((topic.name, 0, offset)), 11))
        read = list(batches(bytes(data.records)))
        result.append([batch.header.base_offset for batch in read])
        offset = read[-1].header.next_offset
    return result


@pytest.mark.rule("F-14")
def test_segment_rolls_at_a_batch_more_than_segment_ms_after_its_first_batch(subject: Subject) -> None:
    topic = new_topic(subject, segment_ms="1000")
    now = subject.epoch_ms()
    topic.fill(*(at(now + later) for later in (0, 1000, -5000, 1001, 1500, 2001, 2002, 900_000, 0)))
    assert reads(topic) == [[0, 1, 2], [3, 4, 5], [6], [7, 8]]


@pytest.mark.rule("F-14")
def test_segment_rolls_at_segment_bytes(subject: Subject) -> None:
    now = subject.epoch_ms()
    topic = new_topic(subject, segment_bytes=str(3 * len(at(now))))
    topic.fill(*[at(now)] * 7)
    assert reads(topic) == [[0, 1, 2], [3, 4, 5], [6]]


@pytest.mark.rule("CF-28")
@pytest.mark.parametrize(
    ("index_bytes", "interval_batches", "timestamps", "expected"),
    [
        pytest.param(48, 0, range(9), [4, 4, 1], id="time-index"),
        pytest.param(59, 0, range(9), [4, 4, 1], id="time-index-with-a-remainder"),
        pytest.param(48, 0, [5] * 16, [7, 7, 2], id="offset-index"),
        pytest.param(39, 0, [5] * 11, [5, 5, 1], id="offset-index-with-a-remainder"),
        pytest.param(48, 0, [5, 4, 6, 5, 4, 7, 3, 2], [6, 2], id="older-batches-get-no-entry-in-the-time-index"),
        pytest.param(48, 1, range(15), [7, 7, 1], id="an-entry-for-every-second-batch"),
        pytest.param(48, 2, range(21), [10, 10, 1], id="an-entry-for-every-third-batch"),
        pytest.param(24, 0, range(5), [2, 2, 1], id="one-entry"),
        pytest.param(12, 0, range(3), [1, 1, 1], id="no-entry"),
    ],
)
def test_segment_rolls_when_its_offset_or_time_index_is_full(
    subject: Subject, index_bytes: int, interval_batches: int, timestamps: Sequence[int], expected: list[int]
) -> None:
    """A new segment begins when the offset index or the time index of the current segment has no room for another entry.

    index_bytes: the maximum size of an index. interval_batches: how many batches without an index entry follow a batch with an entry; with 0, every
    batch gets an entry. timestamps: the timestamp of each batch, in ms from now. expected: the number of batches in each segment.
    """
    now = subject.epoch_ms()
    interval_bytes = interval_batches * len(at(now))
    topic = new_topic(subject, segment_index_bytes=str(index_bytes), index_interval_bytes=str(interval_bytes))
    topic.fill(*(at(now + timestamp) for timestamp in timestamps))
    assert [len(segment) for segment in reads(topic)] == expected


@pytest.mark.rule("CF-28")
def test_changed_index_settings_apply_only_to_segments_created_after_the_change(subject: Subject) -> None:
    topic = new_topic(subject, segment_ms="1000")
    now = subject.epoch_ms()
    with topic_setting(topic, "segment.index.bytes", "36"), topic_setting(topic, "index.interval.bytes", "0"):
        topic.fill(*(at(now + later) for later in (0, 1, 2, 3, 4, 1001, 1002, 1003, 1004)))
    topic.fill(*(at(now + later) for later in (1005, 1006, 1007, 1008)))
    assert reads(topic) == [[0, 1, 2, 3, 4], [5, 6, 7], [8, 9, 10], [11, 12]]


COMPACT: dict[str, Any] = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.001", "segment_bytes": ONE_EACH}


def contents(topic: Topic) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(r.offset, r.key, r.value) for batch in log_of(topic) for r in records(batch.view)]


def becomes(topic: Topic, expected: list[tuple[int, bytes | None, bytes | None]]) -> None:
    try:
        wait_until(
            topic.subject,
            lambda: contents(topic) == expected,
            f"the log of {topic.name}-0 contains the records (offset, key, value) {expected}",
        )
    except AssertionError as error:
        raise AssertionError(f"{error}; it contains {contents(topic)}") from error


@pytest.mark.needs("log.cleaner.backoff.ms")
def test_compaction_keeps_the_last_record_of_each_key_at_the_original_offset(subject: Subject) -> None:
    topic = new_topic(subject, **COMPACT)
    now = subject.epoch_ms()
    topic.fill(
        keyed(now, ("a", "1"), ("b", "1"), ("a", "2")),
        keyed(now + 1, ("c", "1")),
        keyed(now + 2, ("a", "3"), ("c", "2"), ("d", "1"), ("a", "4")),
        keyed(now + 3, ("b", "9")),  # in the active segment, so it does not supersede the others yet
    )
    becomes(topic, [(1, b"b", b"1"), (5, b"c", b"2"), (6, b"d", b"1"), (7, b"a", b"4"), (8, b"b", b"9")])
    first, second, _ = log_of(topic)
    assert (first.header.base_offset, first.header.last_offset, first.header.record_count) == (0, 2, 1)
    assert (second.header.base_offset, second.header.last_offset, second.header.record_count) == (4, 7, 3)
    assert offset_of(topic, -2) == 0
    topic.fill(keyed(now + 4, ("z", "1")))
    becomes(topic, [(5, b"c", b"2"), (6, b"d", b"1"), (7, b"a", b"4"), (8, b"b", b"9"), (9, b"z", b"1")])
    [(_, data)] = flat(subject.ask(topic.connect(), fetch((topic.name, 0, 1)), 11))
    assert next(batches(bytes(data.records))).header.base_offset == 4


@pytest.mark.needs("log.cleaner.backoff.ms")
def test_compaction_writes_the_same_batch_bytes_as_kafka(subject: Subject) -> None:
    topic = new_topic(subject, **COMPACT)
    now = subject.epoch_ms()
    topic.fill(
        keyed(now, ("a", "1"), ("b", "1"), ("c", "1"), ("a", "2")), keyed(now, ("c", "2")), keyed(now, ("a", "3"))
    )
    becomes(topic, [(1, b"b", b"1"), (3, b"a", b"2"), (4, b"c", b"2"), (5, b"a", b"3")])
    first = log_of(topic)[0]
    assert bytes(first.view) == build_batch(
        [NewRecord(b"1", b"b", now), NewRecord(b"2", b"a", now)],
        leader_epoch=0,
        offset_deltas=[1, 3],
    )


@pytest.mark.needs("log.cleaner.backoff.ms")
def test_tombstones_are_kept_for_delete_retention_ms_after_the_first_compaction(subject: Subject) -> None:
    topic = new_topic(subject, delete_retention_ms="1500", **COMPACT)
    now = subject.epoch_ms()
    topic.fill(keyed(now, ("a", "1")), keyed(now + 7, ("a", None), ("b", "1")), keyed(now, ("x", "0")))
    becomes(topic, [(1, b"a", None), (2, b"b", b"1"), (3, b"x", b"0")])
    # Kafka replaces one segment after the other: the batch with offset 0 may be gone before the tombstone's segment is rewritten.
    horizon_ms = wait_until(
        subject,
        lambda: log_of(topic)[0].header.delete_horizon_ms,
        f"the batch of the tombstone in {topic.name}-0 has a delete horizon",
    )
    assert abs(horizon_ms - subject.epoch_ms() - 1500) < 10_000
    [first, _] = log_of(topic)
    assert [r.timestamp for r in records(first.view)] == [now + 7, now + 7]
    subject.pass_ms(2000)
    topic.fill(keyed(now, ("x", "1")))  # cleaning needs dirty records
    becomes(topic, [(2, b"b", b"1"), (3, b"x", b"0"), (4, b"x", b"1")])
    assert log_of(topic)[0].header.delete_horizon_ms == horizon_ms


@pytest.mark.needs("log.cleaner.backoff.ms")
@pytest.mark.rule("P-17")
def test_compaction_leaves_an_empty_batch_with_the_last_sequence_of_a_producer(subject: Subject) -> None:
    topic = new_topic(subject, **COMPACT)
    now = subject.epoch_ms()

    def by(producer: int, sequence: int, *pairs: tuple[str, str | None]) -> bytes:
        return keyed(now, *pairs, producer_id=producer, producer_epoch=0, base_sequence=sequence)

    topic.fill(by(7001, 0, ("a", "1")), by(7001, 1, ("a", "2"), ("b", "1")), by(7002, 5, ("a", "3"), ("b", "2")))
    topic.fill(keyed(now, ("x", "0")))
    becomes(topic, [(3, b"a", b"3"), (4, b"b", b"2"), (5, b"x", b"0")])
    [empty, _, _] = log_of(topic)
    header = empty.header
    assert (header.base_offset, header.last_offset, header.record_count) == (1, 2, 0)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7001, 0, 1)
    assert (header.base_timestamp, header.max_timestamp, header.attributes, header.size) == (-1, now, 0, 61)


@pytest.mark.needs("log.cleaner.backoff.ms")
def test_records_younger_than_min_compaction_lag_are_not_compacted(subject: Subject) -> None:
    topic = new_topic(subject, min_compaction_lag_ms=str(HOUR_MS), **COMPACT)
    now = subject.epoch_ms()
    topic.fill(
        keyed(now - 2 * HOUR_MS, ("a", "1")),
        keyed(now - 2 * HOUR_MS, ("a", "2")),
        keyed(now, ("a", "3")),
        keyed(now - 2 * HOUR_MS, ("a", "4")),
        keyed(now, ("x", "0")),
    )
    becomes(topic, [(1, b"a", b"2"), (2, b"a", b"3"), (3, b"a", b"4"), (4, b"x", b"0")])
    subject.pass_ms(SEVERAL_LOOKS_MS)
    becomes(topic, [(1, b"a", b"2"), (2, b"a", b"3"), (3, b"a", b"4"), (4, b"x", b"0")])


@pytest.mark.needs("log.cleaner.backoff.ms")
def test_log_below_the_dirty_ratio_is_compacted_after_max_compaction_lag(subject: Subject) -> None:
    configs = COMPACT | {"min_cleanable_dirty_ratio": "1.0"}
    waits, late = new_topic(subject, **configs), new_topic(subject, max_compaction_lag_ms=str(HOUR_MS), **configs)
    now = subject.epoch_ms()
    for topic in (waits, late):
        topic.fill(*(keyed(now - 2 * HOUR_MS, ("a", str(i))) for i in range(3)))
    becomes(late, [(1, b"a", b"1"), (2, b"a", b"2")])
    assert len(contents(waits)) == 3


@pytest.mark.needs("log.cleaner.backoff.ms")
@pytest.mark.rule("TX-54", "TX-55")
def test_compaction_of_an_aborted_transaction_keeps_later_committed_records(subject: Subject) -> None:
    """When the cleaner has removed the records of an aborted transaction, Fetch responses no longer list the transaction as aborted.

    A read_committed fetch still returns the records of the producer's next transaction, which is committed.
    """
    topic, producer = new_topic(subject, delete_retention_ms="300", **COMPACT), Producer(subject)
    producer.init()
    for sequence, key in enumerate(("gone", "kept")):
        producer.add_once_free(topic, 0)
        data = keyed(
            subject.epoch_ms(),
            (key, "1"),
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            attributes=TRANSACTIONAL,
        )
        request = produce(topic.name, data, acks=-1)
        request.transactional_id = producer.id
        assert produced(subject.ask_once(request, 11, topic.leader())).error_code == 0
        producer.finish(commit=key == "kept")
    topic.fill(keyed(subject.epoch_ms(), ("x", "0")))
    assert visible(topic)[2] == [(producer.producer_id, 0)]

    def is_forgotten() -> bool:
        topic.fill(keyed(subject.epoch_ms(), ("x", "0")))  # cleaning needs dirty records
        return log_of(topic)[0].header.base_offset == 2

    wait_until(subject, is_forgotten, f"the records of the aborted transaction are removed from {topic.name}-0")
    assert visible(topic, 2)[2] == visible(topic)[2] == []
    assert contents(topic)[0] == (2, b"kept", b"1")
