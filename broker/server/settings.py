"""The broker settings that a command line gives: combines files, environment variables and options such as `-c`, in order of precedence."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kafkaproto.broker.config.broker_ids import first_broker_id
from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.config.definitions import definitions_of
from kafkaproto.broker.config.environment import ignored_variables, settings_of_environment
from kafkaproto.broker.config.listeners import DEFAULT_NAME
from kafkaproto.broker.config.properties import combined, settings_of_file
from kafkaproto.broker.config.values import ConfigError, split_broker

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 9092
EVERY_ADDRESS = ("", "0.0.0.0", "::")
LISTENERS = (
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "inter.broker.listener.name",
    "early.start.listeners",
    "control.plane.listener.name",
)
"""Settings that define or name listeners. `--host` and `--port` replace them."""

logger = logging.getLogger("kafkaproto")


def settings_of_options(
    options: argparse.Namespace, variables: Mapping[str, str], warn: Callable[[str], None] = logger.warning
) -> dict[str, str]:
    """Return the settings that the command line of a broker gives, by name or "<broker id>.<name>".

    Sources, in order of increasing precedence:

    - with `--container`: the file `server.properties` in its folder, if there is one
    - the files of `--config`, in the given order
    - with `--container`: environment variables
    - `--host` and `--port`: if one of these options is given, the settings of the sources above that define or name listeners are ignored
    - `-c`

    variables: the environment variables. warn: a function called with one line for each unknown setting of a file or variable. Raises ConfigError if
    a file cannot be read, a setting is invalid, or several brokers would listen on one port.
    """
    definitions = definitions_of(options.release)
    paths = list(options.config)
    in_container = options.container is not None
    if in_container and (mounted := Path(options.container) / "server.properties").exists():
        paths.insert(0, mounted)
    layers = [settings_of_file(path, definitions, warn) for path in paths]
    if in_container:
        layers.append(settings_of_environment(variables, definitions, warn))
    settings = combined(*layers)
    if options.host is not None or options.port is not None:
        settings = {key: value for key, value in settings.items() if split_broker(key)[1] not in LISTENERS}
    settings = combined(settings, dict(options.settings))
    if in_container:
        settings |= _listeners_of_container(options, settings)
    if options.brokers > 1 and "listeners" in settings:
        _check_shared_ports(settings["listeners"], _broker_ids(options, settings), settings)
    return settings


def _listeners_of_container(options: argparse.Namespace, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings `listeners` and `advertised.listeners` for the brokers that have no listeners yet, by "<broker id>.<name>".

    settings: the settings so far, by name or "<broker id>.<name>". A broker for which these settings define no listeners gets a listener on the host
    of `--host`, by default on every address, and on the port `--port` plus its index among the brokers, or any free port for `--port 0`. The broker
    advertises the same host, or localhost if it listens on every address. Existing advertised listeners are kept.
    """
    host = "0.0.0.0" if options.host is None else options.host
    port = DEFAULT_PORT if options.port is None else options.port
    advertised_host = "localhost" if host in EVERY_ADDRESS else host
    listeners: dict[str, str] = {}
    for index, broker in enumerate(_broker_ids(options, settings)):
        if {"listeners", f"{broker}.listeners"} & settings.keys():
            continue
        port_of_broker = port + index if port else 0
        listeners[f"{broker}.listeners"] = f"{DEFAULT_NAME}://{_bracketed(host)}:{port_of_broker}"
        if not {"advertised.listeners", f"{broker}.advertised.listeners"} & settings.keys():
            advertised = f"{DEFAULT_NAME}://{_bracketed(advertised_host)}:{port_of_broker}"
            listeners[f"{broker}.advertised.listeners"] = advertised
    return listeners


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _broker_ids(options: argparse.Namespace, settings: Mapping[str, str]) -> range:
    first_id = first_broker_id(settings)
    return range(first_id, first_id + options.brokers)


def _check_shared_ports(listeners: str, broker_ids: range, settings: Mapping[str, str]) -> None:
    """Raise ConfigError if several brokers would listen on the same port.

    listeners: the value of `listeners`, for all brokers without a value of their own. broker_ids: the ids of all brokers. settings: all settings, by
    name or "<broker id>.<name>".
    """
    sharing_ids = [i for i in broker_ids if f"{i}.listeners" not in settings]
    if len(sharing_ids) > 1 and not listeners.rstrip().endswith(":0"):
        raise ConfigError(
            f"listeners={listeners}: brokers {sharing_ids[0]} and {sharing_ids[1]} cannot listen on the same port; pass --port 9092 for "
            f"consecutive ports, or give each broker its own, for example {sharing_ids[1]}.listeners=PLAINTEXT://:9093"
        )


def log_settings_without_effect(config: ClusterConfig, from_command_line: Sequence[str]) -> None:
    """Log the settings that have no effect: one warning for each such setting of `-c`, and one line that lists all other such settings.

    from_command_line: the names of the `-c` settings, as "<name>" or "<broker id>.<name>".
    """
    idle = config.without_effect()
    for key in idle:
        if key in from_command_line:
            logger.warning("setting %s is accepted, but has no effect (see `kafkaproto settings`)", key)
    of_files = [key for key in idle if key not in from_command_line]
    if of_files:
        logger.info(
            "settings that are accepted but have no effect (see `kafkaproto settings`): %s", ", ".join(of_files)
        )


def log_ignored_variables(variables: Mapping[str, str]) -> None:
    """Log, in one line, the names of the environment variables that `--container` ignores: those for the JVM, scripts or service links.

    variables: all environment variables of this process.
    """
    ignored_names = ignored_variables(variables)
    if ignored_names:
        logger.info("environment variables that --container ignores: %s", ", ".join(ignored_names))
