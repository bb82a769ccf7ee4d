"""What a test cluster is made of: its options, and the cluster that they describe. Must never know how it is served."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypedDict

from kafkaproto.broker.assembly import DEFAULT_MEMORY_BYTES
from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.config.release import DEFAULT_RELEASE
from kafkaproto.broker.quota.precedence import Semantics
from kafkaproto.broker.runtime.clock import JumpClock, ManualClock, SystemClock

CLOCKS: dict[str, Callable[[], SystemClock | JumpClock | ManualClock]] = {
    "jump": JumpClock,
    "manual": ManualClock,
    "system": SystemClock,
}
Topics = Mapping[str, int | Mapping[str, object]]


class Default(Enum):
    """`DEFAULT` as user or client-id of a quota: all that have none of their own."""

    DEFAULT = "default"


DEFAULT = Default.DEFAULT


class Options(TypedDict, total=False):
    """How a cluster is made, beside brokers, topics and config. The command line has the same (`kafkaproto broker --help`)."""

    clock: str
    semantics: Semantics
    release: str
    profile: str
    memory_bytes: int
    seed: int
    data_dir: str | os.PathLike[str] | None
    trace: str | os.PathLike[str] | None
    journal_topic: str | None


def new_cluster(brokers: int, config: Mapping[str, object] | None, options: Options) -> Cluster:
    """The state of a cluster, not yet served. Raises ConfigError, ValueError for what cannot be, TypeError for an unknown option."""
    unknown = sorted(set(options) - set(Options.__annotations__))
    if unknown:
        known = ", ".join(("brokers", "topics", "config", "host", "port", *Options.__annotations__))
        raise TypeError(f"{unknown[0]} is no option of a cluster; allowed are {known}; for example seed=7")
    return Cluster(
        brokers,
        config,
        semantics=options.get("semantics", "kip"),
        release_name=options.get("release", DEFAULT_RELEASE),
        profile=options.get("profile", "test"),
        memory_bytes=options.get("memory_bytes", DEFAULT_MEMORY_BYTES),
        seed=options.get("seed", 0),
        clock=new_clock(options.get("clock", "jump")),
        data_dir=options.get("data_dir"),
        journal_topic=options.get("journal_topic"),
    )


def new_clock(name: str) -> SystemClock | JumpClock | ManualClock:
    if name not in CLOCKS:
        raise ValueError(f"clock={name!r} is not known; allowed: {', '.join(CLOCKS)}; for example clock='jump'")
    return CLOCKS[name]()
