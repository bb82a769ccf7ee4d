"""`kafkaproto report TRACE`: tables, audit and answers of a trace, as one page: OUT/report.html.

The same as `python -m pipeline.trace.report`. Needs the extra "spark".
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from kafkaproto import releases
from kafkaproto.trace.format import TraceError
from pipeline.session import local_session
from pipeline.sources import runs_of
from pipeline.trace.answers import census, diff, fetch_sizes, latency, ledger, racks, spark_doctor, throttles, what_if
from pipeline.trace.answers.answer import Answer, Found, found
from pipeline.trace.audit.__main__ import RULES, as_json, left_out, remarks, status, text, verdict
from pipeline.trace.audit.command import Arguments, to_the_end
from pipeline.trace.audit.rule import NAMES, Outcome, Rule, Tables, outcome
from pipeline.trace.report.frames import exchanges
from pipeline.trace.report.page import Facts, page, parquet_name
from pipeline.trace.store import MANIFEST, Store, StoreError
from pipeline.trace.tables import build, read, with_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

A = TypeVar("A")
B = TypeVar("B")
ANSWERS: tuple[Answer, ...] = tuple(
    one.ANSWER for one in (throttles, what_if, ledger, latency, fetch_sizes, racks, census, spark_doctor)
)
PAGE = "report.html"
SMALL_REQUESTS = 200_000
"""Runs up to that size take longer to plan and compile than to work through."""
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
RELEASE = releases.releases()[-1]
"""The broker release that clients are held against, if nobody names one: the latest that the table has."""


class Wanted(NamedTuple):
    """What the page is about. trace: None where there are only tables. run: None for the latest. against: a run to compare it with."""

    out: Path
    trace: Path | None = None
    run: str | None = None
    against: str | None = None
    release: str = RELEASE


class Progress:
    """What is done, with the seconds since the beginning, on standard error."""

    def __init__(self, quiet: bool = False) -> None:
        self._begun = time.perf_counter()
        self._quiet = quiet

    def note(self, what: str) -> None:
        if not self._quiet:
            sys.stderr.write(f"{time.perf_counter() - self._begun:6.1f} s  {what}\n")
            sys.stderr.flush()


def make(spark: SparkSession, wanted: Wanted, progress: Progress) -> tuple[Path, list[Outcome], list[str]]:
    """Write the page; its path, what the rules say, and what has to be said of the trace.

    Raises TraceError where there is no trace, or none that can be read, and StoreError where there are no tables or not the run that is asked for.
    """
    said: list[str] = []
    mine: list[str] = []
    if wanted.trace is not None:
        progress.note(f"tables of {wanted.trace}")
        counts, told = build(wanted.trace, wanted.out, partial(with_spark, spark, progress=progress.note))
        said = [one.text for one in told]
        mine = [run.name for run in runs_of(wanted.trace)[0]]
        if not mine:
            raise TraceError("; ".join(said))
        for run, rows in counts.items():
            progress.note(f"run {run}: {', '.join(f'{count:,} {table}' for table, count in rows.items())}")
    store = Store(wanted.out)
    with store.at_work():
        run = _run(store, wanted.run, mine)
        against = None if wanted.against is None else _run(store, wanted.against)
        answers: list[Answer] = [*ANSWERS]
        if against is not None:
            # Before those of the run: the rules ask the tables that were made last.
            both = Tables.of(spark, wanted.out)
            answers.append(diff.answer(against, run))
        frames = [frame.where(frame.run == run) for frame in (read(spark, wanted.out, name) for name in NAMES)]
        with at_hand(spark, frames, store.manifest()[run]["rows"]["requests"]) as tables:
            outcomes = _side_by_side(lambda rule: _asked(rule, tables, progress), RULES)
            results: dict[tuple[str, str], Found] = {}
            for answer in answers:
                progress.note(answer.question)
                of = both if answer.name == "diff" else tables
                for one in _side_by_side(partial(found, tables=of), answer.queries):
                    results[answer.name, one.query.name] = one
                    _keep(wanted.out / parquet_name(answer.name, one.query.name), one)
            notes = list(dict.fromkeys([*said, *remarks(store, tables)]))
            facts = _facts(tables, run, [*notes, *left_out(outcomes)], wanted, results)
        shown = {} if wanted.trace is None else exchanges(wanted.trace, outcomes)
    path = wanted.out / PAGE
    path.write_text(page(facts, verdict(outcomes), outcomes, answers, results, shown))
    progress.note(f"the page is {path}")
    return path, outcomes, notes


def _asked(rule: Rule, tables: Tables, progress: Progress) -> Outcome:
    progress.note(f"rule {rule.number} ({RULES.index(rule) + 1} of {len(RULES)}): {rule.statement}")
    return outcome(rule, tables)


def _side_by_side(work: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """Two at a time: small queries are planned longer than they run, by one core each."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, items))


@contextmanager
def at_hand(spark: SparkSession, frames: Sequence[DataFrame], requests: int) -> Iterator[Tables]:
    """frames: in the order of `NAMES`. Few rows are kept in memory, and no code is generated for them nor anything planned anew."""
    if requests > SMALL_REQUESTS:
        yield Tables(*frames)
        return
    before = {name: spark.conf.get(name) or "" for name in QUICK}
    kept = [frame.cache() for frame in frames]
    for name, value in QUICK.items():
        spark.conf.set(name, value)
    try:
        yield Tables(*kept)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
        for frame in kept:
            frame.unpersist()


def _run(store: Store, asked: str | None, among: Sequence[str] = ()) -> str:
    """The run that is asked for; without one the latest, of those of the trace if one was given. Raises StoreError where it is not there."""
    runs = store.manifest()
    if not runs:
        raise StoreError(f"{store.path} holds no tables: give a trace to make them of")
    if asked is None:
        return max(among or runs, key=lambda run: (json.loads(runs[run]["meta"])[2] or 0, run))
    if asked not in runs:
        raise StoreError(f"{store.path} has no run {asked!r}; it has {', '.join(sorted(runs))}")
    return asked


def _keep(path: Path, one: Found) -> None:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(one.rows) if one.rows else pa.table({name: [] for name in one.columns}), path)


def _facts(tables: Tables, run: str, notes: list[str], wanted: Wanted, results: dict[tuple[str, str], Found]) -> Facts:
    """What was run: recorder, broker, clients, how long, how much."""
    meta = tables.events.where("kind = 'meta'").select("facts").first()
    told: dict[str, Any] = json.loads(meta.facts) if meta is not None else {}
    numbers = tables.requests.selectExpr(
        "count(1) AS requests", "count_if(error <> 0) AS errors", "count(DISTINCT conn) AS connections", "sum(bytes_in) AS bytes_in",
        "sum(bytes_out) AS bytes_out", "(max(ready_ns) - min(received_ns)) / 1e9 AS seconds", "count_if(trouble IS NOT NULL) AS trouble",
    ).first()  # fmt: skip
    assert numbers is not None
    kinds = [row["client"] for row in results["census", "clients"].rows]
    broker = [f"release {told['release']}" if told.get("release") else "", f"{len(told.get('brokers') or ())} brokers"]
    clients = ", ".join(kinds[:8]) + (f" and {len(kinds) - 8} more" if len(kinds) > 8 else "")
    return Facts(
        f"Kafka traffic of run {run}",
        [
            ("Recorded by", str(told.get("recorder", "unknown")), ""),
            ("Broker", ", ".join(part for part in broker if part), ""),
            ("Lasted", f"{numbers.seconds or 0:,.1f} s", "t-latency-parts"),
            ("Requests", f"{numbers.requests:,} on {numbers.connections:,} connections", "t-census-versions"),
            ("Bytes", f"{numbers.bytes_in or 0:,} in, {numbers.bytes_out or 0:,} out", "t-census-clients"),
            (
                "Answers with an error",
                f"{numbers.errors:,}",
                "t-census-errors" if numbers.errors else "t-census-clients",
            ),
            ("Not whole", f"{numbers.trouble:,} requests", "t-audit"),
            ("Clients", clients or "none", "t-census-clients"),
        ],
        notes,
        str(wanted.trace or "TRACE"),
        wanted.release,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: see `pipeline.trace.audit.command.STATUSES`."""
    parser = Arguments("kafkaproto report", "What recorded traffic says, as one page.")
    parser.add_argument(
        "trace", type=Path, help="a folder with files *.kptrace or captures, one such file, or a folder of tables"
    )
    parser.add_argument("--out", type=Path, help="the folder of the tables and the page (TRACE.tables)")
    parser.add_argument("--run", help="of several recordings this one; without it the latest")
    parser.add_argument("--against", metavar="RUN", help="tell what differs from this run")
    parser.add_argument(
        "--release",
        default=RELEASE,
        type=_release,
        help=f"the broker release that clients are held against ({RELEASE})",
    )
    parser.add_argument("--json", type=Path, help="a file for what the rules say, for machines")
    options = parser.parse_args(arguments)
    return to_the_end("kafkaproto report", partial(_told, options))


def _release(name: str) -> str:
    try:
        releases.versions(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name


def _told(options: argparse.Namespace) -> int:
    wanted = _wanted(options)
    if wanted.trace is not None:
        runs_of(wanted.trace)  # a session takes seconds: what is not there is told before
    with local_session("kafkaproto report") as spark:
        path, outcomes, notes = make(spark, wanted, Progress())
    sys.stdout.write(text(outcomes, notes))
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(outcomes, notes), indent=1) + "\n")
    sys.stdout.write(f"\nThe page: {path}\n")
    return status(outcomes)


def _wanted(options: argparse.Namespace) -> Wanted:
    """A folder of tables can be given in place of a trace."""
    given: Path = options.trace
    is_tables = options.out is None and given.is_dir() and (given / MANIFEST).is_file()
    beside = given if given.name.strip(".") else given.resolve()  # "." and ".." have no name of their own
    out = options.out or (given if is_tables else beside.with_name(f"{beside.name}.tables"))
    return Wanted(out, None if is_tables else given, options.run, options.against, options.release)


if __name__ == "__main__":
    sys.exit(main())
