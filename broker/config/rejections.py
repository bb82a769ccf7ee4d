"""Kafka's error messages for invalid settings of topics and groups, in responses to CreateTopics, AlterConfigs and IncrementalAlterConfigs.

Follows `LogConfig.validate` and the validators of `ConfigDef`. This module is imported when the first setting is rejected. The module `values` has
other messages, for invalid settings on the command line and in the test API.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkaproto.broker.config.cluster_config import ALL_BROKERS, ClusterConfig
from kafkaproto.broker.config.definitions import Setting
from kafkaproto.broker.config.java_text import java_items, java_trim
from kafkaproto.broker.config.values import ConfigError, as_text, parse
from kafkaproto.hash_order import hash_order, scala_order, scala_table_order
from kafkaproto.partitioner import java_hash_bits

SMALL_SET = 4
_OFFSET_RESET = "share.auto.offset.reset"
_LAGS = ("min.compaction.lag.ms", "max.compaction.lag.ms")


def topic_rejection(config: ClusterConfig, overrides: Mapping[str, str], error: ConfigError) -> str:
    """Return the message with which Kafka rejects the settings of a topic. Kafka checks first the names, then the values, then contradictions.

    overrides: the settings of the topic itself. error: the error with which this broker rejected them. If Kafka would accept the settings, the result
    is the message of `error`.
    """
    definitions = config.definitions.topic
    for name in hash_order(overrides):
        if name not in definitions:
            return f"Unknown topic config name: {name}"
    for name in sorted(overrides, key=lambda name: definitions[name].place):
        try:
            parse(definitions[name]._replace(refusal=None), overrides[name], config.strict_kip)
        except ConfigError:
            return rejection(definitions[name], overrides[name])
    least_ms, most_ms = (config.topic_value(ALL_BROKERS, overrides, name) for name in _LAGS)
    if least_ms > most_ms:
        return f"conflict topic config setting {_LAGS[0]} ({least_ms}) > {_LAGS[1]} ({most_ms})"
    if java_trim(overrides.get("remote.storage.enable", "")).lower() == "true":
        return "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
    return str(error)


def rejection(setting: Setting, text: str) -> str:
    """Return the message with which Kafka's `ConfigDef` rejects an invalid value of a setting."""
    if setting.kind == "list" and setting.not_empty and not java_trim(text):
        valid = f"[{', '.join(setting.values)}]" if setting.values else "any non-empty value"
        return f"Configuration '{setting.name}' must not be empty. Valid values include: {valid}"
    if setting.distinct and _has_empty_item_first(setting, text):
        return f"Configuration '{setting.name}' values must not be empty."
    value, reason = _reason(setting, text)
    return f"Invalid value {value} for configuration {setting.name}: {reason}"


def _has_empty_item_first(setting: Setting, text: str) -> bool:
    """Return whether the first invalid item of the list `text` is empty. The result is False for empty text, which is a list without items."""
    items = java_items(text) if java_trim(text) else []
    first = next((item for item in items if not item or (setting.values and item not in setting.values)), None)
    return first == ""


def _reason(setting: Setting, text: str) -> tuple[str, str]:
    """Return (value, reason) for Kafka's message "Invalid value <value> for configuration <name>: <reason>".

    text: the rejected value. The returned value may differ from `text`: for a list, for example, it may be the first item that is not allowed.
    """
    if setting.name == _OFFSET_RESET:
        forms = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        return text, f"Invalid value `{text}` for configuration {setting.name}. {forms}"
    if setting.kind == "boolean":
        return text, "Expected value to be either true or false"
    if setting.versions:
        return text, f"Version {text} is not a valid version"
    if setting.items is not None:
        form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        replicas = ", ".join(java_items(text))
        return (
            f"[{replicas}]",
            f"{setting.name} must be the literal '*' or a list of replicas in the following format: {form}",
        )
    if setting.values:
        items = java_items(text) if setting.kind == "list" else [text]
        invalid_item = next((item for item in items if item not in setting.values), text)
        return invalid_item, f"String must be one of: {', '.join(setting.values)}"
    try:
        value = parse(setting._replace(low=None, high=None, special=None), text)
    except ConfigError:
        return text, f"Not a number of type {setting.kind.upper()}"
    return as_text(value) or "", _bounds(setting, value)


def _bounds(setting: Setting, value: float) -> str:
    """Return the text that says why `value` is outside the bounds of a setting, such as "Value must be at least 1"."""
    low, high = (None if bound is None else int(bound) for bound in (setting.low, setting.high))
    if setting.special is not None:
        return f"Value must be between {low} and {high} or equal to {setting.special}"
    if low is not None and value < low:
        return f"Value must be at least {low}"
    return f"Value must be no more than {high}"


def thread_count_rejection(name: str, current: int, count: int) -> str:
    """Return the message with which Kafka rejects a new number of threads: one change at most doubles or halves it.

    name: the setting. current, count: the present and the new number of threads.
    """
    grows = count > current
    if name == "log.cleaner.threads":
        change = "increased to more than double" if grows else "reduced to less than half"
        reason = f"Log cleaner threads cannot be {change} the current value {current}"
    else:
        limit = "value should not be greater than double" if grows else "value should be at least half"
        reason = (
            f"Dynamic thread count update validation failed for {name}={count}, {limit} the current value {current}"
        )
    return dynamic_rejection(reason)


def reporters_rejection(names: Iterable[str]) -> str:
    """Return the message with which Kafka rejects a change of `metric.reporters` that names a class that it cannot load.

    names: all settings of the broker that the request changes. The message contains them in the order of a mutable hash table of Scala.
    """
    changed = ", ".join(scala_table_order(names, java_hash_bits))
    reason = f"Validation of dynamic config update of Set({changed}) failed with class class kafka.server.DynamicMetricsReporters"
    return dynamic_rejection(reason)


def dynamic_rejection(reason: str) -> str:
    """Return Kafka's message for dynamic settings that a part of the broker, such as a thread pool, rejects. reason: the message of that part."""
    exception = "org.apache.kafka.common.config.ConfigException"
    return f"Invalid value {exception}: {reason} for configuration Invalid dynamic configuration"


def scala_set(names: list[str], kind: str) -> str:
    """Format names as Scala writes an immutable set: a class name, and the names in parentheses, such as "Set(a, b)".

    Up to four names have the class name `kind`, and are in the order of the Java hash table from which Kafka copies them. Five or more names have the
    class name "HashSet" and the order of Scala's own hash table.
    """
    is_small = len(names) <= SMALL_SET
    in_order = hash_order(names) if is_small else scala_order(names)
    return f"{kind if is_small else 'HashSet'}({', '.join(in_order)})"
