"""`kafkaproto trace`: the options of what can be done with a trace. What is done is in `show` and `cut`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kafkaproto.api import APIS
from kafkaproto.command_line import forget_output
from kafkaproto.trace import cut, show
from kafkaproto.trace.format import TraceError


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="kafkaproto trace", description="Recorded traffic.", allow_abbrev=False)
    commands = made.add_subparsers(dest="command", required=True)
    shown = commands.add_parser("show", help="print a trace, a line for each request", allow_abbrev=False)
    _choice(shown)
    shown.add_argument(
        "--json", action="store_true", help="JSON lines, with requests and responses as Kafka's own tools write them"
    )
    shown.add_argument("--state", action="store_true", help="also each move of a high watermark or log start")
    shown.set_defaults(run=show.run)
    taken = commands.add_parser("cut", help="make a capture file of exchanges, for Wireshark", allow_abbrev=False)
    _choice(taken)
    taken.add_argument("--out", type=Path, required=True, metavar="FILE.pcap", help="the capture file")
    taken.add_argument(
        "--seq", type=int, action="append", default=[], metavar="N", help="the exchange of this number; may be repeated"
    )
    taken.add_argument("--connection", type=int, metavar="N", help="only this connection")
    taken.set_defaults(run=cut.run)
    return made


def _choice(command: argparse.ArgumentParser) -> None:
    command.add_argument("path", type=Path, help="a file *.kptrace, or a folder with such files")
    command.add_argument("--api", help="only this API, for example Produce")
    command.add_argument("--client", help="only this client-id")


def main(arguments: Sequence[str]) -> int:
    """Exit status 0; 2 for a trace that cannot be read, after what could be; 1 for one that ends in the middle of an entry."""
    options = parser().parse_args(arguments)
    names = {info.name for info in APIS.values()}
    if options.api is not None and options.api not in names:
        sys.stderr.write(f"kafkaproto trace: --api {options.api}: no such API; for example --api Produce\n")
        return 2
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough
        forget_output()
        return 0
    except (TraceError, OSError) as error:
        sys.stdout.flush()
        sys.stderr.write(f"kafkaproto trace: {error}\n")
        return 2
    return status
