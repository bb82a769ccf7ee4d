"""Options that the command lines of the broker and the proxy share: ports, choices from a list, the log level."""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections.abc import Callable, Sequence

from kafkaproto.arguments import Parser as Parser

_HOST = re.compile(r"\[([0-9a-fA-F:.]+(?:%[^\[\]]+)?)\]|([^:\[\]]*)")
"""Matches the host in an option HOST:PORT: a name, an IPv4 address, or an IPv6 address in brackets, with its zone if it has one."""
LOG_LEVELS = ("debug", "info", "warning", "error")


def port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be 0 (any free port) to 65535, for example 9092 (got {text!r})")
    return int(text)


def address(text: str) -> tuple[str, int]:
    """Return (host, port) of a text HOST:PORT; an IPv6 address must be in brackets."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) <= 65535:
        raise argparse.ArgumentTypeError(f"must be HOST:PORT, for example localhost:9092 (got {text!r})")
    return without_brackets(host, text), int(port)


def without_brackets(host: str, text: str) -> str:
    """Return a host without the brackets of an IPv6 address. text: the whole option HOST:PORT, for the error message.

    Raises ArgumentTypeError for an IPv6 address without brackets.
    """
    match = _HOST.fullmatch(host)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"must be HOST:PORT, in which only an IPv6 address has brackets, for example localhost:9092 or [::1]:9092 (got {text!r})"
        )
    return match[1] or match[2]


def one_of(name: str, values: Sequence[str]) -> Callable[[str], str]:
    """Return a function that checks the value of an option.

    name: a name for the value in the error message, such as "log level". values: the allowed values.
    """

    def check(text: str) -> str:
        if text not in values:
            raise argparse.ArgumentTypeError(f"the {name} must be one of {', '.join(values)} (got {text!r})")
        return text

    return check


def log_level(parser: argparse.ArgumentParser) -> None:
    """Add the option `--log-level` to a parser."""
    parser.add_argument(
        "--log-level",
        type=one_of("log level", LOG_LEVELS),
        default="info",
        metavar="|".join(LOG_LEVELS),
        help="lowest level of the messages that are logged to stderr (default: info)",
    )


def log_to_stderr(options: argparse.Namespace) -> None:
    """Log messages to stderr if their level is at least that of `--log-level`."""
    logging.basicConfig(
        level=options.log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
