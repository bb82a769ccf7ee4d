"""Starts a broker as `python -m kafkaproto.broker` does, under callgrind, up to its first line on stdout; then it finishes and exits.

Callgrind dumps its counters at both moments: part 1 is the start up to the ready line, part 2 the work that the broker postponed.

usage: PYTHONPATH=FOLDER python -P start.py [OPTION OF THE BROKER]...
"""

from __future__ import annotations

import os
import runpy
import sys
from importlib.util import find_spec
from typing import TextIO

MODULES = ("kafkaproto.broker", "broker")
"""Where the broker may be, the newest place first."""
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
    place = next(name for name in MODULES if find_spec(name) is not None)
    runpy.run_module(place, run_name="__main__", alter_sys=True)
