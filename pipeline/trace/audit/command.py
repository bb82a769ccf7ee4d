"""The exit statuses of the commands that judge recorded traffic, including those for errors.

This module does not depend on any rule or command.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

from kafkaproto.pipeline.trace.store import StoreError
from kafkaproto.trace.format import TraceError

ALL_HOLD, WARNED, FAILED, UNREADABLE, UNFINISHED = 0, 1, 2, 3, 4
STATUSES = f"""exit status:
  {ALL_HOLD}  the traffic breaks no rule
  {WARNED}  it breaks only rules of severity warning
  {FAILED}  it breaks a rule of severity error
  {UNREADABLE}  an option is invalid, there was nothing to read, or no rule found anything to check
  {UNFINISHED}  the program failed, so there is no result"""


def run_with_status(prog: str, work: Callable[[], int]) -> int:
    """Run the command `work` and return its exit status. An exception becomes a line on standard error.

    work: a function that returns the exit status. prog: the name of the command in that line. The status after an exception is 3 if the input is
    missing or cannot be read, and 4 for every other exception.
    """
    try:
        return work()
    except (TraceError, StoreError, FileNotFoundError, NotADirectoryError, PermissionError) as error:
        sys.stderr.write(f"{prog}: {error}\n")
        return UNREADABLE
    except Exception as error:  # noqa: BLE001 - Python's own exit status 1 would mean a broken rule of severity warning
        if not isinstance(
            error, OSError
        ):  # an OSError names a problem of the machine; all other exceptions are bugs and need their traceback
            traceback.print_exc()
        first_line, *_ = str(error).strip().splitlines() or [""]
        sys.stderr.write(
            f"{prog}: did not finish, so there is no result (exit status {UNFINISHED}): {type(error).__name__}: "
            f"{error if isinstance(error, OSError) else first_line}\n"
        )
        return UNFINISHED
