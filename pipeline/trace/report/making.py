"""The job of `kafkaproto report`: makes the tables, evaluates rules and answers, and writes one page, OUT/report.html."""

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

from kafkaproto.pipeline.options import RELEASE as RELEASE
from kafkaproto.pipeline.session import local_session
from kafkaproto.pipeline.sources import runs_of
from kafkaproto.pipeline.trace.answers import (
    census,
    diff,
    fetch_sizes,
    groups,
    lag,
    latency,
    ledger,
    racks,
    rebalances,
    recording,
    repeats,
    spark_doctor,
    throttles,
    transactions,
    unread,
    what_if,
)
from kafkaproto.pipeline.trace.answers.answer import Answer, Result, evaluate_query
from kafkaproto.pipeline.trace.audit.rule import NAMES, Outcome, Tables
from kafkaproto.pipeline.trace.audit.rules import RULES, evaluate, outcomes_by_run
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
    module.ANSWER
    for module in (
        recording,
        throttles,
        what_if,
        ledger,
        groups,
        lag,
        rebalances,
        unread,
        transactions,
        repeats,
        latency,
        fetch_sizes,
        racks,
        census,
        spark_doctor,
    )
)
PAGE = "report.html"
SMALL_RUN_REQUESTS = 200_000
"""The maximum number of requests of a small run (recording), for which Spark needs more time to plan and compile a query than to run it."""
FAST_SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
MAX_LISTED_RUNS, MAX_LISTED_CLIENTS = 10, 8


class ReportOptions(NamedTuple):
    """The options of a report.

    out: folder of the tables and the page. trace: path of the trace, None to use the existing tables. run: name of the run (recording) to report,
    None for the latest. against: name of another run, with which the reported run is compared. release: Kafka release for which the report checks
    whether a broker would accept the clients' requests.
    """

    out: Path
    trace: Path | None = None
    run: str | None = None
    against: str | None = None
    release: str = RELEASE


class Report(NamedTuple):
    """A report page that `make` has written, and the results of the audit rules.

    path: path of the page. run: name of the run (recording) on the page. outcomes: results of the rules for that run. notes: problems of the trace.
    others: maps the name of each other run of the trace to the results of the rules that had anything to check in it. The dict is empty if the user
    chose the run of the page, because the rules are then evaluated for that run only.
    """

    path: Path
    run: str
    outcomes: list[Outcome]
    notes: list[str]
    others: dict[str, list[Outcome]]

    @property
    def status(self) -> int:
        """Return the exit status of `kafkaproto report`, from the results for the run of the page and for the runs in `others` together.

        0 if no rule is broken, 1 if only rules of severity "warning" are broken, 2 if a rule of severity "error" is broken, and 3 if no rule had
        anything to check.
        """
        return status([*self.outcomes, *chain.from_iterable(self.others.values())])

    def as_json(self) -> dict[str, Any]:
        other_runs = {
            run: {"status": status(outcomes), "broken": [outcome.rule.number for outcome in outcomes if outcome.broken]}
            for run, outcomes in self.others.items()
        }
        return {"run": self.run, **as_json(self.outcomes, self.notes), "status": self.status, "other_runs": other_runs}


def run(options: ReportOptions, json_file: Path | None) -> int:
    """Start a Spark session, write the report page, print the results of the rules, and return the exit status.

    json_file: a file for the results of the rules as JSON; None for no file. Raises TraceError if there is no readable trace, and StoreError if
    there are no tables or the run (recording) that the options name is not in them.
    """
    if options.trace is not None:
        runs_of(options.trace)  # a session takes seconds to start: report a missing trace before that
    with local_session("kafkaproto report") as spark:
        report = make(spark, options, Progress())
    sys.stdout.write(text(report.outcomes, report.notes))
    if json_file is not None:
        json_file.write_text(json.dumps(report.as_json(), indent=1) + "\n")
    sys.stdout.write(f"\nThe page: {report.path}\n")
    return report.status


def make(spark: SparkSession, options: ReportOptions, progress: Progress) -> Report:
    """Write the report page of one run (recording): the run that the options name, or the latest.

    progress: prints what the function is doing. If the options name no run, the rules of the audit are evaluated for all other runs of the trace,
    too, for a note on the page and for the exit status (`Report.others`). Raises TraceError if there is no readable trace, StoreError if there are no
    tables or the named run is not in them.
    """
    texts: list[str] = []
    if options.trace is not None:
        progress.note(f"tables of {options.trace}")
        counts, notices = build(options.trace, options.out, partial(with_spark, spark, progress=progress.note))
        texts = [notice.text for notice in notices]
        for run, rows in counts.items():
            progress.note(f"run {run}: {', '.join(f'{count:,} {table}' for table, count in rows.items())}")
    store = Store(options.out)
    with store.locked():
        runs = _runs(store, options.trace)
        if not runs:
            raise TraceError("; ".join(texts) or f"{store.path} holds no tables: give a trace to make them from")
        run = _run(store, options.run, runs)
        against = None if options.against is None else _run(store, options.against)
        answers: list[Answer] = [*ANSWERS]
        if against is not None:
            all_tables = Tables.of(spark, options.out)
            answers.append(diff.answer(against, run))
        rest = sorted(set(runs) - {run})
        others: dict[str, list[Outcome]] = {}
        if rest and options.run is None:
            with _tables(spark, store, rest) as tables:
                others = _outcomes_by_run(tables, rest, progress)
        with _tables(spark, store, [run]) as tables:
            outcomes = _side_by_side(partial(evaluate, tables=tables, note=progress.note), RULES)
            results: dict[tuple[str, str], Result] = {}
            for answer in answers:
                progress.note(answer.question)
                answer_tables = all_tables if answer.name == "diff" else tables
                for result in _side_by_side(partial(evaluate_query, tables=answer_tables), answer.queries):
                    results[answer.name, result.query.name] = result
                    _write_result(options.out / parquet_name(answer.name, result.query.name), result)
            other_runs = [_other_runs_note(run, rest, others)] if rest else []
            notes = list(dict.fromkeys([*other_runs, *texts, *remarks(store, tables)]))
            facts = _facts(run, [*notes, *left_out(outcomes)], options, results)
        frames = {} if options.trace is None else exchanges(options.trace, outcomes)
    path = options.out / PAGE
    path.write_text(page(facts, verdict(outcomes), outcomes, answers, results, frames))
    progress.note(f"the page is {path}")
    return Report(path, run, outcomes, notes, others)


def _runs(store: Store, trace: Path | None) -> list[str]:
    """Return the names of the runs (recordings) in the Parquet tables. If `trace` is not None, runs of other traces are left out."""
    manifest = store.manifest()
    return [*manifest] if trace is None else [run.name for run in runs_of(trace)[0] if run.name in manifest]


@contextmanager
def _tables(spark: SparkSession, store: Store, runs: Sequence[str]) -> Iterator[Tables]:
    manifest = store.manifest()
    frames = [frame.where(frame.run.isin(*runs)) for frame in (read(spark, store.path, name) for name in NAMES)]
    with fast_tables(spark, frames, sum(manifest[run]["rows"]["requests"] for run in runs)) as tables:
        yield tables


def _outcomes_by_run(tables: Tables, runs: Sequence[str], progress: Progress) -> dict[str, list[Outcome]]:
    progress.note(f"the other runs of the trace ({len(runs)})")
    outcomes_of: dict[str, list[Outcome]] = {run: [] for run in runs}
    for outcomes in _side_by_side(partial(outcomes_by_run, tables=tables, note=progress.note), RULES):
        for run, outcome in outcomes.items():
            outcomes_of[run].append(outcome)
    return outcomes_of


def _other_runs_note(run: str, rest: Sequence[str], others: dict[str, list[Outcome]]) -> str:
    """Return a note for the page of one run (recording) that lists up to ten other runs of the trace, those with broken rules first.

    run: name of the run on the page. rest: names of the other runs. others: their outcomes by name; empty if no rules were evaluated for them.
    """
    broken = {name: [outcome.rule.number for outcome in others.get(name, ()) if outcome.broken] for name in rest}
    listed = []
    for name in sorted(rest, key=lambda name: (not broken[name], name))[:MAX_LISTED_RUNS]:
        rules = f"{'rules' if len(broken[name]) > 1 else 'rule'} {', '.join(broken[name])} broken"
        listed.append(f"{name} ({rules})" if broken[name] else name)
    more = f" and {len(rest) - MAX_LISTED_RUNS} more" if len(rest) > MAX_LISTED_RUNS else ""
    scope = "the exit status covers all runs" if others else "no rules were evaluated for them"
    return f"this page shows only run {run}; --run shows another one: {', '.join(listed)}{more}; {scope}"


def _side_by_side(work: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """Return the result of `work` for each item. Two items are processed at a time, because planning a small query keeps only one core busy."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, items))


@contextmanager
def fast_tables(spark: SparkSession, frames: Sequence[DataFrame], requests: int) -> Iterator[Tables]:
    """Return a context (for `with`) that provides the tables for a report's queries, and makes these queries faster if the tables are small.

    If the tables are small, Spark caches them in the context, and neither generates code nor plans queries adaptively. The settings of Spark are
    restored afterwards. frames: the tables of a trace, in the order of `schema.TABLES`. requests: number of rows of the table `requests`; up to
    `SMALL_RUN_REQUESTS`, all tables count as small.
    """
    if requests > SMALL_RUN_REQUESTS:
        yield Tables(*frames)
        return
    previous = {name: spark.conf.get(name) or "" for name in FAST_SETTINGS}
    cached = [frame.cache() for frame in frames]
    for name, value in FAST_SETTINGS.items():
        spark.conf.set(name, value)
    try:
        yield Tables(*cached)
    finally:
        for name, value in previous.items():
            spark.conf.set(name, value)
        for frame in cached:
            frame.unpersist()


def _run(store: Store, name: str | None, candidates: Sequence[str] = ()) -> str:
    """Return the name of a run (recording): `name`, or, if `name` is None, the run in `candidates` that started last.

    candidates: names of runs. If `name` is None, there must be at least one; otherwise they are ignored. Raises StoreError if the tables have no run
    with the name `name`.
    """
    runs = store.manifest()
    if name is None:
        return max(candidates, key=lambda run: (json.loads(runs[run]["meta"])[2] or 0, run))
    if name not in runs:
        raise StoreError(
            f"the folder of tables {store.path} has no recording (run) {name!r}; its recordings are {', '.join(sorted(runs))}"
        )
    return name


def _write_result(path: Path, result: Result) -> None:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(
        pa.Table.from_pylist(result.rows) if result.rows else pa.table({name: [] for name in result.columns}), path
    )


def _facts(run: str, notes: list[str], options: ReportOptions, results: dict[tuple[str, str], Result]) -> Facts:
    """Return the facts at the top of the report: recorder, broker, clients, duration and size, each with a link to its table.

    run: name of the run (recording). notes: texts to show below the facts. options: the options of the command that writes the report. results:
    maps (name of a section of the report, name of a query in it) to the result of the query.
    """
    [recording_facts] = results["run", "facts"].rows or [dict.fromkeys(results["run", "facts"].columns)]
    clients = results["census", "clients"].rows
    broker = [
        f"release {recording_facts['release']}" if recording_facts["release"] else "",
        f"{recording_facts['brokers']} brokers" if recording_facts["brokers"] else "",
    ]
    client_names = [f"{row['client']} ({row['software']})" if row["software"] else row["client"] for row in clients]
    more = f" and {len(client_names) - MAX_LISTED_CLIENTS} more" if len(client_names) > MAX_LISTED_CLIENTS else ""
    lines = {
        "Recorded by": recording_facts["recorder"] or "unknown",
        "Broker": ", ".join(part for part in broker if part) or "unknown",
        "Duration": f"{number(recording_facts['seconds'] or 0)} s",
        "Requests": f"{number(recording_facts['requests'] or 0)} on {number(recording_facts['connections'] or 0)} connections",
        "Bytes": f"{number(recording_facts['bytes_in'] or 0)} in, {number(recording_facts['bytes_out'] or 0)} out",
        "Responses with an error": number(recording_facts["errors"] or 0),
        "Requests without a response": number(recording_facts["without_response"] or 0),
        "Incomplete requests or responses": number(recording_facts["incomplete"] or 0),
    }
    table = "t-run-facts" if results["run", "facts"].rows else ""
    return Facts(
        f"Kafka traffic of the recording {run}",
        [
            *((name, value, table) for name, value in lines.items()),
            (
                "Clients",
                ", ".join(client_names[:MAX_LISTED_CLIENTS]) + more or "none",
                "t-census-clients" if clients else "",
            ),
        ],
        notes,
        str(options.trace or "TRACE"),
        options.release,
    )
