"""The report of a trace: its tables, rules and answers, as one page: OUT/report.html."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from kafkaproto import releases
from kafkaproto.pipeline.session import local_session
from kafkaproto.pipeline.sources import runs_of
from kafkaproto.pipeline.trace.answers import (
    census,
    diff,
    fetch_sizes,
    latency,
    ledger,
    racks,
    recording,
    repeats,
    spark_doctor,
    throttles,
    what_if,
)
from kafkaproto.pipeline.trace.answers.answer import Answer, Found, found
from kafkaproto.pipeline.trace.audit.rule import NAMES, Outcome, Tables
from kafkaproto.pipeline.trace.audit.rules import RULES, asked, of_each_run
from kafkaproto.pipeline.trace.audit.verdict import as_json, left_out, remarks, status, text, verdict
from kafkaproto.pipeline.trace.progress import Progress
from kafkaproto.pipeline.trace.report.frames import exchanges
from kafkaproto.pipeline.trace.report.page import Facts, number, page, parquet_name
from kafkaproto.pipeline.trace.store import Store, StoreError
from kafkaproto.pipeline.trace.tables import build, read, with_spark
from kafkaproto.trace.format import TraceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

A = TypeVar("A")
B = TypeVar("B")
ANSWERS: tuple[Answer, ...] = tuple(
    one.ANSWER
    for one in (recording, throttles, what_if, ledger, repeats, latency, fetch_sizes, racks, census, spark_doctor)
)
PAGE = "report.html"
SMALL_REQUESTS = 200_000
"""Runs up to that size take longer to plan and compile than to work through."""
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
MOST_LISTED, MOST_CLIENTS = 10, 8
RELEASE = releases.releases()[-1]
"""The broker release that clients are held against, if nobody names one: the latest that the table has."""


class Wanted(NamedTuple):
    """What the page is about. trace: None where there are only tables. run: None for the latest. against: a run to compare it with."""

    out: Path
    trace: Path | None = None
    run: str | None = None
    against: str | None = None
    release: str = RELEASE


class Made(NamedTuple):
    """What came of it. outcomes: of the page's run. notes: what has to be said of the trace. others: its other runs, with what each rule that
    checked something there says; empty where one run was asked for."""

    path: Path
    run: str
    outcomes: list[Outcome]
    notes: list[str]
    others: dict[str, list[Outcome]]

    @property
    def status(self) -> int:
        """Of all runs that were looked at together."""
        return status([*self.outcomes, *chain.from_iterable(self.others.values())])

    def as_json(self) -> dict[str, Any]:
        told = {
            run: {"status": status(some), "broken": [one.rule.number for one in some if one.broken]}
            for run, some in self.others.items()
        }
        return {"run": self.run, **as_json(self.outcomes, self.notes), "status": self.status, "other_runs": told}


def run(wanted: Wanted, json_file: Path | None) -> int:
    """Write the page in a Spark session of its own, its outcomes as text to standard output, and return the exit status.

    json_file: receives the outcomes as JSON. Raises what `make` raises.
    """
    if wanted.trace is not None:
        runs_of(wanted.trace)  # a session takes seconds: a missing trace is reported before
    with local_session("kafkaproto report") as spark:
        made = make(spark, wanted, Progress())
    sys.stdout.write(text(made.outcomes, made.notes))
    if json_file is not None:
        json_file.write_text(json.dumps(made.as_json(), indent=1) + "\n")
    sys.stdout.write(f"\nThe page: {made.path}\n")
    return made.status


def make(spark: SparkSession, wanted: Wanted, progress: Progress) -> Made:
    """Write the page of one run. Where none is asked for the rules are held against all others of the trace, too.

    Raises TraceError where there is no trace, or none that can be read, and StoreError where there are no tables or not the run that is asked for.
    """
    said: list[str] = []
    if wanted.trace is not None:
        progress.note(f"tables of {wanted.trace}")
        counts, told = build(wanted.trace, wanted.out, partial(with_spark, spark, progress=progress.note))
        said = [one.text for one in told]
        for run, rows in counts.items():
            progress.note(f"run {run}: {', '.join(f'{count:,} {table}' for table, count in rows.items())}")
    store = Store(wanted.out)
    with store.at_work():
        runs = _runs(store, wanted.trace)
        if not runs:
            raise TraceError("; ".join(said) or f"{store.path} holds no tables: give a trace to make them of")
        run = _run(store, wanted.run, runs)
        against = None if wanted.against is None else _run(store, wanted.against)
        answers: list[Answer] = [*ANSWERS]
        if against is not None:
            both = Tables.of(spark, wanted.out)
            answers.append(diff.answer(against, run))
        rest = sorted(set(runs) - {run})
        others: dict[str, list[Outcome]] = {}
        if rest and wanted.run is None:
            with _tables(spark, store, rest) as tables:
                others = _others(tables, rest, progress)
        with _tables(spark, store, [run]) as tables:
            outcomes = _side_by_side(partial(asked, tables=tables, note=progress.note), RULES)
            results: dict[tuple[str, str], Found] = {}
            for answer in answers:
                progress.note(answer.question)
                of = both if answer.name == "diff" else tables
                for one in _side_by_side(partial(found, tables=of), answer.queries):
                    results[answer.name, one.query.name] = one
                    _keep(wanted.out / parquet_name(answer.name, one.query.name), one)
            beside = [_beside(run, rest, others)] if rest else []
            notes = list(dict.fromkeys([*beside, *said, *remarks(store, tables)]))
            facts = _facts(run, [*notes, *left_out(outcomes)], wanted, results)
        shown = {} if wanted.trace is None else exchanges(wanted.trace, outcomes)
    path = wanted.out / PAGE
    path.write_text(page(facts, verdict(outcomes), outcomes, answers, results, shown))
    progress.note(f"the page is {path}")
    return Made(path, run, outcomes, notes, others)


def _runs(store: Store, trace: Path | None) -> list[str]:
    """Of the trace, as far as they are in the tables; without one all that are there."""
    there = store.manifest()
    return [*there] if trace is None else [run.name for run in runs_of(trace)[0] if run.name in there]


@contextmanager
def _tables(spark: SparkSession, store: Store, runs: Sequence[str]) -> Iterator[Tables]:
    manifest = store.manifest()
    frames = [frame.where(frame.run.isin(*runs)) for frame in (read(spark, store.path, name) for name in NAMES)]
    with at_hand(spark, frames, sum(manifest[run]["rows"]["requests"] for run in runs)) as tables:
        yield tables


def _others(tables: Tables, runs: Sequence[str], progress: Progress) -> dict[str, list[Outcome]]:
    progress.note(f"the other runs of the trace ({len(runs)})")
    found: dict[str, list[Outcome]] = {run: [] for run in runs}
    for outcomes in _side_by_side(partial(of_each_run, tables=tables, note=progress.note), RULES):
        for run, one in outcomes.items():
            found[run].append(one)
    return found


def _beside(run: str, rest: Sequence[str], others: dict[str, list[Outcome]]) -> str:
    """Says that there are other runs, those in which a rule is broken first."""
    broken = {name: [one.rule.number for one in others.get(name, ()) if one.broken] for name in rest}
    listed = []
    for name in sorted(rest, key=lambda name: (not broken[name], name))[:MOST_LISTED]:
        rules = f"{'rules' if len(broken[name]) > 1 else 'rule'} {', '.join(broken[name])} broken"
        listed.append(f"{name} ({rules})" if broken[name] else name)
    more = f" and {len(rest) - MOST_LISTED} more" if len(rest) > MOST_LISTED else ""
    seen = "the exit status is of all runs together" if others else "no rule was held against them"
    return f"this page is of run {run} alone; there are others, which --run shows: {', '.join(listed)}{more}; {seen}"


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


def _run(store: Store, wanted: str | None, among: Sequence[str] = ()) -> str:
    """The run that is asked for; without one the latest of some. Raises StoreError where it is not there."""
    runs = store.manifest()
    if wanted is None:
        return max(among, key=lambda run: (json.loads(runs[run]["meta"])[2] or 0, run))
    if wanted not in runs:
        raise StoreError(f"{store.path} has no run {wanted!r}; it has {', '.join(sorted(runs))}")
    return wanted


def _keep(path: Path, one: Found) -> None:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(one.rows) if one.rows else pa.table({name: [] for name in one.columns}), path)


def _facts(run: str, notes: list[str], wanted: Wanted, results: dict[tuple[str, str], Found]) -> Facts:
    """What was run: recorder, broker, clients, how long, how much. Each links to the table that has it."""
    [told] = results["run", "facts"].rows or [dict.fromkeys(results["run", "facts"].columns)]
    clients = results["census", "clients"].rows
    broker = [
        f"release {told['release']}" if told["release"] else "",
        f"{told['brokers']} brokers" if told["brokers"] else "",
    ]
    known = [f"{row['client']} ({row['software']})" if row["software"] else row["client"] for row in clients]
    more = f" and {len(known) - MOST_CLIENTS} more" if len(known) > MOST_CLIENTS else ""
    lines = {
        "Recorded by": told["recorder"] or "unknown",
        "Broker": ", ".join(part for part in broker if part) or "unknown",
        "Lasted": f"{number(told['seconds'] or 0)} s",
        "Requests": f"{number(told['requests'] or 0)} on {number(told['connections'] or 0)} connections",
        "Bytes": f"{number(told['bytes_in'] or 0)} in, {number(told['bytes_out'] or 0)} out",
        "Answers with an error": number(told["errors"] or 0),
        "Without an answer": number(told["without_an_answer"] or 0),
        "Not whole": number(told["not_whole"] or 0),
    }
    table = "t-run-facts" if results["run", "facts"].rows else ""
    return Facts(
        f"Kafka traffic of run {run}",
        [
            *((name, value, table) for name, value in lines.items()),
            ("Clients", ", ".join(known[:MOST_CLIENTS]) + more or "none", "t-census-clients" if clients else ""),
        ],
        notes,
        str(wanted.trace or "TRACE"),
        wanted.release,
    )
