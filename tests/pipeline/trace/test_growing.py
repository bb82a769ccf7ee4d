"""Tables of a growing trace: each entry becomes rows once, equal to those of reading the complete trace."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaproto.pipeline.trace import place as place_module
from kafkaproto.pipeline.trace import rows as rows_module
from kafkaproto.pipeline.trace import tables as tables_module
from kafkaproto.pipeline.trace.reading import batches
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.runs import runs_of
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.pipeline.trace.store import MANIFEST, PLACE, PLACE_FILE, PLACES
from kafkaproto.trace.format import Entry, Exchange
from tests.support.memory import memory_left_within
from tests.support.pipeline.recorded import encoded, life, traffic, write
from tests.support.pipeline.tables import build, rows

LIFE = life()


def tables(out: Path) -> dict[str, list[dict[str, Any]]]:
    return {table: rows(out, table) for table in TABLES}


def manifest(out: Path) -> dict[str, Any]:
    runs: dict[str, Any] = json.loads((out / MANIFEST).read_text())["runs"]
    return runs


@contextmanager
def counted() -> Iterator[list[Entry]]:
    """Collect the entries that are turned into rows."""
    entries_read: list[Entry] = []
    real = Rows.of

    def of(self: Rows, entry: Entry) -> Any:
        entries_read.append(entry)
        return real(self, entry)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rows, "of", of)
        yield entries_read


def same_as_all_at_once(trace: Path, out: Path) -> bool:
    """Return whether the tables, the manifest and the stored state equal those of one complete build."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "out"
        build(trace, fresh)
        return tables(fresh) == tables(out) and manifest(fresh) == manifest(out)


@settings(deadline=None, max_examples=20)
@given(
    rotated=st.lists(st.integers(1, len(LIFE) - 1), max_size=2, unique=True),
    steps=st.lists(st.floats(0, 1, exclude_min=True, exclude_max=True), max_size=4),
)
def test_tables_of_a_growing_trace_equal_those_of_the_complete_trace(rotated: list[int], steps: list[float]) -> None:
    """rotated: entries at which a file begins.

    steps: sizes of all files in bytes at which the trace ends for a while: within an entry, within a header, between files.
    """
    with tempfile.TemporaryDirectory() as folder, counted() as entries_read:
        trace, out = Path(folder) / "trace", Path(folder) / "out"
        parts = [LIFE[a:b] for a, b in pairwise([0, *sorted(rotated), len(LIFE)])]
        whole = {path: path.read_bytes() for path in (write(trace, p, number=n) for n, p in enumerate(parts))}
        for path in whole:
            path.unlink()
        total = sum(map(len, whole.values()))
        for end in [*sorted(int(total * step) for step in steps), total]:
            remaining = end
            for path, data in whole.items():
                if remaining > 0:
                    path.write_bytes(data[:remaining])
                remaining -= len(data)
            if end:
                _, notices = build(trace, out)
        assert notices == [] and encoded(entries_read[1:]) == encoded(LIFE)
        assert same_as_all_at_once(trace, out)
        built = tables(out)
        assert manifest(out)["r"]["rows"] == {table: len(built[table]) for table in TABLES}


def test_table_rows_are_equal_if_building_stops_and_resumes_after_any_trace_entry() -> None:
    whole = Rows("r", 0, 0)
    rows_at_once = [row for entry in LIFE for row in whole.of(entry)]
    for cut in range(len(LIFE) + 1):
        before = Rows("r", 0, 0)
        table_rows = [row for entry in LIFE[:cut] for row in before.of(entry)]
        after = Rows.from_carried("r", 0, 0, json.loads(json.dumps(before.carried())))
        assert after.carried() == before.carried()
        assert table_rows + [row for entry in LIFE[cut:] for row in after.of(entry)] == rows_at_once
        assert json.dumps(after.carried()) == json.dumps(whole.carried())
    requests = [row for table, row in rows_at_once if table == "requests"]
    assert {row["session_missing"] for row in requests} >= {0, 1}
    assert {row["throttle_quota"] for row in requests} >= {"Produce", "Forced"}


def test_trace_table_job_reads_only_new_entries_of_a_trace_and_adds_parquet_files(tmp_path: Path) -> None:
    trace, out, entries = tmp_path / "trace", tmp_path / "out", traffic(8)
    write(trace, entries[:2])
    with counted() as entries_read:
        counts, _ = build(trace, out)
        assert counts["r"] == {table: len(table_rows) for table, table_rows in tables(out).items()}
        for at in range(2, len(entries)):
            modified_ns = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
            if at == 6:
                path = write(trace, entries[at : at + 1], number=1)
            else:
                path = max(trace.iterdir())
                path.write_bytes(path.read_bytes() + encoded(entries[at : at + 1]))
            del entries_read[:]
            counts, notices = build(trace, out)
            new = {table: len(table_rows) for table, table_rows in tables(out).items()}
            assert entries_read == [entries[at]] and notices == []
            assert counts["r"]["requests"] == isinstance(entries[at], Exchange) and sum(counts["r"].values())
            assert manifest(out)["r"]["rows"] == new
            assert {path: path.stat().st_mtime_ns for path in modified_ns} == modified_ns
    assert same_as_all_at_once(trace, out)


def test_retried_spark_task_reads_a_growing_trace_up_to_its_size_at_the_job_start(tmp_path: Path) -> None:
    path = write(tmp_path, LIFE[:20])
    [run], _ = runs_of(tmp_path)
    before = [(table, rows.to_pylist()) for table, rows in batches(run)]
    whole = encoded(LIFE[20:])
    for data in (whole[:-9], whole[-9:]):
        with path.open("ab") as file:
            file.write(data)
        assert [(table, rows.to_pylist()) for table, rows in batches(run)] == before
    assert before[-1][0] == PLACE and json.loads(before[-1][1][0]["text"])["offset"] == run.sizes[0]


def test_trace_table_job_adds_no_rows_for_an_incomplete_new_trace_entry(tmp_path: Path) -> None:
    trace, out, entries = tmp_path / "trace", tmp_path / "out", traffic()
    path = write(trace, entries[:-1])
    build(trace, out)
    before, whole = tables(out), path.read_bytes() + encoded(entries[-1:])
    path.write_bytes(whole[:-1])
    counts, [notice] = build(trace, out)
    assert counts == {} and notice.torn and tables(out) == before and manifest(out)["r"]["notices"] == [notice.text]
    path.write_bytes(whole)
    counts, new_notices = build(trace, out)
    assert counts["r"]["requests"] == 1 and new_notices == [] and manifest(out)["r"]["notices"] == []
    assert same_as_all_at_once(trace, out)


# ---- where the job cannot continue --------------------------------------------------------------------------------------------


def the_place(out: Path) -> Path:
    return out / PLACES / "run=r" / PLACE_FILE


def replaced(out: Path, text: str) -> None:
    """Replace the trace so that only the check of the stored position can notice it."""
    the_place(out).write_text(text)
    manifest_json = json.loads((out / MANIFEST).read_text())
    manifest_json["runs"]["r"][PLACE] = sha256(text.encode()).hexdigest()
    (out / MANIFEST).write_text(json.dumps(manifest_json))


def another(out: Path, **changes: Any) -> None:
    replaced(out, json.dumps(json.loads(the_place(out).read_text()) | changes))


def carrying(out: Path, **changes: Any) -> None:
    another(out, carried=json.loads(the_place(out).read_text())["carried"] | changes)


SPOILED: dict[str, Callable[[Path, Path], Any]] = {
    "gone": lambda trace, out: the_place(out).unlink(),
    "cut short": lambda trace, out: the_place(out).write_bytes(the_place(out).read_bytes()[:-7]),
    "no text": lambda trace, out: the_place(out).write_bytes(b"\xff\xfe" * 9),
    "of other rows": lambda trace, out: the_place(out).write_text(the_place(out).read_text() + " "),
    "no JSON": lambda trace, out: replaced(out, "{"),
    "a list": lambda trace, out: replaced(out, "[]"),
    "deep": lambda trace, out: replaced(out, "[" * 100_000),
    "another form": lambda trace, out: another(out, fingerprint="0"),
    "more than there is": lambda trace, out: another(out, new=1),
    "beyond the end": lambda trace, out: another(out, offset=10**9),
    "no number": lambda trace, out: another(out, offset="12"),
    "half a byte": lambda trace, out: another(out, offset=json.loads(the_place(out).read_text())["offset"] - 0.5),
    "at the beginning": lambda trace, out: another(out, offset=0),
    "another file": lambda trace, out: another(out, file="r-00000.kptrace"),
    "a file that is not there": lambda trace, out: another(out, file="x"),
    "another header": lambda trace, out: another(out, meta={}),
    "nothing carried": lambda trace, out: another(out, carried=None),
    "no sessions": lambda trace, out: carrying(out, sessions=7),
    "sessions of another form": lambda trace, out: carrying(out, sessions=[[0, 1, 2, 3, [["t", "00", 0]]]]),
    "a folder elsewhere": lambda trace, out: carrying(
        out, connections=[[n, {"hour": "/../../../../../x"}] for n in range(9)]
    ),
    "a throttle of another run": lambda trace, out: carrying(out, throttles=[[2, 1, {"run": "x"}]]),
    "no throttles": lambda trace, out: carrying(out, throttles=[[1]]),
    "a file before it": lambda trace, out: write(trace, traffic(1), number=9, name="q"),
    "a file before it has grown": lambda trace, out: write(trace, [*LIFE[:9], *LIFE[:1]]),
}


@pytest.mark.parametrize("how", SPOILED)
def test_trace_is_read_from_its_start_if_the_saved_position_is_missing_or_invalid(tmp_path: Path, how: str) -> None:
    trace, out = tmp_path / "trace", tmp_path / "out"
    write(trace, LIFE[:9])
    write(trace, LIFE[9:-4], number=1)
    build(trace, out)
    SPOILED[how](trace, out)
    write(trace, LIFE[9:], number=1)
    with counted() as entries_read:
        counts, notices = build(trace, out)
    assert notices == [] and len(entries_read) > len(LIFE)
    assert (
        counts["r"]
        == manifest(out)["r"]["rows"]
        == {table: len(table_rows) for table, table_rows in tables(out).items()}
    )
    assert same_as_all_at_once(trace, out)
    write(trace, LIFE[:1], number=2)
    with counted() as entries_read:
        build(trace, out)
    assert len(entries_read) == 1  # from there on the job continues incrementally


def test_trace_tables_written_by_another_program_version_are_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, out = tmp_path / "trace", tmp_path / "out"
    write(trace, LIFE[:20])
    with monkeypatch.context() as patch:
        patch.setattr(place_module, "FINGERPRINT", "of another")
        build(trace, out)
    write(trace, LIFE)
    with counted() as entries_read:
        build(trace, out)
    assert len(entries_read) == 1 + len(LIFE) and same_as_all_at_once(trace, out)


def test_trace_tables_of_another_version_are_rebuilt_even_if_the_trace_is_unchanged(tmp_path: Path) -> None:
    """An older version left no states and no fingerprint of its format."""
    trace, out = tmp_path / "trace", tmp_path / "out"
    write(trace, LIFE)
    build(trace, out)
    shutil.rmtree(out / "state")
    manifest_json = json.loads((out / MANIFEST).read_text())
    del manifest_json["runs"]["r"][tables_module.FORM]
    (out / MANIFEST).write_text(json.dumps(manifest_json))
    assert list(build(trace, out)[0]) == ["r"] and same_as_all_at_once(trace, out)
    assert build(trace, out) == ({}, [])


@pytest.mark.parametrize("number", [0, 1])
def test_trace_table_job_repeats_the_notice_of_an_earlier_job_about_a_damaged_file(tmp_path: Path, number: int) -> None:
    """In the last file the entry is invalid; an earlier file may also end within an entry."""
    trace, out = tmp_path / "trace", tmp_path / "out"
    files = [write(trace, LIFE[:9]), write(trace, LIFE[9:20], number=1)]
    build(trace, out)
    with files[number].open("ab") as file:
        file.write(encoded(LIFE[:1])[:-2] if number == 0 else bytes(9))
    _, [damage_notice] = build(trace, out)
    assert damage_notice.torn == (number == 0) and str(files[number]) in damage_notice.text
    write(trace, LIFE[20:], number=2)
    with counted() as entries_read:
        _, [again] = build(trace, out)
    assert again == damage_notice and manifest(out)["r"]["notices"] == [damage_notice.text]
    assert len(entries_read) == 1 + len(LIFE) and same_as_all_at_once(trace, out)


def test_trace_table_job_that_rebuilds_tables_deletes_the_saved_reading_position(tmp_path: Path) -> None:
    trace, out = tmp_path / "trace", tmp_path / "out"
    path = write(trace, LIFE)
    build(trace, out)
    for _ in range(2):  # the first attempt continues at the stored position, and leaves none behind
        assert list((out / PLACES).iterdir())
        path.write_bytes(path.read_bytes() + bytes(9))
        build(trace, out)
        assert PLACE not in manifest(out)["r"]
    assert not list((out / PLACES).iterdir()) and same_as_all_at_once(trace, out)


# ---- the stored state stays small ---------------------------------------------------------------------------------------------


def clients_that_come_and_go(count: int) -> list[Entry]:
    """Return entries of clients that each report a name and start a session. Only the first connection stays open."""
    from kafkaproto.messages.api_versions import ApiVersionsRequest
    from tests.support.recording import Bench
    from tests.support.wire import fetch

    bench = Bench()
    remaining = bench.cluster.connect()
    session_id = remaining.ask(fetch(("t", 0, 0), session=(0, 0)), 11).session_id
    for _ in range(count):
        client = bench.cluster.connect()
        client.ask(ApiVersionsRequest("its name", "1.2"), 3)
        client.ask(fetch(("t", 0, 0), ("t", 1, 0), session=(0, 0)), 11)
        client.finish()
    remaining.ask(fetch(session=(session_id, 1)), 11)
    return bench.entries


def test_trace_table_job_state_is_no_larger_after_50_than_after_5_closed_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows_module, "LATE_CONNECTIONS", 3)
    sizes = []
    for count in (5, 50):
        row_builder = Rows("r", 0, 0)
        state_sizes = [
            row
            for entry in clients_that_come_and_go(count)
            for table, row in row_builder.of(entry)
            if table == "requests"
        ]
        state = row_builder.carried()
        sizes.append((len(state["sessions"]), len(state["connections"]), len(state["closed"])))
        assert state_sizes[-1]["session_expected"] == 1 and state_sizes[-1]["requested_partitions"] == 1
    assert sizes == [(4, 4, 3)] * 2


def test_memory_for_building_trace_tables_does_not_grow_with_closed_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows_module, "LATE_CONNECTIONS", 3)
    row_builder = Rows("r", 0, 0)
    entries = clients_that_come_and_go(600)
    for entry in entries[:300]:
        list(row_builder.of(entry))
    with memory_left_within(60_000):
        for entry in entries[300:]:
            list(row_builder.of(entry))


def test_row_of_a_request_traced_after_connection_close_has_the_client_software_name() -> None:
    entries = clients_that_come_and_go(1)
    at = next(n for n, entry in enumerate(entries) if not isinstance(entry, Exchange) and entry.kind == "closed")
    entries[at - 1], entries[at] = entries[at], entries[at - 1]
    row_builder = Rows("r", 0, 0)
    request_rows = [row for entry in entries for table, row in row_builder.of(entry) if table == "requests"]
    assert [row["software"] for row in request_rows if row["conn"] == entries[at].connection] == ["its name 1.2"] * 2  # type: ignore[union-attr]
