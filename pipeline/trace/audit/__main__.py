"""`kafkaproto audit OUT`: the rules over the tables in OUT, as text for CI logs and, if asked, as JSON.

`--trace TRACE` brings the tables up to that trace first, in the same Spark session.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from kafkaproto.pipeline.trace.audit import job
from kafkaproto.pipeline.trace.audit.command import Arguments, to_the_end


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: as `kafkaproto.pipeline.trace.audit.verdict.status`; UNREADABLE if there are no tables, or no trace to make them of; UNFINISHED
    if the program fails."""
    parser = Arguments("kafkaproto audit", "Rules over recorded traffic.")
    parser.add_argument("out", type=Path, help="the folder of the tables")
    parser.add_argument("--trace", type=Path, help="bring the tables up to this trace first")
    parser.add_argument("--json", type=Path, help="a file for the same as JSON")
    options = parser.parse_args(arguments)
    return to_the_end("audit", partial(job.run, options.out, options.trace, options.json))


if __name__ == "__main__":
    sys.exit(main())
