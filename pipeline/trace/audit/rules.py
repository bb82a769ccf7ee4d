"""All rules of the audit, and their outcomes over the tables of a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkaproto.pipeline.trace.audit import (
    conversation,
    durability,
    groups,
    limits,
    lookups,
    metadata,
    offsets,
    producer_epochs,
    sessions,
    throttling,
    transactions,
)
from kafkaproto.pipeline.trace.audit.rule import Outcome, Rule, Tables, outcome

FAMILIES = (
    limits,
    throttling,
    conversation,
    offsets,
    lookups,
    durability,
    transactions,
    producer_epochs,
    metadata,
    sessions,
    groups,
)
RULES: tuple[Rule, ...] = tuple(
    sorted(
        (rule for family in FAMILIES for rule in family.RULES),
        key=lambda rule: (int(rule.number.partition("-")[0]), rule.number),
    )
)


def evaluate(rule: Rule, tables: Tables, note: Callable[[str], None]) -> Outcome:
    """Evaluate one rule over all runs (recordings), and return its outcome. note: a function called with a progress line before the evaluation."""
    note(_progress_line(rule))
    return outcome(rule, tables)


def _progress_line(rule: Rule) -> str:
    return f"rule {rule.number} ({RULES.index(rule) + 1} of {len(RULES)}): {rule.statement}"


def audit(tables: Tables, rules: Sequence[Rule] = RULES) -> list[Outcome]:
    """Evaluate the audit rules over the tables of a trace, one after the other, and return their outcomes in the same order."""
    return [outcome(rule, tables) for rule in rules]


def outcomes_by_run(rule: Rule, tables: Tables, note: Callable[[str], None]) -> dict[str, Outcome]:
    """Evaluate one rule separately for each run (recording), and return the outcomes by run name.

    Runs in which the rule checked nothing are omitted. The outcomes have no sample rows. note: a function called with a progress line before the
    evaluation.
    """
    from pyspark.sql.functions import expr

    note(_progress_line(rule))
    rows = rule.check(tables).groupBy("run")
    counts = rows.agg(expr("count(broken)"), expr("count_if(broken)"), expr("count_if(broken IS NULL)")).collect()
    return {
        run: Outcome(rule, checked, broken, None, [], undecided)
        for run, checked, broken, undecided in counts
        if checked
    }
