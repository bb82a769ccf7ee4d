"""What the command lines of the broker and the proxy have in common: one line for a mistake, ports, choices, and how much is logged."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

LOG_LEVELS = ("debug", "info", "warning", "error")


class Parser(argparse.ArgumentParser):
    """One line for a mistake, and status 2."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message}; --help shows all options\n")
        sys.exit(2)


def port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: allowed is 0 (any free port) to 65535, for example 9092")
    return int(text)


def one_of(values: Sequence[str]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in values:
            raise argparse.ArgumentTypeError(f"{text!r}: allowed are {', '.join(values)}, for example {values[0]}")
        return text

    return check


def log_level(parser: argparse.ArgumentParser) -> None:
    """Add its option."""
    parser.add_argument(
        "--log-level",
        type=one_of(LOG_LEVELS),
        default="info",
        metavar="|".join(LOG_LEVELS),
        help="of what goes to stderr (info)",
    )


def log_to_stderr(options: argparse.Namespace) -> None:
    """Do as `log_level` was told."""
    logging.basicConfig(
        level=options.log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
