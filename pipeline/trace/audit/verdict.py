"""What the outcomes of the rules amount to: an exit status, a text for CI logs, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kafkaproto.pipeline.trace.audit.command import ALL_HOLD, FAILED, UNREADABLE, WARNED
from kafkaproto.pipeline.trace.audit.rule import BROKEN, ERROR, HOLDS, NOT_EXERCISED, Outcome, Tables
from kafkaproto.pipeline.trace.store import Store


def status(outcomes: Sequence[Outcome]) -> int:
    """Return the exit status: 0 if no rule is broken, 1 if only rules of severity "warning" are, 2 if one of severity "error" is, and 3 if no rule
    had anything to check, which is no pass."""
    if all(one.verdict == NOT_EXERCISED for one in outcomes):
        return UNREADABLE
    broken = {one.rule.severity for one in outcomes if one.broken}
    return FAILED if ERROR in broken else WARNED if broken else ALL_HOLD


def verdict(outcomes: Sequence[Outcome]) -> str:
    """Return one line: how many rules are broken, hold, and are not exercised."""
    counts = {name: sum(one.verdict == name for one in outcomes) for name in (BROKEN, HOLDS, NOT_EXERCISED)}
    return (
        f"{counts[BROKEN]} of {len(outcomes)} rules broken, {counts[HOLDS]} hold, {counts[NOT_EXERCISED]} not exercised"
    )


def text(outcomes: Sequence[Outcome], remarks: Sequence[str] = ()) -> str:
    """Return the verdict, a line for each rule, and the worst rows of each broken one."""
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
    """Return what `text` says, and the query of each rule, as JSON can hold it."""
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
    """Return a line for each rule with rows that look broken and cannot be decided, because entries are missing."""
    return [
        f"rule {one.rule.number}: {one.left_out:,} rows are left out, as what is missing may explain them"
        for one in outcomes
        if one.left_out
    ]


def remarks(store: Store, tables: Tables) -> list[str]:
    """Return what the tables lack: ends of files, entries that a recorder dropped, and packets that are not Kafka or cannot be read (TLS)."""
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
