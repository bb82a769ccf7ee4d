"""Capture files as runs of traces, and what connections tell as rows, of which topics' names and brokers' ids are filled in at the end.

A run is a file. Its numbers are those of packets, so that tasks need not agree on them. Must never know Spark, nor where tables are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkaproto.pipeline.capture.connections import Pair
from kafkaproto.pipeline.capture.connections import Told as ToldOfConnection
from kafkaproto.pipeline.capture.conversation import UNKNOWN_BROKER
from kafkaproto.pipeline.capture.files import NAMED, Capture
from kafkaproto.pipeline.capture.packets import Ends, Pass
from kafkaproto.pipeline.trace.columns import Row
from kafkaproto.pipeline.trace.reading import ROWS_PER_BATCH, SCHEMAS, TOLD
from kafkaproto.pipeline.trace.rows import Known, Rows
from kafkaproto.pipeline.trace.runs import Run, Told
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.trace.format import Entry, Event, TraceError

NS_PER_MS = 1_000_000
RECORDER = "capture"
_LOCAL = {"localhost": ("127.0.0.1", "::1")}


def files_of(path: Path) -> list[Path]:
    """The captures of a folder, or the one file if it is one."""
    found = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in found if NAMED.search(file.name) and file.is_file()]


def runs_of(path: Path, ports: Iterable[int]) -> tuple[list[Run], list[Told]]:
    """A run for each capture file, and what has to be said of files that are none. ports: of the brokers, empty: whoever speaks Kafka."""
    runs, told = [], []
    for file in files_of(path):
        try:
            first = next(Capture(file).packets(), None)
        except (TraceError, OSError) as error:
            told.append(Told("", str(error), False))
            continue
        wall_ms = 0 if first is None else first.ts_ns // NS_PER_MS
        meta = {"recorder": RECORDER, "wall_ms": wall_ms, "at_ns": wall_ms * NS_PER_MS, "ports": sorted(ports)}
        runs.append(Run(file.name, meta, (str(file),), (file.stat().st_size,), True))
    return runs, told


class Tabled:
    """The rows of connections: `rows` of what they tell. `known` and `servers`: what came out beside it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._rows: dict[int, Rows] = {}
        self.known = Known()
        self.servers: set[str] = set()

    def rows(self, told: ToldOfConnection) -> Iterator[tuple[str, Row]]:
        """(table, row)"""
        self.servers.add(told.server)
        rows = self._rows.get(told.number)
        if rows is None:
            meta = self._run.meta
            rows = self._rows[told.number] = Rows(self._run.name, meta["wall_ms"], meta["at_ns"], self.known)
        yield from rows.of(told.entry)
        if isinstance(told.entry, Event) and told.entry.kind == "closed":
            del self._rows[told.number]

    def forget(self) -> None:
        """No connection goes on."""
        self._rows.clear()


class Filled:
    """What is known only when all connections were read: which server is which broker, and how topics are called."""

    def __init__(self, known: Known, servers: Iterable[str]) -> None:
        self.topics = known.topics
        self.advertised = {str(key): list(versions) for key, versions in sorted(known.advertised.items())}
        self.brokers = {server: _broker_id(server, known.brokers) for server in servers}

    def fill(self, row: Row, server: str) -> Row:
        row["broker"] = self.brokers.get(server, UNKNOWN_BROKER)
        if row.get("topic_id") is not None and row["topic"] is None:
            row["topic"] = self.topics.get(row["topic_id"])
        return row


def _broker_id(server: str, brokers: dict[tuple[str, int], int]) -> int:
    """By its address; where brokers are told by names, by its port, if only one of them has it. Else -1."""
    host, _, port = server.rpartition(":")
    address = host.strip("[]")
    for (name, its_port), broker in brokers.items():
        if its_port == int(port) and address in (name, *_LOCAL.get(name, ())):
            return broker
    named = {broker for (name, its_port), broker in brokers.items() if its_port == int(port) and not _is_address(name)}
    return named.pop() if len(named) == 1 else UNKNOWN_BROKER


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def events(run: Run, filled: Filled, left_out: Counter[str]) -> list[Row]:
    """What the file is, what its brokers offer, and how many packets are in no row, as rows of the table of events."""
    rows = Rows(run.name, run.meta["wall_ms"], run.meta["at_ns"])
    begun = {"seq": 0, "clock_ms": 0, "at_ns": run.meta["at_ns"], "broker": UNKNOWN_BROKER}
    told = [Event("meta", {**run.meta, "advertised": filled.advertised, **begun})]
    if left_out:
        told.append(Event("left_out", {**begun, "packets": dict(sorted(left_out.items()))}))
    return [row for one in told for _, row in rows.of(one)]


def entries(run: Run) -> Iterator[Entry]:
    """What all connections of a file say, as it would stand in a trace."""
    for told in _told(Pass(run.name, Path(run.files[0]), frozenset(run.meta["ports"])), Counter()):
        yield told.entry


def _told(read: Pass, left_out: Counter[str]) -> Iterator[ToldOfConnection]:
    """left_out: packets of no row are counted there."""
    pairs: dict[Ends, Pair] = {}
    for ends, seen in read.segments():
        if ends not in pairs:
            pairs[ends] = Pair(ends, read.ports)
        yield from pairs[ends].take(seen)
    for pair in pairs.values():
        yield from pair.end()
        left_out.update(pair.left_out)


def batches(run: Run) -> Iterator[tuple[str, pa.RecordBatch]]:
    """(table, rows) of a run, all at its end; last what has to be said of its file, as table `TOLD`."""
    read = Pass(run.name, Path(run.files[0]), frozenset(run.meta["ports"]))
    tabled = Tabled(run)
    found: dict[str, list[tuple[str, Row]]] = {table: [] for table in TABLES}
    left_out: Counter[str] = Counter()
    for one in _told(read, left_out):
        for table, row in tabled.rows(one):
            found[table].append((one.server, row))
    left_out.update(read.left_out)
    filled = Filled(tabled.known, tabled.servers)
    whole: dict[str, list[dict[str, Any]]] = {
        table: sorted((filled.fill(row, server) for server, row in rows), key=lambda row: row["seq"])
        for table, rows in found.items()
    }
    whole["events"][:0] = events(run, filled, left_out)
    for table, rows in whole.items():
        for at in range(0, len(rows), ROWS_PER_BATCH):
            yield table, pa.RecordBatch.from_pylist(rows[at : at + ROWS_PER_BATCH], SCHEMAS[table])
    if read.told:
        yield TOLD, pa.RecordBatch.from_pylist([one._asdict() for one in read.told], SCHEMAS[TOLD])
