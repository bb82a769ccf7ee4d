"""Step 7 of the demo: makes tables and a report page of the traffic recorded in steps 1 to 6, and evaluates the audit rules."""

from __future__ import annotations

from kafkaproto.pipeline.demo.brokers import Brokers
from kafkaproto.pipeline.demo.table import Cell, Progress, same, within

MIN_EXERCISED = 22
"""The minimum number of audit rules that must hold and must have had something to check in the traffic of steps 1 to 6 of the demo."""


def run(brokers: Brokers, progress: Progress) -> list[Cell]:
    from kafkaproto.pipeline.session import local_session
    from kafkaproto.pipeline.trace.audit.rule import BROKEN, HOLDS
    from kafkaproto.pipeline.trace.progress import Progress as ReportProgress
    from kafkaproto.pipeline.trace.report.making import ReportOptions, make

    with local_session("kafkaproto demo report") as spark:
        start = progress.seconds
        report = make(spark, ReportOptions(brokers.trace.parent / "report", brokers.trace), ReportProgress(quiet=True))
        outcomes, notes = report.outcomes, report.notes
        progress.note(f"tables, {len(outcomes)} rules, page: {progress.seconds - start:.1f} s")
    for note in notes:
        progress.note(note)
    progress.note(f"the report is {report.path}")
    broken = [outcome.rule.number for outcome in outcomes if outcome.verdict == BROKEN]
    holding_count = sum(outcome.verdict == HOLDS for outcome in outcomes)
    return [
        same("rules of Kafka that the traffic broke", "none", ", ".join(broken) or "none"),
        within("rules that were exercised and hold", MIN_EXERCISED, len(outcomes), holding_count),
        same("entries that were dropped or cannot be decoded", "nothing", "; ".join(notes) or "nothing"),
    ]
