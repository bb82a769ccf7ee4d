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
"""The default time between two updates of the Parquet tables by `kafkaproto stream`, as a Spark duration."""
RELEASE = releases.releases()[-1]
"""The default Kafka release for which a report checks whether a broker would accept the clients' requests: the latest known one."""
DEFAULT_JOURNAL, DEFAULT_ALERTS = "__journal", "throttle-alerts"


def parser(command: str) -> argparse.ArgumentParser:
    """Return the argument parser of the command with this name."""
    return PARSERS[command]()


def _tables() -> Parser:
    command = Parser(
        prog="kafkaproto tables",
        description="Write a trace or a network capture as Parquet tables, one folder for each table.",
        epilog="exit status:\n  0  everything was written\n  1  a file ends in the middle of an entry\n"
        "  2  a file could not be read or written",
        examples=[
            (
                "write the tables of the trace in the folder named trace, without Spark",
                "kafkaproto tables trace tables --without-spark",
            ),
            ("write the Kafka traffic of port 9092 in a capture", "kafkaproto tables capture.pcap tables --port 9092"),
        ],
    )
    command.add_argument(
        "trace",
        type=Path,
        metavar="TRACE",
        help="a trace (*.kptrace) or a network capture (*.pcap, *.pcapng): a file or a folder with files",
    )
    command.add_argument("out", type=Path, metavar="OUT", help="the folder for the tables")
    command.add_argument(
        "--without-spark",
        action="store_true",
        help="write the tables in this process, which is faster for small traces",
    )
    command.add_argument(
        "--port",
        type=int,
        action="append",
        default=[],
        metavar="PORT",
        help="read only connections to this port of a broker from a capture; may be repeated (default: all connections with Kafka traffic)",
    )
    return command


def _stream() -> Parser:
    command = Parser(
        prog="kafkaproto stream",
        description="Write the tables of a trace while it is recorded, until Ctrl-C.",
        allow_abbrev=False,
        examples=[
            (
                "follow a trace that `kafkaproto broker --trace trace` records",
                "kafkaproto stream trace tables --checkpoint progress",
            )
        ],
    )
    command.add_argument(
        "trace", type=Path, metavar="TRACE", help="the folder into which a broker or proxy records with --trace"
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
        "--every",
        default=EVERY,
        metavar="TIME",
        help=f"how often new requests are added to the tables, as a Spark interval (default: {EVERY})",
    )
    return command


def _audit() -> Parser:
    command = Parser(
        prog="kafkaproto audit",
        description="Check whether the traffic in the tables of a trace keeps the rules of Kafka. Print a line per rule.",
        epilog=STATUSES,
        error_status=UNREADABLE,
        allow_abbrev=False,
        examples=[
            ("check the tables in the folder named tables", "kafkaproto audit tables"),
            (
                "write the tables of a trace, check them, and write the result to rules.json",
                "kafkaproto audit tables --trace trace --json rules.json",
            ),
        ],
    )
    command.add_argument("out", type=Path, metavar="OUT", help="the folder of the tables")
    command.add_argument(
        "--trace",
        type=Path,
        metavar="TRACE",
        help="first write the requests of this trace to the tables, if the tables do not have them",
    )
    command.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the result of the rules to this file, as JSON"
    )
    return command


def _report() -> Parser:
    command = Parser(
        prog="kafkaproto report",
        description="Write an HTML page about a trace: the rules of Kafka that its traffic breaks, and statistics.",
        epilog=STATUSES,
        error_status=UNREADABLE,
        allow_abbrev=False,
        examples=[
            (
                "write the page trace.tables/report.html about the trace in the folder named trace",
                "kafkaproto report trace",
            ),
            (
                "write the page to the folder named page, and mark the API versions that Kafka 3.9 rejects",
                "kafkaproto report trace --out page --release 3.9",
            ),
        ],
    )
    command.add_argument(
        "trace",
        type=Path,
        metavar="TRACE",
        help="a trace (*.kptrace) or a network capture (*.pcap, *.pcapng), as a file or a folder with files; or a folder of tables",
    )
    command.add_argument(
        "--out", type=Path, metavar="DIR", help="the folder for the tables and the page (default: TRACE.tables)"
    )
    command.add_argument(
        "--run",
        metavar="RUN",
        help="name of the recording to show, if the trace has several (default: the latest); the page lists the names. With --run, "
        "only the rules of this recording decide the exit status; without it, those of all recordings do",
    )
    command.add_argument(
        "--against",
        metavar="RUN",
        help="name of another recording: also show what differs between it and the recording shown",
    )
    command.add_argument(
        "--release",
        default=RELEASE,
        type=_release,
        metavar="RELEASE",
        help=f"mark, with a frame on the page, the API versions of clients that a broker of this Kafka release would reject (default: {RELEASE})",
    )
    command.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the result of the rules to this file, as JSON"
    )
    return command


def _live() -> Parser:
    command = Parser(
        prog="kafkaproto live",
        description="Watch throttled and lagging clients of a broker that was started with --journal-topic, until Ctrl-C.\n"
        "Print a table of the clients every few seconds, and write alerts to a topic.",
        epilog="exit status:\n  0  Ctrl-C stopped the command, or it finished with --once\n  1  the Spark query failed\n"
        "  2  an option is invalid, or Spark's Kafka connector is missing",
        examples=[
            (
                "write alerts for clients throttled for 1000 ms in a window of 10 s, or 10,000 records behind",
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
        help="the folder for the progress of Spark and the table of clients (required); with the folder of an earlier run, the "
        "command continues that run",
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
        (
            "--threshold-ms",
            1,
            limits.throttled_ms,
            "MS",
            "write an alert if the throttle times of a client in one window reach this sum, in ms",
        ),
        ("--lag", 1, limits.lag, "RECORDS", "write an alert if a client is this many records behind in a partition"),
        ("--window-s", 1, windows.window_s, "S", "length of a window, in seconds"),
        (
            "--slide-s",
            1,
            None,
            "S",
            "time from the start of a window to the start of the next, in seconds (default: the length of a window)",
        ),
        (
            "--late-s",
            0,
            windows.late_s,
            "S",
            "how late a record of the journal may arrive and still count in its window, in seconds",
        ),
        ("--every-s", 1, 5, "S", "how often the table is updated and printed, in seconds"),
    )
    for name, low, default, metavar, text in numbers:
        help_text = text if default is None else f"{text} (default: {default})"
        command.add_argument(name, type=_number(low), default=default, metavar=metavar, help=help_text)
    command.add_argument(
        "--once",
        action="store_true",
        help="stop as soon as the table includes all records that the journal topic had when the command started",
    )
    return command


def _pack() -> Parser:
    command = Parser(
        prog="kafkaproto pack",
        description="Write this Python package as a zip archive for the option --py-files of spark-submit.",
        examples=[
            (
                "write the archive, for `spark-submit --py-files kafkaproto.zip job.py`",
                "kafkaproto pack kafkaproto.zip",
            ),
            (
                "run `kafkaproto report trace` with spark-submit",
                'spark-submit --py-files kafkaproto.zip "$(kafkaproto pack --main)" report trace',
            ),
        ],
    )
    output_group = command.add_mutually_exclusive_group(required=True)
    output_group.add_argument(
        "out", nargs="?", type=Path, metavar="OUT", help="the archive to write, for example kafkaproto.zip"
    )
    output_group.add_argument(
        "--main",
        action="store_true",
        help="write no archive; print the path of the script that spark-submit must run for a command of this package",
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
