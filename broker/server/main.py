"""The command line of the broker: options in, a running cluster out. Prints one host:port per broker to stdout when it is ready."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import re
import signal
import sys
from collections.abc import Sequence

from kafkaproto.broker.assembly import PROFILES, SEMANTICS
from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.config.release import DEFAULT_RELEASE, RELEASES
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.observe.journal_topic import DEFAULT_TOPIC
from kafkaproto.broker.server.options import Parser, log_level, log_to_stderr, one_of, port
from kafkaproto.broker.server.server import Server

_SIZE = re.compile(r"(\d+)([KMG]?)\Z", re.IGNORECASE)
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
GC_THRESHOLD = 50_000
"""The collector otherwise takes more than half of decoding time; what lives long here is not cyclic garbage."""

logger = logging.getLogger("kafkaproto")


def _size(text: str) -> int:
    match = _SIZE.match(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; allowed is a number with K, M or G, for example 256M")
    return int(match[1]) * _UNITS[match[2].upper()]


def _brokers(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"{text!r}: allowed is 1 to 100, for example 3")
    return int(text)


def _topic(text: str) -> tuple[str, int, int]:
    name, *numbers = text.split(":")
    if not name or len(numbers) not in (1, 2) or not all(n.isdigit() and int(n) > 0 for n in numbers):
        raise argparse.ArgumentTypeError(
            f"{text!r}: allowed is NAME:PARTITIONS or NAME:PARTITIONS:REPLICAS, for example orders:6:3"
        )
    return name, int(numbers[0]), int(numbers[1]) if len(numbers) == 2 else -1


def _seed(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: allowed is a whole number, for example 7") from None


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r}: allowed is KEY=VALUE, for example fetch.max.bytes=1048576")
    return key, value


def parser() -> argparse.ArgumentParser:
    """The options of `kafkaproto broker`."""
    made = Parser(prog="kafkaproto broker", description="A Kafka broker to test against.")
    made.add_argument("--brokers", type=_brokers, default=1, metavar="N", help="how many brokers; ids are 0 to N-1 (1)")
    made.add_argument("--host", default="127.0.0.1", help="where to listen (127.0.0.1)")
    made.add_argument(
        "--port", type=port, default=9092, help="port of broker 0, the others follow; 0 for free ports (9092)"
    )
    made.add_argument(
        "--topic",
        type=_topic,
        action="append",
        default=[],
        metavar="NAME:PARTITIONS[:REPLICAS]",
        help="make a topic at start",
    )
    made.add_argument(
        "-c",
        dest="settings",
        type=_pair,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a broker setting of Kafka; 2.broker.rack=b names one broker",
    )
    made.add_argument(
        "--semantics",
        type=one_of(SEMANTICS),
        default="kip",
        metavar="|".join(SEMANTICS),
        help="where the KIPs and the shipped broker differ (kip)",
    )
    made.add_argument(
        "--release",
        type=one_of(RELEASES),
        default=DEFAULT_RELEASE,
        metavar="RELEASE",
        help="whose API versions (3.9)",
    )
    made.add_argument(
        "--profile",
        type=one_of(PROFILES),
        default="test",
        metavar="|".join(PROFILES),
        help="defaults for tests, or Kafka's own (test)",
    )
    made.add_argument(
        "--memory", type=_size, default=_size("256M"), metavar="SIZE", help="for records, before temporary files (256M)"
    )
    made.add_argument(
        "--data-dir", metavar="DIR", help="a folder that keeps everything over restarts; without it nothing is kept"
    )
    made.add_argument(
        "--trace", metavar="DIR", help="record all traffic, without the records, into files in this folder"
    )
    made.add_argument(
        "--journal-topic",
        nargs="?",
        const=DEFAULT_TOPIC,
        metavar="NAME",
        help=f"tell throttles, positions and changes of leaders in a topic ({DEFAULT_TOPIC})",
    )
    made.add_argument("--seed", type=_seed, default=0, metavar="N", help="of all ids that are drawn (0)")
    log_level(made)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit status; 2 for a bad option or setting, told in one line."""
    options = parser().parse_args(arguments)
    log_to_stderr(options)
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    try:
        asyncio.run(_run(options))
    except (ConfigError, ValueError) as error:
        sys.stderr.write(f"kafkaproto broker: {error}\n")
        return 2
    return 0


async def _run(options: argparse.Namespace) -> None:
    cluster = Cluster(
        options.brokers,
        dict(options.settings),
        semantics=options.semantics,
        release_name=options.release,
        profile=options.profile,
        memory_bytes=options.memory,
        seed=options.seed,
        data_dir=options.data_dir,
        journal_topic=options.journal_topic,
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = Server(cluster, options.host, options.port, trace=options.trace)
    await server.start()
    try:
        server.loop.call(lambda: _make_topics(cluster, options.topic))
        if options.profile == "test":
            logger.info(
                "profile test: small internal topics, no initial rebalance delay; --profile kafka has Kafka's defaults"
            )
        for name in cluster.config.without_effect():
            logger.warning("%s is accepted and has no effect", name)
        sys.stdout.write("".join(f"{address}\n" for address in server.bootstrap))
        sys.stdout.flush()
        loop.call_soon(_get_ready, cluster)
        await stop.wait()
    finally:
        await server.stop()


def _get_ready(cluster: Cluster) -> None:
    """What a first request would have to wait for."""
    cluster.apis  # noqa: B018 - loads the handlers
    gc.freeze()
    gc.enable()


def _make_topics(cluster: Cluster, topics: Sequence[tuple[str, int, int]]) -> None:
    for name, partitions, replicas in topics:
        if name in cluster.topics_left():
            continue
        try:
            cluster.controller.create_topic(cluster.controller.plan_topic(name, partitions, replicas))
        except KafkaError as error:
            raise ConfigError(f"--topic {name}: {error.message}; for example --topic orders:6:1") from None
