"""Golden runs: responses, journal and trace equal the committed bytes and times."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.api import APIS
from kafkaproto.broker.assembly import SEMANTICS
from kafkaproto.broker.config.release import RELEASES, ranges_of
from kafkaproto.broker.requests.registry import advertised
from kafkaproto.broker.server.trace_writer import TraceWriter
from tests.golden.decoding import Decoder, report
from tests.golden.files import RUNS, committed, packed, unpacked
from tests.golden.recording import RecordedClient, RecordedCluster, entries_of

ROOT = Path(__file__).resolve().parents[2]
MADE_WITH = "2.14.0"
"""The version of cramjam that compressed the records of down-converted fetches (api-Fetch, scenario-down_conversion)."""
ADVICE = (
    "If the change is wanted, run `python -m tests.golden --write` and commit the files with it. "
    f"Down-converted records were compressed by cramjam {MADE_WITH}; here is {version('cramjam')}."
)


@pytest.mark.parametrize("name", RUNS)
def test_output_of_a_golden_run_equals_the_output_committed_in_the_repository(name: str) -> None:
    difference = report(name, committed(name), RUNS[name]())
    if difference:
        pytest.fail(f"{difference}\n\n{ADVICE}", pytrace=False)


def test_each_golden_run_has_a_committed_output_file_and_no_other_such_file_exists() -> None:
    committed_names = {path.name.removesuffix(".z") for path in (Path(__file__).parent / "data").iterdir()}
    assert committed_names == set(RUNS)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_golden_runs_include_a_response_for_each_api_version_of_each_kafka_release(semantics: str) -> None:
    offered = {
        (key, number)
        for release in RELEASES
        for key, api_range in advertised(ranges_of(release)).items()
        for number in range(api_range.min_version, api_range.max_version + 1)
    }
    answered: set[tuple[int, int]] = set()
    for name in RUNS:
        if name.startswith("api-") and name.endswith(f"-{semantics}"):
            decoder = Decoder()
            for line in committed(name):
                if line.startswith(("request ", "response ")):
                    decoder.decode(line)
            answered.update(decoder.answered)
    missing = [f"{APIS[key].name} v{number}" for key, number in sorted(offered - answered)]
    assert not missing, missing


# ---- the comparison notices every kind of change ----------------------------------------------------------------------------

Change = Callable[[pytest.MonkeyPatch], None]


def change_a_response_byte(patch: pytest.MonkeyPatch) -> None:
    write = RecordedClient.write

    def changed(client: RecordedClient, buffers: Sequence[Any]) -> bool:
        client.raw = True
        return write(client, [*buffers[:-1], bytes(buffers[-1])[:-1] + b"\x2a"])

    patch.setattr(RecordedClient, "write", changed)


def change_a_time(patch: pytest.MonkeyPatch) -> None:
    note = RecordedCluster.note

    def late(cluster: RecordedCluster, title: str, more: str = "") -> None:
        if title.startswith("response"):
            cluster.clock.advance(1)
        note(cluster, title, more)

    patch.setattr(RecordedCluster, "note", late)


def lose_a_response(patch: pytest.MonkeyPatch) -> None:
    write = RecordedClient.write

    def lost(client: RecordedClient, buffers: Sequence[Any]) -> bool:
        client.raw = True
        return True if client.number == 9 else write(client, buffers)

    patch.setattr(RecordedClient, "write", lost)


def close_a_connection(patch: pytest.MonkeyPatch) -> None:
    finish = RecordedCluster.finish

    def closed(cluster: RecordedCluster) -> list[str]:
        cluster.state.nodes[0].close_connections()
        return finish(cluster)

    patch.setattr(RecordedCluster, "finish", closed)


def add_a_journal_event(patch: pytest.MonkeyPatch) -> None:
    finish = RecordedCluster.finish

    def noted(cluster: RecordedCluster) -> list[str]:
        cluster.state.record(None)
        cluster.state.events.noted(cluster.now_ms, 0, "leader", {"topic": "orders"})
        return finish(cluster)

    patch.setattr(RecordedCluster, "finish", noted)


def change_a_trace_byte(patch: pytest.MonkeyPatch) -> None:
    finish = RecordedCluster.finish

    def changed(cluster: RecordedCluster) -> list[str]:
        cluster.state.record(None)
        at = cluster._trace.index(b'"kind":"topic"') + 8
        cluster._trace[at] = ord("T")
        return finish(cluster)

    patch.setattr(RecordedCluster, "finish", changed)


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (change_a_response_byte, "response on connection"),
        (change_a_time, "response on connection"),
        (lose_a_response, "-response on connection 9 "),
        (close_a_connection, "+closed "),
        (add_a_journal_event, "+journal event"),
        (change_a_trace_byte, "+trace event Topic"),
    ],
)
def test_golden_run_report_shows_which_line_was_changed_removed_or_added(
    change: Change, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "api-ListGroups-kip"
    change(monkeypatch)
    lines = RUNS[name]()
    monkeypatch.undo()
    assert lines != committed(name)
    difference = report(name, committed(name), lines)
    assert shown in difference, difference


def test_golden_comparison_reports_trace_entries_that_the_broker_failed_to_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put = TraceWriter.put
    pieces: list[bytes] = []

    def lossy(writer: TraceWriter, data: bytes, entries: int = 1) -> None:
        pieces.append(data)
        if len(pieces) != 1:
            put(writer, data, entries)

    monkeypatch.setattr(TraceWriter, "put", lossy)
    for name in ("scenario-trace_file-kip", "scenario-trace_files-kip"):
        pieces.clear()
        lines = RUNS[name]()
        lost = {f"entry {entry.hex()}" for entry in entries_of(pieces[0])}
        assert lost
        assert lost == {line for line in committed(name) if line.startswith("entry ")} - set(lines)


def test_pyproject_pins_the_cramjam_version_used_to_create_the_golden_files() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"cramjam=={MADE_WITH}" in project["optional-dependencies"]["dev"]


def test_golden_comparison_fails_if_one_line_is_changed_or_removed() -> None:
    lines = committed("release-1.1-kip")
    assert unpacked(packed(lines)) == lines
    for number in range(0, len(lines), 23):
        line = lines[number]
        changed = [*lines[:number], line[:-1] + ("0" if line[-1] != "0" else "1"), *lines[number + 1 :]]
        assert report("changed", lines, changed), line
        assert report("shorter", lines, lines[:number] + lines[number + 1 :]), line


def test_golden_run_difference_report_names_the_changed_field(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "scenario-forced_throttles-kip"
    lines = [line.replace("000002bc", "000002bd") for line in committed(name)]  # 700 and 701 ms
    difference = report(name, committed(name), lines)
    assert '- "throttleTimeMs": 700' in difference
    assert '+ "throttleTimeMs": 701' in difference


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_golden_run_output_equals_the_committed_output_for_any_python_hash_seed(seed: str) -> None:
    name = "scenario-group_rebalances-kafka"
    script = (
        "import sys\nfrom tests.golden.files import RUNS, packed\n"
        f"run = RUNS[{name!r}]\nrun()\nsys.stdout.buffer.write(packed(run()))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    completed = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, check=True
    )
    assert unpacked(completed.stdout) == committed(name)
