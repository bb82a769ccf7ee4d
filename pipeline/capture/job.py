"""Conversion of packet captures into the trace tables, by Spark.

Each capture file is read once, by one task. Spark then groups the TCP segments by connection and sorts them. Further tasks convert the segments of
one connection at a time into rows of the tables. Topic names and broker ids are joined at the end. Memory never holds a whole connection. The module
`reading` decodes the segments of a connection.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafkaproto.pipeline.capture.connections import ConnectionEntry, DirectedSegment, Pair
from kafkaproto.pipeline.capture.conversation import UNKNOWN_BROKER
from kafkaproto.pipeline.capture.packets import CapturePass, ends_of, key_of
from kafkaproto.pipeline.capture.reading import ConnectionRows, ResolvedFacts, events
from kafkaproto.pipeline.capture.stream import Stamp
from kafkaproto.pipeline.trace.columns import Row
from kafkaproto.pipeline.trace.reading import NOTICES, ROWS_PER_BATCH, SCHEMAS
from kafkaproto.pipeline.trace.rows import ClusterFacts
from kafkaproto.pipeline.trace.runs import Notice, Run
from kafkaproto.pipeline.trace.schema import TABLES, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Save = Callable[["DataFrame", str], None]
"""A function that writes the rows of one trace table. Its arguments are (rows, table name)."""
Note = Callable[[int, int], None]
"""A function that a Spark task calls regularly, with (index of a capture file in the job, number of bytes of the file read so far)."""

BATCH_BYTES = 4 * 1024 * 1024
PACKETS_PER_BATCH = 1000
"""Maximum number of rows in an Arrow batch. It is small to limit memory: a packet of the loopback interface can have 64 KB."""
_PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"

_PACKETS = pa.schema(
    [
        ("run", pa.int32()),
        ("ends", pa.binary()),
        ("number", pa.int64()),
        ("ts_ns", pa.int64()),
        ("by", pa.int32()),
        ("sequence", pa.int64()),
        ("acknowledged", pa.int64()),
        ("flags", pa.int32()),
        ("data", pa.binary()),
        ("missing", pa.int32()),
        ("beside", pa.string()),
    ]
)
"""The schema of the rows that `packets_of` yields: one row for each TCP segment, then rows about the whole capture file.

run: index of the recording (run) in the job. ends: both endpoints, encoded by `key_of`. number, ts_ns: number and time of the packet. by: index (0 or
1) of the sender in `ends`. The columns from `sequence` to `missing` are fields of the segment (`link.Segment`).

beside: null in the row of a segment. A row about the file has only `run` and `beside`, which is JSON text. For each problem of the file, there is a
row whose `beside` is a list: [message for the user, True if only the end of the file is missing]. In the last row, `beside` is an object that maps
each reason for leaving out packets to the number of these packets.
"""
_PACKETS_DDL = (
    "run int, ends binary, number bigint, ts_ns bigint, by int, sequence bigint, acknowledged bigint, flags int, data binary, "
    "missing int, beside string"
)

_DISCOVERED = "discovered"
_TOPIC, _BROKER, _VERSIONS, _SERVER, _LEFT_OUT = "topic", "broker", "offered", "server", "left out"
_DISCOVERED_SCHEMA = pa.schema(
    [("run", pa.int32()), ("what", pa.string()), ("name", pa.string()), ("value", pa.string()), ("n", pa.int64())]
)
_DISCOVERED_DDL = "run int, what string, name string, value string, n bigint"
_NOTICE_DDL = "run string, text string, torn boolean"
_SCHEMAS = {**SCHEMAS, _DISCOVERED: _DISCOVERED_SCHEMA}


def with_spark(spark: SparkSession, runs: list[Run], save: Save, note: Note) -> list[Notice]:
    """Convert the packets of captures into rows of the trace tables with Spark, and write the rows with `save`.

    runs: the captures. note: called by Spark tasks with (index of the run (recording), number of bytes read). Returns notices for the user, such as
    lost packets.
    """
    columns = [f"`{table}` struct<{ddl(table)}>" for table in TABLES]
    columns += [f"`{NOTICES}` struct<{_NOTICE_DDL}>", f"`{_DISCOVERED}` struct<{_DISCOVERED_DDL}>"]
    schema = ", ".join(("`table` string", "server string", *columns))
    previous = str(spark.conf.get(_PER_BATCH))
    spark.conf.set(_PER_BATCH, str(PACKETS_PER_BATCH))
    packets = spark.range(0, len(runs), 1, len(runs)).mapInArrow(partial(_packets, runs, note), _PACKETS_DDL)
    rows = (
        packets.repartition("run", "ends")
        .sortWithinPartitions("run", "ends", "number")
        .mapInArrow(partial(rows_of, runs), schema)
        .persist()
    )
    try:
        discovered = _discovered_facts(rows, runs)
        brokers = [
            (run.name, server, broker)
            for run, (filled, _) in zip(runs, discovered, strict=True)
            for server, broker in filled.brokers.items()
        ]
        topics = [
            (run.name, topic_id, name)
            for run, (filled, _) in zip(runs, discovered, strict=True)
            for topic_id, name in filled.topics.items()
        ]
        for table in TABLES:
            save(_filled(spark, rows, table, brokers, topics), table)
        event_rows = [row for run, facts in zip(runs, discovered, strict=True) for row in events(run, *facts)]
        save(spark.createDataFrame(_in_order("events", event_rows), ddl("events")), "events")
        notices = rows.where(f"table = '{NOTICES}'").select(f"{NOTICES}.*").collect()
    finally:
        rows.unpersist()
        spark.conf.set(_PER_BATCH, previous)
    return [Notice(row.run, row.text, row.torn) for row in notices]


def _in_order(table: str, rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    return [tuple(row[column.name] for column in TABLES[table]) for row in rows]


def _discovered_facts(rows: DataFrame, runs: list[Run]) -> list[tuple[ResolvedFacts, Counter[str]]]:
    """Return a pair for each recording, in the order of `runs`: (its broker ids and topic names, its left-out packets counted by reason).

    rows: the rows of all tables made from the captures. Only the rows of the internal table `_DISCOVERED` are used, which contain these facts.
    """
    cluster_facts = [ClusterFacts() for _ in runs]
    servers: list[set[str]] = [set() for _ in runs]
    left_out: list[Counter[str]] = [Counter() for _ in runs]
    discovered = rows.where(f"table = '{_DISCOVERED}'").select(f"{_DISCOVERED}.*")
    for row in (
        discovered.groupBy("run", "what", "name", "value").sum("n").toDF("run", "what", "name", "value", "n").collect()
    ):
        if row.what == _TOPIC:
            cluster_facts[row.run].topics[row["name"]] = row.value
        elif row.what == _BROKER:
            host, _, port = row["name"].rpartition(":")
            cluster_facts[row.run].brokers[host, int(port)] = int(row.value)
        elif row.what == _VERSIONS:
            cluster_facts[row.run].add_versions(int(row["name"]), *map(int, row.value.split()))
        elif row.what == _SERVER:
            servers[row.run].add(row["name"])
        else:
            left_out[row.run][row["name"]] += row.n
    filled = [ResolvedFacts(cluster, addresses) for cluster, addresses in zip(cluster_facts, servers, strict=True)]
    return list(zip(filled, left_out, strict=True))


def _filled(
    spark: SparkSession, all_rows: DataFrame, table: str, brokers: list[tuple[Any, ...]], topics: list[tuple[Any, ...]]
) -> DataFrame:
    """Select the rows of one trace table, and fill in broker ids and missing topic names. Returns the rows as a DataFrame.

    all_rows: rows of all trace tables. table: the table to select. brokers: (run, server address, broker id) of each broker. topics: (run, topic id,
    topic name) of each topic.
    """
    from pyspark.sql import functions as F

    rows = all_rows.where(f"table = '{table}'").select("server", f"{table}.*")
    ids = spark.createDataFrame(brokers, "run string, server string, discovered_broker int")
    rows = rows.join(F.broadcast(ids), ["run", "server"], "left")
    rows = rows.withColumn("broker", F.coalesce("discovered_broker", F.lit(UNKNOWN_BROKER)))
    if any(column.name == "topic_id" for column in TABLES[table]):
        names = spark.createDataFrame(topics, "run string, topic_id string, discovered_topic string")
        rows = rows.join(F.broadcast(names), ["run", "topic_id"], "left")
        rows = rows.withColumn("topic", F.coalesce("topic", "discovered_topic"))
    return rows.select([column.name for column in TABLES[table]])


# ---- in tasks: from files to segments ----------------------------------------------------------------------------------------


def _packets(runs: list[Run], note: Note, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from packets_of(number, runs[number], partial(note, number))


def packets_of(number: int, run: Run, note: Callable[[int], None] = lambda _: None) -> Iterator[pa.RecordBatch]:
    """Yield the TCP segments of one capture file as batches of rows, in the order of the file, then rows about the file.

    The rows about the file contain messages for the user about problems of the file, and the number of packets that were left out, by reason
    (see `_PACKETS`). number: index of the run (recording). note: a function called after each batch with the number of bytes read.
    """
    read = CapturePass(run.name, Path(run.files[0]), frozenset(run.meta["ports"]))
    rows: list[tuple[Any, ...]] = []
    size = 0
    for ends, segment in read.segments():
        stamp, by, *rest = segment
        rows.append((number, key_of(ends), stamp.number, stamp.ts_ns, by, *rest, None))
        size += len(segment.data)
        if size > BATCH_BYTES or len(rows) == ROWS_PER_BATCH:
            yield _batch(rows)
            rows, size = [], 0
            note(read.read_bytes)
    texts = [json.dumps([text.text, text.torn]) for text in read.notices] + [json.dumps(read.left_out)]
    rows += [(number, b"", 0, 0, 0, 0, 0, 0, None, 0, text) for text in texts]
    yield _batch(rows)
    note(sum(run.sizes))


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, _PACKETS, strict=True)], schema=_PACKETS
    )


# ---- in tasks: from segments to rows -----------------------------------------------------------------------------------------


def rows_of(runs: list[Run], packets: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all trace tables, made from TCP segments. Each batch has rows of one table, which its first column names.

    runs: the captures; the column `run` of a segment is an index in this list. packets: the segments from `packets_of`, sorted by run, connection
    and packet number. The state of a connection is dropped after its last segment.
    """
    out = _TaskOutput(runs)
    key: tuple[int, bytes] | None = None
    pair: Pair | None = None
    for batch in packets:
        for run, ends, number, ts_ns, by, sequence, acknowledged, flags, data, missing, beside in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            if beside is not None:
                out.add_beside(run, json.loads(beside))
                continue
            if key != (run, ends):
                if key is not None and pair is not None:
                    out.end_connection(key[0], pair)
                key, pair = (run, ends), Pair(ends_of(ends), frozenset(runs[run].meta["ports"]))
            assert pair is not None
            segment = DirectedSegment(Stamp(number, ts_ns), by, sequence, acknowledged, flags, data, missing)
            out.add(run, pair.take(segment))
            yield from out.full(ROWS_PER_BATCH)
    if key is not None and pair is not None:
        out.end_connection(key[0], pair)
    out.add_cluster_facts()
    yield from out.full(1)


class _TaskOutput:
    """A buffer of a Spark task: collects the rows of each trace table until there are enough for an Arrow batch."""

    def __init__(self, runs: list[Run]) -> None:
        self._runs = runs
        self._connections: dict[int, ConnectionRows] = {}
        self._pending: dict[str, list[tuple[str, Row]]] = {name: [] for name in _SCHEMAS}

    def add(self, run: int, entries: Iterable[ConnectionEntry]) -> None:
        for entry in entries:
            connection_rows = self._connections.setdefault(run, ConnectionRows(self._runs[run]))
            for table, row in connection_rows.rows(entry):
                self._pending[table].append((entry.server, row))

    def end_connection(self, run: int, pair: Pair) -> None:
        self.add(run, pair.end())
        if run in self._connections:
            self._connections[run].forget()
        self.add_left_out(run, pair.left_out)

    def add_beside(self, run: int, content: list[Any] | dict[str, int]) -> None:
        if isinstance(content, dict):
            self.add_left_out(run, content)
        else:
            text, torn = content
            self._pending[NOTICES].append(("", {"run": self._runs[run].name, "text": text, "torn": torn}))

    def add_left_out(self, run: int, packets: dict[str, int]) -> None:
        for why, n in packets.items():
            self._add_discovered(run, _LEFT_OUT, why, None, n)

    def add_cluster_facts(self) -> None:
        for run, connection_rows in self._connections.items():
            for topic_id, name in connection_rows.cluster.topics.items():
                self._add_discovered(run, _TOPIC, topic_id, name)
            for (host, port), broker in connection_rows.cluster.brokers.items():
                self._add_discovered(run, _BROKER, f"{host}:{port}", str(broker))
            for key, (lowest, highest) in connection_rows.cluster.advertised.items():
                self._add_discovered(run, _VERSIONS, str(key), f"{lowest} {highest}")
            for server in connection_rows.servers:
                self._add_discovered(run, _SERVER, server)

    def _add_discovered(self, run: int, kind: str, name: str, value: str | None = None, n: int = 0) -> None:
        self._pending[_DISCOVERED].append(("", {"run": run, "what": kind, "name": name, "value": value, "n": n}))

    def full(self, enough: int) -> Iterator[pa.RecordBatch]:
        """Yield a batch for each table that has at least `enough` buffered rows, and remove these rows from the buffer."""
        for table, table_rows in self._pending.items():
            if len(table_rows) < enough:
                continue
            rows = pa.RecordBatch.from_pylist([row for _, row in table_rows], _SCHEMAS[table]).to_struct_array()
            columns = [
                rows if name == table else pa.nulls(len(table_rows), pa.struct(schema))
                for name, schema in _SCHEMAS.items()
            ]
            names = pa.array([table] * len(table_rows), pa.string())
            servers = pa.array([server for server, _ in table_rows], pa.string())
            yield pa.RecordBatch.from_arrays([names, servers, *columns], ["table", "server", *_SCHEMAS])
            table_rows.clear()
