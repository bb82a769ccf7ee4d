"""The card: every conformance test with the rules that it proves, what each subject said, and how long it took.

usage: python -m tests.conformance.card [pytest arguments]      (make conformance)
"""

from __future__ import annotations

import sys
from collections import defaultdict

import pytest

HERE = "tests/conformance"
MARKS = {"passed": "ok", "failed": "FAILED", "skipped": "not prepared", "error": "ERROR"}


class Card:
    """A pytest plugin that keeps outcome and seconds of each test by subject."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, tuple[str, float]]] = defaultdict(dict)
        self.rules: dict[str, str] = {}
        self.reasons: list[str] = []

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        name, _ = parts(item.nodeid)
        self.rules[name] = ", ".join(number for marker in item.iter_markers("rule") for number in marker.args)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        name, subject = parts(report.nodeid)
        outcome = "error" if report.failed and report.when != "call" else report.outcome
        if subject in self.rows[name] and self.rows[name][subject][0] != "passed":
            return  # a teardown says nothing better
        self.rows[name][subject] = outcome, report.duration
        if report.skipped and isinstance(report.longrepr, tuple):
            self.reasons.append(f"{name} [{subject}]: {report.longrepr[2].removeprefix('Skipped: ')}")

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


def parts(nodeid: str) -> tuple[str, str]:
    """Split a node id: ``…::test_x[real-3]`` is ("test_x [3]", "real")."""
    from tests.support.conformance.kinds import KINDS, RIVALS  # not before pytest has begun, which rewrites its asserts

    base, _, inside = nodeid.rpartition("::")[2].partition("[")
    words = inside.rstrip("]")
    for kind in sorted(KINDS | RIVALS, key=len, reverse=True):
        if kind in words:
            rest = words.replace(kind, "", 1).strip("-")
            return base + (f" [{rest}]" if rest else ""), kind
    return base, words or "harness"


def main() -> int:
    card = Card()
    status = pytest.main([HERE, "-q", "-p", "no:xdist", "-r", "fE", *sys.argv[1:]], plugins=[card])
    sys.stdout.write(f"\n{card.text()}\n")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
