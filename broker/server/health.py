"""The command `kafkaproto health`: checks whether brokers respond, for health checks of containers and scripts that wait for a start."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Mapping, Sequence

from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.config.listeners import listeners_of
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.server.main import parser as broker_parser
from kafkaproto.broker.server.options import Parser, address
from kafkaproto.broker.server.settings import DEFAULT_HOST, DEFAULT_PORT, EVERY_ADDRESS, settings_of_options
from kafkaproto.client import Client
from kafkaproto.errors import ProtocolError
from kafkaproto.frame import read_frame
from kafkaproto.messages.metadata import MetadataRequest

UNHEALTHY = 1
CLIENT_ID = "kafkaproto-health"
TIMEOUT_SECONDS = 3.0
VERSION = 0
"""The version of the Metadata request with which a broker is checked: brokers of every release support it."""

DESCRIPTION = """Check whether brokers respond: send a Metadata request to each address, one after the other."""
STATUSES = """exit status:
  0  every broker responded
  1  a broker did not respond; stderr names it, and the brokers after it are not checked
  2  an option or a setting is invalid"""
EXAMPLES = [
    ("check the broker on 127.0.0.1:9092", "kafkaproto health"),
    ("check two brokers", "kafkaproto health localhost:9092 localhost:9093"),
    (
        "in a container: check the first broker at the addresses that its settings give",
        "kafkaproto health --container /mnt/shared/config",
    ),
]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options of `kafkaproto health`."""
    health_parser = Parser(
        prog="kafkaproto health",
        description=DESCRIPTION,
        epilog=STATUSES,
        examples=EXAMPLES,
    )
    health_parser.add_argument(
        "addresses",
        type=address,
        nargs="*",
        metavar="HOST:PORT",
        help=f"address of a broker to check; may be repeated (default: {DEFAULT_HOST}:{DEFAULT_PORT})",
    )
    health_parser.add_argument(
        "--container",
        metavar="DIR",
        help="without HOST:PORT, check the first broker of `kafkaproto broker --container DIR` at the addresses on which it listens, "
        "according to DIR/server.properties and the environment variables KAFKA_...",
    )
    return health_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the brokers at the given addresses one after another, up to the first that does not respond.

    arguments: the arguments of the command line; None for those of the process. Without addresses, the broker on 127.0.0.1:9092 is checked or, with
    --container, the first broker of the container. Returns the exit status: 0 if all brokers respond, 1 if a broker does not respond, 2 if an option
    or a setting is invalid.
    """
    options = parser().parse_args(arguments)
    try:
        addresses = options.addresses or _default_addresses(options.container, os.environ)
    except ConfigError as error:
        sys.stderr.write(f"kafkaproto health: {error}\n")
        return 2
    for host, port in addresses:
        try:
            ask_metadata(host, port)
        except (OSError, EOFError, ProtocolError) as error:
            sys.stderr.write(
                f"kafkaproto health: {host}:{port} does not respond: {str(error) or type(error).__name__}\n"
            )
            return UNHEALTHY
    return 0


def _ignore(warning: str) -> None:
    """Discard a warning about a setting. `kafkaproto broker` has already logged the same warning."""


def _default_addresses(container: str | None, variables: Mapping[str, str]) -> list[tuple[str, int]]:
    if container is None:
        return [(DEFAULT_HOST, DEFAULT_PORT)]
    return addresses_in_container(container, variables)


def addresses_in_container(folder: str, variables: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return the (host, port) of each listener of the first broker of `kafkaproto broker --container FOLDER`.

    For a listener on every address of the machine, the host is 127.0.0.1. folder: FOLDER, which may contain a file `server.properties`. variables:
    the environment variables of that broker. Raises ConfigError if a setting in the file or in a variable is invalid.
    """
    options = broker_parser().parse_args(["--container", folder])
    config = ClusterConfig(settings_of_options(options, variables, _ignore), release=options.release)
    listeners = listeners_of(config.for_broker(config.first_broker_id), DEFAULT_HOST, DEFAULT_PORT)
    return [
        (DEFAULT_HOST if listener.host in EVERY_ADDRESS else listener.host, listener.port) for listener in listeners
    ]


def ask_metadata(host: str, port: int) -> None:
    """Request the metadata of the broker at an address, and wait for the response.

    Raises OSError if the connection fails or the response takes too long, EOFError if the broker closes the connection, and ProtocolError if the
    response cannot be decoded.
    """
    client = Client(CLIENT_ID)
    with socket.create_connection((host, port), TIMEOUT_SECONDS) as sock:
        sock.sendall(client.send(MetadataRequest([]), VERSION))
        client.read(read_frame(sock.recv_into))
