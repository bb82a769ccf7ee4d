"""Conversion of capture files to rows of the trace tables.

Each capture file counts as one run, that is, one recording. Topic names and broker ids are filled in after the whole file was read, because any
packet may contain them. The column `seq` of a row is computed from a packet number, so that several tasks need not share a counter. This module does
not depend on Spark or on where tables are stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkaproto.pipeline.capture.connections import ConnectionEntry as ConnectionTraceEntry
from kafkaproto.pipeline.capture.connections import Pair
from kafkaproto.pipeline.capture.conversation import UNKNOWN_BROKER
from kafkaproto.pipeline.capture.files import NAMED, Capture
from kafkaproto.pipeline.capture.packets import CapturePass, Endpoints
from kafkaproto.pipeline.trace.columns import Row
from kafkaproto.pipeline.trace.reading import NOTICES, ROWS_PER_BATCH, SCHEMAS
from kafkaproto.pipeline.trace.rows import ClusterFacts, Rows
from kafkaproto.pipeline.trace.runs import Notice, Run
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.trace.format import Entry, Event, TraceError

NS_PER_MS = 1_000_000
RECORDER = "capture"
_LOCAL = {"localhost": ("127.0.0.1", "::1")}


def files_of(path: Path) -> list[Path]:
    """Return the capture files of a folder, or the file itself if `path` is a capture file."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in files if NAMED.search(file.name) and file.is_file()]


def runs_of(path: Path, ports: Iterable[int]) -> tuple[list[Run], list[Notice]]:
    """Return a `Run` for each capture file, which counts as one recording, and messages for the user about files that cannot be read.

    path: a capture file, or a folder of them. ports: the ports on which brokers listen, to select connections. If `ports` is empty, every connection
    that speaks Kafka is selected.
    """
    runs, notices = [], []
    for file in files_of(path):
        try:
            first = next(Capture(file).packets(), None)
        except (TraceError, OSError) as error:
            notices.append(Notice("", str(error), False))
            continue
        wall_ms = 0 if first is None else first.ts_ns // NS_PER_MS
        meta = {"recorder": RECORDER, "wall_ms": wall_ms, "at_ns": wall_ms * NS_PER_MS, "ports": sorted(ports)}
        runs.append(Run(file.name, meta, (str(file),), (file.stat().st_size,), True))
    return runs, notices


class ConnectionRows:
    """Converts the trace entries of a capture's connections to table rows, and collects facts about the cluster from these entries.

    cluster: the broker ids and topic names that responses contain. servers: the address, as host:port, of the server of each connection.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._rows: dict[int, Rows] = {}
        self.cluster = ClusterFacts()
        self.servers: set[str] = set()

    def rows(self, entry: ConnectionTraceEntry) -> Iterator[tuple[str, Row]]:
        """Yield (table name, row) for each row made from `entry`: a trace entry together with the connection that it belongs to.

        A row maps the names of columns to values.
        """
        self.servers.add(entry.server)
        rows = self._rows.get(entry.number)
        if rows is None:
            meta = self._run.meta
            rows = self._rows[entry.number] = Rows(self._run.name, meta["wall_ms"], meta["at_ns"], self.cluster)
        yield from rows.of(entry.entry)
        if isinstance(entry.entry, Event) and entry.entry.kind == "closed":
            del self._rows[entry.number]

    def forget(self) -> None:
        """Drop the state of all connections whose entries were passed to `rows`. Call this only if no further entries of them follow."""
        self._rows.clear()


class ResolvedFacts:
    """Broker ids by server address, and topic names by topic id: facts that are known only after all connections were read.

    `fill` adds these facts to a row.
    """

    def __init__(self, cluster: ClusterFacts, servers: Iterable[str]) -> None:
        self.topics = cluster.topics
        self.advertised = {str(key): list(versions) for key, versions in sorted(cluster.advertised.items())}
        self.brokers = {server: _broker_id(server, cluster.brokers) for server in servers}

    def fill(self, row: Row, server: str) -> Row:
        row["broker"] = self.brokers.get(server, UNKNOWN_BROKER)
        if row.get("topic_id") is not None and row["topic"] is None:
            row["topic"] = self.topics.get(row["topic_id"])
        return row


def _broker_id(server: str, brokers: dict[tuple[str, int], int]) -> int:
    """Return the id of the broker with this address; -1 if it is unknown. server: "host:port" of the broker, from the capture.

    brokers: maps (host, port) to the broker id, from Metadata responses. The host may be a name, which cannot be compared with the captured IP
    address. If no address matches and exactly one broker with this port has a name as its host, the id of that broker is returned.
    """
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


def events(run: Run, filled: ResolvedFacts, left_out: Counter[str]) -> list[Row]:
    """Return one or two rows of the table `events`, which describe a capture as a whole, not one of its connections.

    The first row is the event `meta`, with the metadata of `run` and the API versions that brokers advertised. If packets were left out, the second
    row is the event `left_out`, with their numbers. filled: has the advertised versions. left_out: maps a reason to the number of packets left out.
    """
    rows = Rows(run.name, run.meta["wall_ms"], run.meta["at_ns"])
    common = {"seq": 0, "clock_ms": 0, "at_ns": run.meta["at_ns"], "broker": UNKNOWN_BROKER}
    header_events = [Event("meta", {**run.meta, "advertised": filled.advertised, **common})]
    if left_out:
        header_events.append(Event("left_out", {**common, "packets": dict(sorted(left_out.items()))}))
    return [row for event in header_events for _, row in rows.of(event)]


def entries(run: Run) -> Iterator[Entry]:
    """Yield the entries (exchanges and events) of all connections of a capture."""
    for connection_entry in _connection_entries(
        CapturePass(run.name, Path(run.files[0]), frozenset(run.meta["ports"])), Counter()
    ):
        yield connection_entry.entry


def _connection_entries(read: CapturePass, left_out: Counter[str]) -> Iterator[ConnectionTraceEntry]:
    """Yield the trace entries of all connections of a capture, each together with the number and the server address of its connection.

    read: reads the packets of the capture. left_out: a counter to which the function adds the number of packets that were left out, by reason.
    """
    pairs: dict[Endpoints, Pair] = {}
    for ends, segment in read.segments():
        if ends not in pairs:
            pairs[ends] = Pair(ends, read.ports)
        yield from pairs[ends].take(segment)
    for pair in pairs.values():
        yield from pair.end()
        left_out.update(pair.left_out)


def batches(run: Run) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Read the capture file of a run (one recording) to its end, then yield the rows of the trace tables as (table name, Arrow batch).

    A large table yields several batches, a table without rows yields none. If the file has problems, the last pair is ("notices", batch): each row
    of this batch is a message for the user about the file, and has the fields of `Notice` as columns.
    """
    read = CapturePass(run.name, Path(run.files[0]), frozenset(run.meta["ports"]))
    connection_rows = ConnectionRows(run)
    rows_by_table: dict[str, list[tuple[str, Row]]] = {table: [] for table in TABLES}
    left_out: Counter[str] = Counter()
    for entry in _connection_entries(read, left_out):
        for table, row in connection_rows.rows(entry):
            rows_by_table[table].append((entry.server, row))
    left_out.update(read.left_out)
    filled = ResolvedFacts(connection_rows.cluster, connection_rows.servers)
    complete_rows: dict[str, list[dict[str, Any]]] = {
        table: sorted((filled.fill(row, server) for server, row in rows), key=lambda row: row["seq"])
        for table, rows in rows_by_table.items()
    }
    complete_rows["events"][:0] = events(run, filled, left_out)
    for table, rows in complete_rows.items():
        for at in range(0, len(rows), ROWS_PER_BATCH):
            yield table, pa.RecordBatch.from_pylist(rows[at : at + ROWS_PER_BATCH], SCHEMAS[table])
    if read.notices:
        yield NOTICES, pa.RecordBatch.from_pylist([entry._asdict() for entry in read.notices], SCHEMAS[NOTICES])
