"""The command `kafkaproto broker`. It prints one host:port per broker to stdout when the brokers are ready."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import re
import signal
import sys
from collections.abc import Sequence

from kafkaproto.broker.assembly import PROFILES, SEMANTICS
from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.config.release import DEFAULT_RELEASE, RELEASES
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.observe.journal_topic import DEFAULT_TOPIC
from kafkaproto.broker.server.options import Parser, log_level, log_to_stderr, one_of, port
from kafkaproto.broker.server.server import Server
from kafkaproto.broker.server.settings import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    log_ignored_variables,
    log_settings_without_effect,
    settings_of_options,
)
from kafkaproto.broker.server.start_report import TopicOption, create_topics, log_start

_SIZE = re.compile(r"(\d+)([KMG]?)\Z", re.IGNORECASE)
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
GC_THRESHOLD = 50_000
"""The garbage collector runs when the number of container objects has grown by this number since its last run.

With Python's default, the collector takes more than half of the time for decoding messages, although it finds hardly any cyclic garbage.
"""

SETTINGS_HELP = """Settings:
  If several sources set the same setting, the source with the highest number in this list applies:
    1. the profile
    2. server.properties in the folder of --container
    3. --config FILE; a later file overrides an earlier one
    4. with --container: environment variables. KAFKA_BROKER_RACK sets broker.rack: an underscore in
       the variable stands for a dot, two stand for an underscore, three for a hyphen
    5. --host and --port, which override the listeners in files and environment variables
    6. -c KEY=VALUE; a later one overrides an earlier one
  Within one source, 2.KEY=VALUE overrides KEY=VALUE for broker 2.
  Releases before 4.0 have the settings and defaults of Kafka 3.9.1, later releases those of
  Kafka 4.2.0.
"""
EXAMPLES = [
    ("start one broker on 127.0.0.1:9092 with a topic of six partitions", "kafkaproto broker --topic orders:6"),
    (
        "start three brokers on free ports with a topic of six partitions and three replicas",
        "kafkaproto broker --brokers 3 --port 0 --topic orders:6:3",
    ),
    (
        "set fetch.max.bytes for all brokers, and broker.rack for broker 1",
        "kafkaproto broker --brokers 2 -c fetch.max.bytes=1048576 -c 1.broker.rack=b",
    ),
    (
        "read settings from a file, and override num.partitions",
        "kafkaproto broker --config server.properties -c num.partitions=6",
    ),
    (
        "keep all data in the folder named data, and use the default settings of Kafka",
        "kafkaproto broker --brokers 3 --data-dir data --profile kafka",
    ),
    ("record the traffic, which `kafkaproto trace show trace` prints later", "kafkaproto broker --trace trace"),
]

logger = logging.getLogger("kafkaproto")


def _size(text: str) -> int:
    match = _SIZE.match(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"must be a number of bytes, optionally followed by K, M or G, for example 256M (got {text!r})"
        )
    return int(match[1]) * _UNITS[match[2].upper()]


def _brokers(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to 100, for example 3 (got {text!r})")
    return int(text)


def _topic(text: str) -> TopicOption:
    name, *numbers = text.split(":")
    if not name or len(numbers) > 2 or not all(n.isdigit() and int(n) > 0 for n in numbers):
        raise argparse.ArgumentTypeError(
            f"must be NAME, NAME:PARTITIONS or NAME:PARTITIONS:REPLICAS, for example orders:6:3 (got {text!r})"
        )
    return TopicOption(name, *map(int, numbers))


def _seed(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, for example 7 (got {text!r})") from None


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, for example fetch.max.bytes=1048576 (got {text!r})")
    return key, value


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options of `kafkaproto broker`."""
    main_parser = Parser(
        prog="kafkaproto broker",
        description="Start a Kafka cluster for tests, all brokers in one process. Stop it with Ctrl-C.\n"
        "When the brokers are ready, the command prints the host:port of each on stdout. It logs to stderr.",
        epilog=SETTINGS_HELP,
        examples=EXAMPLES,
    )
    main_parser.add_argument(
        "--brokers",
        type=_brokers,
        default=1,
        metavar="N",
        help="number of brokers (default: 1); their ids begin at 0, or at the setting node.id if it is given",
    )
    main_parser.add_argument("--host", metavar="HOST", help=f"address to listen on (default: {DEFAULT_HOST})")
    main_parser.add_argument(
        "--port",
        type=port,
        metavar="PORT",
        help=f"port of the first broker; the others use the next ports; 0 picks a free port for each (default: {DEFAULT_PORT})",
    )
    main_parser.add_argument(
        "--topic",
        type=_topic,
        action="append",
        default=[],
        metavar="NAME[:PARTITIONS[:REPLICAS]]",
        help="create a topic at start; may be repeated. The defaults of PARTITIONS and REPLICAS are the settings num.partitions "
        "and default.replication.factor",
    )
    main_parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="FILE",
        help="read settings from a file in the format of Kafka's server.properties; may be repeated",
    )
    main_parser.add_argument(
        "--container",
        metavar="DIR",
        help="read settings as the container image apache/kafka does: from DIR/server.properties, if this file exists, and from "
        "environment variables KAFKA_... (see below). If neither these settings nor --host say where to listen, listen on "
        "every address of the machine and advertise localhost",
    )
    main_parser.add_argument(
        "-c",
        dest="settings",
        type=_pair,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="give a Kafka broker setting a value, for all brokers; 2.KEY=VALUE is for broker 2 only; may be repeated. "
        "`kafkaproto settings` lists all settings",
    )
    main_parser.add_argument(
        "--semantics",
        type=one_of("semantics", SEMANTICS),
        default="kip",
        metavar="|".join(SEMANTICS),
        help="behave as Kafka's design documents (kip) or as its code (kafka) where these differ (default: kip)",
    )
    main_parser.add_argument(
        "--release",
        type=one_of("Kafka release", RELEASES),
        default=DEFAULT_RELEASE,
        metavar="RELEASE",
        help=f"Kafka release, {RELEASES[0]} to {RELEASES[-1]}, whose API versions and settings the brokers have "
        f"(default: {DEFAULT_RELEASE}). APIs that this project does not implement are missing: "
        '`kafkaproto apis --release RELEASE` shows them with a "no"',
    )
    main_parser.add_argument(
        "--profile",
        type=one_of("profile", PROFILES),
        default="test",
        metavar="|".join(PROFILES),
        help="which defaults the settings have. kafka: Kafka's own. test: Kafka's, except that the internal topics for offsets and "
        "transactions have 4 partitions, at most 3 replicas and segments of 1 MiB, transaction.state.log.min.isr is 1, and "
        "group.initial.rebalance.delay.ms, group.coordinator.append.linger.ms, log.initial.task.delay.ms and "
        "metadata.max.idle.interval.ms are 0 (default: test)",
    )
    main_parser.add_argument(
        "--memory",
        type=_size,
        default=_size("256M"),
        metavar="SIZE",
        help="largest size of the records kept in memory, in bytes or with K, M or G; further records are kept in temporary "
        "files; 0 keeps all records in files (default: 256M)",
    )
    main_parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder that keeps topics, records, groups and quotas for the next start (default: none, nothing is kept)",
    )
    main_parser.add_argument(
        "--trace",
        metavar="DIR",
        help="record all requests and responses in this folder, but not the keys and values of records",
    )
    main_parser.add_argument(
        "--journal-topic",
        nargs="?",
        const=DEFAULT_TOPIC,
        metavar="NAME",
        help=f"publish what happens in the brokers as JSON records in the topic NAME, or {DEFAULT_TOPIC} if NAME is missing: "
        "throttles, the offsets that clients produce and fetch, changes of leaders and in-sync replicas, and stops and starts of "
        "brokers (default: publish nothing)",
    )
    main_parser.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="random seed for generated ids (default: 0)"
    )
    log_level(main_parser)
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the brokers until SIGTERM or SIGINT. Returns the exit status: 0, or 2 after reporting an invalid setting in one line."""
    options = parser().parse_args(arguments)
    log_to_stderr(options)
    previous_threshold = gc.get_threshold()
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    try:
        asyncio.run(_run(options))
    except (ConfigError, ValueError) as error:
        sys.stderr.write(f"kafkaproto broker: {error}\n")
        return 2
    finally:
        gc.set_threshold(*previous_threshold)
    return 0


async def _run(options: argparse.Namespace) -> None:
    cluster = Cluster(
        options.brokers,
        settings_of_options(options, os.environ),
        semantics=options.semantics,
        release_name=options.release,
        profile=options.profile,
        memory_bytes=options.memory,
        seed=options.seed,
        data_dir=options.data_dir,
        journal_topic=options.journal_topic,
        detailed_journal=logging.getLogger("kafkaproto.requests").isEnabledFor(logging.DEBUG),
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    host = DEFAULT_HOST if options.host is None else options.host
    port_of_first = DEFAULT_PORT if options.port is None else options.port
    server = Server(cluster, host, port_of_first, trace=options.trace)
    await server.start()
    try:
        server.loop.call(lambda: create_topics(cluster, options.topic))
        if options.profile == "test":
            logger.info(
                "this cluster uses the profile test: small internal topics, no initial rebalance delay; --profile kafka has Kafka's defaults"
            )
        log_settings_without_effect(cluster.config, [key for key, _ in options.settings])
        if options.container is not None:
            log_ignored_variables(os.environ)
        sys.stdout.write("".join(f"{address}\n" for address in server.bootstrap))
        sys.stdout.flush()
        log_start(cluster)
        loop.call_soon(_get_ready, cluster)
        await stop.wait()
    finally:
        await server.stop()


def _get_ready(cluster: Cluster) -> None:
    """Compute the API versions that the cluster offers, so that the first request is not delayed, and enable the garbage collector."""
    cluster.apis  # noqa: B018 - loads them
    gc.freeze()
    gc.enable()
