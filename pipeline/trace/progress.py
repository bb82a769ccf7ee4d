"""Progress messages of commands that take a long time, such as `kafkaproto report`."""

from __future__ import annotations

import sys
import time


class Progress:
    """Prints the finished steps of a command on standard error, each with the seconds since this object was created. quiet: print nothing."""

    def __init__(self, quiet: bool = False) -> None:
        self._started = time.perf_counter()
        self._quiet = quiet

    def note(self, step: str) -> None:
        if not self._quiet:
            sys.stderr.write(f"{time.perf_counter() - self._started:6.1f} s  {step}\n")
            sys.stderr.flush()
