"""`kafkaproto audit OUT`: checks the tables in OUT against the rules and writes the result as text, and as JSON if `--json` is given.

`--trace TRACE` first adds the new part of that trace to the tables, in the same Spark session.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from kafkaproto.pipeline.options import parser
from kafkaproto.pipeline.trace.audit import job
from kafkaproto.pipeline.trace.audit.command import run_with_status


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `kafkaproto audit` and return the exit status.

    0: no rule is broken. 1: only rules of severity warning are broken. 2: a rule of severity error is broken. 3: there were no tables and no trace to
    make them from, or no rule had anything to check. 4: the program failed.
    """
    options = parser("audit").parse_args(arguments)
    return run_with_status("kafkaproto audit", partial(job.run, options.out, options.trace, options.json))


if __name__ == "__main__":
    sys.exit(main())
