"""Progress messages of jobs that take a long time."""

from __future__ import annotations

import sys
import time


class Progress:
    """A log of finished steps on standard error, each with the seconds since the job started."""

    def __init__(self, quiet: bool = False) -> None:
        self._started = time.perf_counter()
        self._quiet = quiet

    def note(self, what: str) -> None:
        if not self._quiet:
            sys.stderr.write(f"{time.perf_counter() - self._started:6.1f} s  {what}\n")
            sys.stderr.flush()
