"""The settings of a cluster's brokers and topics, and the layers in which a value is looked up.

The layers of a broker setting, in look-up order (`DynamicBrokerConfig`): set dynamically for this broker, set dynamically for all
brokers, given at start for this broker, given at start for all brokers, set by the profile, Kafka's default. A topic setting is taken
from the topic itself, otherwise from the corresponding broker setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from kafkaproto.broker.config.broker_ids import first_broker_id
from kafkaproto.broker.config.definitions import Definitions, Setting, definitions_of, unit_ms, value_of
from kafkaproto.broker.config.java_text import java_items, java_trim
from kafkaproto.broker.config.release import DEFAULT_RELEASE, has_eligible_leader_replicas, is_release_4
from kafkaproto.broker.config.requirements import BY_ZERO, unmet_requirement
from kafkaproto.broker.config.values import (
    ConfigError,
    as_text,
    broker_setting,
    check_topic_settings,
    connection_overrides,
    custom_setting,
    known_broker_setting,
    parse,
    split_broker,
    topic_setting,
)

ALL_BROKERS = -1


class SubscriptionName(NamedTuple):
    """The name of a subscription to client metrics, as the owner of settings. A plain string as owner is a group id instead."""

    name: str


ConfigOwner = int | str | SubscriptionName
"""Identifies what persisted settings belong to: a broker id, ALL_BROKERS, a group id, or the name of a subscription to client metrics."""
UNLIMITED = -1
MIN_INSYNC_REPLICAS = "min.insync.replicas"


class Source(IntEnum):
    """The layer of settings from which a setting has its value, numbered as in DescribeConfigs (`ConfigSource`)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ClusterConfig:
    """All settings of a cluster's brokers. `for_broker` returns those of one broker.

    static: the settings given at start; maps "<setting>" (for all brokers) or "<broker id>.<setting>" (for one broker) to text, as on the command
    line, or to a number or bool. profile: values of settings that replace Kafka's defaults (such as those of the profile `test`); settings given at
    start override them. strict_kip: whether to follow the KIPs and documentation where they differ from Kafka's code (D10). Raises ConfigError for
    unknown names and invalid values.
    """

    def __init__(
        self,
        static: Mapping[str, object] | None = None,
        profile: Mapping[str, object] | None = None,
        strict_kip: bool = True,
        release: str = DEFAULT_RELEASE,
    ) -> None:
        self.strict_kip = strict_kip
        self.release = release
        self.definitions: Definitions = definitions_of(release)
        self.static_all: dict[str, Any] = {}
        self.static_broker: dict[int, dict[str, Any]] = {}
        self.dynamic_all: dict[str, Any] = {}
        self.dynamic_broker: dict[int, dict[str, Any]] = {}
        self._dynamic_texts: dict[int, dict[str, str]] = {}
        self.groups: dict[str, dict[str, str]] = {}
        self.emptied_groups: dict[str, int] = {}
        """Maps each group whose settings were all removed to the number of this removal: the value of `group_removals` after it."""
        self.group_removals = 0
        """How often all settings of a group were removed since the start of the process."""
        self.client_metrics: dict[str, dict[str, str]] = {}
        """Maps the name of each client metrics subscription to the settings of the subscription, as text."""
        self.applied_client_metrics: dict[str, dict[str, str]] = {}
        """The settings of `client_metrics` that the brokers apply. Before Kafka 4.0, an empty pattern in `match` can be set, but not applied."""
        self.client_metrics_version = 0
        """How often the applied subscriptions have changed. A cache that stores this number is out of date when the number has grown."""
        self._profile = dict(profile or {})
        self._given = {key: as_text(value) or "" for key, value in (static or {}).items()}
        for key, text in self._given.items():
            broker, name = split_broker(key)
            layer = self.static_all if broker is None else self.static_broker.setdefault(broker, {})
            layer[name] = parse(self.broker_setting(name), text)
        self.first_broker_id = first_broker_id(self.static_all)
        """The lowest id of the brokers. The others have the next ids (CF-26)."""
        self.reset()
        for broker_id in (ALL_BROKERS, *self.static_broker):
            self.check_overrides(broker_id)
            unmet = unmet_requirement(self.for_broker(broker_id).__getitem__, release)
            if unmet is not None:
                raise ConfigError("log.cleaner.threads must be at least 1 (got 0)" if unmet == BY_ZERO else unmet)

    def broker_setting(self, name: str) -> Setting:
        """Return the definition of a broker setting in the emulated release of Kafka. Raises ConfigError for an unknown name."""
        return broker_setting(name, self.definitions)

    def dynamic_setting(self, name: str) -> Setting:
        """Return the definition of a broker setting that a client changes at run time.

        Accepts any name: a setting that Kafka does not know can have any text as value, without effect, as in Kafka 3.9.1.
        """
        setting = known_broker_setting(name, self.definitions)
        return custom_setting(name, self.definitions) if setting is None or setting.foreign else setting

    def topic_setting(self, name: str) -> Setting:
        """Return the definition of a topic setting in the emulated release of Kafka. Raises ConfigError for an unknown name."""
        return topic_setting(name, self.definitions)

    def check_topic(self, overrides: Mapping[str, str]) -> None:
        """Raise ConfigError for settings of a topic that are invalid by themselves or together (`LogConfig.validate`).

        overrides: maps the names of the settings that the topic sets itself to their text.
        """
        check_topic_settings(overrides, self.strict_kip, self.definitions)
        min_setting, max_setting = "min.compaction.lag.ms", "max.compaction.lag.ms"
        min_ms, max_ms = (self.topic_value(ALL_BROKERS, overrides, name) for name in (min_setting, max_setting))
        if min_ms > max_ms:
            raise ConfigError(f"{min_setting} ({min_ms}) must not be greater than {max_setting} ({max_ms})")

    def given_at_start(self) -> dict[str, str]:
        """Return the settings given at start as text, by "<setting>" (for all brokers) or "<broker id>.<setting>" (for one broker)."""
        return dict(self._given)

    def static_texts(self, broker_id: int) -> dict[str, str]:
        """Return the settings of one broker, as text, without Kafka's defaults and without those set at run time.

        A setting has the value given at start for this broker, otherwise the value given at start for all brokers, otherwise the value in the
        cluster's profile. The profile is a set of values that replace Kafka's defaults.
        """
        texts = {name: as_text(value) or "" for name, value in self._profile.items()}
        texts |= {name: self._given[name] for name in self.static_all}
        return texts | {name: self._given[f"{broker_id}.{name}"] for name in self.static_broker.get(broker_id, {})}

    def without_effect(self) -> list[str]:
        """Return the settings given at start that the broker accepts but ignores, as "<setting>" or "<broker id>.<setting>", in the given order."""
        settings = {key: self.broker_setting(split_broker(key)[1]) for key in self._given}
        return [key for key, setting in settings.items() if setting.only_dynamic or not setting.acts]

    def reset(self) -> None:
        """Remove all dynamic settings of brokers and all settings of groups and subscriptions.

        In releases with eligible leader replicas, `min.insync.replicas` is then set dynamically for all brokers, as Kafka's controller does at its
        first start (KIP-966).
        """
        self.dynamic_all.clear()
        self.dynamic_broker.clear()
        self._dynamic_texts.clear()
        self.groups.clear()
        self.emptied_groups.clear()
        self.client_metrics.clear()
        self.applied_client_metrics.clear()
        self.client_metrics_version += 1
        self.has_eligible_leader_replicas = has_eligible_leader_replicas(self.release)
        if self.has_eligible_leader_replicas:
            self.dynamic_all[MIN_INSYNC_REPLICAS] = self.get(ALL_BROKERS, MIN_INSYNC_REPLICAS)

    def restore_eligible_leader_replicas(self, is_enabled: bool) -> None:
        """Enable or disable eligible leader replicas as before the restart. is_enabled: the value before the restart.

        Call it before the persisted dynamic settings are restored.
        """
        self.has_eligible_leader_replicas = is_enabled
        if not is_enabled:
            self.dynamic_all.pop(MIN_INSYNC_REPLICAS, None)

    def with_min_insync_replicas_of_the_cluster(self) -> dict[int, dict[str, str]]:
        """Compute the change that sets `min.insync.replicas` dynamically for all brokers together, and removes it from single brokers.

        Kafka's controller makes this change when eligible leader replicas are enabled (KIP-966); this method only computes it. If the setting has no
        dynamic value for all brokers yet, it gets the value given at start for all brokers, else the value in the cluster's profile (`test` or
        `kafka`), else Kafka's default. Returns a dict of the brokers (or ALL_BROKERS) whose settings change. It maps each broker id to all dynamic
        settings of the broker after the change, as text.
        """
        changed_texts = {}
        for broker_id in self.dynamic_broker:
            texts = self.dynamic_texts(broker_id)
            if texts.pop(MIN_INSYNC_REPLICAS, None) is not None:
                changed_texts[broker_id] = texts
        if MIN_INSYNC_REPLICAS not in self.dynamic_all:
            value = as_text(self.get(ALL_BROKERS, MIN_INSYNC_REPLICAS)) or ""
            changed_texts[ALL_BROKERS] = {**self.dynamic_texts(ALL_BROKERS), MIN_INSYNC_REPLICAS: value}
        return changed_texts

    def dynamic_texts(self, broker_id: int) -> dict[str, str]:
        """Return the dynamic settings of broker `broker_id`, or those for all brokers (ALL_BROKERS), as unparsed text."""
        texts = self._dynamic_texts.get(broker_id, {})
        return {name: texts.get(name) or as_text(value) or "" for name, value in self._dynamic_layer(broker_id).items()}

    def set_dynamic(self, broker_id: int, texts: Mapping[str, str]) -> None:
        """Replace the dynamic settings of one broker, or of all brokers (ALL_BROKERS).

        texts: maps the names of settings to unparsed values. Raises ConfigError for an invalid setting; then nothing is changed.
        """
        values = {name: parse(self.dynamic_setting(name), text) for name, text in texts.items()}
        layer = self._dynamic_layer(broker_id)
        layer.clear()
        layer.update(values)
        self._dynamic_texts[broker_id] = dict(texts)

    def _dynamic_layer(self, broker_id: int) -> dict[str, Any]:
        return self.dynamic_all if broker_id == ALL_BROKERS else self.dynamic_broker.setdefault(broker_id, {})

    def layers(self, broker_id: int, name: str) -> list[tuple[Any, Source]]:
        """Return (typed value, source) of each layer in which the setting has a value, in look-up order. The last entry is Kafka's default."""
        layers: tuple[tuple[Mapping[str, Any], Source], ...] = (
            (self.dynamic_broker.get(broker_id, {}), Source.DYNAMIC_BROKER),
            (self.dynamic_all, Source.DYNAMIC_DEFAULT_BROKER),
            (self.static_broker.get(broker_id, {}), Source.STATIC_BROKER),
            (self.static_all, Source.STATIC_BROKER),
            (self._profile, Source.STATIC_BROKER),
        )
        set_values = [(layer[name], source) for layer, source in layers if name in layer]
        return [*set_values, (self.dynamic_setting(name).default, Source.DEFAULT)]

    def is_given(self, broker_id: int, name: str) -> bool:
        """Return whether the setting has a value in any layer other than Kafka's defaults."""
        return len(self.layers(broker_id, name)) > 1

    def get(self, broker_id: int, name: str) -> Any:
        """Return the current typed value of a broker setting, from the first of these layers that contains it.

        The layers are: set at run time for this broker, set at run time for all brokers, given at start for this broker, given at start for all
        brokers, set by the profile, Kafka's default. There are two exceptions. A setting with `only_dynamic` ignores values given at start. A time in
        milliseconds that is not set has the value of the equivalent setting in minutes or hours.
        """
        own = self.dynamic_broker.get(broker_id)
        if own is not None and name in own:
            return own[name]
        if name in self.dynamic_all:
            return self.dynamic_all[name]
        setting = self.definitions.broker.get(name) or self.broker_setting(name)
        if setting.only_dynamic:
            return setting.default
        at_start = self.static_broker.get(broker_id)
        if at_start is not None and name in at_start:
            return at_start[name]
        if name in self.static_all:
            return self.static_all[name]
        if name in self._profile:
            return self._profile[name]
        return self._fallback(broker_id, setting) if setting.default is None else setting.default

    def _fallback(self, broker_id: int, setting: Setting) -> Any:
        """Return the value in ms of a time setting such as `log.retention.ms` that is not set.

        The value is converted from the equivalent setting in minutes or hours. Returns None if there is no such equivalent setting.
        """
        if not setting.name.endswith(".ms"):
            return None
        for name in setting.fallbacks:
            value, source = self.layers(broker_id, name)[0]
            if value is not None and (source != Source.DEFAULT or name == setting.fallbacks[-1]):
                return value * unit_ms(name) if value >= 0 else value
        return None

    def topic_value(self, broker_id: int, overrides: Mapping[str, str], name: str) -> Any:
        """Return the typed value of a topic setting: the value in `overrides`, otherwise the value of the broker's equivalent setting.

        overrides: the settings that the topic sets itself, as text. The result is the default if the emulated Kafka release does not have the
        setting, or if the topic does not set it and there is no equivalent broker setting.
        """
        setting = self.definitions.topic.get(name)
        if setting is None:
            return self.definitions.of_other_release.topic[name].default  # this release does not have the setting
        if name in overrides:
            return value_of(setting.kind, java_trim(overrides[name]))  # checked when it was set
        broker_name = self.definitions.broker_name_of_topic.get(name)
        if broker_name is None:
            return setting.default
        value = self.get(broker_id, broker_name)
        return max(value, UNLIMITED) if name == "retention.ms" else value  # a broker accepts any negative number

    def set_group(self, group_id: str, settings: Mapping[str, str]) -> None:
        """Replace the settings of a group. An empty mapping removes all of them."""
        if settings:
            self.groups[group_id] = dict(settings)
        elif self.groups.pop(group_id, None) is not None:
            self.group_removals += 1
            self.emptied_groups[group_id] = self.group_removals

    def set_client_metrics(self, name: str, settings: Mapping[str, str]) -> None:
        """Replace the settings of a subscription to client metrics. An empty mapping removes the subscription.

        Before Kafka 4.0, settings with an empty item in `match` are stored, but the brokers keep applying the previous settings.
        """
        patterns = java_items(settings["match"]) if "match" in settings else []
        _put_or_remove(self.client_metrics, name, settings)
        if "" not in patterns or is_release_4(self.release):
            if self.applied_client_metrics.get(name, {}) != settings:
                self.client_metrics_version += 1
            _put_or_remove(self.applied_client_metrics, name, settings)

    def group_value(self, broker_id: int, overrides: Mapping[str, str], name: str) -> Any:
        """Return the typed value of a group setting: the group's own value in `overrides`, else the broker's `group.<name>`, else the default."""
        setting = self.definitions.group[name]
        if name in overrides:
            return value_of(setting.kind, java_trim(overrides[name]))
        of_broker = f"group.{name}"
        return self.get(broker_id, of_broker) if of_broker in self.definitions.broker else setting.default

    def names_with_values(self, broker_id: int) -> set[str]:
        """Return the names of all settings that have a value for one broker in a layer other than the defaults."""
        of_broker = (self.dynamic_broker.get(broker_id, {}), self.static_broker.get(broker_id, {}))
        return {*self.dynamic_all, *self.static_all, *self._profile}.union(*of_broker)

    def check_overrides(self, broker_id: int) -> None:
        """Raise ConfigError if `max.connections.per.ip.overrides` of one broker, or of all brokers (ALL_BROKERS), cannot be parsed."""
        connection_overrides(self.get(broker_id, "max.connections.per.ip.overrides"))

    def for_broker(self, broker_id: int) -> BrokerConfig:
        return BrokerConfig(self, broker_id)


class BrokerConfig:
    """One broker's settings: `config["fetch.max.bytes"]` is the current typed value."""

    __slots__ = ("broker_id", "cluster")

    def __init__(self, cluster: ClusterConfig, broker_id: int) -> None:
        self.cluster = cluster
        self.broker_id = broker_id

    def __getitem__(self, name: str) -> Any:
        return self.cluster.get(self.broker_id, name)

    def is_given(self, name: str) -> bool:
        """Return whether the setting has a value in any layer other than the defaults, even if it equals the default."""
        return self.cluster.is_given(self.broker_id, name)

    def of_listener(self, listener: str, name: str) -> Any:
        """Return the value of setting `name` for one listener: the value set for that listener, otherwise the value of the broker.

        listener: the name of the listener, such as "INTERNAL".
        """
        own = f"listener.name.{listener.lower()}.{name}"
        value, source = self.cluster.layers(self.broker_id, own)[0]
        return self[name] if source == Source.DEFAULT else value

    def topic(self, overrides: Mapping[str, str], name: str) -> Any:
        return self.cluster.topic_value(self.broker_id, overrides, name)


def _put_or_remove(layer: dict[str, dict[str, str]], name: str, settings: Mapping[str, str]) -> None:
    """Store `settings` in the dict `layer` under the key `name`. If `settings` is empty, remove this key instead."""
    if settings:
        layer[name] = dict(settings)
    else:
        layer.pop(name, None)
