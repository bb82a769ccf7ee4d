"""The command line of `kafkaproto trace`. Its commands are implemented in `show` and `cut`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kafkaproto.api import APIS
from kafkaproto.arguments import Parser, nearest
from kafkaproto.command_line import forget_output
from kafkaproto.trace import cut, show
from kafkaproto.trace.format import TraceError


def parser() -> Parser:
    """Return the parser of the options of `kafkaproto trace`."""
    root = Parser(
        prog="kafkaproto trace",
        description="Read a trace that `kafkaproto broker --trace` or `kafkaproto proxy --trace` recorded.",
        allow_abbrev=False,
        examples=[
            ("print the requests of a trace", "kafkaproto trace show trace"),
            ("options of a command", "kafkaproto trace show --help"),
        ],
    )
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    show_parser = commands.add_parser(
        "show",
        help="print a trace, one request per line",
        description="Print a trace, one request per line.",
        allow_abbrev=False,
        examples=[
            ("all Produce requests of one client", "kafkaproto trace show trace --api Produce --client etl"),
            ("requests and responses as JSON lines", "kafkaproto trace show trace --json"),
        ],
    )
    _add_selection(show_parser)
    show_parser.add_argument(
        "--json",
        action="store_true",
        help="print JSON lines with the requests and responses as Kafka's tools write them",
    )
    show_parser.add_argument(
        "--state",
        action="store_true",
        help="also print each change of a high watermark, last stable offset or log start offset",
    )
    show_parser.set_defaults(run=show.run)
    cut_parser = commands.add_parser(
        "cut",
        help="write requests and responses to a capture file for Wireshark",
        description="Write requests and responses to a capture file for Wireshark.",
        allow_abbrev=False,
        examples=[
            ("the traffic of connection 3", "kafkaproto trace cut trace --out part.pcap --connection 3"),
            ("requests 17 and 18", "kafkaproto trace cut trace --out part.pcap --seq 17 --seq 18"),
        ],
    )
    _add_selection(cut_parser)
    cut_parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE.pcap", help="the capture file to write (required)"
    )
    cut_parser.add_argument(
        "--seq",
        type=int,
        action="append",
        default=[],
        metavar="N",
        help="only the request with this seq, which `kafkaproto trace show --json` prints; may be repeated",
    )
    cut_parser.add_argument("--connection", type=int, metavar="N", help="only this connection")
    cut_parser.set_defaults(run=cut.run)
    return root


def _add_selection(command: argparse.ArgumentParser) -> None:
    command.add_argument("path", type=Path, metavar="PATH", help="a file *.kptrace, or a folder with such files")
    command.add_argument("--api", metavar="API", help="only this API, for example Produce")
    command.add_argument("--client", metavar="CLIENT_ID", help="only this client id")


def main(arguments: Sequence[str]) -> int:
    """Run `kafkaproto trace`. Returns the exit status.

    0: success. 1: the trace ends in the middle of an entry. 2: an argument is invalid, or the trace cannot be decoded; the entries before the error
    are printed.
    """
    options = parser().parse_args(arguments)
    names = {info.name for info in APIS.values()}
    if options.api is not None and options.api not in names:
        example = nearest(options.api, names) or "Produce"
        sys.stderr.write(f"kafkaproto trace: --api {options.api}: no such API; for example --api {example}\n")
        return 2
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output, for example `head`, has closed the pipe
        forget_output()
        return 0
    except (TraceError, OSError) as error:
        sys.stdout.flush()
        sys.stderr.write(f"kafkaproto trace: {error}\n")
        return 2
    return status
