"""`kafkaproto audit OUT`: the rules over the tables in OUT, as text for CI logs and, if asked, as JSON.

`--trace TRACE` brings the tables up to that trace first, in the same Spark session.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkaproto.pipeline.session import local_session
from kafkaproto.pipeline.trace.audit import (
    conversation,
    durability,
    limits,
    metadata,
    offsets,
    sessions,
    throttling,
    transactions,
)
from kafkaproto.pipeline.trace.audit.command import ALL_HOLD, FAILED, UNREADABLE, WARNED, Arguments, to_the_end
from kafkaproto.pipeline.trace.audit.rule import BROKEN, ERROR, HOLDS, NOT_EXERCISED, Outcome, Rule, Tables, outcome
from kafkaproto.pipeline.trace.progress import Progress
from kafkaproto.pipeline.trace.store import Store, StoreError
from kafkaproto.pipeline.trace.tables import build, with_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAMILIES = (limits, throttling, conversation, offsets, durability, transactions, metadata, sessions)
RULES: tuple[Rule, ...] = tuple(
    sorted(
        (rule for family in FAMILIES for rule in family.RULES),
        key=lambda rule: (int(rule.number.split()[0]), rule.number),
    )
)


def asked(rule: Rule, tables: Tables, note: Callable[[str], None]) -> Outcome:
    """Its outcome; `note` is told before it is asked for."""
    note(_named(rule))
    return outcome(rule, tables)


def _named(rule: Rule) -> str:
    return f"rule {rule.number} ({RULES.index(rule) + 1} of {len(RULES)}): {rule.statement}"


def audit(tables: Tables, rules: Sequence[Rule] = RULES) -> list[Outcome]:
    return [outcome(rule, tables) for rule in rules]


def of_each_run(rule: Rule, tables: Tables, note: Callable[[str], None]) -> dict[str, Outcome]:
    """Run to what became of the rule there, without worst rows: of runs in which it checked something."""
    from pyspark.sql.functions import expr

    note(_named(rule))
    rows = rule.check(tables).groupBy("run")
    counts = rows.agg(expr("count(broken)"), expr("count_if(broken)"), expr("count_if(broken IS NULL)")).collect()
    return {run: Outcome(rule, checked, broken, None, [], left) for run, checked, broken, left in counts if checked}


def status(outcomes: Sequence[Outcome]) -> int:
    """0: nothing is broken; 1: only what may have a reason (severity "warning"); 2: a rule of severity "error"; 3: no rule had anything
    to check, which is no pass."""
    if all(one.verdict == NOT_EXERCISED for one in outcomes):
        return UNREADABLE
    broken = {one.rule.severity for one in outcomes if one.broken}
    return FAILED if ERROR in broken else WARNED if broken else ALL_HOLD


def verdict(outcomes: Sequence[Outcome]) -> str:
    counts = {name: sum(one.verdict == name for one in outcomes) for name in (BROKEN, HOLDS, NOT_EXERCISED)}
    return (
        f"{counts[BROKEN]} of {len(outcomes)} rules broken, {counts[HOLDS]} hold, {counts[NOT_EXERCISED]} not exercised"
    )


def text(outcomes: Sequence[Outcome], remarks: Sequence[str] = ()) -> str:
    """The verdict first, a line for each rule, then the worst rows of each broken one."""
    lines = [verdict(outcomes), *(f"note: {remark}" for remark in [*remarks, *left_out(outcomes)]), ""]
    lines.append(f"{'rule':<7} {'verdict':<13} {'checked':>9} {'broken':>8} {'worst':>12}  statement")
    for one in outcomes:
        worst = "" if one.worst is None else f"{one.worst:,.6g}"
        checked = f"{one.checked:,}" if one.checked else ""
        broken = f"{one.broken:,}" if one.checked else ""
        lines.append(
            f"{one.rule.number:<7} {one.verdict:<13} {checked:>9} {broken:>8} {worst:>12}  {one.rule.statement}"
        )
    for one in outcomes:
        if one.broken:
            lines += ["", f"rule {one.rule.number} ({one.rule.severity}): {one.rule.statement}; the worst rows:"]
            lines += ["  " + ", ".join(f"{k} {v}" for k, v in row.items() if v is not None) for row in one.sample]
            lines.append(f"  its frames: {one.how_to_see('TRACE')}")
    return "\n".join(lines) + "\n"


def as_json(outcomes: Sequence[Outcome], remarks: Sequence[str] = ()) -> dict[str, Any]:
    rules = [
        {
            "rule": one.rule.number,
            "statement": one.rule.statement,
            "severity": one.rule.severity,
            "verdict": one.verdict,
            "checked": one.checked,
            "broken": one.broken,
            "left_out": one.left_out,
            "worst": one.worst,
            "sample": one.sample,
            "query": one.query,
        }
        for one in outcomes
    ]
    return {
        "verdict": verdict(outcomes),
        "status": status(outcomes),
        "remarks": [*remarks, *left_out(outcomes)],
        "rules": rules,
    }


def left_out(outcomes: Sequence[Outcome]) -> list[str]:
    """What is no finding because of what is missing."""
    return [
        f"rule {one.rule.number}: {one.left_out:,} rows are left out, as what is missing may explain them"
        for one in outcomes
        if one.left_out
    ]


def remarks(store: Store, tables: Tables) -> list[str]:
    """What the tables lack: ends of files, what a recorder had no room for, and packets that are no Kafka or cannot be read (TLS)."""
    said = [text for run in store.manifest().values() for text in run["told"]]
    dropped = (
        tables.events.where("kind = 'dropped'")
        .groupBy("run")
        .agg({"facts": "collect_list"})
        .toDF("run", "facts")
        .orderBy("run")
    )
    for row in dropped.collect():
        most = max(json.loads(facts).get("entries", 0) for facts in row.facts)
        said.append(f"run {row.run}: {most:,} entries were dropped while it was recorded")
    lacks = tables.sql("SELECT run, entries FROM {gaps} WHERE entries > 0 ORDER BY run").collect()
    said += [f"run {row.run}: {row.entries:,} entries are missing, or have not come yet" for row in lacks]
    for row in tables.events.where("kind = 'left_out'").orderBy("run").collect():
        packets = ", ".join(f"{n:,} {why}" for why, n in json.loads(row.facts)["packets"].items())
        said.append(f"run {row.run}: packets of the capture that are in no table: {packets}")
    return said


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: as `status`; UNREADABLE where there are no tables, or no trace to make them of; UNFINISHED when it fails."""
    parser = Arguments("kafkaproto audit", "Rules over recorded traffic.")
    parser.add_argument("out", type=Path, help="the folder of the tables")
    parser.add_argument("--trace", type=Path, help="bring the tables up to this trace first")
    parser.add_argument("--json", type=Path, help="a file for the same as JSON")
    options = parser.parse_args(arguments)

    def work() -> int:
        if options.trace is None and not (options.out.is_dir() and Store(options.out).manifest()):
            raise StoreError(f"{options.out} holds no tables: make some with kafkaproto tables TRACE OUT")
        with local_session("kafkaproto audit") as spark:
            return _run(spark, options)

    return to_the_end("audit", work)


def _run(spark: SparkSession, options: argparse.Namespace) -> int:
    progress = Progress()
    if options.trace is not None:
        progress.note(f"tables of {options.trace}")
        _, said = build(options.trace, options.out, partial(with_spark, spark, progress=progress.note))
        for one in said:
            sys.stderr.write(f"audit: {one.text}\n")
    store = Store(options.out)
    with store.at_work():
        tables = Tables.of(spark, options.out)
        outcomes = [asked(rule, tables, progress.note) for rule in RULES]
        notes = remarks(store, tables)
    sys.stdout.write(text(outcomes, notes))
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(outcomes, notes), indent=1) + "\n")
    return status(outcomes)


if __name__ == "__main__":
    sys.exit(main())
