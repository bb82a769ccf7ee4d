"""All rules of the audit, and their outcomes over the tables of a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from kafkaproto.pipeline.trace.audit.rule import Outcome, Rule, Tables, outcome

FAMILIES = (limits, throttling, conversation, offsets, durability, transactions, metadata, sessions)
RULES: tuple[Rule, ...] = tuple(
    sorted(
        (rule for family in FAMILIES for rule in family.RULES),
        key=lambda rule: (int(rule.number.split()[0]), rule.number),
    )
)


def asked(rule: Rule, tables: Tables, note: Callable[[str], None]) -> Outcome:
    """Evaluate one rule; report progress through `note` first."""
    note(_named(rule))
    return outcome(rule, tables)


def _named(rule: Rule) -> str:
    return f"rule {rule.number} ({RULES.index(rule) + 1} of {len(RULES)}): {rule.statement}"


def audit(tables: Tables, rules: Sequence[Rule] = RULES) -> list[Outcome]:
    """Evaluate the rules one after the other."""
    return [outcome(rule, tables) for rule in rules]


def of_each_run(rule: Rule, tables: Tables, note: Callable[[str], None]) -> dict[str, Outcome]:
    """Evaluate one rule for each run separately, without worst rows. Returns the outcomes of the runs in which it checked something."""
    from pyspark.sql.functions import expr

    note(_named(rule))
    rows = rule.check(tables).groupBy("run")
    counts = rows.agg(expr("count(broken)"), expr("count_if(broken)"), expr("count_if(broken IS NULL)")).collect()
    return {run: Outcome(rule, checked, broken, None, [], left) for run, checked, broken, left in counts if checked}
