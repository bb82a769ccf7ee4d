"""Where micro-batches begin and end, as Spark asks for it before and after 4.2. No Spark runs here; brokers do."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from kafkaproto.pipeline.kafka_py import stream
from kafkaproto.pipeline.kafka_py.errors import DataLoss, OptionError
from kafkaproto.pipeline.kafka_py.offsets import Offsets
from kafkaproto.pipeline.kafka_py.options import SourceSettings, source_settings
from kafkaproto.pipeline.kafka_py.planning import Planner
from kafkaproto.pipeline.kafka_py.reader import KafkaReader
from kafkaproto.pipeline.kafka_py.stream import KafkaStreamReader
from kafkaproto.records.record import NewRecord
from kafkaproto.testing import TestCluster, cluster

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000


@dataclass
class MaxRows:
    """What Spark 4.2 has."""

    max_rows: int


class AllAvailable:
    """What Spark 4.2 has."""


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    with cluster(1, {"t": 2}) as c:
        yield c


@pytest.fixture
def since_4_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if pyspark had the classes of 4.2, which the pinned 4.0 lacks."""
    monkeypatch.setattr(stream, "ReadMaxRows", MaxRows)
    monkeypatch.setattr(stream, "ReadAllAvailable", AllAvailable)


def settings(kafka: TestCluster, streaming: bool = True, **options: str) -> SourceSettings:
    base = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": "t", "fetchOffset.retryIntervalMs": "1"}
    return source_settings({**base, **options}, streaming=streaming)


@contextmanager
def reader(kafka: TestCluster, **options: str) -> Iterator[KafkaStreamReader]:
    made = KafkaStreamReader(settings(kafka, **options))
    yield made
    made.stop()


def fill(kafka: TestCluster, *counts: int) -> None:
    for partition, count in enumerate(counts):
        if count:
            kafka.produce("t", [NewRecord(b"v", None, START_MS + i) for i in range(count)], partition)


def at(*offsets: int) -> dict[str, dict[str, int]]:
    return {"t": {str(i): offset for i, offset in enumerate(offsets)}}


def ranges(read: KafkaStreamReader, start: Any, end: Any) -> list[tuple[int, int, int]]:
    return [(p.value.partition, p.value.start, p.value.end) for p in read.partitions(start, end)]


def test_before_4_2_a_limit_counts_from_the_batch_that_was_planned_last(kafka: TestCluster) -> None:
    fill(kafka, 90, 10)
    with reader(kafka, startingOffsets="earliest", maxOffsetsPerTrigger="20") as read:
        assert read.latestOffset() == read.latestOffset() == at(18, 2)
        assert ranges(read, read.initialOffset(), at(18, 2)) == [(0, 0, 18), (1, 0, 2)]
        assert read.latestOffset() == at(36, 4)


def test_before_4_2_a_restart_goes_on_from_the_checkpoint(kafka: TestCluster) -> None:
    fill(kafka, 90, 10)
    with reader(kafka, startingOffsets="earliest", maxOffsetsPerTrigger="20") as read:
        assert ranges(read, at(70, 10), at(70, 10)) == []
        assert read.latestOffset() == at(90, 10)


def test_without_a_limit_a_batch_takes_what_there_is(kafka: TestCluster) -> None:
    fill(kafka, 5, 0)
    with reader(kafka, startingOffsets="earliest") as read:
        assert read.latestOffset() == at(5, 0)
        fill(kafka, 0, 3)
        assert read.latestOffset() == at(5, 3)


@pytest.mark.usefixtures("since_4_2")
def test_from_4_2_on_spark_says_where_and_how_much(kafka: TestCluster) -> None:
    fill(kafka, 90, 10)
    with reader(kafka, startingOffsets="earliest", maxOffsetsPerTrigger="20") as read:
        assert read.getDefaultReadLimit() == MaxRows(20)
        assert read.latestOffset(at(40, 0), MaxRows(30)) == at(65, 5)
        assert read.latestOffset(at(40, 0), AllAvailable()) == at(90, 10)
        assert read.reportLatestOffset() == at(90, 10)
    with reader(kafka) as read:
        assert isinstance(read.getDefaultReadLimit(), AllAvailable)


@pytest.mark.usefixtures("since_4_2")
def test_from_4_2_on_what_comes_later_is_not_available_now(kafka: TestCluster) -> None:
    fill(kafka, 30, 0)
    with reader(kafka, startingOffsets="earliest") as read:
        read.prepareForTriggerAvailableNow()
        fill(kafka, 30, 5)
        assert read.latestOffset(at(0, 0), MaxRows(20)) == at(20, 0)
        assert read.latestOffset(at(20, 0), MaxRows(20)) == read.latestOffset(at(30, 0), MaxRows(20)) == at(30, 0)


@pytest.mark.usefixtures("since_4_2")
def test_from_4_2_on_nothing_is_available_now_of_what_begins_at_latest(kafka: TestCluster) -> None:
    fill(kafka, 30, 0)
    with reader(kafka) as read:
        read.prepareForTriggerAvailableNow()
        fill(kafka, 5, 5)  # after the end was frozen, before the beginning is looked up
        begin = read.initialOffset()
        assert read.latestOffset(begin, AllAvailable()) == begin == at(35, 5)
        assert ranges(read, begin, begin) == []
        assert read.latestOffset(begin, AllAvailable()) == begin


@pytest.mark.parametrize("spark_says", [False, True], ids=["before 4.2", "from 4.2 on"])
def test_what_begins_at_latest_has_nothing_in_the_first_batch(kafka: TestCluster, spark_says: bool) -> None:
    fill(kafka, 5, 6)
    with reader(kafka, startingOffsets='{"t": {"0": -1, "1": -2}}') as read:
        begin = read.initialOffset() if spark_says else None
        fill(kafka, 5, 1)
        first = read.latestOffset(begin)
        assert first == (at(5, 7) if spark_says else at(10, 7))
        assert ranges(read, read.initialOffset(), first) == [(1, 0, 7)]
        assert read.latestOffset(first if spark_says else None) == at(10, 7)


def test_a_first_batch_that_is_planned_again_after_a_restart_is_the_same(kafka: TestCluster) -> None:
    fill(kafka, 5, 6)
    options = {"startingOffsets": '{"t": {"0": -1, "1": -2}}'}
    with reader(kafka, **options) as read:
        first = read.latestOffset()
        planned = ranges(read, read.initialOffset(), first)
    fill(kafka, 5, 5)
    with reader(kafka, **options) as read:
        assert read.initialOffset() == at(10, 0) and first == at(5, 6)
        assert ranges(read, first, first) == []
        assert ranges(read, read.initialOffset(), first) == planned == [(1, 0, 6)]
        assert read.latestOffset() == at(10, 11)


def test_new_partitions_are_read_from_their_beginning(kafka: TestCluster) -> None:
    fill(kafka, 4, 4)
    with reader(kafka) as read:
        assert ranges(read, {"t": {"0": 2}}, at(4, 4)) == [(0, 2, 4), (1, 0, 4)]


def test_what_a_batch_cannot_have_is_lost_loudly_or_passed_over(kafka: TestCluster) -> None:
    fill(kafka, 4, 4)
    with reader(kafka) as read:
        with pytest.raises(DataLoss, match="t-0 went back from 9 to 4"):
            read.partitions(at(9, 2), at(4, 4))
        with pytest.raises(DataLoss, match="t-2 is gone, it was to be read from 7"):
            read.partitions(at(4, 2, 7), at(4, 4))
    with reader(kafka, failOnDataLoss="false") as read:
        assert ranges(read, at(9, 2), at(4, 4)) == ranges(read, at(4, 2, 7), at(4, 4)) == [(1, 2, 4)]


def test_executors_are_sent_settings_and_no_sockets(kafka: TestCluster) -> None:
    fill(kafka, 4, 4)
    with reader(kafka, startingOffsets="earliest") as read:
        [first, _] = read.partitions(read.initialOffset(), at(4, 4))
        sent = pickle.loads(pickle.dumps(read))
        assert [rows.num_rows for rows in sent.read(first)] == [4]


# ---- planning ----------------------------------------------------------------------------------------------------------------


def start(kafka: TestCluster, **options: str) -> Offsets:
    planner = Planner(settings(kafka, streaming=False, **options))
    try:
        return planner.start().offsets
    finally:
        planner.close()


def test_times_are_looked_up_and_one_that_nobody_reaches_is_an_error_or_latest(kafka: TestCluster) -> None:
    fill(kafka, 10, 5)
    assert start(kafka, startingTimestamp=str(START_MS + 3)) == {("t", 0): 3, ("t", 1): 3}
    late = {"startingOffsetsByTimestamp": f'{{"t": {{"0": {START_MS + 8}, "1": {START_MS + 8}}}}}'}
    with pytest.raises(OptionError, match="option startingOffsetsByTimestamp: t-1 has no record at or after that time"):
        start(kafka, **late)
    assert start(kafka, startingOffsetsByTimestampStrategy="latest", **late) == {("t", 0): 8, ("t", 1): 5}


def test_an_end_that_went_back_is_looked_at_again(kafka: TestCluster) -> None:
    fill(kafka, 10, 5)
    planner = Planner(settings(kafka))
    assert planner.latest({("t", 0): 10}) == {("t", 0): 10, ("t", 1): 5}
    assert len(kafka.journal.requests(api="ListOffsets")) == 1
    assert planner.latest({("t", 0): 11}) == {("t", 0): 10, ("t", 1): 5}
    assert len(kafka.journal.requests(api="ListOffsets")) == 1 + 4
    planner.close()


def test_a_batch_read_that_would_begin_behind_its_end_is_refused_as_by_the_connector(kafka: TestCluster) -> None:
    fill(kafka, 10, 5)
    offsets = {"startingOffsets": '{"t": {"0": 2, "1": 4}}', "endingOffsets": '{"t": {"0": 9, "1": 3}}'}
    with pytest.raises(OptionError, match="option startingOffsets: t-1 would begin at 4, behind its end 3"):
        KafkaReader(settings(kafka, streaming=False, **offsets)).partitions()
