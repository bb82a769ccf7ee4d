"""Traces for tests: files with the entries that they are given, or that a cluster in virtual time has recorded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kafkaproto.trace import format as trace_format
from kafkaproto.trace.format import Entry, header
from tests.broker.test_trace import Bench
from tests.broker.wire import batch, fetch, metadata, produce

META = {"recorder": "test", "wall_ms": 1_700_000_000_000, "at_ns": 0, "clock_ms": 1_700_000_000_000}


def encoded(entries: Iterable[Entry]) -> bytes:
    return b"".join(map(trace_format.encoded, entries))


def write(
    folder: Path, entries: Iterable[Entry], run: str = "r", number: int = 0, *, name: str | None = None, **meta: Any
) -> Path:
    """A file of a trace. name: of the file, if not that of the run."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name or run}-{number:05d}.kptrace"
    path.write_bytes(header({**META, "run": run, "file": number, **meta}) + encoded(entries))
    return path


def traffic(rounds: int = 3) -> list[Entry]:
    """Produces, a fetch session of all its steps, and who is where."""
    bench = Bench()
    client = bench.cluster.connect()
    client.ask(metadata(["t"]), 12)
    session_id = client.ask(fetch(("t", 0, 0), session=(0, 0)), 11).session_id
    for step in range(1, rounds + 1):
        client.ask(produce("t", batch(b"x" * 100, b"y")), 9)
        asked = (
            fetch(session=(session_id, step))
            if step == 1
            else fetch(("t", 0, 2 * step - 2), session=(session_id, step))
        )
        client.ask(asked, 11)
    return bench.entries
