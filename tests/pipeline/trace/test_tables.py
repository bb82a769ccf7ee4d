"""The job from trace files to tables: new entries are read once, invalid files are reported, and a killed job leaves nothing partial."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkaproto.pipeline.trace import reading, tables, writing
from kafkaproto.pipeline.trace import store as store_module
from kafkaproto.pipeline.trace.reading import batches
from kafkaproto.pipeline.trace.runs import TIMES, Run, runs_of
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.pipeline.trace.store import Store, StoreError
from kafkaproto.trace.format import Entry, Event, Exchange, Positions, State, TraceError
from tests.support.pipeline.group_traffic import group_entries
from tests.support.pipeline.recorded import encoded, traffic, write
from tests.support.pipeline.tables import build, rows

OF_COORDINATORS = {"groups", "group_offsets", "transactions"}
OURS = sorted([*TABLES.keys() - OF_COORDINATORS, "_lock", "_manifest.json", "_places"])
"""The files and folders of the tables of `traffic`, which has no groups and transactions."""


def contents(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def test_trace_tables_are_partitioned_by_recording_and_hour_with_declared_types(tmp_path: Path) -> None:
    write(tmp_path / "trace", traffic())
    write(tmp_path / "trace", group_entries(), "coordinators")
    counts, notices = build(tmp_path / "trace", tmp_path / "out")
    assert notices == []
    assert counts["r"] == {table: len(rows(tmp_path / "out", table, "r")) for table in TABLES}
    assert [row["api"] for row in rows(tmp_path / "out", "requests", "r")] == ["Metadata", "Fetch"] + [
        "Produce",
        "Fetch",
    ] * 3
    declared = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64()}
    for table, columns in TABLES.items():
        run = "coordinators" if table in OF_COORDINATORS else "r"
        [path] = (tmp_path / "out" / table).glob(f"run={run}/hour=*/*.parquet")
        column_types = {field.name: field.type for field in pq.ParquetFile(path).schema_arrow}
        assert column_types == {
            c.name: declared.get(c.type, pa.bool_()) for c in columns if c.name not in ("run", "hour")
        }


def test_trace_entries_of_two_hours_are_written_to_two_folders(tmp_path: Path) -> None:
    [*_, last_entry] = [entry for entry in traffic() if hasattr(entry, "clock_ms")]
    later = last_entry._replace(seq=last_entry.seq + 1, clock_ms=last_entry.clock_ms + 3_600_000)
    write(tmp_path / "trace", [last_entry, later])
    build(tmp_path / "trace", tmp_path / "out")
    assert [row["seq"] for row in rows(tmp_path / "out", "requests")] == [last_entry.seq, later.seq]
    assert len(list((tmp_path / "out" / "requests").glob("run=r/hour=*"))) == 2


def test_trace_split_into_many_files_gives_the_same_table_rows_as_a_single_file(tmp_path: Path) -> None:
    entries = traffic()
    write(tmp_path / "whole", entries)
    for number, entry in enumerate(entries):
        write(tmp_path / "parts", [entry], number=number)
    for name in ("whole", "parts"):
        build(tmp_path / name, tmp_path / f"{name}-out")
    for table in TABLES:
        assert rows(tmp_path / "whole-out", table) == rows(tmp_path / "parts-out", table)
    offsets = [row["requested_offset"] for row in rows(tmp_path / "parts-out", "partitions") if row["api"] == "Fetch"]
    assert offsets == [0, 0, 2, 4]


def test_trace_table_job_reads_only_recordings_with_new_or_grown_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def noted(run: Run, *more: Any) -> Any:
        read.append(run.name)
        return batches(run, *more)

    monkeypatch.setattr(writing, "batches", noted)
    trace, out, entries = tmp_path / "trace", tmp_path / "out", traffic()
    first = write(trace, entries[:3], "a")
    write(trace, entries, "b")
    build(trace, out)
    contents_of_b = {name: data for name, data in contents(out).items() if "run=b" in name}
    assert read == ["a", "b"]
    assert build(trace, out) == ({}, []) and read == ["a", "b"]
    with first.open("ab") as file:
        file.write(encoded(entries[3:5]))
    assert list(build(trace, out)[0]) == ["a"] and read == ["a", "b", "a"]
    write(trace, entries[5:], "a", 1)
    build(trace, out)
    assert read == ["a", "b", "a", "a"]
    whole = [{**row, "run": "a"} for row in rows(out, "requests", "b")]
    assert rows(out, "requests", "a") == whole
    assert {name: data for name, data in contents(out).items() if "run=b" in name} == contents_of_b


def test_trace_table_job_prints_errors_for_damaged_files_and_reads_all_other_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, entries = tmp_path / "trace", traffic()
    torn = write(trace, entries, "torn")
    torn.write_bytes(torn.read_bytes()[:-5])
    assert tables.main([str(trace), str(tmp_path / "a"), "--without-spark"]) == 1
    printed = capsys.readouterr()
    assert (
        f"{torn}:" in printed.err and "are an incomplete entry" in printed.err and "run torn: 7 requests" in printed.out
    )
    (trace / "foreign.kptrace").write_bytes(b"\xd4\xc3\xb2\xa1 a capture")
    (trace / "future.kptrace").write_bytes(b"kptrace\n" + (99).to_bytes(2, "big") + bytes(4))
    damaged = write(trace, entries, "damaged")
    damaged.write_bytes(damaged.read_bytes() + bytes(9) + encoded(entries))
    assert tables.main([str(trace), str(tmp_path / "b"), "--without-spark"]) == 2
    printed = capsys.readouterr()
    assert "foreign.kptrace is not a trace" in printed.err and "future.kptrace is a trace of version 99" in printed.err
    assert f"{damaged}: no entry of a trace begins at byte" in printed.err
    assert "run damaged: 8 requests" in printed.out and "run torn: 7 requests" in printed.out


def test_trace_table_job_prints_singular_nouns_for_1_row_and_commas_in_large_counts() -> None:
    rows = {**dict.fromkeys(TABLES, 1), "requests": 2000}
    assert tables.row_counts_text(rows) == (
        "2,000 requests, 1 partition, 1 batch, 1 event, 1 state, 1 group, 1 group_offset, 1 transaction"
    )
    assert tables.row_counts_text({"requests": 1, "batches": 0}) == "1 request, 0 batches"


def test_trace_table_job_ignores_a_copied_trace_file_and_names_the_copy_in_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace"
    path = write(trace, traffic(), "r")
    (trace / "r-copy.kptrace").write_bytes(path.read_bytes())
    assert tables.main([str(trace), str(tmp_path / "out"), "--without-spark"]) == 2
    printed = capsys.readouterr()
    assert "run r: 8 requests" in printed.out and "r-copy.kptrace has the same header as" in printed.err


def test_trace_table_job_without_a_trace_writes_no_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "trace").mkdir()
    with pytest.raises(TraceError, match="contains no trace"):
        build(tmp_path / "trace", tmp_path / "out")
    assert tables.main([str(tmp_path / "nowhere"), str(tmp_path / "out"), "--without-spark"]) == 2
    assert "nowhere contains no trace" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_trace_table_job_rejects_an_output_folder_with_files_other_than_tables(tmp_path: Path) -> None:
    write(tmp_path / "trace", traffic())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letters.txt").write_text("mine")
    with pytest.raises(StoreError, match="out holds files that are not tables"):
        build(tmp_path / "trace", tmp_path / "out")
    assert contents(tmp_path / "out") == {"letters.txt": b"mine"}


@pytest.mark.parametrize(
    ("change", "error_text"),
    [
        (
            lambda trace, entries: (trace / "r-00000.kptrace").rename(trace / "r-00001.kptrace"),
            "no longer in the trace",
        ),
        (lambda trace, entries: write(trace, entries[:1]), "the run is left unchanged"),
        (lambda trace, entries: write(trace, entries * 2, wall_ms=5), "another recording with the name of a run"),
    ],
    ids=["gone", "shrunk", "other"],
)
def test_trace_tables_are_never_replaced_by_tables_of_a_shorter_or_different_trace(
    tmp_path: Path, change: Any, error_text: str
) -> None:
    entries = traffic()
    write(tmp_path / "trace", entries)
    build(tmp_path / "trace", tmp_path / "out")
    before = contents(tmp_path / "out")
    change(tmp_path / "trace", entries)
    counts, [notice] = build(tmp_path / "trace", tmp_path / "out")
    assert counts == {} and error_text in notice.text and not notice.torn
    assert contents(tmp_path / "out") == before


class Died(Exception):
    pass


@contextmanager
def living(steps: int) -> Iterator[None]:
    """Kill the job at its nth step within the block: instead of the step, or halfway through the removal of a folder."""
    remaining = [steps]

    def dying(real: Any, halfway: Any = lambda *arguments: None) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if not remaining[0]:
                halfway(*arguments)
                raise Died
            remaining[0] -= 1
            return real(*arguments, **options)

        return call

    def halfway(folder: Path, *_: Any) -> None:
        for file in [path for path in folder.rglob("*") if path.is_file()][:1]:
            file.unlink()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module.shutil, "rmtree", dying(shutil.rmtree, halfway))
        for name in ("rename", "replace", "mkdir", "rmdir", "write_text"):
            patch.setattr(Path, name, dying(getattr(Path, name)))
        yield


@pytest.mark.parametrize("added", [True, False], ids=["added", "replaced"])
def test_trace_table_job_builds_complete_tables_after_jobs_were_killed_at_any_step(tmp_path: Path, added: bool) -> None:
    """The job dies at each of its steps, and the next job at its fourth; exactly one step is the commit."""
    trace, saved, out, entries = tmp_path / "trace", tmp_path / "kept", tmp_path / "out", traffic(2)
    first = write(trace, entries[:4])
    build(trace, saved)
    if not added:
        shutil.rmtree(saved / store_module.PLACES)
    before = contents(saved)
    with first.open("ab") as file:
        file.write(encoded(entries[4:]))
    build(trace, tmp_path / "fresh")
    whole = {table: rows(tmp_path / "fresh", table) for table in TABLES}
    decided = []
    for steps in itertools.count():
        shutil.copytree(saved, out)
        try:
            with living(steps):
                build(trace, out)
        except Died:
            decided.append((out / store_module.COMMIT).exists() or contents(out) != before | left_over(out))
            with contextlib.suppress(Died), living(3):
                build(trace, out)
        else:
            break
        counts, notices = build(trace, out)
        assert notices == [] and (counts == {} or not decided[-1])
        assert {table: rows(out, table) for table in TABLES} == whole
        assert len(list((out / "requests").rglob("*.parquet"))) == 1 + added
        for name in (store_module.MANIFEST, f"{store_module.PLACES}/run=r/{store_module.PLACE_FILE}"):
            assert (out / name).read_text() == (tmp_path / "fresh" / name).read_text()
        assert sorted(os.listdir(out)) == OURS
        shutil.rmtree(out)
    assert decided == sorted(decided) and decided.count(True) > 8 < decided.count(False)


def left_over(out: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(out).items() if name.startswith(store_module.STAGING)}


def test_trace_table_job_that_fails_while_writing_leaves_the_tables_unchanged(tmp_path: Path) -> None:
    trace, out = tmp_path / "trace", tmp_path / "out"
    write(trace, traffic(), "a")
    build(trace, out)
    before = contents(out)
    write(trace, traffic(), "b")

    def dies(runs: list[Run], staging: Path) -> writing.Written:
        tables.without_spark(runs, staging)
        raise Died

    with pytest.raises(Died):
        tables.build(trace, out, dies)
    assert contents(out) == before | left_over(out)
    assert list(build(trace, out)[0]) == ["b"] and not (out / "_staging").exists()


def test_two_trace_table_jobs_cannot_write_the_same_tables_at_the_same_time(tmp_path: Path) -> None:
    write(tmp_path / "trace", traffic())
    with Store(tmp_path / "out").locked(), pytest.raises(StoreError, match="another job is writing these tables"):
        build(tmp_path / "trace", tmp_path / "out")


NO_RUNS = ("[]", '{"r": 1}', '{"r": {"files": {}}}', '{"r": {"files": {"f": "9"}, "rows": {}}}')


def test_trace_table_job_rejects_a_manifest_file_that_is_damaged_or_too_new(tmp_path: Path) -> None:
    write(tmp_path / "trace", traffic())
    (tmp_path / "out").mkdir()
    for text in ('{"format": 99, "runs": {}}', "{", *(f'{{"format": 1, "runs": {runs}}}' for runs in NO_RUNS)):
        (tmp_path / "out" / store_module.MANIFEST).write_text(text)
        with pytest.raises(StoreError, match="_manifest"):
            build(tmp_path / "trace", tmp_path / "out")


def test_tables_of_a_recording_with_dot_dot_in_its_name_stay_in_the_output_folder(tmp_path: Path) -> None:
    write(tmp_path / "trace", traffic(), "../../a=b", name="x")
    build(tmp_path / "trace", tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["out", "trace"]
    assert sorted(os.listdir(tmp_path / "out")) == OURS


@pytest.mark.parametrize("name", ["r" * 252, "\ud800"])
def test_trace_table_job_skips_a_recording_with_an_invalid_name_and_returns_a_notice(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "trace", traffic(), name, name="x")
    write(tmp_path / "trace", traffic(), "good")
    counts, [notice] = build(tmp_path / "trace", tmp_path / "out")
    assert list(counts) == ["good"] and str(path) in notice.text and not notice.torn


AN_EXCHANGE = next(entry for entry in traffic() if isinstance(entry, Exchange))
DAMAGED: list[Entry] = [
    AN_EXCHANGE._replace(clock_ms=1 << 60),
    AN_EXCHANGE._replace(seq=1 << 63),
    State(9, 0, -(1 << 62), 0, (Positions("t", 0, False, 1, 1, 0, 1),)),
    Event("e", {"seq": "x", "clock_ms": 0, "broker": 0}),
    Event("e", {"seq": 1 << 63, "clock_ms": 0, "broker": 0}),
    Event("e", {"seq": 1, "clock_ms": 0, "broker": {}}),
    Event("problem", {"seq": 1, "clock_ms": 0, "broker": 0}),
    Event("opened", {"seq": 1, "clock_ms": 0, "broker": 0, "connection": None}),
]


@pytest.mark.parametrize("damaged", DAMAGED)
def test_trace_table_job_skips_entries_with_invalid_values_and_returns_a_notice(tmp_path: Path, damaged: Entry) -> None:
    trace, out, entries = tmp_path / "trace", tmp_path / "out", traffic()
    write(trace, [*entries[:3], damaged, *entries[3:]], "bad")
    write(trace, entries, "good")
    counts, [notice] = build(trace, out)
    assert (
        counts["bad"] == counts["good"]
        and notice.run == "bad"
        and not notice.torn
        and "do not fit into a row" in notice.text
    )
    write(trace, entries[:1], "bad", 1)
    _, [again] = build(trace, out)
    assert again == notice


@pytest.mark.parametrize("name", TIMES)
def test_trace_table_job_skips_files_with_an_invalid_start_time_and_returns_a_notice(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "trace", traffic(), "bad", **{name: "noon"})
    write(tmp_path / "trace", traffic(), "good")
    counts, [notice] = build(tmp_path / "trace", tmp_path / "out")
    assert list(counts) == ["good"] and str(path) in notice.text


def test_progress_line_of_a_trace_table_job_contains_the_percentage_already_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "ENTRIES_PER_NOTE", 3)
    monkeypatch.setattr(tables, "PROGRESS_INTERVAL_S", 0.001)
    write(tmp_path / "trace", traffic(), "a")
    write(tmp_path / "trace", traffic(), "a", 1)
    [run], _ = runs_of(tmp_path / "trace")
    noted: list[int] = []
    assert list(reading.batches(run, noted.append))
    assert noted == sorted(noted) and len(noted) > 4 and noted[-1] == sum(run.sizes)
    notes = tmp_path / "notes"
    notes.mkdir()
    tables.note_read(notes, 0, sum(run.sizes) // 4 + 1)
    progress_lines: queue.Queue[str] = queue.Queue()
    with tables.report_progress([run], notes, progress_lines.put):
        assert progress_lines.get(timeout=30).endswith(" MB read, 25 %")
        tables.note_read(notes, 0, sum(run.sizes))
        while "everything is read" not in progress_lines.get(timeout=30):
            pass
