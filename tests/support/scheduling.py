"""Which tests pytest-xdist gives to one worker."""

from __future__ import annotations

import re

from xdist.scheduler import LoadFileScheduling

_SHARED = {
    "tests/conformance/test_suite.py": re.compile(r"\[(real-newer|real|ours-kafka)(?![\w-]*manual)"),
    "tests/clients/transactions/test_transactions.py": re.compile(r"(kafka|ours)-[\d.]+\]$"),
    "tests/tools/test_tools.py": re.compile(r"\[([\d.]+)-"),
    "tests/tools/test_admin_client.py": re.compile(r"\[([\d.]+)\]"),
}
"""Maps each file whose tests take minutes to a pattern. Tests share brokers only if the pattern matches equal texts in their ids."""


def scope_of(nodeid: str) -> str:
    """Return the name of the group of tests that a test belongs to: its file, or its file and the text that the pattern of the file matches.

    One worker runs all tests of a group. nodeid: the id of the test in pytest, which begins with its file.
    """
    file = nodeid.partition("::")[0]
    pattern = _SHARED.get(file)
    match = pattern.search(nodeid) if pattern else None
    return f"{file} {match[0]}" if match else file


class Scheduling(LoadFileScheduling):  # type: ignore[misc]
    """Gives all tests of a group, see `scope_of`, to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)
