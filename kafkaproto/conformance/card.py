"""The card: every conformance test with the rules that it proves, its outcome for each subject, and how long it took.

A pytest plugin: `-p kafkaproto.conformance.card` prints it after the run.
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
    """Where a test stands on the card: its row, and the subject of its column."""

    name: str
    subject: str


class Card:
    """Keeps outcome and seconds of each test by subject."""

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        """By node id."""
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
            return  # a teardown says nothing better
        self.rows[name][subject] = outcome, report.duration
        if report.skipped and isinstance(report.longrepr, tuple):
            self.reasons.append(f"{name} [{subject}]: {report.longrepr[2].removeprefix('Skipped: ')}")

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.rows:
            terminalreporter.write(f"\n{self.text()}\n\n")

    def text(self) -> str:
        """The card as a table."""
        subjects = list(dict.fromkeys(subject for row in self.rows.values() for subject in row))
        lines = ["| rules | what | " + " | ".join(subjects) + " |", "|---" * (2 + len(subjects)) + "|"]
        for name, row in self.rows.items():
            rules, what = self.rules[name], name.removeprefix("test_").replace("_", " ")
            cells = [f"{MARKS[row[s][0]]} {row[s][1]:.1f} s" if s in row else "" for s in subjects]
            lines.append(f"| {rules} | {what} | " + " | ".join(cells) + " |")
        for subject in subjects:
            outcomes = [row[subject][0] for row in self.rows.values() if subject in row]
            counts = ", ".join(f"{outcomes.count(o)} {MARKS[o]}" for o in MARKS if o in outcomes)
            lines.append(f"\n{subject}: {counts}")
        return "\n".join([*lines, *self.reasons])


def place_of(item: pytest.Item) -> Place:
    """Return the place of a test: ``test_x[real-3]`` is "test_x [3]" of the subject "real"."""
    base, _, inside = item.name.partition("[")
    words = inside.rstrip("]")
    kind = item.callspec.params.get("running_cluster") if isinstance(item, pytest.Function) and words else None
    if not isinstance(kind, Kind):
        return Place(base, words or "harness")
    rest = words.replace(kind.name, "", 1).strip("-")
    return Place(base + (f" [{rest}]" if rest else ""), kind.name)
