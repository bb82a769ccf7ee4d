"""Starts `python -m broker` under callgrind up to its first line on stdout, lets it finish what it postponed, and exits.

Callgrind dumps its counters at both moments: part 1 is the start up to the ready line, part 2 the work that the broker postponed.

usage: PYTHONPATH=FOLDER python -P start.py [OPTION OF THE BROKER]...
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import TextIO

POSTPONED_S = 0.5
"""The event loop runs the callbacks that are due before it sleeps for this long."""


def marker() -> None:
    """Call the libc function at which callgrind dumps and resets its counters; nothing else here calls it."""
    os.getpriority(os.PRIO_PROCESS, 0)


def finish() -> None:
    marker()
    os._exit(0)


class ReadyLine:
    """Stands in for stdout and notices the first flush of the broker: its ready line."""

    def __init__(self, stdout: TextIO) -> None:
        self._stdout = stdout
        self._written = False

    def write(self, text: str) -> int:
        self._written = self._written or bool(text)
        return self._stdout.write(text)

    def flush(self) -> None:
        self._stdout.flush()
        if self._written:
            marker()
            sys.stdout = self._stdout
            sys.modules["asyncio"].get_running_loop().call_later(POSTPONED_S, finish)


if __name__ == "__main__":
    sys.argv[0] = "broker"
    sys.stdout = ReadyLine(sys.stdout)  # type: ignore[assignment]
    runpy.run_module("broker", run_name="__main__", alter_sys=True)
