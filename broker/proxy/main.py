"""The command line of the proxy. It prints the address for clients when the proxy is ready."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.proxy.server import Proxy
from kafkaproto.broker.server.options import Parser, address, log_level, log_to_stderr, without_brackets
from kafkaproto.broker.server.options import port as port_of

USAGE = """%(prog)s [-h] --listen [HOST:]PORT --to HOST:PORT --trace DIR
                        [--log-level debug|info|warning|error]"""
"""The usage text. The text that argparse generates has a line of more than 100 characters, because argparse does not break lines at `[HOST:]PORT`."""


def _listen(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return without_brackets(host, text) or "127.0.0.1", port_of(port)


def parser() -> argparse.ArgumentParser:
    """Return the command-line parser of `kafkaproto proxy`."""
    main_parser = Parser(
        prog="kafkaproto proxy",
        usage=USAGE,
        description="Forward the traffic between clients and a Kafka cluster, and record it. Stop it with Ctrl-C.\n"
        "When it is ready, the proxy prints the host:port for clients on stdout.\n"
        "It does not support TLS: use a plaintext listener of the cluster.",
        examples=[
            (
                "clients connect to port 19092, not 9092; `kafkaproto trace show trace` prints their traffic",
                "kafkaproto proxy --listen 19092 --to localhost:9092 --trace trace",
            )
        ],
    )
    main_parser.add_argument(
        "--listen",
        type=_listen,
        required=True,
        metavar="[HOST:]PORT",
        help="address to which clients connect (required). The proxy listens on one port for each broker of the cluster: PORT and "
        "those after it, or free ports if PORT is 0. The default of HOST is 127.0.0.1",
    )
    main_parser.add_argument(
        "--to", type=address, required=True, metavar="HOST:PORT", help="address of one broker of the cluster (required)"
    )
    main_parser.add_argument(
        "--trace",
        required=True,
        metavar="DIR",
        help="folder for the recorded traffic, without the keys and values of records (required)",
    )
    log_level(main_parser)
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the proxy until SIGTERM or SIGINT, and return 0. Returns 2, with a one-line message on stderr, if the proxy cannot start."""
    options = parser().parse_args(arguments)
    log_to_stderr(options)
    try:
        asyncio.run(_run(options))
    except ConfigError as error:
        sys.stderr.write(f"kafkaproto proxy: {error}\n")
        return 2
    return 0


async def _run(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    host, port = options.listen
    proxy = Proxy(options.to, options.trace, host, port)
    await proxy.start()
    try:
        sys.stdout.write(f"{proxy.bootstrap}\n")
        sys.stdout.flush()
        await stop.wait()
    finally:
        await proxy.stop()
