"""A pytest plugin that prints how long the tests of each file took, the slowest files first: `pytest -p tests.time_by_file`.

With several workers, the times of all workers add up, so that their sum is larger than the time of the run.
"""

from __future__ import annotations

from collections import Counter

import pytest

SHOWN = 40
"""How many files are printed."""


class TimeByFile:
    """Adds up the times of tests, including their fixtures, and prints the sums at the end of the run."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[file_of(report.nodeid)] += report.duration  # type: ignore[assignment]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section(f"{sum(self._seconds.values()):.0f} s in tests, by file")
        for name, seconds in self._seconds.most_common(SHOWN):
            terminalreporter.write_line(f"{seconds:8.1f} s {name}")


def file_of(nodeid: str) -> str:
    """Return the file in the id of a test. The conformance suite stands for one file, but its ids continue with the name of a module."""
    return "::".join(part for part in nodeid.partition("[")[0].split("::") if part.endswith(".py"))


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # only the process that collects the reports of all workers
        config.pluginmanager.register(TimeByFile())
