"""Captures to tables in Spark: a task reads a file once; segments are repartitioned by connection and sorted; tasks with the state of one
connection at a time make rows; names and ids that were told anywhere are joined in.

Never a whole connection in memory. Must never know how a connection is read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafkaproto.pipeline.capture.connections import Pair, Seen
from kafkaproto.pipeline.capture.conversation import UNKNOWN_BROKER
from kafkaproto.pipeline.capture.packets import Pass, ends_of, key_of
from kafkaproto.pipeline.capture.reading import Filled, Tabled, events
from kafkaproto.pipeline.capture.stream import Stamp
from kafkaproto.pipeline.trace.columns import Row
from kafkaproto.pipeline.trace.reading import ROWS_PER_BATCH, SCHEMAS, TOLD
from kafkaproto.pipeline.trace.rows import Known
from kafkaproto.pipeline.trace.runs import Run, Told
from kafkaproto.pipeline.trace.schema import TABLES, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Save = Callable[["DataFrame", str], None]
"""Writes rows of a table."""
Note = Callable[[int, int], None]
"""Is told in a task, now and then, how many bytes are read of which run."""

BATCH_BYTES = 4 * 1024 * 1024
PACKETS_PER_BATCH = 1000
"""A packet of loopback has up to 64 KB."""
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
"""beside: JSON of what is no packet: [text, torn] of a file, or {why: packets} that are left out."""
_PACKETS_DDL = (
    "run int, ends binary, number bigint, ts_ns bigint, by int, sequence bigint, acknowledged bigint, flags int, data binary, "
    "missing int, beside string"
)

_FOUND = "found"
_TOPIC, _BROKER, _OFFERED, _SERVER, _LEFT_OUT = "topic", "broker", "offered", "server", "left out"
_FOUND_SCHEMA = pa.schema([("run", pa.int32()), ("what", pa.string()), ("name", pa.string()), ("value", pa.string()), ("n", pa.int64())])  # fmt: skip
_FOUND_DDL = "run int, what string, name string, value string, n bigint"
_TOLD_DDL = "run string, text string, torn boolean"
_SCHEMAS = {**SCHEMAS, _FOUND: _FOUND_SCHEMA}


def with_spark(spark: SparkSession, runs: list[Run], save: Save, note: Note) -> list[Told]:
    """Write the rows of captures; what has to be said of their files."""
    columns = [f"`{table}` struct<{ddl(table)}>" for table in TABLES]
    columns += [f"`{TOLD}` struct<{_TOLD_DDL}>", f"`{_FOUND}` struct<{_FOUND_DDL}>"]
    schema = ", ".join(("`table` string", "server string", *columns))
    before = str(spark.conf.get(_PER_BATCH))
    spark.conf.set(_PER_BATCH, str(PACKETS_PER_BATCH))
    packets = spark.range(0, len(runs), 1, len(runs)).mapInArrow(partial(_packets, runs, note), _PACKETS_DDL)
    made = (
        packets.repartition("run", "ends")
        .sortWithinPartitions("run", "ends", "number")
        .mapInArrow(partial(rows_of, runs), schema)
        .persist()
    )
    try:
        found = _found(made, runs)
        brokers = [
            (run.name, server, broker)
            for run, (filled, _) in zip(runs, found, strict=True)
            for server, broker in filled.brokers.items()
        ]
        topics = [
            (run.name, topic_id, name)
            for run, (filled, _) in zip(runs, found, strict=True)
            for topic_id, name in filled.topics.items()
        ]
        for table in TABLES:
            save(_filled(spark, made, table, brokers, topics), table)
        told = [row for run, one in zip(runs, found, strict=True) for row in events(run, *one)]
        save(spark.createDataFrame(_in_order("events", told), ddl("events")), "events")
        said = made.where(f"table = '{TOLD}'").select(f"{TOLD}.*").collect()
    finally:
        made.unpersist()
        spark.conf.set(_PER_BATCH, before)
    return [Told(row.run, row.text, row.torn) for row in said]


def _in_order(table: str, rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    return [tuple(row[column.name] for column in TABLES[table]) for row in rows]


def _found(made: DataFrame, runs: list[Run]) -> list[tuple[Filled, Counter[str]]]:
    """Of each run what is to be filled in, and how many packets were left out, and why."""
    known = [Known() for _ in runs]
    servers: list[set[str]] = [set() for _ in runs]
    left_out: list[Counter[str]] = [Counter() for _ in runs]
    beside = made.where(f"table = '{_FOUND}'").select(f"{_FOUND}.*")
    for row in (
        beside.groupBy("run", "what", "name", "value").sum("n").toDF("run", "what", "name", "value", "n").collect()
    ):
        if row.what == _TOPIC:
            known[row.run].topics[row["name"]] = row.value
        elif row.what == _BROKER:
            host, _, port = row["name"].rpartition(":")
            known[row.run].brokers[host, int(port)] = int(row.value)
        elif row.what == _OFFERED:
            known[row.run].offered(int(row["name"]), *map(int, row.value.split()))
        elif row.what == _SERVER:
            servers[row.run].add(row["name"])
        else:
            left_out[row.run][row["name"]] += row.n
    filled = [Filled(told, named) for told, named in zip(known, servers, strict=True)]
    return list(zip(filled, left_out, strict=True))


def _filled(
    spark: SparkSession, made: DataFrame, table: str, brokers: list[tuple[Any, ...]], topics: list[tuple[Any, ...]]
) -> DataFrame:
    """The rows of a table with the ids of brokers and, where they lack, the names of topics."""
    from pyspark.sql import functions as F

    rows = made.where(f"table = '{table}'").select("server", f"{table}.*")
    ids = spark.createDataFrame(brokers, "run string, server string, told_broker int")
    rows = rows.join(F.broadcast(ids), ["run", "server"], "left")
    rows = rows.withColumn("broker", F.coalesce("told_broker", F.lit(UNKNOWN_BROKER)))
    if any(column.name == "topic_id" for column in TABLES[table]):
        names = spark.createDataFrame(topics, "run string, topic_id string, told_topic string")
        rows = rows.join(F.broadcast(names), ["run", "topic_id"], "left")
        rows = rows.withColumn("topic", F.coalesce("topic", "told_topic"))
    return rows.select([column.name for column in TABLES[table]])


# ---- in tasks: files to packets ----------------------------------------------------------------------------------------------


def _packets(runs: list[Run], note: Note, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for some in numbers:
        for number in some.column(0).to_pylist():
            yield from packets_of(number, runs[number], partial(note, number))


def packets_of(number: int, run: Run, note: Callable[[int], None] = lambda _: None) -> Iterator[pa.RecordBatch]:
    """Return the TCP segments of one capture file, in the order of the file: what a task that reads it yields.

    The last batch ends with rows that are no segments (column `beside`): what is wrong with the file, and how many packets are left out and why.
    number: of the run. note: called after each batch with how many bytes of the file are read.
    """
    read = Pass(run.name, Path(run.files[0]), frozenset(run.meta["ports"]))
    rows: list[tuple[Any, ...]] = []
    size = 0
    for ends, seen in read.segments():
        stamp, by, *rest = seen
        rows.append((number, key_of(ends), stamp.number, stamp.ts_ns, by, *rest, None))
        size += len(seen.data)
        if size > BATCH_BYTES or len(rows) == ROWS_PER_BATCH:
            yield _batch(rows)
            rows, size = [], 0
            note(read.read_bytes)
    told = [json.dumps([one.text, one.torn]) for one in read.told] + [json.dumps(read.left_out)]
    rows += [(number, b"", 0, 0, 0, 0, 0, 0, None, 0, one) for one in told]
    yield _batch(rows)
    note(sum(run.sizes))


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, _PACKETS, strict=True)], schema=_PACKETS
    )


# ---- in tasks: packets to rows -----------------------------------------------------------------------------------------------


def rows_of(runs: list[Run], packets: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the rows of all tables that a task makes of batches of `packets_of`.

    Packets are sorted by run, connection and number. The state of a connection is dropped with its last packet. Each batch has rows of one
    table, which its first column names.
    """
    out = _Out(runs)
    key: tuple[int, bytes] | None = None
    pair: Pair | None = None
    for some in packets:
        for run, ends, number, ts_ns, by, sequence, acknowledged, flags, data, missing, beside in zip(
            *(column.to_pylist() for column in some.columns), strict=True
        ):
            if beside is not None:
                out.beside(run, json.loads(beside))
                continue
            if key != (run, ends):
                if key is not None and pair is not None:
                    out.ended(key[0], pair)
                key, pair = (run, ends), Pair(ends_of(ends), frozenset(runs[run].meta["ports"]))
            assert pair is not None
            seen = Seen(Stamp(number, ts_ns), by, sequence, acknowledged, flags, data, missing)
            out.told(run, pair.take(seen))
            yield from out.full(ROWS_PER_BATCH)
    if key is not None and pair is not None:
        out.ended(key[0], pair)
    out.known()
    yield from out.full(1)


class _Out:
    """Rows on their way out of a task."""

    def __init__(self, runs: list[Run]) -> None:
        self._runs = runs
        self._tabled: dict[int, Tabled] = {}
        self._waiting: dict[str, list[tuple[str, Row]]] = {name: [] for name in _SCHEMAS}

    def told(self, run: int, told: Iterable[Any]) -> None:
        for one in told:
            tabled = self._tabled.setdefault(run, Tabled(self._runs[run]))
            for table, row in tabled.rows(one):
                self._waiting[table].append((one.server, row))

    def ended(self, run: int, pair: Pair) -> None:
        self.told(run, pair.end())
        if run in self._tabled:
            self._tabled[run].forget()
        self._counted(run, pair.left_out)

    def beside(self, run: int, what: list[Any] | dict[str, int]) -> None:
        if isinstance(what, dict):
            self._counted(run, what)
        else:
            text, torn = what
            self._waiting[TOLD].append(("", {"run": self._runs[run].name, "text": text, "torn": torn}))

    def _counted(self, run: int, packets: dict[str, int]) -> None:
        for why, n in packets.items():
            self._found(run, _LEFT_OUT, why, None, n)

    def known(self) -> None:
        for run, tabled in self._tabled.items():
            for topic_id, name in tabled.known.topics.items():
                self._found(run, _TOPIC, topic_id, name)
            for (host, port), broker in tabled.known.brokers.items():
                self._found(run, _BROKER, f"{host}:{port}", str(broker))
            for key, (lowest, highest) in tabled.known.advertised.items():
                self._found(run, _OFFERED, str(key), f"{lowest} {highest}")
            for server in tabled.servers:
                self._found(run, _SERVER, server)

    def _found(self, run: int, what: str, name: str, value: str | None = None, n: int = 0) -> None:
        self._waiting[_FOUND].append(("", {"run": run, "what": what, "name": name, "value": value, "n": n}))

    def full(self, enough: int) -> Iterator[pa.RecordBatch]:
        """Batches of the tables of which there are enough rows."""
        for table, kept in self._waiting.items():
            if len(kept) < enough:
                continue
            rows = pa.RecordBatch.from_pylist([row for _, row in kept], _SCHEMAS[table]).to_struct_array()
            columns = [
                rows if name == table else pa.nulls(len(kept), pa.struct(schema)) for name, schema in _SCHEMAS.items()
            ]
            names = pa.array([table] * len(kept), pa.string())
            servers = pa.array([server for server, _ in kept], pa.string())
            yield pa.RecordBatch.from_arrays([names, servers, *columns], ["table", "server", *_SCHEMAS])
            kept.clear()
