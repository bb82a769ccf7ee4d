"""Start and end of micro-batches for Spark before and after 4.2, without Spark and with real brokers."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition

from kafkaproto.pipeline.kafka_py import stream
from kafkaproto.pipeline.kafka_py.errors import DataLoss, OptionError
from kafkaproto.pipeline.kafka_py.offsets import Offsets
from kafkaproto.pipeline.kafka_py.options import SourceSettings, source_settings
from kafkaproto.pipeline.kafka_py.planning import Planner
from kafkaproto.pipeline.kafka_py.reader import KafkaReader, read_range
from kafkaproto.pipeline.kafka_py.stream import KafkaStreamReader
from kafkaproto.records.record import NewRecord
from kafkaproto.testing import TestCluster, cluster

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000


@dataclass
class MaxRows:
    """Stands for the class of Spark 4.2."""

    max_rows: int


class AllAvailable:
    """Stands for the class of Spark 4.2."""


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    with cluster(1, {"t": 2}) as c:
        yield c


@pytest.fixture
def since_4_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the classes of pyspark 4.2, which the pinned 4.0 lacks."""
    monkeypatch.setattr(stream, "ReadMaxRows", MaxRows)
    monkeypatch.setattr(stream, "ReadAllAvailable", AllAvailable)


def settings(kafka: TestCluster, streaming: bool = True, **options: str) -> SourceSettings:
    base = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": "t", "fetchOffset.retryIntervalMs": "1"}
    return source_settings({**base, **options}, streaming=streaming)


@contextmanager
def reader(kafka: TestCluster, **options: str) -> Iterator[KafkaStreamReader]:
    stream_reader = KafkaStreamReader(settings(kafka, **options))
    yield stream_reader
    stream_reader.stop()


def fill(kafka: TestCluster, *counts: int) -> None:
    for partition, count in enumerate(counts):
        if count:
            kafka.produce("t", [NewRecord(b"v", None, START_MS + i) for i in range(count)], partition)


def at(*offsets: int) -> dict[str, dict[str, int]]:
    return {"t": {str(i): offset for i, offset in enumerate(offsets)}}


def ranges(read: KafkaStreamReader, start: Any, end: Any) -> list[tuple[int, int, int]]:
    return [(p.value.partition, p.value.start, p.value.end) for p in read.partitions(start, end)]


def test_micro_batches_of_spark_versions_before_4_2_follow_each_other_without_a_gap(kafka: TestCluster) -> None:
    fill(kafka, 90, 10)
    with reader(kafka, startingOffsets="earliest", maxOffsetsPerTrigger="20") as read:
        assert read.latestOffset() == read.latestOffset() == at(18, 2)
        assert ranges(read, read.initialOffset(), at(18, 2)) == [(0, 0, 18), (1, 0, 2)]
        assert read.latestOffset() == at(36, 4)


def test_restarted_query_in_spark_versions_before_4_2_continues_from_its_checkpoint(kafka: TestCluster) -> None:
    fill(kafka, 90, 10)
    with reader(kafka, startingOffsets="earliest", maxOffsetsPerTrigger="20") as read:
        assert ranges(read, at(70, 10), at(70, 10)) == []
        assert read.latestOffset() == at(90, 10)


def test_micro_batch_without_a_limit_takes_all_available_records(kafka: TestCluster) -> None:
    fill(kafka, 5, 0)
    with reader(kafka, startingOffsets="earliest") as read:
        assert read.latestOffset() == at(5, 0)
        fill(kafka, 0, 3)
        assert read.latestOffset() == at(5, 3)


@pytest.mark.usefixtures("since_4_2")
def test_micro_batch_in_spark_4_2_has_no_more_rows_than_the_limit_that_spark_passes(kafka: TestCluster) -> None:
    fill(kafka, 90, 10)
    with reader(kafka, startingOffsets="earliest", maxOffsetsPerTrigger="20") as read:
        assert read.getDefaultReadLimit() == MaxRows(20)
        assert read.latestOffset(at(40, 0), MaxRows(30)) == at(65, 5)
        assert read.latestOffset(at(40, 0), AllAvailable()) == at(90, 10)
        assert read.reportLatestOffset() == at(90, 10)
    with reader(kafka) as read:
        assert isinstance(read.getDefaultReadLimit(), AllAvailable)


@pytest.mark.usefixtures("since_4_2")
def test_spark_4_2_available_now_query_reads_no_records_written_after_its_start(kafka: TestCluster) -> None:
    fill(kafka, 30, 0)
    with reader(kafka, startingOffsets="earliest") as read:
        read.prepareForTriggerAvailableNow()
        fill(kafka, 30, 5)
        assert read.latestOffset(at(0, 0), MaxRows(20)) == at(20, 0)
        assert read.latestOffset(at(20, 0), MaxRows(20)) == read.latestOffset(at(30, 0), MaxRows(20)) == at(30, 0)


@pytest.mark.usefixtures("since_4_2")
def test_available_now_query_from_the_latest_offsets_reads_nothing_in_spark_4_2(kafka: TestCluster) -> None:
    fill(kafka, 30, 0)
    with reader(kafka) as read:
        read.prepareForTriggerAvailableNow()
        fill(kafka, 5, 5)  # after the end was fixed, before the start is looked up
        start_offsets = read.initialOffset()
        assert read.latestOffset(start_offsets, AllAvailable()) == start_offsets == at(35, 5)
        assert ranges(read, start_offsets, start_offsets) == []
        assert read.latestOffset(start_offsets, AllAvailable()) == start_offsets


@pytest.mark.parametrize("passes_start", [False, True], ids=["before 4.2", "from 4.2 on"])
def test_first_micro_batch_has_no_records_of_a_partition_that_starts_at_latest(
    kafka: TestCluster, passes_start: bool
) -> None:
    fill(kafka, 5, 6)
    with reader(kafka, startingOffsets='{"t": {"0": -1, "1": -2}}') as read:
        start_offsets = read.initialOffset() if passes_start else None
        fill(kafka, 5, 1)
        first = read.latestOffset(start_offsets)
        assert first == (at(5, 7) if passes_start else at(10, 7))
        assert ranges(read, read.initialOffset(), first) == [(1, 0, 7)]
        assert read.latestOffset(first if passes_start else None) == at(10, 7)


def test_restart_before_the_first_batch_keeps_the_offset_range_of_the_first_batch(kafka: TestCluster) -> None:
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


def test_spark_stream_reads_new_partitions_from_their_first_offset(kafka: TestCluster) -> None:
    fill(kafka, 4, 4)
    with reader(kafka) as read:
        assert ranges(read, {"t": {"0": 2}}, at(4, 4)) == [(0, 2, 4), (1, 0, 4)]


def test_spark_micro_batch_with_lost_offsets_fails_unless_fail_on_data_loss_is_false(kafka: TestCluster) -> None:
    fill(kafka, 4, 4)
    with reader(kafka) as read:
        with pytest.raises(DataLoss, match="t-0 went back from offset 9 to offset 4"):
            read.partitions(at(9, 2), at(4, 4))
        with pytest.raises(DataLoss, match="t-2 no longer exists, but the query reads it from offset 7"):
            read.partitions(at(4, 2, 7), at(4, 4))
    with reader(kafka, failOnDataLoss="false") as read:
        assert ranges(read, at(9, 2), at(4, 4)) == ranges(read, at(4, 2, 7), at(4, 4)) == [(1, 2, 4)]


def test_stream_reader_still_reads_records_after_it_is_pickled_and_unpickled(kafka: TestCluster) -> None:
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


def test_spark_query_that_starts_at_a_time_after_all_records_fails_by_default(kafka: TestCluster) -> None:
    fill(kafka, 10, 5)
    assert start(kafka, startingTimestamp=str(START_MS + 3)) == {("t", 0): 3, ("t", 1): 3}
    late = {"startingOffsetsByTimestamp": f'{{"t": {{"0": {START_MS + 8}, "1": {START_MS + 8}}}}}'}
    with pytest.raises(OptionError, match="option startingOffsetsByTimestamp: t-1 has no record at or after the time"):
        start(kafka, **late)
    assert start(kafka, startingOffsetsByTimestampStrategy="latest", **late) == {("t", 0): 8, ("t", 1): 5}


def test_spark_source_repeats_list_offsets_3_times_if_an_end_offset_has_decreased(kafka: TestCluster) -> None:
    fill(kafka, 10, 5)
    planner = Planner(settings(kafka))
    assert planner.latest({("t", 0): 10}) == {("t", 0): 10, ("t", 1): 5}
    assert len(kafka.journal.requests(api="ListOffsets")) == 1
    assert planner.latest({("t", 0): 11}) == {("t", 0): 10, ("t", 1): 5}
    assert len(kafka.journal.requests(api="ListOffsets")) == 1 + 4
    planner.close()


def test_spark_batch_query_whose_start_offset_is_after_its_end_offset_is_rejected(kafka: TestCluster) -> None:
    fill(kafka, 10, 5)
    offsets = {"startingOffsets": '{"t": {"0": 2, "1": 4}}', "endingOffsets": '{"t": {"0": 9, "1": 3}}'}
    with pytest.raises(
        OptionError, match="option startingOffsets: t-1 would start at offset 4, but the query ends at offset 3"
    ):
        KafkaReader(settings(kafka, streaming=False, **offsets)).partitions()


def test_spark_task_without_an_offset_range_reads_nothing_and_does_not_connect() -> None:
    """Spark plans one task for an empty read: with None up to 4.0, with a partition without a value from 4.1 on."""
    unreachable = source_settings({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}, streaming=False)
    assert [list(read_range(unreachable, partition)) for partition in (None, InputPartition(None))] == [[], []]
