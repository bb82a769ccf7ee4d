"""How the commands end that judge recorded traffic: what an exit status says, whatever happens on the way to it.

Must never know a rule, nor what a command does.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from kafkaproto.pipeline.trace.store import StoreError
from kafkaproto.trace.format import TraceError

ALL_HOLD, WARNED, FAILED, UNREADABLE, UNFINISHED = 0, 1, 2, 3, 4
STATUSES = (
    f"exit status: {ALL_HOLD} no rule is broken; {WARNED} only rules of severity warning; {FAILED} a rule of severity error; "
    f"{UNREADABLE} there was nothing to read, or nothing that any rule could check; {UNFINISHED} the program failed, which says nothing of "
    "the traffic"
)


class Arguments(argparse.ArgumentParser):
    """Tells its exit statuses, and ends with that of nothing read where arguments are wrong: argparse's own 2 is a verdict here."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, epilog=STATUSES, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(UNREADABLE, f"{self.prog}: {message}\n")


def to_the_end(prog: str, work: Callable[[], int]) -> int:
    """The exit status of `work`. What it raises becomes a line on standard error and a status of its own: UNREADABLE where what was asked for
    is not there, else UNFINISHED."""
    try:
        return work()
    except (TraceError, StoreError, FileNotFoundError, NotADirectoryError, PermissionError) as error:
        sys.stderr.write(f"{prog}: {error}\n")
        return UNREADABLE
    except Exception as error:  # noqa: BLE001 - Python's own exit status for it is that of a warning
        if not isinstance(
            error, OSError
        ):  # those tell what is wrong with the machine; all others are for who mends this
            traceback.print_exc()
        first, *_ = str(error).strip().splitlines() or [""]
        sys.stderr.write(
            f"{prog}: it failed, which says nothing of the traffic (exit status {UNFINISHED}): {type(error).__name__}: "
            f"{error if isinstance(error, OSError) else first}\n"
        )
        return UNFINISHED
