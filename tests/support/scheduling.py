"""Which tests pytest-xdist gives to one worker."""

from __future__ import annotations

import re

from xdist.scheduler import LoadFileScheduling

_SHARED = {
    "tests/conformance/test_suite.py": re.compile(r"\[(real-newer|real|ours-kafka)(?![\w-]*manual)"),
    "tests/clients/transactions/test_transactions.py": re.compile(r"(kafka|ours)-[\d.]+\]$"),
    "tests/tools/test_tools.py": re.compile(r"\[([\d.]+)-"),
    "tests/tools/test_admin_client.py": re.compile(r"\[([\d.]+)\]"),
    "tests/test_cost_beside_many.py": re.compile(r"\[(.+)\]"),
}
"""Files that take minutes. Tests of a file share brokers only if the pattern finds the same text in their ids."""


def scope_of(nodeid: str) -> str:
    """Return a name for the tests that run in the same worker as this one: its file, or the file with the text that a pattern finds."""
    file = nodeid.partition("::")[0]
    pattern = _SHARED.get(file)
    match = pattern.search(nodeid) if pattern else None
    return f"{file} {match[0]}" if match else file


class Scheduling(LoadFileScheduling):  # type: ignore[misc]
    """Gives all tests of a file to the same worker, except those of files that take minutes: workers share these."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)
