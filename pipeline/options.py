"""The options of the commands that need the extra "spark". `--help` works without that extra, because this module imports no package of it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from kafkaproto import releases
from kafkaproto.arguments import Parser
from kafkaproto.pipeline.live.limits import Limits, Windows
from kafkaproto.pipeline.trace.audit.command import STATUSES, UNREADABLE

EVERY = "10 seconds"
"""The default interval at which `kafkaproto stream` adds the new part of a trace to the tables, as a Spark duration."""
RELEASE = releases.releases()[-1]
"""The default Kafka release for which a report checks whether a broker would accept the clients' requests: the latest known one."""
DEFAULT_JOURNAL, DEFAULT_ALERTS = "__journal", "throttle-alerts"


def parser(command: str) -> argparse.ArgumentParser:
    """Return the argument parser of the command with this name."""
    return PARSERS[command]()


def _tables() -> Parser:
    command = Parser(
        prog="kafkaproto tables",
        description="Write a trace or a capture as Parquet tables.",
        epilog="exit status: 0 everything was written; 1 a file ends inside an entry; 2 something could not be read or written",
        examples=[
            ("the tables of a trace, without a Spark session", "kafkaproto tables trace tables --without-spark"),
            ("the Kafka traffic of port 9092 in a capture", "kafkaproto tables capture.pcap tables --port 9092"),
        ],
    )
    command.add_argument(
        "trace",
        type=Path,
        metavar="TRACE",
        help="a folder with files *.kptrace, *.pcap or *.pcapng, or one such file",
    )
    command.add_argument("out", type=Path, metavar="OUT", help="the folder for the tables")
    command.add_argument(
        "--without-spark", action="store_true", help="write them in this process: faster for small traces"
    )
    command.add_argument(
        "--port",
        type=int,
        action="append",
        default=[],
        metavar="PORT",
        help="a port of the brokers in a capture; may be repeated (default: all connections that speak Kafka)",
    )
    return command


def _stream() -> Parser:
    command = Parser(
        prog="kafkaproto stream",
        description="Write the tables of a trace while it is recorded, until Ctrl-C.",
        allow_abbrev=False,
        examples=[
            (
                "follow the trace of a broker started with --trace trace",
                "kafkaproto stream trace tables --checkpoint progress",
            )
        ],
    )
    command.add_argument(
        "trace", type=Path, metavar="TRACE", help="the folder that a broker or proxy writes with --trace"
    )
    command.add_argument("out", type=Path, metavar="OUT", help="the folder for the tables")
    command.add_argument(
        "--checkpoint",
        type=Path,
        required=True,
        metavar="DIR",
        help="the folder in which Spark keeps its progress (required)",
    )
    command.add_argument(
        "--every", default=EVERY, metavar="TIME", help=f"time between two micro-batches (default: {EVERY})"
    )
    return command


def _audit() -> Parser:
    command = Parser(
        prog="kafkaproto audit",
        description="Check the tables of a trace against the rules of Kafka.",
        epilog=STATUSES,
        error_status=UNREADABLE,
        allow_abbrev=False,
        examples=[
            ("check tables that exist", "kafkaproto audit tables"),
            ("write the tables of a trace, then check them", "kafkaproto audit tables --trace trace --json rules.json"),
        ],
    )
    command.add_argument("out", type=Path, metavar="OUT", help="the folder of the tables")
    command.add_argument(
        "--trace", type=Path, metavar="TRACE", help="first add the requests of this trace that the tables do not have"
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="also write the result to this file, as JSON")
    return command


def _report() -> Parser:
    command = Parser(
        prog="kafkaproto report",
        description="Write one page with the tables, rules and statistics of a trace.",
        epilog=STATUSES,
        error_status=UNREADABLE,
        allow_abbrev=False,
        examples=[
            ("write trace.tables/report.html", "kafkaproto report trace"),
            (
                "compare the API versions of the clients with those of Kafka 3.9",
                "kafkaproto report trace --out page --release 3.9",
            ),
        ],
    )
    command.add_argument(
        "trace",
        type=Path,
        metavar="TRACE",
        help="a folder with files *.kptrace or captures, one such file, or a folder of tables",
    )
    command.add_argument(
        "--out", type=Path, metavar="DIR", help="the folder for the tables and the page (default: TRACE.tables)"
    )
    command.add_argument(
        "--run",
        metavar="RUN",
        help="recording to show (default: the latest). With --run, only this recording decides the exit status; otherwise all recordings do",
    )
    command.add_argument("--against", metavar="RUN", help="also show the differences from this recording")
    command.add_argument(
        "--release",
        default=RELEASE,
        type=_release,
        metavar="RELEASE",
        help=f"the Kafka release whose API versions are compared with those of the clients (default: {RELEASE})",
    )
    command.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the result of the rules to this file, as JSON"
    )
    return command


def _live() -> Parser:
    command = Parser(
        prog="kafkaproto live",
        description="Watch throttled and lagging clients of a broker that was started with --journal-topic, until Ctrl-C.",
        epilog="exit status: 0 stopped, or finished with --once; 1 the Spark query failed; 2 an option is invalid or Spark's connector is missing",
        examples=[
            (
                "alerts for clients that are throttled for a second in ten, or 10,000 records behind",
                "kafkaproto live 127.0.0.1:9092 --checkpoint live --threshold-ms 1000 --lag 10000",
            )
        ],
    )
    command.add_argument(
        "bootstrap", type=_addresses, metavar="HOST:PORT[,HOST:PORT]", help="addresses of one or more brokers"
    )
    command.add_argument(
        "--checkpoint",
        type=Path,
        required=True,
        metavar="DIR",
        help="the folder for the progress of Spark and the table of clients; the same folder continues an earlier run (required)",
    )
    command.add_argument(
        "--journal",
        default=DEFAULT_JOURNAL,
        metavar="TOPIC",
        help=f"the journal topic of the broker (default: {DEFAULT_JOURNAL})",
    )
    command.add_argument(
        "--alerts-topic",
        default=DEFAULT_ALERTS,
        metavar="TOPIC",
        help=f"the topic to write alerts to (default: {DEFAULT_ALERTS})",
    )
    limits, windows = Limits(), Windows()
    numbers = (
        ("--threshold-ms", 1, limits.throttled_ms, "MS", "alert if a client is throttled for this time in one window"),
        ("--lag", 1, limits.lag, "RECORDS", "alert if a client lags by so many records in one partition"),
        ("--window-s", 1, windows.window_s, "S", "length of a window"),
        (
            "--slide-s",
            1,
            None,
            "S",
            "time from the start of a window to the start of the next (default: the length of a window)",
        ),
        ("--late-s", 0, windows.late_s, "S", "how late a record may arrive and still count in its window"),
        ("--every-s", 1, 5, "S", "time between two printed tables"),
    )
    for name, low, default, metavar, text in numbers:
        help_text = text if default is None else f"{text} (default: {default})"
        command.add_argument(name, type=_number(low), default=default, metavar=metavar, help=help_text)
    command.add_argument(
        "--once", action="store_true", help="stop when all records that the journal has at the start are in the table"
    )
    return command


def _pack() -> Parser:
    command = Parser(
        prog="kafkaproto pack",
        description="Write this package as an archive for spark-submit --py-files.",
        examples=[
            ("write the archive for spark-submit --py-files kafkaproto.zip job.py", "kafkaproto pack kafkaproto.zip"),
            (
                "run a command of this package with Spark",
                'spark-submit --py-files kafkaproto.zip "$(kafkaproto pack --main)" report trace',
            ),
        ],
    )
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "out", nargs="?", type=Path, metavar="OUT", help="the archive to write, for example kafkaproto.zip"
    )
    what.add_argument(
        "--main",
        action="store_true",
        help="print the path of the kafkaproto script to pass to spark-submit, and write no archive",
    )
    return command


def _release(name: str) -> str:
    try:
        releases.versions(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name


def _number(low: int) -> Callable[[str], int]:
    def check(text: str) -> int:
        if not text.isdigit() or int(text) < low:
            raise argparse.ArgumentTypeError(f"must be a whole number of at least {low} (got {text!r})")
        return int(text)

    return check


def _addresses(text: str) -> str:
    for address in text.split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise argparse.ArgumentTypeError(f"must be HOST:PORT, for example 127.0.0.1:9092 (got {address!r})")
    return text


PARSERS: Mapping[str, Callable[[], Parser]] = {
    "tables": _tables,
    "stream": _stream,
    "audit": _audit,
    "report": _report,
    "live": _live,
    "pack": _pack,
}
