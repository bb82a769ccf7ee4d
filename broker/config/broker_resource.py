"""The dynamic settings of one broker or of all brokers as a config resource, and the checks of their changes.

Follows `DynamicBrokerConfig.validate` in Kafka, also in the order of the checks (CF-19). This module does not depend on wire messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Protocol

from kafkaproto.broker.config.cluster_config import ALL_BROKERS, MIN_INSYNC_REPLICAS, ClusterConfig, ConfigOwner
from kafkaproto.broker.config.definitions import Setting, text_or_list
from kafkaproto.broker.config.effects import FIXED_AT_START, THREAD_COUNTS
from kafkaproto.broker.config.group_config import check_value
from kafkaproto.broker.config.java_text import java_items, java_trim
from kafkaproto.broker.config.listeners import parse_endpoints
from kafkaproto.broker.config.requirements import BY_ZERO, local_retention_rejection, unmet_requirement
from kafkaproto.broker.config.values import LISTENER_PREFIX, ConfigError, as_text
from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode

_KEY_STORE = re.compile(r"ssl\.(keystore\.|truststore\.|key\.password)")
"""Matches the names of settings that Kafka changes at run time for a single listener only (`SslConfigs.RECONFIGURABLE_CONFIGS`)."""
_CONNECTION_LIMITS = ("max.connections", "max.connection.creation.rate")
_NETWORK_THREADS = "num.network.threads"
_LISTENER_SETTINGS_OF_ALL = (*_CONNECTION_LIMITS, _NETWORK_THREADS)
"""Listener settings that can be changed at run time for all brokers together (`DynamicBrokerConfig.ClusterLevelListenerConfigs`)."""
_REPORTERS, _JMX_REPORTER = "metric.reporters", "org.apache.kafka.common.metrics.JmxReporter"
_ADVERTISED, _PROTOCOLS = "advertised.listeners", "listener.security.protocol.map"


class RegisteredBroker(Protocol):
    """Interface of a broker in the metadata. listeners: maps listener names to the advertised (host, port)."""

    @property
    def listeners(self) -> Mapping[str, tuple[str, int]]: ...


class BrokersImage(Protocol):
    """Interface of a cluster's metadata, with the brokers of the cluster by id."""

    @property
    def brokers(self) -> Mapping[int, RegisteredBroker]: ...


class BrokersController(Protocol):
    """Interface of the controller, with the attributes and methods that `BrokerResource` uses to change broker settings."""

    @property
    def image(self) -> BrokersImage: ...

    def forget_eligible(self) -> None:
        """Clear the lists of eligible leader replicas (KIP-966) of all partitions."""


class ConfiguredBrokers(Protocol):
    """Interface of a cluster, with the attributes and methods that `BrokerResource` uses to change broker settings."""

    @property
    def config(self) -> ClusterConfig: ...

    @property
    def controller(self) -> BrokersController: ...

    def remember_config(self, owner: ConfigOwner, layer: Mapping[str, str]) -> None:
        """Persist new settings before they take effect. Raises KafkaError KAFKA_STORAGE_ERROR (56) if that fails.

        owner: a broker id, -1 for all brokers, a group id, or the name of a client metrics subscription. layer: all settings, as text, that are set
        on the owner itself after the change.
        """

    def setting_changed(self) -> None:
        """Notify the components that keep a copy of a broker setting, because a setting has changed."""


class BrokerResource:
    """The dynamic settings of one broker, or of all brokers (ALL_BROKERS), whose changes are validated in Kafka's order.

    checked_id: the id of the broker that received the request, None for the lowest id. A change for all brokers is checked against the current values
    of this broker.
    """

    bad_value = ErrorCode.INVALID_REQUEST

    def __init__(self, cluster: ConfiguredBrokers, broker_id: int, checked_id: int | None = None) -> None:
        self._cluster = cluster
        self._broker_id = broker_id
        if checked_id is None:
            checked_id = min(cluster.controller.image.brokers)
        self._checked_id = checked_id if broker_id == ALL_BROKERS else broker_id
        self._changed: set[str] = set()

    @property
    def current_settings(self) -> Mapping[str, str]:
        return self._cluster.config.dynamic_texts(self._broker_id)

    def setting(self, name: str) -> Setting:
        """Return a definition of the setting `name` that accepts any text: `check` validates all settings of the broker together, as Kafka does."""
        self._changed.add(name)
        definition = self._cluster.config.dynamic_setting(name)
        return definition if definition.foreign else text_or_list(name, definition)

    def check_deletion(self, name: str) -> None:
        """Accept the deletion of the setting `name` for now: `check` rejects it if it is invalid."""
        self._changed.add(name)

    def check(self, own: Mapping[str, str]) -> None:
        """Raise ConfigError or KafkaError for the first check that fails.

        own: all settings that are set on this resource after the change. The checks, in Kafka's order:

        A. No setting is read-only.
        B. The name of each setting for a key store or trust store begins with the prefix of a listener.
        C. Each value is valid.
        D. A change for all brokers contains no setting that can be set only for a single broker.
        E. No two settings contradict each other.
        F. The parts of the broker, such as listeners and thread pools, accept the values.
        G. `min.insync.replicas` does not change in a way that Kafka forbids while eligible leader replicas are enabled.
        """
        config, before = self._cluster.config, self.current_settings
        settings = {name: config.dynamic_setting(name) for name in own}
        _reject("Cannot update these configs dynamically", (n for n, s in settings.items() if _is_read_only(s)))
        key_stores = [name for name in settings if _KEY_STORE.match(name)]
        _reject(
            "These security configs can be dynamically updated only per-listener using the listener prefix",
            key_stores,
            kind="HashSet",
        )
        for name, setting in sorted(settings.items(), key=lambda item: item[1].place):
            # Kafka names the setting without the prefix of a listener.
            base = setting.fallbacks[0] if name.startswith(LISTENER_PREFIX) and setting.fallbacks else name
            check_value(setting._replace(name=base), own[name], config.strict_kip)
        if self._broker_id == ALL_BROKERS:
            _reject(
                "Cannot update these configs at default cluster level, broker id must be specified",
                (name for name, setting in settings.items() if _is_of_one_broker(setting)),
            )
        threads, limits, texts = self._thread_counts(), self._limits_of_listeners(), self._set_values()
        new_endpoints = [
            n for n in own if n in FIXED_AT_START and own[n] != before.get(n) and not self._is_current(n, own[n])
        ]
        config.set_dynamic(self._broker_id, own)
        try:
            self._check_together(threads, limits, texts)
        finally:
            config.set_dynamic(self._broker_id, before)
        for name in new_endpoints:
            raise ConfigError(_endpoints_rejection(name, own[name]))
        if config.has_eligible_leader_replicas and MIN_INSYNC_REPLICAS in self._changed:
            self._check_min_insync_replicas(own)

    def _check_together(
        self, threads: Mapping[str, int], limits: Mapping[str, Mapping[str, int]], texts: Mapping[str, str]
    ) -> None:
        """Raise ConfigError if new values of the broker's settings contradict each other, or if Kafka forbids a change from the previous value.

        The new values are already in the cluster's settings. threads, limits, texts: the previous values, as `_thread_counts`,
        `_limits_of_listeners` and `_set_values` returned them before the change.
        """
        config = self._cluster.config

        def get(name: str) -> object:
            return config.get(self._checked_id, name)

        config.check_overrides(self._broker_id)
        unmet = unmet_requirement(get, config.release)
        if unmet is not None:
            raise ConfigError(unmet if unmet == BY_ZERO else f"requirement failed: {unmet}")
        for listener, changed in self._limits_of_listeners().items():
            _check_listener(limits[listener], changed)
        _check_reporters(texts, self._set_values())
        for name, count in self._thread_counts().items():
            _check_threads(name, threads[name], count)
        reason = local_retention_rejection(get)
        if reason is not None:
            from kafkaproto.broker.config.rejections import dynamic_rejection

            raise ConfigError(dynamic_rejection(reason))

    def _check_min_insync_replicas(self, own: Mapping[str, str]) -> None:
        """Reject a change of `min.insync.replicas` on a single broker, and the deletion of its value for all brokers.

        Call it only if a request sets or deletes this setting while eligible leader replicas are enabled. own: all settings that are set on this
        resource after the change. Raises KafkaError INVALID_CONFIG (40).
        """
        if self._broker_id != ALL_BROKERS:
            message = f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled."
            raise KafkaError(ErrorCode.INVALID_CONFIG, message)
        if MIN_INSYNC_REPLICAS not in own:
            message = f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled."
            raise KafkaError(ErrorCode.INVALID_CONFIG, message)

    def _is_current(self, name: str, text: str) -> bool:
        """Return whether the listener setting `name`, such as `advertised.listeners`, already has the value `text`.

        If the setting has no value, `text` is compared with the addresses that the broker advertises.
        """
        config = self._cluster.config
        current_text = as_text(config.get(self._broker_id, name)) if config.is_given(self._broker_id, name) else None
        if name == _PROTOCOLS or text == current_text:
            return text == (current_text or as_text(config.get(self._broker_id, name)))
        try:
            addresses = parse_endpoints(name, text)
        except ConfigError:
            return False
        if current_text:
            return addresses == parse_endpoints(name, current_text)
        return addresses == self._cluster.controller.image.brokers[self._broker_id].listeners

    def _limits_of_listeners(self) -> dict[str, dict[str, int]]:
        """Return {listener: {setting: value}} for the limits of connections and the numbers of threads, which Kafka checks for each listener."""
        config = self._cluster.config.for_broker(self._checked_id)
        listeners = self._cluster.controller.image.brokers[self._checked_id].listeners
        return {
            listener: {name: config.of_listener(listener, name) for name in _LISTENER_SETTINGS_OF_ALL}
            for listener in listeners
        }

    def _set_values(self) -> dict[str, str]:
        """Return all values, as text, that were set for the checked broker at start or at run time."""
        config = self._cluster.config
        return {
            **config.static_texts(self._checked_id),
            **config.dynamic_texts(ALL_BROKERS),
            **config.dynamic_texts(self._checked_id),
        }

    def _thread_counts(self) -> dict[str, int]:
        """Return the names and current values of the settings for numbers of threads that are dynamic in the emulated Kafka release."""
        config = self._cluster.config
        definitions = config.definitions.broker
        return {
            name: config.get(self._checked_id, name)
            for name in THREAD_COUNTS
            if name in definitions and definitions[name].dynamic and definitions[name].default is not None
        }

    def store(self, own: Mapping[str, str]) -> None:
        before = self.current_settings.get(MIN_INSYNC_REPLICAS)
        self._cluster.remember_config(self._broker_id, own)
        self._cluster.config.set_dynamic(self._broker_id, own)
        if self._broker_id == ALL_BROKERS and own.get(MIN_INSYNC_REPLICAS) != before:
            self._cluster.controller.forget_eligible()
        self._cluster.setting_changed()


def _is_read_only(setting: Setting) -> bool:
    return not setting.foreign and not setting.dynamic and not setting.name.startswith(LISTENER_PREFIX)


def _is_of_one_broker(setting: Setting) -> bool:
    """Return whether a dynamic setting can be changed for single brokers only."""
    if setting.name.startswith(LISTENER_PREFIX):
        return not setting.fallbacks or setting.fallbacks[0] not in _LISTENER_SETTINGS_OF_ALL
    return setting.mode == "b" and not setting.foreign


def _reject(reason: str, names: Iterable[str], kind: str = "Set") -> None:
    """Raise ConfigError for the settings `names`, with Kafka's text `reason`. Does nothing if there are no names.

    The message contains the names as Scala writes a set, such as "Set(a, b)". kind: the word before the parenthesis, "Set" or "HashSet", for up to
    four names. For more names, this word is always "HashSet".
    """
    rejected_names = list(names)
    if rejected_names:
        from kafkaproto.broker.config.rejections import scala_set

        raise ConfigError(f"{reason}: {scala_set(rejected_names, kind)}")


def _endpoints_rejection(name: str, text: str) -> str:
    """Return the error message that rejects `text` as the new value of the listener setting `name`.

    For `advertised.listeners` it is Kafka's message. For the other listener settings it is this broker's own message.
    """
    if name == _ADVERTISED:
        from kafkaproto.broker.config.rejections import dynamic_rejection

        return dynamic_rejection("Advertised listeners cannot be altered when using a Raft-based metadata quorum.")
    return f'{name} must keep its present value while the broker runs (got "{text}"); set it when the broker starts'


def _check_listener(before: Mapping[str, int], after: Mapping[str, int]) -> None:
    """Raise ConfigError if a listener rejects its new limits of connections or its new number of threads.

    before, after: map the settings of the listener to their values before and after the change. The limits are max.connections and
    max.connection.creation.rate. If at least one limit changes, both must differ from 0 after the change.
    """
    if any(before[name] != after[name] for name in _CONNECTION_LIMITS):
        for name in _CONNECTION_LIMITS:
            if after[name] == 0:
                from kafkaproto.broker.config.rejections import dynamic_rejection

                raise ConfigError(dynamic_rejection(f"Invalid {name} {after[name]}"))
    _check_threads(_NETWORK_THREADS, before[_NETWORK_THREADS], after[_NETWORK_THREADS])


def _check_reporters(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Raise ConfigError if a change adds a class to `metric.reporters` that Kafka cannot load.

    Kafka can load `JmxReporter`, the only class for this setting that is a part of Kafka. Classes that were in the setting before are accepted.
    before, after: map the settings of the broker to their text before and after the change.
    """
    text = after.get(_REPORTERS, "")
    if text == before.get(_REPORTERS) or not java_trim(text):
        return
    loaded = {_JMX_REPORTER, *java_items(before.get(_REPORTERS, _JMX_REPORTER))}
    if not loaded.issuperset(java_items(text)):
        from kafkaproto.broker.config.rejections import reporters_rejection

        raise ConfigError(reporters_rejection(name for name in after if after[name] != before.get(name)))


def _check_threads(name: str, current: int, count: int) -> None:
    """Raise ConfigError if the new number of threads, `count`, is more than twice the `current` number or less than half of it.

    name: the setting that contains the number, for the error.
    """
    lowest, highest = max(1, current // 2), current * 2
    if count != current and not lowest <= count <= highest:
        from kafkaproto.broker.config.rejections import thread_count_rejection

        raise ConfigError(thread_count_rejection(name, current, count))
