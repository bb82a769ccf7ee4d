"""The result of an audit as exit status, as text for CI logs, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kafkaproto.pipeline.trace.audit.command import ALL_HOLD, FAILED, UNREADABLE, WARNED
from kafkaproto.pipeline.trace.audit.rule import BROKEN, ERROR, HOLDS, NOT_EXERCISED, Outcome, Tables
from kafkaproto.pipeline.trace.store import Store
from kafkaproto.pipeline.trace.tables import earlier_runs

EARLIER_NOTICES = "told"
"""An older name of the key "notices" in the manifest, the file that describes a folder of tables.

Earlier versions of this program stored the messages about the files of a recording under this older name.
"""


def status(outcomes: Sequence[Outcome]) -> int:
    """Return the exit status of an audit. outcomes: the results of all rules.

    0 if no rule is broken, 1 if only rules of severity "warning" are broken, 2 if a rule of severity "error" is broken, and 3 if no rule had anything
    to check.
    """
    if all(outcome.verdict == NOT_EXERCISED for outcome in outcomes):
        return UNREADABLE
    broken = {outcome.rule.severity for outcome in outcomes if outcome.broken}
    return FAILED if ERROR in broken else WARNED if broken else ALL_HOLD


def verdict(outcomes: Sequence[Outcome]) -> str:
    """Return one line with the number of rules that are broken, hold, and are not exercised. outcomes: the results of all rules."""
    counts = {name: sum(outcome.verdict == name for outcome in outcomes) for name in (BROKEN, HOLDS, NOT_EXERCISED)}
    return (
        f"{counts[BROKEN]} of {len(outcomes)} rules broken, {counts[HOLDS]} hold, {counts[NOT_EXERCISED]} not exercised"
    )


def text(outcomes: Sequence[Outcome], remarks: Sequence[str] = ()) -> str:
    """Return the result of an audit as text for CI logs.

    The text consists of one line with the numbers of broken and other rules, the remarks, one line per rule, and the worst rows of each broken rule.
    In the line of a rule, `max excess` says by how much the worst row breaks the rule, in the unit of the rule's column `excess`.

    outcomes: the results of the rules. remarks: notes on the traffic that the tables lack.
    """
    lines = [verdict(outcomes), *(f"note: {remark}" for remark in [*remarks, *left_out(outcomes)]), ""]
    lines.append(f"{'rule':<10} {'verdict':<13} {'checked':>9} {'broken':>8} {'max excess':>12}  statement")
    for outcome in outcomes:
        worst = "" if outcome.worst is None else f"{outcome.worst:,.6g}"
        checked = f"{outcome.checked:,}" if outcome.checked else ""
        broken = f"{outcome.broken:,}" if outcome.checked else ""
        lines.append(
            f"{outcome.rule.number:<10} {outcome.verdict:<13} {checked:>9} {broken:>8} {worst:>12}  {outcome.rule.statement}"
        )
    for outcome in outcomes:
        if outcome.broken:
            lines += [
                "",
                f"rule {outcome.rule.number} ({outcome.rule.severity}): {outcome.rule.statement}; the worst rows:",
            ]
            lines += ["  " + ", ".join(f"{k} {v}" for k, v in row.items() if v is not None) for row in outcome.sample]
            lines.append(f"  worst case in Wireshark: {outcome.frames_command('TRACE')}")
    return "\n".join(lines) + "\n"


def as_json(outcomes: Sequence[Outcome], remarks: Sequence[str] = ()) -> dict[str, Any]:
    """Return the verdict, the exit status, the remarks, and the result and query of each rule, as values that `json.dumps` accepts.

    outcomes: the results of the rules. remarks: notes on the traffic that the tables lack.
    """
    rules = [
        {
            "rule": outcome.rule.number,
            "statement": outcome.rule.statement,
            "severity": outcome.rule.severity,
            "verdict": outcome.verdict,
            "checked": outcome.checked,
            "broken": outcome.broken,
            "left_out": outcome.left_out,
            "worst": outcome.worst,
            "sample": outcome.sample,
            "query": outcome.query,
        }
        for outcome in outcomes
    ]
    return {
        "verdict": verdict(outcomes),
        "status": status(outcomes),
        "remarks": [*remarks, *left_out(outcomes)],
        "rules": rules,
    }


def left_out(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a line for each rule with undecided rows: rows that may be faults, which cannot be decided because the trace lacks entries."""
    return [
        f"rule {outcome.rule.number}: {outcome.left_out:,} cases look broken but are left out, because missing entries may explain them"
        for outcome in outcomes
        if outcome.left_out
    ]


def remarks(store: Store, tables: Tables) -> list[str]:
    """Return texts about recorded traffic that the Parquet tables lack. store: the folder of the tables.

    Traffic is missing if a file is unreadable or its end incomplete, if the recorder dropped entries or has not written some entries yet, if packets
    had no readable Kafka traffic (for example with TLS), or if an earlier version of this program made the tables of a run (a recording).
    """
    lines = [text for run in store.manifest().values() for text in run.get("notices") or run.get(EARLIER_NOTICES, ())]
    lines += [
        f"run {run}: an earlier version made its tables, which lack groups or transactions; kafkaproto tables TRACE {store.path} makes them again"
        for run in earlier_runs(store)
    ]
    dropped = (
        tables.events.where("kind = 'dropped'")
        .groupBy("run")
        .agg({"facts": "collect_list"})
        .toDF("run", "facts")
        .orderBy("run")
    )
    for row in dropped.collect():
        dropped_entries = max(json.loads(facts).get("entries", 0) for facts in row.facts)
        lines.append(f"run {row.run}: the recorder dropped {dropped_entries:,} entries")
    missing = tables.sql("SELECT run, entries FROM {gaps} WHERE entries > 0 ORDER BY run").collect()
    lines += [
        f"run {row.run}: {row.entries:,} entries of the trace are missing or have not arrived yet" for row in missing
    ]
    for row in tables.events.where("kind = 'left_out'").orderBy("run").collect():
        packets = ", ".join(f"{n:,} {why}" for why, n in json.loads(row.facts)["packets"].items())
        lines.append(f"run {row.run}: packets of the capture that are in no table: {packets}")
    return lines
