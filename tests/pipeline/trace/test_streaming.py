"""Tables of a trace that is still being written equal those of the batch job, also after a restart."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.pipeline.trace import tables as job
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.pipeline.trace.store import Store
from kafkaproto.pipeline.trace.streaming import FolderReader, main, start
from kafkaproto.trace.format import Exchange
from tests.support.pipeline.recorded import encoded, life, traffic, write
from tests.support.pipeline.tables import rows
from tests.support.programs import program

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]


def same_as_the_batch_job(trace: Path, out: Path, scratch: Path) -> bool:
    job.build(trace, scratch, job.without_spark)
    return all(rows(out, table) == rows(scratch, table) for table in TABLES)


def test_spark_streaming_job_that_restarts_builds_the_same_tables_as_the_batch_job(spark: Any, tmp_path: Path) -> None:
    trace, out, checkpoint = tmp_path / "trace", tmp_path / "out", tmp_path / "checkpoint"
    entries = traffic()
    half = len(entries) // 2
    file = write(trace, entries[:half], "a")
    query = start(spark, trace, out, checkpoint, "0 seconds")
    try:
        query.processAllAvailable()
        assert rows(out, "requests") and same_as_the_batch_job(trace, out, tmp_path / "first")
        first = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
        whole = encoded(entries[half:])
        with file.open("ab") as more:
            more.write(whole[:-5])  # the last entry is still being written
        query.processAllAvailable()
        write(trace, traffic(2), "b")
        query.processAllAvailable()
        assert same_as_the_batch_job(trace, out, tmp_path / "second")
    finally:
        query.stop()
    with file.open("ab") as more:
        more.write(whole[-5:])
    query = start(spark, trace, out, checkpoint, "0 seconds")
    try:
        query.processAllAvailable()
        assert same_as_the_batch_job(trace, out, tmp_path / "third")
        assert {row["run"] for row in rows(out, "requests")} == {"a", "b"}
        assert {path: path.stat().st_mtime_ns for path in first} == first  # only new rows were added
        before = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
        query.processAllAvailable()
        assert before == {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    finally:
        query.stop()


def test_trace_tables_built_by_spark_and_python_in_turn_equal_those_of_one_batch_job(
    spark: Any, tmp_path: Path
) -> None:
    """Run names include ones that are not valid folder names."""
    trace, out, entries = tmp_path / "trace", tmp_path / "out", life()
    names = ("a", "c:/d e+f@g=ü'%#[h]*")
    ends = (3, 9, 14, len(entries))
    for number, (range_start, range_end) in enumerate(pairwise((0, *ends))):
        for name, run in zip("xy", names, strict=True):
            write(trace, entries[:range_end], run, name=name)
        counts, notices = job.build(trace, out, job.without_spark if number % 2 else partial(job.with_spark, spark))
        new = sum(isinstance(entry, Exchange) for entry in entries[range_start:range_end])
        assert {run: table_counts["requests"] for run, table_counts in counts.items()} == dict.fromkeys(
            names, new
        ) and notices == []
    assert same_as_the_batch_job(trace, out, tmp_path / "fresh")
    for table in TABLES:
        row_counts = {row["run"]: row["count"] for row in job.read(spark, out, table).groupBy("run").count().collect()}
        manifest_counts = {run: entry["rows"][table] for run, entry in Store(out).manifest().items()}
        assert row_counts == {run: count for run, count in manifest_counts.items() if count}


def test_streaming_source_reads_only_the_new_bytes_of_trace_files_that_have_grown(tmp_path: Path) -> None:
    reader = FolderReader(str(tmp_path))
    assert reader.latestOffset() == {}
    write(tmp_path, traffic(1), "a")
    (tmp_path / "notes.txt").write_text("mine")
    [(file, size)] = reader.latestOffset().items()
    grown = [partition.value for partition in reader.partitions({file: 10}, {file: size, "b.kptrace": 7})]
    assert grown == [(file, 10, size), ("b.kptrace", 0, 7)] and list(
        map(tuple, reader.read(reader.partitions({}, {"c": 1})[0]))
    ) == [("c", 0, 1)]
    assert reader.partitions({file: size, "gone": 5}, {file: size}) == []


def test_streaming_command_rejects_a_single_file_and_a_folder_without_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "trace", traffic(1), "a")
    out = [str(tmp_path / "out"), "--checkpoint", str(tmp_path / "checkpoint")]
    assert main([str(file), *out]) == 2 and "give the folder of the trace" in capsys.readouterr().err
    assert main([str(tmp_path / "nowhere"), *out]) == 2 and "contains no trace" in capsys.readouterr().err


def test_streaming_command_exits_with_status_0_when_terminated_after_adding_rows(tmp_path: Path) -> None:
    write(tmp_path / "trace", traffic(), "a")
    command = [
        sys.executable,
        "-m",
        "kafkaproto.pipeline.trace.streaming",
        str(tmp_path / "trace"),
        str(tmp_path / "out"),
    ]
    command += ["--checkpoint", str(tmp_path / "checkpoint"), "--every", "0 seconds"]
    root = Path(__file__).resolve().parents[3]
    with program(command, cwd=root, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("following")
        first_line = process.stderr.readline()
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert "batch 0 added rows of recording a: 8 requests" in first_line, first_line + err
    assert process.returncode == 0, out + err
    assert len(rows(tmp_path / "out", "requests")) == 8
