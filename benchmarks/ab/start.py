"""Starts a broker like `python -m kafkaproto.broker`, for measurements with callgrind, and ends the broker soon after its first line on stdout.

Callgrind writes its counters twice: at the ready line (part 1 is the start) and at the end (part 2 is the work that the broker postponed until after
the ready line).

usage: PYTHONPATH=FOLDER python -P start.py [OPTION OF THE BROKER]...
"""

from __future__ import annotations

import os
import runpy
import sys
from importlib.util import find_spec
from typing import TextIO

MODULES = ("kafkaproto.broker", "broker")
"""The packages in which a commit may contain the broker: `kafkaproto.broker` in newer commits, `broker` in older ones.

The program starts the first of these packages that exists in the measured commit.
"""
POSTPONED_S = 0.5
"""The time in seconds from the broker's report that it is ready to the end of the process.

In this time, the broker does the work that it has postponed at its start. callgrind counts this work, too.
"""


def marker() -> None:
    """Call the libc function (`getpriority`) at which callgrind dumps and resets its counters. Nothing else in the process calls it."""
    os.getpriority(os.PRIO_PROCESS, 0)


def finish() -> None:
    marker()
    os._exit(0)


class ReadyLine:
    """A replacement of stdout that detects the ready line of the broker: the first text that the broker writes and flushes.

    The object then calls the function `marker` of this module, at which callgrind resets its counters. Afterwards the object restores stdout, and
    schedules the end of the process after `POSTPONED_S` seconds.
    """

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
