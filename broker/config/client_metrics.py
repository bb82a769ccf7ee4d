"""Subscriptions to client metrics: the config resource of type 16 (KIP-714).

From Kafka 4.0 on, the settings are parsed as lists and numbers, and DescribeConfigs returns their defaults. In earlier releases they are plain text.
Follows Kafka's `ClientMetricsConfigs`. This module does not depend on wire messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from kafkaproto.broker.config.cluster_config import ClusterConfig, ConfigOwner, SubscriptionName
from kafkaproto.broker.config.definitions import Setting
from kafkaproto.broker.config.java_text import java_items, java_split, java_trim
from kafkaproto.broker.config.release import is_release_4
from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode

INTERVAL, MATCH, METRICS = "interval.ms", "match", "metrics"
KINDS = {INTERVAL: "int", MATCH: "list", METRICS: "list"}
DEFAULT_INTERVAL_MS, SHORTEST_MS, LONGEST_MS = 300_000, 100, 3_600_000
PARAMETERS = (
    *("client_instance_id", "client_id", "client_software_name"),
    *("client_software_version", "client_source_address", "client_source_port"),
)
"""The attributes of a client that the setting `match` of a subscription to client metrics can test."""


class Subscription(NamedTuple):
    """A parsed subscription to client metrics.

    metrics: prefixes of metric names; a client sends the metrics whose names begin with one of them. interval_ms: the time between two pushes of a
    client. patterns: maps an attribute of a client, such as `client_id`, to the regular expression that the whole attribute must match.
    """

    metrics: tuple[str, ...]
    interval_ms: int
    patterns: Mapping[str, re.Pattern[str]]


class SubscriptionSetting(NamedTuple):
    """A setting of a client metrics subscription, as DescribeConfigs describes it.

    value: the value as text. kind: the type of the setting, such as "list"; None before Kafka 4.0. is_set: False if the value is the default.
    """

    name: str
    value: str
    kind: str | None
    is_set: bool


class Configured(Protocol):
    """Interface of a cluster, with the attributes and methods that `SubscriptionResource` and `GroupResource` use to change settings."""

    @property
    def config(self) -> ClusterConfig: ...

    def remember_config(self, owner: ConfigOwner, layer: Mapping[str, str]) -> None:
        """Persist settings before they take effect. Raises KafkaError KAFKA_STORAGE_ERROR (56) if that fails.

        owner: a group id, or the name of a client metrics subscription. layer: all settings, as text, that are set on the owner after the change.
        """


class SubscriptionResource:
    """The settings of one subscription to client metrics. A subscription exists as long as it has settings."""

    bad_value = ErrorCode.INVALID_CONFIG

    def __init__(self, cluster: Configured, name: str) -> None:
        self._cluster = cluster
        self._name = name

    @property
    def current_settings(self) -> Mapping[str, str]:
        return self._cluster.config.client_metrics.get(self._name, {})

    def setting(self, name: str) -> Setting:
        """Return a definition of the setting `name` that accepts any text: `check` validates all settings together, as Kafka does.

        The definition has the type string, even if the setting is a list. So the operations APPEND and SUBTRACT, which require the type list, are
        rejected for every setting.
        """
        return Setting(name, "string")

    def check_deletion(self, name: str) -> None:
        """Accept the deletion of any setting `name`, even of one that does not exist."""

    def check(self, own: Mapping[str, str]) -> None:
        """Raise KafkaError if the name of the subscription is empty, or if the settings `own` are invalid.

        own: all settings of the subscription after the change. As in Kafka, call this only after the operations of the request were checked.
        """
        if not self._name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
        parsed(own, self._cluster.config.release)

    def store(self, own: Mapping[str, str]) -> None:
        self._cluster.remember_config(SubscriptionName(self._name), own)
        self._cluster.config.set_client_metrics(self._name, own)


def parsed(own: Mapping[str, str], release: str) -> Subscription:
    """Parse the settings of a subscription to client metrics for a Kafka release.

    own: maps the names of settings to their text. Raises KafkaError:

    - INVALID_REQUEST (42) for an unknown setting and for an interval outside its limits;
    - INVALID_CONFIG (40) for another invalid value;
    - UNKNOWN_SERVER_ERROR (-1) in releases before 4.0 for an interval that is not a number.
    """
    for name in own:
        if name not in KINDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    is_typed = is_release_4(release)
    items_by_name = {name: _items(name, own[name], is_typed) for name in (METRICS, MATCH) if name in own}
    interval_ms = _interval_ms(own[INTERVAL], is_typed) if INTERVAL in own else DEFAULT_INTERVAL_MS
    patterns = dict(_pattern(text) for text in items_by_name.get(MATCH, ()))
    return Subscription(items_by_name.get(METRICS, ()), interval_ms, patterns)


def subscription_settings(config: ClusterConfig, name: str) -> Iterator[SubscriptionSetting]:
    """Describe the settings of the subscription to client metrics that is called `name`.

    Before Kafka 4.0, only the settings that are set on this subscription are described, as text without types. From 4.0 on, every setting that a
    subscription can have is described, with its default if it is not set.
    """
    own = config.client_metrics.get(name, {})
    if not is_release_4(config.release):
        for key in sorted(own):
            yield SubscriptionSetting(key, own[key], None, is_set=True)
        return
    subscription = parsed(own, config.release)
    items = {METRICS: subscription.metrics, MATCH: _items(MATCH, own.get(MATCH, ""), is_typed=True)}
    for key, kind in KINDS.items():
        value = ",".join(items[key]) if key in items else str(subscription.interval_ms)
        yield SubscriptionSetting(key, value, kind, is_set=key in own)


def _items(name: str, text: str, is_typed: bool) -> tuple[str, ...]:
    """Split the value `text` of the list setting `name` into its items.

    Blank text is an empty list. From Kafka 4.0 on (`is_typed`), repeated items are removed, and an empty item raises KafkaError INVALID_CONFIG (40).
    Before 4.0, empty and repeated items are kept; but `match` is split as Kafka's controller splits it to check the patterns: empty text is a list
    with one empty item, and empty items at the end are removed.
    """
    if not is_typed and name == MATCH:
        return tuple(java_split(text))
    items = tuple(java_items(text)) if java_trim(text) else ()
    if not is_typed:
        return items
    if "" in items:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Configuration '{name}' values must not be empty.")
    return tuple(dict.fromkeys(items))


def _interval_ms(text: str, is_typed: bool) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", java_trim(text) if is_typed else text):
        if not is_typed:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # an exception of Kafka's parser
        message = f"Invalid value {java_trim(text)} for configuration {INTERVAL}: Not a number of type INT"
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)
    interval_ms = int(java_trim(text))
    if not SHORTEST_MS <= interval_ms <= LONGEST_MS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for {INTERVAL}, interval must be between 100 and 3600000 (1 hour)",
        )
    return interval_ms


def _pattern(text: str) -> tuple[str, re.Pattern[str]]:
    """Return (attribute, compiled pattern) of an item of the setting `match`, such as `client_id=a.*`.

    The pattern is a regular expression in Python's syntax; Kafka uses Java's syntax.
    """
    name, _, value = text.rstrip("=").partition("=")
    illegal = KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {text}")
    if java_trim(name) not in PARAMETERS or not value or "=" in value:
        raise illegal
    try:
        return java_trim(name), re.compile(java_trim(value))
    except re.error:
        raise illegal from None
