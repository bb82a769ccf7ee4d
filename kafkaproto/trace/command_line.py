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
            ("print the trace in the folder named trace", "kafkaproto trace show trace"),
            ("print the options of `kafkaproto trace show`", "kafkaproto trace show --help"),
        ],
    )
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    show_parser = commands.add_parser(
        "show",
        help="print a trace, one request per line",
        description="Print a trace: a line for each request, and a line for each event, such as a new partition leader.\n"
        "With --api or --client, only the selected requests are printed, without events.",
        allow_abbrev=False,
        examples=[
            ("print the Produce requests of the client etl", "kafkaproto trace show trace --api Produce --client etl"),
            ("print all fields of requests and responses", "kafkaproto trace show trace --json"),
        ],
    )
    _add_selection(show_parser)
    show_parser.add_argument(
        "--json",
        action="store_true",
        help="print each line as a JSON object. It has all fields of the request and response, with the names of Kafka's "
        "message definitions, for example throttleTimeMs",
    )
    show_parser.add_argument(
        "--state",
        action="store_true",
        help="also print a line for each change of the high watermark, last stable offset or log start offset of a replica",
    )
    show_parser.set_defaults(run=show.run)
    cut_parser = commands.add_parser(
        "cut",
        help="write requests and responses of a trace to a capture file for Wireshark",
        description="Write requests and responses of a trace to a capture file for Wireshark: all of them, or only those\n"
        "that the options select.",
        allow_abbrev=False,
        examples=[
            (
                "write the traffic of connection 3 to part.pcap",
                "kafkaproto trace cut trace --out part.pcap --connection 3",
            ),
            (
                "write the requests 17 and 18 and their responses",
                "kafkaproto trace cut trace --out part.pcap --seq 17 --seq 18",
            ),
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
        help="only the request with this sequence number, which `kafkaproto trace show --json` prints as `seq`, and its response; "
        "may be repeated",
    )
    cut_parser.add_argument(
        "--connection",
        type=int,
        metavar="N",
        help="only the connection with this number, which `kafkaproto trace show` prints",
    )
    cut_parser.set_defaults(run=cut.run)
    return root


def _add_selection(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "path", type=Path, metavar="PATH", help="the trace: a file *.kptrace, or a folder with such files"
    )
    command.add_argument("--api", metavar="API", help="only requests of this API, for example Produce")
    command.add_argument("--client", metavar="CLIENT_ID", help="only requests with this client id")


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
