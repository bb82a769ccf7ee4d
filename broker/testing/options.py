"""The arguments of a test cluster: checks of the arguments, and functions that create the cluster and its clock.

This module does not depend on event loops, threads or sockets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from enum import Enum
from types import TracebackType
from typing import NamedTuple, TypedDict

from kafkaproto.broker.assembly import DEFAULT_MEMORY_BYTES, PROFILES, SEMANTICS
from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.config.release import DEFAULT_RELEASE, RELEASES
from kafkaproto.broker.quota.precedence import Semantics
from kafkaproto.broker.runtime.clock import JumpClock, ManualClock, SystemClock
from kafkaproto.broker.testing.arguments import check_choice, check_int, check_mapping, check_text, nearest, short_repr
from kafkaproto.broker.testing.tracebacks import is_hidden, without_frames_of_the_broker

__tracebackhide__ = is_hidden

CLOCKS: dict[str, Callable[[], SystemClock | JumpClock | ManualClock]] = {
    "jump": JumpClock,
    "manual": ManualClock,
    "system": SystemClock,
}
Topics = Mapping[str, int | Mapping[str, object]]


class Default(Enum):
    """The type of `DEFAULT`, which stands for all users, client ids or IP addresses that have no quota of their own."""

    DEFAULT = "default"


DEFAULT = Default.DEFAULT


class Options(TypedDict, total=False):
    """The options of a test cluster besides brokers, topics, config, host and port."""

    clock: str
    """Clock of the cluster: "jump" (the default: wall time that `clock.advance` moves forward), "manual" (stands still until `advance`) or "system".
    """
    semantics: Semantics
    """Behaviour where Kafka's code differs from the KIPs: "kip" (the default: that of the KIPs) or "kafka" (that of Kafka's code)."""
    release: str
    """Kafka release whose behaviour the brokers emulate, from "0.9" to "4.2" (default: "3.9")."""
    profile: str
    """Defaults of the settings: "test" (the default: small internal topics, no initial rebalance delay) or "kafka" (Kafka's own defaults)."""
    memory_bytes: int
    """Limit of the records in memory, in bytes; further records go to temporary files (default: 256 MiB)."""
    seed: int
    """Random seed for generated ids (default: 0)."""
    data_dir: str | os.PathLike[str] | None
    """Folder that keeps the cluster between runs (default: None, nothing is kept)."""
    trace: str | os.PathLike[str] | None
    """Folder for a trace of all traffic, which leaves out the contents of Kafka records (default: None, no trace)."""
    journal_topic: str | None
    """Name of a topic in which the cluster publishes throttles, leader changes, and fetch and produce offsets (default: None, no such topic)."""


class Arguments(NamedTuple):
    """The checked arguments of `kafkaproto.testing.cluster()`."""

    brokers: int
    topics: Topics
    config: Mapping[str, object] | None
    host: str
    port: int
    options: Options


HIGHEST_PORT = 65535


def arguments_of(
    brokers: int,
    topics: Topics | None,
    config: Mapping[str, object] | None,
    host: str,
    port: int,
    options: Options,
) -> Arguments:
    """Check and return the arguments of `kafkaproto.testing.cluster`. options: the keyword arguments that `Options` lists.

    Raises TypeError for an unknown option or a wrong type, ValueError for a value out of range.
    """
    known_options = ("brokers", "topics", "config", "host", "port", *Options.__annotations__)
    for option in options:
        if option not in known_options:
            hint = nearest(option, known_options) or f"; known are {', '.join(known_options)}"
            raise TypeError(f"cluster() has no option {option!r}{hint}")
    check_int("brokers", brokers, 1, example=3)
    if config is not None:
        check_mapping("config", config, "{'num.partitions': 3}")
    check_text("host", host, "127.0.0.1")
    check_int("port", port, example=9092)
    if not 0 <= port <= HIGHEST_PORT:
        raise ValueError(f"port must be 0 to {HIGHEST_PORT} (got {port}); 0 picks free ports")
    _check_options(options)
    return Arguments(brokers, {} if topics is None else topics, config, host, port, options)


def _check_options(options: Options) -> None:
    """Raise TypeError for an option of a wrong type, ValueError for one out of range."""
    check_choice("clock", options.get("clock", "jump"), CLOCKS, "jump")
    check_choice("semantics", options.get("semantics", "kip"), SEMANTICS, "kip")
    check_choice("release", options.get("release", DEFAULT_RELEASE), RELEASES, DEFAULT_RELEASE)
    check_choice("profile", options.get("profile", "test"), PROFILES, "test")
    check_int("memory_bytes", options.get("memory_bytes", 0), 0, example=DEFAULT_MEMORY_BYTES)
    check_int("seed", options.get("seed", 0), example=7)
    for folder_option in ("data_dir", "trace"):
        value = options.get(folder_option)
        if value == "" or not isinstance(value, str | os.PathLike | None):
            raise TypeError(
                f"{folder_option} must be a str or a Path (got {short_repr(value)}); for example {folder_option}=tmp_path"
            )
    topic = options.get("journal_topic")
    if topic is not None:
        check_text("journal_topic", topic, "__journal")


def new_cluster(arguments: Arguments) -> Cluster:
    """Return a new cluster that has no sockets yet. Raises ConfigError or ValueError for invalid arguments."""
    options = arguments.options
    cluster = Cluster(
        arguments.brokers,
        arguments.config,
        semantics=options.get("semantics", "kip"),
        release_name=options.get("release", DEFAULT_RELEASE),
        profile=options.get("profile", "test"),
        memory_bytes=options.get("memory_bytes", DEFAULT_MEMORY_BYTES),
        seed=options.get("seed", 0),
        clock=new_clock(options.get("clock", "jump")),
        data_dir=options.get("data_dir"),
        journal_topic=options.get("journal_topic"),
        detailed_journal=True,
    )
    if cluster.config.without_effect():
        from kafkaproto.broker.server.settings import log_settings_without_effect  # most clusters have no such setting

        log_settings_without_effect(cluster.config, list(arguments.config or ()))
    return cluster


def new_clock(name: str) -> SystemClock | JumpClock | ManualClock:
    """Return the clock for a name: "jump", "manual" or "system". Raises ValueError for any other name."""
    check_choice("clock", name, CLOCKS, "jump")
    return CLOCKS[name]()


_OPTION = re.compile(r"--([a-z][a-z-]*)(?: ([^\s,;]+))?")


class in_python_words(without_frames_of_the_broker):
    """A context manager that rewrites errors about command-line options (`--data-dir X`) to name Python arguments (`data_dir='X'`)."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ValueError) and (text := _OPTION.sub(_argument, str(error))) != str(error):
            raise type(error)(text) from None
        super().__exit__(kind, error, trace)


def _argument(option: re.Match[str]) -> str:
    name = option[1].replace("-", "_")
    name = {"memory": "memory_bytes", "listen": "port"}.get(name, name)
    if option[2] is None or not _is_value(option[2]):
        return name + (f" {option[2]}" if option[2] else "")
    return f"{name}={option[2] if option[2].isdigit() else repr(option[2])}"


def _is_value(word: str) -> bool:
    return word.isdigit() or "." in word or "/" in word or word in ("kip", "kafka", "test")
