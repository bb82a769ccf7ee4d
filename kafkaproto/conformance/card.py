"""The result table of a conformance run, in Markdown. This module is a pytest plugin, which prints the table after the run.

Each row is a test, with the numbers of the rules that the test proves. Each tested cluster has a column with the outcome and duration of the test.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import pytest

from kafkaproto.conformance.plugin import Kind

MARKS = {"passed": "ok", "failed": "FAILED", "skipped": "not prepared", "error": "ERROR"}


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Card())


class Place(NamedTuple):
    """The place of a test's outcome in the table that a conformance run prints. name: the row, a test. subject: the column, a tested cluster."""

    name: str
    subject: str


class Card:
    """Collects the outcome and the duration in seconds of each conformance test on each cluster, and makes a table of them."""

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        """Maps the pytest node id of a test to its row and column in the table of outcomes."""
        self.rows: dict[str, dict[str, tuple[str, float]]] = defaultdict(dict)
        self.rules: dict[str, str] = {}
        self.reasons: list[str] = []

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        place = self.places[item.nodeid] = place_of(item)
        self.rules[place.name] = ", ".join(number for marker in item.iter_markers("rule") for number in marker.args)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        name, subject = self.places[report.nodeid]
        outcome = "error" if report.failed and report.when != "call" else report.outcome
        if subject in self.rows[name] and self.rows[name][subject][0] != "passed":
            return  # a passing teardown must not replace a failure
        self.rows[name][subject] = outcome, report.duration
        if report.skipped and isinstance(report.longrepr, tuple):
            self.reasons.append(f"{name} [{subject}]: {report.longrepr[2].removeprefix('Skipped: ')}")

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.rows:
            terminalreporter.write(f"\n{self.text()}\n\n")

    def text(self) -> str:
        """Return the table of outcomes as Markdown: one row for each test, one column for each tested cluster."""
        subjects = list(dict.fromkeys(subject for row in self.rows.values() for subject in row))
        lines = ["| rules | test | " + " | ".join(subjects) + " |", "|---" * (2 + len(subjects)) + "|"]
        for name, row in self.rows.items():
            rules, test_name = self.rules[name], name.removeprefix("test_").replace("_", " ")
            cells = [f"{MARKS[row[s][0]]} {row[s][1]:.1f} s" if s in row else "" for s in subjects]
            lines.append(f"| {rules} | {test_name} | " + " | ".join(cells) + " |")
        for subject in subjects:
            outcomes = [row[subject][0] for row in self.rows.values() if subject in row]
            counts = ", ".join(f"{outcomes.count(o)} {MARKS[o]}" for o in MARKS if o in outcomes)
            lines.append(f"\n{subject}: {counts}")
        return "\n".join([*lines, *self.reasons])


def place_of(item: pytest.Item) -> Place:
    """Return the row (test) and the column (tested cluster) of a pytest item in the table of outcomes that a conformance run prints.

    For example, ``test_x[real-3]`` has the row "test_x [3]" and the column "real".
    """
    base, _, inside = item.name.partition("[")
    words = inside.rstrip("]")
    kind = item.callspec.params.get("running_cluster") if isinstance(item, pytest.Function) and words else None
    if not isinstance(kind, Kind):
        return Place(base, words or "harness")
    variant = words.replace(kind.name, "", 1).strip("-")
    return Place(base + (f" [{variant}]" if variant else ""), kind.name)
