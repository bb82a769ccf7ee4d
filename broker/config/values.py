"""Settings with values: parsing, and the layers a value is looked up in. Knows the table of `settings` and nothing of who uses it.

Look-up order of a broker setting (`DynamicBrokerConfig`): dynamic for this broker, dynamic for all brokers, given at start for
this broker, given at start for all, default. A topic setting: the topic's own, then its broker setting in that order.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from kafkaproto.broker.config.definitions import BROKER_NAME_OF_TOPIC_SETTING, BROKER_SETTINGS, TOPIC_SETTINGS, Setting

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,20}\Z")
_OF_LISTENER = re.compile(r"listener\.name\.(?P<listener>[a-z0-9_.-]+?)\.(?P<name>max\.connections?\b.*)\Z")
_HOST = re.compile(r"[0-9A-Za-z\-%._:]+\Z")
_BITS = {"short": 16, "int": 32, "long": 64}


class ConfigError(ValueError):
    """A setting that cannot be: one line with what is wrong, what is allowed, an example."""


class Source(IntEnum):
    """Where a value comes from, numbered as in DescribeConfigs (`ConfigSource`)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


def parse(setting: Setting, text: str, strict_kip: bool = True) -> Any:
    """The typed value of `text`. Raises ConfigError naming the setting, the allowed values and an example.

    strict_kip: how the `semantics` switch stands, for lists that the documents and the broker write differently (D10).
    """
    value = _convert(setting, text)
    if isinstance(value, int | float) and not isinstance(value, bool):
        too_low = setting.low is not None and value < setting.low
        too_high = setting.high is not None and value > setting.high
        if too_low or too_high:
            raise _bad(setting, text)
    if setting.choices:
        items = value.split(",") if setting.kind == "list" else [value]
        if items == [""] and setting.kind == "list":
            return value  # a list may have none
        if not all(item.strip() in setting.choices for item in items):
            raise _bad(setting, text)
    if setting.items is not None and value != "*":
        form = setting.items[0 if strict_kip else 1]
        if not all(re.fullmatch(form, item.strip()) for item in value.split(",")):
            raise _bad(setting, text)
    return value


def _convert(setting: Setting, text: str) -> Any:
    text = text.strip()
    if setting.kind in _BITS:
        # As Java reads numbers: int() would take 1_000 and other alphabets' digits too.
        limit = 1 << (_BITS[setting.kind] - 1)
        if _WHOLE_NUMBER.match(text) is None or not -limit <= int(text) < limit:
            raise _bad(setting, text)
        return int(text)
    if setting.kind == "double":
        try:
            value = float(text)
        except ValueError:
            raise _bad(setting, text) from None
        if not math.isfinite(value):
            raise _bad(setting, text)
        return value
    if setting.kind == "boolean":
        if text.lower() not in ("true", "false"):
            raise _bad(setting, text)
        return text.lower() == "true"
    return text


def _bad(setting: Setting, text: str) -> ConfigError:
    return ConfigError(f"{setting.name}={text}: allowed is {setting.allowed}, for example {setting.example}")


_SHOWN = {
    "broker setting": ("fetch.max.bytes", "num.partitions", "broker.rack", "connections.max.idle.ms"),
    "topic setting": ("max.message.bytes", "cleanup.policy", "min.insync.replicas", "retention.ms"),
}
"""A few names for those who are far from any; DescribeConfigs has them all."""


def broker_setting(name: str) -> Setting:
    """Also of one listener, as `listener.name.internal.max.connections`."""
    match = _OF_LISTENER.match(name)
    if match is not None:
        setting = BROKER_SETTINGS.get(match["name"])
        if setting is not None and setting.per_listener:
            return replace(setting, name=name)
    return _named(BROKER_SETTINGS, name, "broker setting")


def topic_setting(name: str) -> Setting:
    return _named(TOPIC_SETTINGS, name, "topic setting")


def _named(table: Mapping[str, Setting], name: str, what: str) -> Setting:
    setting = table.get(name)
    if setting is None:
        close = difflib.get_close_matches(name, table, n=1, cutoff=0.6)
        example = table[close[0] if close else _SHOWN[what][0]].example
        hint = f"the nearest is {close[0]}" if close else f"allowed are Kafka's own, such as {', '.join(_SHOWN[what])}"
        raise ConfigError(f"{name}: no such {what}; {hint}, for example {example}")
    return setting


@dataclass(frozen=True, slots=True)
class Described:
    """One setting as DescribeConfigs shows it: the value that holds, where it comes from, and all layers that have one."""

    setting: Setting
    name: str
    value: str | None
    source: Source
    layers: tuple[tuple[str, str | None, Source], ...]


def as_text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


class ClusterConfig:
    """All settings of a cluster's brokers. `for_broker` gives one broker's view.

    static: "name" or "<broker id>.name" to text, as on the command line, or to the number or truth it stands for.
    strict_kip: the `semantics` switch (D10). Raises ConfigError for unknown names and bad values.
    """

    def __init__(
        self,
        static: Mapping[str, object] | None = None,
        defaults: Mapping[str, object] | None = None,
        strict_kip: bool = True,
    ) -> None:
        self.strict_kip = strict_kip
        self.static_all: dict[str, Any] = {}
        self.static_broker: dict[int, dict[str, Any]] = {}
        self.dynamic_all: dict[str, Any] = {}
        self.dynamic_broker: dict[int, dict[str, Any]] = {}
        self._profile = dict(defaults or {})
        self._given = {key: as_text(value) or "" for key, value in (static or {}).items()}
        for key, text in self._given.items():
            broker, name = split_broker(key)
            layer = self.static_all if broker is None else self.static_broker.setdefault(broker, {})
            layer[name] = parse(broker_setting(name), text)
        for broker_id in (-1, *self.static_broker):
            self.check_connections(broker_id)

    def given(self) -> dict[str, str]:
        """What was given at start, as text."""
        return dict(self._given)

    def without_effect(self) -> list[str]:
        """The settings given at start that are accepted and change nothing, in the order given."""
        settings = {key: broker_setting(split_broker(key)[1]) for key in self._given}
        return [key for key, setting in settings.items() if setting.only_dynamic or not setting.acts]

    def reset(self) -> None:
        """Forget what was changed while running."""
        self.dynamic_all.clear()
        self.dynamic_broker.clear()

    def dynamic_of(self, broker_id: int) -> dict[str, Any]:
        """What was set for one broker while it ran; to be changed in place."""
        return self.dynamic_broker.setdefault(broker_id, {})

    def default(self, name: str) -> Any:
        return self._profile[name] if name in self._profile else broker_setting(name).default

    def layers(self, broker_id: int, name: str) -> list[tuple[Any, Source]]:
        """Every layer that has a value for a broker setting, the one that holds first."""
        found = self._given_layers(broker_id, name)
        for coarser, factor in broker_setting(name).coarser:
            found += [
                (value * factor if value >= 0 else value, source)
                for value, source in self._given_layers(broker_id, coarser)
            ]
        found.append((self.default(name), Source.DEFAULT))
        return found

    def _given_layers(self, broker_id: int, name: str) -> list[tuple[Any, Source]]:
        return [
            (layer[name], source)
            for layer, source in (
                (self.dynamic_broker.get(broker_id, {}), Source.DYNAMIC_BROKER),
                (self.dynamic_all, Source.DYNAMIC_DEFAULT_BROKER),
                (self.static_broker.get(broker_id, {}), Source.STATIC_BROKER),
                (self.static_all, Source.STATIC_BROKER),
            )
            if name in layer
        ]

    def get(self, broker_id: int, name: str) -> Any:
        """The value that holds: as `layers` has it, without a list of all, since each change asks for every partition."""
        setting = broker_setting(name)
        own = self.dynamic_broker.get(broker_id)
        if own is not None and name in own:
            return own[name]
        if name in self.dynamic_all:
            return self.dynamic_all[name]
        if setting.only_dynamic:
            return self.default(name)
        if setting.coarser:
            return self.layers(broker_id, name)[0][0]
        at_start = self.static_broker.get(broker_id)
        if at_start is not None and name in at_start:
            return at_start[name]
        return self.static_all[name] if name in self.static_all else self.default(name)

    def topic_value(self, broker_id: int, overrides: Mapping[str, str], name: str) -> Any:
        """A topic setting's value as broker `broker_id` sees it."""
        if name in overrides:
            return parse(TOPIC_SETTINGS[name], overrides[name])
        broker_name = BROKER_NAME_OF_TOPIC_SETTING.get(name)
        return TOPIC_SETTINGS[name].default if broker_name is None else self.get(broker_id, broker_name)

    def describe_broker(self, broker_id: int, name: str) -> Described:
        setting = broker_setting(name)
        layers = tuple((name, as_text(value), source) for value, source in self.layers(broker_id, name))
        # What has an effect only when it is set while a broker runs has no default to tell of.
        shown = layers[:-1] if setting.only_dynamic else layers
        return Described(setting, name, layers[0][1], layers[0][2], shown)

    def given_to_listeners(self, broker_id: int) -> list[str]:
        """The names of all settings that are given for single listeners."""
        layers = (
            self.dynamic_broker.get(broker_id, {}),
            self.dynamic_all,
            self.static_broker.get(broker_id, {}),
            self.static_all,
        )
        return sorted({name for layer in layers for name in layer if name not in BROKER_SETTINGS})

    def check_connections(self, broker_id: int) -> None:
        """Raises ConfigError for connection settings that cannot be, by themselves or together (`KafkaConfig`, KIP-402, KIP-612)."""
        overrides = connection_overrides(self.get(broker_id, "max.connections.per.ip.overrides"))
        if self.get(broker_id, "max.connections.per.ip") == 0 and not overrides:
            raise ConfigError(
                "max.connections.per.ip=0: allowed only with overrides, for example max.connections.per.ip.overrides=127.0.0.1:10"
            )
        for layer in (self.dynamic_all, self.dynamic_broker.get(broker_id, {})):
            for name, value in layer.items():
                if value == 0 and broker_setting(name).per_listener:
                    raise ConfigError(f"{name}=0: allowed is 1 or more while the broker runs, for example {name}=100")

    def is_shown(self, broker_id: int, name: str) -> bool:
        """Whether a broker describes a setting at all: those of replication quotas only where somebody has set them (`DynamicConfig`)."""
        return not BROKER_SETTINGS[name].only_dynamic or bool(self._given_layers(broker_id, name))

    def describe_topic(self, broker_id: int, overrides: Mapping[str, str], name: str) -> Described:
        setting = TOPIC_SETTINGS[name]
        layers: list[tuple[str, str | None, Source]] = []
        if name in overrides:
            layers.append((name, self._shown(setting, overrides[name]), Source.TOPIC))
        broker_name = BROKER_NAME_OF_TOPIC_SETTING.get(name)
        if broker_name is not None:
            found = self.layers(broker_id, broker_name)
            if broker_setting(broker_name).coarser:
                found = found[
                    :-1
                ]  # Kafka's default of these is null: that of the coarsest is not told (log.retention.hours)
            layers += ((broker_name, as_text(v), source) for v, source in found)
        # No broker setting stands behind the default of a setting that only topics have.
        _, value, source = layers[0] if layers else (name, as_text(setting.default), Source.DEFAULT)
        return Described(setting, name, value, source, tuple(layers))

    def _shown(self, setting: Setting, text: str) -> str:
        """The shipped broker tidies lists; the documents know nothing of that (D10)."""
        tidy = setting.kind == "list" and not self.strict_kip
        return ",".join(item.strip() for item in text.split(",")) if tidy else text

    def for_broker(self, broker_id: int) -> BrokerConfig:
        return BrokerConfig(self, broker_id)


class BrokerConfig:
    """One broker's settings: `config["fetch.max.bytes"]` is the typed value that holds now."""

    __slots__ = ("broker_id", "cluster")

    def __init__(self, cluster: ClusterConfig, broker_id: int) -> None:
        self.cluster = cluster
        self.broker_id = broker_id

    def __getitem__(self, name: str) -> Any:
        return self.cluster.get(self.broker_id, name)

    def of_listener(self, listener: str, name: str) -> Any:
        """The value for one listener: its own, else the broker's."""
        own = f"listener.name.{listener.lower()}.{name}"
        given = self.cluster.layers(self.broker_id, own)[0]
        return self[name] if given[1] == Source.DEFAULT else given[0]

    def topic(self, overrides: Mapping[str, str], name: str) -> Any:
        return self.cluster.topic_value(self.broker_id, overrides, name)


def split_broker(key: str) -> tuple[int | None, str]:
    """`2.broker.rack` is (2, "broker.rack"); `broker.rack` is (None, "broker.rack")."""
    head, dot, rest = key.partition(".")
    return (int(head), rest) if dot and head.isdecimal() else (None, key)


def check_topic_settings(overrides: Mapping[str, str], strict_kip: bool = True) -> None:
    """Raises ConfigError for the first unknown name or bad value."""
    for name, text in overrides.items():
        parse(topic_setting(name), text, strict_kip)


def connection_overrides(text: str) -> dict[str, int]:
    """`max.connections.per.ip.overrides`: address to the most connections. Raises ConfigError."""
    found = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        host, _, count = item.rpartition(":")
        if not _HOST.match(host) or _WHOLE_NUMBER.match(count) is None or int(count) < 0:
            raise ConfigError(
                f"max.connections.per.ip.overrides={text}: allowed is a list of address:connections, for example "
                f"max.connections.per.ip.overrides=127.0.0.1:10,::1:5"
            )
        found[host] = int(count)
    return found
