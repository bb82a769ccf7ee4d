"""The command line of the proxy: options in, a running proxy out. Prints where clients go when it is ready."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.proxy.server import Proxy
from kafkaproto.broker.server.options import Parser, log_level, log_to_stderr
from kafkaproto.broker.server.options import port as port_of


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: allowed is HOST:PORT, for example localhost:9092")
    return host.strip("[]"), int(port)


def _listen(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]") or "127.0.0.1", port_of(port)


def parser() -> argparse.ArgumentParser:
    """The options of `kafkaproto proxy`."""
    made = Parser(
        prog="kafkaproto proxy",
        description="Stands in front of a Kafka cluster, and records a trace of what its clients do. No TLS: use a listener without it.",
    )
    made.add_argument(
        "--listen",
        type=_listen,
        required=True,
        metavar="[HOST:]PORT",
        help="where clients come in; further brokers get the ports that follow; 0 for free ones",
    )
    made.add_argument(
        "--to", type=_address, required=True, metavar="HOST:PORT", help="a broker of the cluster behind it"
    )
    made.add_argument("--trace", required=True, metavar="DIR", help="the folder of the trace, which has no records")
    log_level(made)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit status; 2 for a bad option, or a cluster that does not answer, told in one line."""
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
