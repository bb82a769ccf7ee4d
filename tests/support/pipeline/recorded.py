"""Traces for tests: files with given entries, or entries recorded by a cluster in virtual time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.trace import format as trace_format
from kafkaproto.trace.format import Entry, header
from tests.support.recording import Bench
from tests.support.wire import batch, fetch, limit, metadata, produce, produce_of_bytes

META = {"recorder": "test", "wall_ms": 1_700_000_000_000, "at_ns": 0, "clock_ms": 1_700_000_000_000}


def encoded(entries: Iterable[Entry]) -> bytes:
    return b"".join(map(trace_format.encoded, entries))


def write(
    folder: Path, entries: Iterable[Entry], run: str = "r", number: int = 0, *, name: str | None = None, **meta: Any
) -> Path:
    """Write one trace file. name: the file name, by default that of the run."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name or run}-{number:05d}.kptrace"
    path.write_bytes(header({**META, "run": run, "file": number, **meta}) + encoded(entries))
    return path


def traffic(rounds: int = 3) -> list[Entry]:
    """Return the entries of produces, every step of a fetch session, and metadata requests."""
    bench = Bench()
    client = bench.cluster.connect()
    client.ask(metadata(["t"]), 12)
    session_id = client.ask(fetch(("t", 0, 0), session=(0, 0)), 11).session_id
    for step in range(1, rounds + 1):
        client.ask(produce("t", batch(b"x" * 100, b"y")), 9)
        requests = (
            fetch(session=(session_id, step))
            if step == 1
            else fetch(("t", 0, 2 * step - 2), session=(session_id, step))
        )
        client.ask(requests, 11)
    return bench.entries


def life() -> list[Entry]:
    """Return entries that contain everything later entries depend on.

    Names and versions of clients, names of topics, sessions of two clients on the same partitions that continue over an hour (one with a
    wrong response), throttles, and a closed connection.
    """
    bench = Bench(config={"connections.max.idle.ms": "-1"})
    cluster = bench.cluster
    limit(cluster, "w", producer_byte_rate=10_000.0)
    topic_id = cluster.state.controller.image.topics["t"].topic_id
    writer, first, second = (cluster.connect(client_id=name) for name in ("w", "a", "b"))
    for client in (writer, first, second):
        client.ask(ApiVersionsRequest("its name", "1.2"), 3)
    by_id: dict[str, Any] = {"topic_ids": {"": topic_id}, "version": 13}
    sessions = [
        client.ask(fetch(("", 0, 0), ("", 1, 0), session=(0, 0), **by_id), 13).session_id for client in (first, second)
    ]
    first.ask(metadata(["t"]), 12)
    for step in range(1, 5):
        writer.ask(
            produce_of_bytes(writer, "t", 105_000) if step == 2 else produce("t", batch(b"x", b"y"), step % 2), 9
        )
        cluster.advance(1_800_000)
        for client, session_id in zip((first, second), sessions, strict=True):
            restarts = [("", 1, step)] if step % 2 else []
            client.ask(fetch(*restarts, session=(session_id, step), **by_id), 13)
    second.ask(fetch(("", 0, 3), ("", 1, 4), session=(sessions[1], 5), **by_id), 13)
    nothing = bench.exchanges[-1]
    writer.ask(produce("t", batch(b"x")), 9)
    first.ask(fetch(session=(sessions[0], 5), **by_id), 13)
    second.ask(fetch(session=(sessions[1], 6), **by_id), 13)
    keeps = bench.exchanges[-1]
    bench.entries[bench.entries.index(keeps)] = keeps._replace(
        response=keeps.response[:4] + nothing.response[4:], response_records=()
    )
    cluster.state.forced_throttles.add(ForcedThrottle(7))
    second.ask(metadata(["t"]), 12)
    second.finish()
    cluster.advance(100)
    cluster.connect(client_id="c").ask(fetch(("", 0, 0), **by_id), 13)
    return bench.entries
