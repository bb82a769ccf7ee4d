"""`kafkaproto report TRACE`: tables, audit and answers of a trace, as one page: OUT/report.html.

Needs the extra "spark".
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kafkaproto import releases
from kafkaproto.pipeline.trace.audit.command import Arguments, to_the_end
from kafkaproto.pipeline.trace.report.making import RELEASE, Wanted, run
from kafkaproto.pipeline.trace.store import MANIFEST


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: see `kafkaproto.pipeline.trace.audit.command.STATUSES`."""
    parser = Arguments("kafkaproto report", "What recorded traffic says, as one page.")
    parser.add_argument(
        "trace", type=Path, help="a folder with files *.kptrace or captures, one such file, or a folder of tables"
    )
    parser.add_argument("--out", type=Path, help="the folder of the tables and the page (TRACE.tables)")
    parser.add_argument(
        "--run",
        help="of several recordings this one alone; without it the page is of the latest, and the exit status of all",
    )
    parser.add_argument("--against", metavar="RUN", help="tell what differs from this run")
    parser.add_argument(
        "--release",
        default=RELEASE,
        type=_release,
        help=f"the broker release that clients are held against ({RELEASE})",
    )
    parser.add_argument("--json", type=Path, help="a file for what the rules say, for machines")
    options = parser.parse_args(arguments)
    return to_the_end("kafkaproto report", lambda: run(_wanted(options), options.json))


def _release(name: str) -> str:
    try:
        releases.versions(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name


def _wanted(options: argparse.Namespace) -> Wanted:
    """A folder of tables can be given in place of a trace."""
    given: Path = options.trace
    is_tables = options.out is None and given.is_dir() and (given / MANIFEST).is_file()
    beside = given if given.name.strip(".") else given.resolve()  # "." and ".." have no name of their own
    out = options.out or (given if is_tables else beside.with_name(f"{beside.name}.tables"))
    return Wanted(out, None if is_tables else given, options.run, options.against, options.release)


if __name__ == "__main__":
    sys.exit(main())
