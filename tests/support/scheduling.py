"""Which tests pytest-xdist gives to one worker."""

from __future__ import annotations

import re
from typing import Any

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


BUSY_WORKERS = 2
"""The number of workers whose tests keep the cores of a small machine busy. Further workers run tests that mostly wait."""
_WAITING = (
    "tests/conformance/test_suite.py ",
    "tests/conformance/test_the_command.py",
    "tests/clients/transactions/test_transactions.py ",
    "tests/clients/transactions/test_dead_coordinator.py",
    "tests/clients/transactions/test_killed_broker.py",
    "tests/clients/groups/",
    "tests/pipeline/trace/test_groups_of_clients.py",
    "tests/pipeline/trace/test_transactions_of_clients.py",
)
"""The prefixes of the names of groups whose tests mostly wait: for timeouts of brokers that keep real time, or of clients."""


def is_waiting(scope: str) -> bool:
    """Return whether the tests of a group, see `scope_of`, mostly wait, so that they may run beside `BUSY_WORKERS` workers."""
    return scope.startswith(_WAITING)


class Scheduling(LoadFileScheduling):  # type: ignore[misc]
    """A scheduler that gives all tests of one group (`scope_of`) to one worker.

    Workers after the first `BUSY_WORKERS` run groups whose tests mostly wait. When no such group is left, one of these workers runs other groups,
    because two workers alone often wait for the programs that their tests start; the rest of them end.
    """

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        prefers_waiting = self._is_for_waiting(node)
        scopes = iter(self.workqueue)
        first = next(scopes)
        preferred = (scope for scope in (first, *scopes) if is_waiting(scope) is prefers_waiting)
        self.workqueue.move_to_end(next(preferred, first), last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        if self._ends_early(node) and not node.shutting_down and not any(map(is_waiting, self.workqueue)):
            node.shutdown()  # after the tests that it has
        else:
            super()._reschedule(node)

    def _is_for_waiting(self, node: Any) -> bool:
        return node in self.nodes[BUSY_WORKERS:]

    def _ends_early(self, node: Any) -> bool:
        return node in self.nodes[BUSY_WORKERS + 1 :]
