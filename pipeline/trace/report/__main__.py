"""`kafkaproto report TRACE`: makes the tables of a trace, checks rules and evaluates queries on them, and writes a page with the results.

The page is `report.html` in the folder of the option `--out`. The command needs the extra "spark".
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kafkaproto.pipeline.options import parser
from kafkaproto.pipeline.trace.audit.command import run_with_status
from kafkaproto.pipeline.trace.report.making import ReportOptions, run
from kafkaproto.pipeline.trace.store import MANIFEST


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `kafkaproto report` and return the exit status.

    0: no rule is broken. 1: only rules of severity warning are broken. 2: a rule of severity error is broken. 3: there was nothing to read, or no
    rule had anything to check. 4: the program failed.
    """
    options = parser("report").parse_args(arguments)
    return run_with_status("kafkaproto report", lambda: run(_report_options(options), options.json))


def _report_options(options: argparse.Namespace) -> ReportOptions:
    """Return the options of the report for the parsed command line.

    If the argument TRACE is a folder of tables and no OUT is given, the report uses these tables, reads no trace, and is written into that folder.
    """
    source: Path = options.trace
    is_tables = options.out is None and source.is_dir() and (source / MANIFEST).is_file()
    named = source if source.name.strip(".") else source.resolve()  # "." and ".." have no name of their own
    out = options.out or (source if is_tables else named.with_name(f"{named.name}.tables"))
    return ReportOptions(out, None if is_tables else source, options.run, options.against, options.release)


if __name__ == "__main__":
    sys.exit(main())
