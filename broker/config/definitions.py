"""The settings of a Kafka release: their definitions in Kafka (`tables/`), and their effect in this broker (`effects`).

There are two tables: releases before 4.0 have the settings of Kafka 3.9.1, later releases those of 4.2.0. A table is read when a release
is first used. The contents come from Kafka's `KafkaConfig`, `LogConfig`, `GroupConfig` and `DynamicBrokerConfig`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kafkaproto.broker.config.effects import ACTING, DIFFERENT_RANGES, FIXED_AT_START, OWN, REFUSED, REMOVED, Refusal
from kafkaproto.broker.config.java_text import java_double

OLDER_TABLE, NEWER_TABLE = "3.9.1", "4.2.0"
HOUR_MS, MINUTE_MS = 3_600_000, 60_000

_PER_LISTENER = ("max.connections", "max.connection.creation.rate")
_BITS = {"short": 15, "int": 31, "long": 63}
_KEEPING_DUPLICATES = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
_REPLICAS = ("([0-9]+[:-][0-9]+)?", "([0-9]+:[0-9]+)?")


class Setting(NamedTuple):
    """One setting of a broker, a topic or a group.

    kind: its type as in DescribeConfigs: boolean, string, int, short, long, double, list, password or class. default: the typed default value, None
    if there is none. default_text: the default as Kafka writes it.

    low, high: inclusive bounds of a number, None for no bound. special: an allowed number outside these bounds. values: the allowed values, or the
    allowed items of a list; any if empty. any_case: whether the comparison with `values` ignores case. versions: whether the values are Kafka's
    metadata versions; `2.8` is then short for `2.8-IV1`. items: two regular expressions for the items of a list, None for no limit. Unless the value
    is `*`, each item must match the first if the broker follows the KIPs (`semantics=kip`), the second if it follows Kafka's code (D10). not_empty:
    whether an empty value is rejected. distinct: whether repeated items of a list are removed, as in Kafka 4.0 and later (KIP-1161).

    mode: "r" if the setting is fixed at start, "b" if it can be changed at run time for one broker, "c" if it can be changed at run time for one
    broker or all brokers. place: the position of the setting in the order in which Kafka checks the values of a change; infinite if Kafka never
    checks the value of this setting.

    internal: whether DescribeConfigs returns the setting only if it is set. fallbacks: the broker settings to use, in order, if this one is not set.
    only_dynamic: whether only AlterConfigs can set it, while a value given at start is ignored (R-12). per_listener: whether
    `listener.name.<listener>.<name>` sets it for one listener.

    acts: whether this broker implements the setting; otherwise its value has no effect. fixed_here: whether Kafka can change it on a running broker
    and this broker cannot. foreign: whether the emulated release of Kafka does not have the setting, so that DescribeConfigs shows neither type nor
    value. refusal: says which values this broker rejects although Kafka accepts them, and why; None if it rejects none.
    """

    name: str
    kind: str
    default: Any = None
    default_text: str | None = None
    low: float | None = None
    high: float | None = None
    special: int | None = None
    values: tuple[str, ...] = ()
    any_case: bool = False
    versions: bool = False
    not_empty: bool = False
    items: tuple[str, str] | None = None
    distinct: bool = False
    mode: str = "r"
    place: float = math.inf
    internal: bool = False
    fallbacks: tuple[str, ...] = ()
    only_dynamic: bool = False
    per_listener: bool = False
    fixed_here: bool = False
    acts: bool = False
    foreign: bool = False
    refusal: Refusal | None = None

    @property
    def dynamic(self) -> bool:
        """Return whether Kafka can change the setting on a running broker."""
        return self.mode != "r"

    @property
    def sensitive(self) -> bool:
        """Return whether the value is a secret, or may be one because Kafka does not know the setting."""
        return self.kind == "password" or self.foreign

    @property
    def hidden(self) -> bool:
        """Return whether DescribeConfigs and similar APIs omit the setting, because it exists only in this broker and not in Kafka."""
        return self.name.startswith("kafkaproto.")

    @property
    def allowed(self) -> str:
        """Return the allowed values as text, for error messages."""
        if self.values:
            least = " at least one of" if self.not_empty else ""
            kind = f"a list of{least}" if self.kind == "list" else "one of"
            return f"{kind} {', '.join(self.values)}"
        if self.items is not None:
            return "* or a list of partition:broker, for example 0:1,0:2"
        if self.kind == "boolean":
            return "true or false"
        if self.kind in _BITS or self.kind == "double":
            special = "" if self.special is None else f"{self.special} or "
            number = "a number" if self.kind == "double" else "an integer"
            low, high = self.low, self.high
            if self.kind in _BITS:
                low = -(1 << _BITS[self.kind]) if low is None else low
                high = (1 << _BITS[self.kind]) - 1 if high is None else high
            bounds = ("" if low is None else f" from {low}") + ("" if high is None else f" to {high}")
            return f"{special}{number}{bounds}"
        if self.kind == "list":
            return (
                "a list of at least one item, without empty items" if self.not_empty else "a list without empty items"
            )
        return "a text that is not empty"


def text_or_list(name: str, known: Setting | None) -> Setting:
    """Return a definition of the setting `name` that accepts any text: of type list if Kafka's setting is a list, otherwise of type string.

    A definition of type list also has Kafka's default: if a client appends items to a list that is not set, they are appended to the default. known:
    Kafka's definition of the setting, None if there is none.
    """
    if known is None or known.kind != "list":
        return Setting(name, "string")
    return Setting(name, "list", default_text=known.default_text)


class Definitions:
    """The definitions of all settings, by name. There are two objects: one for releases before 4.0, one for 4.0 and later.

    broker: Kafka's broker settings, including those that can only be set on a running broker (`only_dynamic`), those that exist only in this broker,
    and those that Kafka 3.0 removed and this broker still supports. broker_name_of_topic: maps a topic setting to the broker setting whose value it
    inherits. finer: maps a setting in a coarse unit such as `log.retention.hours` to the equivalent one in milliseconds, `log.retention.ms`.
    """

    def __init__(self, table: str) -> None:
        self.table = table
        self.broker: dict[str, Setting] = {}
        self.topic: dict[str, Setting] = {}
        self.group: dict[str, Setting] = {}
        self.broker_name_of_topic: dict[str, str] = {}
        self.finer: dict[str, str] = {}
        for kind, setting in _read(table):
            if kind == "topic":
                self.topic[setting.name] = setting
                if setting.fallbacks:
                    self.broker_name_of_topic[setting.name] = setting.fallbacks[0]
            else:
                if setting.name.endswith(".ms"):
                    self.finer |= dict.fromkeys(setting.fallbacks, setting.name)
                (self.group if kind == "group" else self.broker)[setting.name] = setting
        for name, kind, default, low in OWN:
            text = None if default is None else str(default).lower()
            self.broker[name] = Setting(name, kind, default, text, low, acts=True)
        for name in REMOVED:
            self.broker[name] = Setting(name, "string", acts=True, foreign=True)

    @property
    def of_other_release(self) -> Definitions:
        """Return the definitions of the other Kafka version (3.9.1 or 4.2.0), to look up settings that these definitions lack."""
        return _definitions(NEWER_TABLE if self.table == OLDER_TABLE else OLDER_TABLE)


def definitions_of(release: str) -> Definitions:
    """Return the definitions of all settings of a Kafka release, such as "3.9"."""
    return _definitions(NEWER_TABLE if int(release.partition(".")[0]) >= 4 else OLDER_TABLE)


@cache
def _definitions(table: str) -> Definitions:
    return Definitions(table)


def unit_ms(name: str) -> int:
    """Return the unit of a time setting in milliseconds, found by the end of its name: 3,600,000 for `log.retention.hours`."""
    return HOUR_MS if name.endswith(".hours") else MINUTE_MS if name.endswith(".minutes") else 1


def _read(table: str) -> Iterator[tuple[str, Setting]]:
    """Yield (scope, setting) for each line of a table file. table: the Kafka version in the name of the file, "3.9.1" or "4.2.0".

    scope: "broker", "dynamic" (a broker setting that can only be set at run time), "topic" or "group". `tests/support/oracle/settings.py` makes the
    files and explains the columns.
    """
    text = (Path(__file__).parent / "tables" / f"kafka-{table}.tsv").read_text()
    ranges: dict[tuple[str, str], dict[str, Any]] = {}
    for line in text.splitlines()[2:]:
        of, name, kind, default, allowed, mode, *optional_columns = line.split("\t")
        place, fallbacks = (*optional_columns, "", "")[:2]
        if of == "broker":
            allowed = DIFFERENT_RANGES.get(name, allowed)
        key = (kind, allowed)
        limits = ranges.get(key)
        if limits is None:
            limits = ranges[key] = _limits(kind, allowed)
        is_distinct = table == NEWER_TABLE and kind == "list" and allowed != "replicas"
        default_text = None if default == "(null)" else default
        yield (
            of,
            Setting(
                name,
                kind,
                None if default_text is None else value_of(kind, default_text),
                default_text,
                mode=mode[0],
                place=int(place) if place else math.inf,
                fixed_here=name in FIXED_AT_START,
                internal=mode.endswith("i"),
                fallbacks=tuple(fallbacks.split(",")) if fallbacks else (),
                only_dynamic=of == "dynamic",
                per_listener=name in _PER_LISTENER,
                acts=name in ACTING[of],
                refusal=REFUSED.get(name),
                distinct=is_distinct and name not in _KEEPING_DUPLICATES,
                **limits,
            ),
        )


def value_of(kind: str, text: str) -> Any:
    """Return the typed value of a valid text. Strings, lists, classes and passwords stay text.

    kind: the type of the setting, such as "int".
    """
    if kind in _BITS:
        return int(text)
    if kind == "double":
        value = java_double(text)
        return math.nan if value is None else value
    return text.lower() == "true" if kind == "boolean" else text


def _limits(kind: str, allowed: str) -> dict[str, Any]:
    """Return the keyword arguments of `Setting` that limit its values.

    kind: the type of the setting. allowed: the column `range` of a table file, for example "1..", "none|gzip", "+" (not empty), "+none|gzip" (a list
    that is not empty), or "" (any value).
    """
    limits: dict[str, Any] = {}
    if kind in _BITS:
        limits["high"] = 2 ** _BITS[kind] - 1
    if allowed == "replicas":
        limits["items"] = _REPLICAS
        return limits
    if allowed.startswith("+"):
        limits["not_empty"] = True
        allowed = allowed[1:]
    if ".." in allowed:
        special, _, interval = allowed.rpartition("|")
        if special:
            limits["special"] = int(special)
        number = float if kind == "double" else int
        low, _, high = interval.partition("..")
        limits |= {key: number(end) for key, end in (("low", low), ("high", high)) if end}
    elif allowed:
        limits["any_case"] = allowed.startswith("~")
        limits["versions"] = allowed.startswith("0.8.0|")
        limits["values"] = tuple(allowed.removeprefix("~").split("|"))
    return limits
