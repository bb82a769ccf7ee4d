"""`kafkaproto live BOOTSTRAP --checkpoint DIR`: watch a broker's journal, print the table, write alerts, until SIGINT.

Run again with the same DIR it goes on where it ended. Exit status: 0 ended when told to, 1 the query failed, 2 something must be given
otherwise.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from kafkaproto.pipeline.live.job import FolderError, Limits, Windows, claim
from kafkaproto.pipeline.live.journal import problem
from kafkaproto.pipeline.live.watching import run


class _Parser(argparse.ArgumentParser):
    """One line for a mistake, and status 2."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"live: {message}; --help shows all options\n")
        sys.exit(2)


def _number(low: int) -> Callable[[str], int]:
    def check(text: str) -> int:
        if not text.isdigit() or int(text) < low:
            raise argparse.ArgumentTypeError(f"{text!r}: allowed is {low} or more, for example {max(low, 10)}")
        return int(text)

    return check


def _addresses(text: str) -> str:
    for one in text.split(","):
        host, _, port = one.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise argparse.ArgumentTypeError(f"{one!r}: allowed is HOST:PORT, for example 127.0.0.1:9092")
    return text


def parser() -> argparse.ArgumentParser:
    """The options of the job."""
    made = _Parser(prog="kafkaproto live", description="Who is throttled and who lags, from a broker's journal.")
    made.add_argument("bootstrap", type=_addresses, metavar="HOST:PORT[,HOST:PORT]", help="of kafkaproto broker")
    made.add_argument(
        "--checkpoint", type=Path, required=True, metavar="DIR", help="what outlives a run; the table too"
    )
    made.add_argument("--journal", default="__journal", metavar="TOPIC", help="what the broker publishes (__journal)")
    made.add_argument("--alerts-topic", default="throttle-alerts", metavar="TOPIC", help="(throttle-alerts)")
    limits, windows = Limits(), Windows()
    options = (
        ("--threshold-ms", 1, limits.throttled_ms, "MS", "throttled in one window: an alert"),
        ("--lag", 1, limits.lag, "RECORDS", "behind in one partition: an alert"),
        ("--window-s", 1, windows.window_s, "S", "how long a window is"),
        ("--slide-s", 1, None, "S", "how far apart windows begin; as long as they are"),
        ("--late-s", 0, windows.late_s, "S", "how long a window may change after a later record"),
        ("--every-s", 1, 5, "S", "from one table to the next"),
    )
    for name, low, default, metavar, text in options:
        told = text if default is None else f"{text} ({default})"
        made.add_argument(name, type=_number(low), default=default, metavar=metavar, help=told)
    made.add_argument("--once", action="store_true", help="end when all that is there now is in the table")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    made = parser()
    options = made.parse_args(arguments)
    slide_s = options.slide_s or options.window_s
    if slide_s > options.window_s:
        made.error(f"--slide-s {slide_s}: allowed is up to --window-s, which is {options.window_s}")
    if options.alerts_topic == options.journal:
        made.error(f"--alerts-topic {options.journal}: it is the journal; name another topic")
    windows = Windows(options.window_s, slide_s, options.late_s)
    try:
        claim(options.checkpoint, options.journal, windows)
    except FolderError as error:
        made.error(str(error))
    if (wrong := problem(options.bootstrap, options.journal, options.checkpoint)) is not None:
        made.error(wrong)
    return run(
        options.bootstrap,
        options.checkpoint,
        options.journal,
        options.alerts_topic,
        windows,
        Limits(options.threshold_ms, options.lag),
        None if options.once else options.every_s,
    )


if __name__ == "__main__":
    sys.exit(main())
