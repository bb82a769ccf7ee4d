"""Spark streaming queries continue from checkpoints and data directories that commit 7c3b0af wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.pipeline.trace import tables
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.testing import TestCluster, cluster
from tests.artifacts.holding import expected, unpack
from tests.artifacts.streams import ALERTS, JOURNAL, run_kafka_py, run_live, table_rows, write
from tests.support.clients import KAFKA_PYTHON_WARNINGS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(180),
    # py4j leaves its sockets to the garbage collector
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS),
]
COUNT = 120
"""Records per turn, half of them on each partition: 120 kB of a client that may write 110 kB at once."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return unpack("streams", tmp_path)


@pytest.fixture
def kafka(folder: Path) -> Iterator[TestCluster]:
    """Start a broker on a copy of the data directory, at a time after all its records."""
    with cluster(1, data_dir=folder / "data", journal_topic=JOURNAL) as running:
        newest_ms = max(record.timestamp_ms for record in running.records("t") + running.records(JOURNAL))
        running.clock.advance(max(0, newest_ms - running.clock.now_ms()) + 600_000)
        yield running


def test_spark_source_kafka_py_resumes_from_a_checkpoint_of_its_previous_version(
    spark: Any, kafka: TestCluster, folder: Path
) -> None:
    assert expected("streams")["read by kafka_py"] == [COUNT, COUNT] and len(kafka.records("t")) == 2 * COUNT
    write(kafka, "free", 10)
    new = run_kafka_py(spark, kafka.bootstrap, folder / "kafka_py")
    assert new == [(partition, COUNT + offset) for partition in range(2) for offset in range(5)]
    assert run_kafka_py(spark, kafka.bootstrap, folder / "kafka_py") == []


def test_live_spark_job_resumes_from_a_checkpoint_written_by_an_older_version(
    spark: Any, kafka: TestCluster, folder: Path
) -> None:
    before = expected("streams")["table of the live job"]
    alerts = len(kafka.records(ALERTS))
    assert table_rows(spark, folder / "live") == before and alerts == expected("streams")["alerts"]
    assert len(kafka.records(JOURNAL)) > 0  # a job that started from the beginning would count all of it again
    write(kafka, "writer", COUNT)
    kafka.clock.advance(1000)
    throttles = [throttle for throttle in kafka.journal.throttles() if throttle.client_id == "writer"]
    run_live(spark, kafka.bootstrap, folder / "live")
    after = table_rows(spark, folder / "live")
    new = [row for row in after if row not in before]
    assert [row for row in after if row in before] == before
    [(_, client_id, batch, count, throttled_ms)] = new
    assert (client_id, count) == ("writer", len(throttles)) and count > 0
    assert throttled_ms == sum(throttle.throttle_time_ms for throttle in throttles)
    assert batch > max(row[2] for row in before)
    assert len(kafka.records(ALERTS)) == alerts + 1


def test_spark_reads_all_rows_of_trace_tables_written_by_an_older_version(spark: Any, tmp_path: Path) -> None:
    out = unpack("trace", tmp_path) / "tables"
    [run] = json.loads((out / "_manifest.json").read_text())["runs"].values()
    assert {table: tables.read(spark, out, table).count() for table in TABLES} == dict.fromkeys(TABLES, 0) | run["rows"]
