"""Step 7: what the brokers recorded of the steps before, as tables, rules and one page that people look at."""

from __future__ import annotations

from kafkaproto.pipeline.demo.brokers import Brokers
from kafkaproto.pipeline.demo.table import Cell, Progress, same, within

LEAST_EXERCISED = 22
"""Rules that the steps before give something to check, at least."""


def run(brokers: Brokers, progress: Progress) -> list[Cell]:
    from kafkaproto.pipeline.session import local_session
    from kafkaproto.pipeline.trace.audit.rule import BROKEN, HOLDS
    from kafkaproto.pipeline.trace.progress import Progress as Quiet
    from kafkaproto.pipeline.trace.report.making import Wanted, make

    with local_session("kafkaproto demo report") as spark:
        begun = progress.seconds
        made = make(spark, Wanted(brokers.trace.parent / "report", brokers.trace), Quiet(quiet=True))
        outcomes, notes = made.outcomes, made.notes
        progress.note(f"tables, {len(outcomes)} rules, page: {progress.seconds - begun:.1f} s")
    for note in notes:
        progress.note(note)
    progress.note(f"the report is {made.path}")
    broken = [one.rule.number for one in outcomes if one.verdict == BROKEN]
    held = sum(one.verdict == HOLDS for one in outcomes)
    return [
        same("rules of Kafka that the traffic broke", "none", ", ".join(broken) or "none"),
        within("rules that it exercised, and that hold", LEAST_EXERCISED, len(outcomes), held),
        same("what the recorder had no room for, or nobody can read", "nothing", "; ".join(notes) or "nothing"),
    ]
