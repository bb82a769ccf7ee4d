"""What long work says while it lasts."""

from __future__ import annotations

import sys
import time


class Progress:
    """What is done, with the seconds since the beginning, on standard error."""

    def __init__(self, quiet: bool = False) -> None:
        self._begun = time.perf_counter()
        self._quiet = quiet

    def note(self, what: str) -> None:
        if not self._quiet:
            sys.stderr.write(f"{time.perf_counter() - self._begun:6.1f} s  {what}\n")
            sys.stderr.flush()
