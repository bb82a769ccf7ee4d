"""Descriptions of settings for DescribeConfigs and CreateTopics: the current value, its source, and the values in other layers.

Follows `ConfigHelper` and `DynamicBrokerConfig.brokerConfigSynonyms` in Kafka. This module does not depend on wire messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import NamedTuple

from kafkaproto.broker.config.cluster_config import ALL_BROKERS, ClusterConfig, Source
from kafkaproto.broker.config.definitions import Setting
from kafkaproto.broker.config.java_text import java_items
from kafkaproto.broker.config.values import LISTENER_PREFIX, as_text, parse

OWN_ID = ("node.id", "broker.id")
ROLES = "process.roles"
MESSAGE_FORMAT_VERSION = "message.format.version"


class Synonym(NamedTuple):
    """The value of a setting in one layer, such as the dynamic settings of a broker or Kafka's defaults.

    name: the described setting, or the setting that Kafka uses if the described setting is not set, such as `log.retention.hours` for
    `log.retention.ms`. value: the value as text; None if there is no value or it is not shown. source: the layer.
    """

    name: str
    value: str | None
    source: Source


class Described(NamedTuple):
    """The description of one setting of a topic, broker or group in DescribeConfigs.

    value: the value as text; None if the setting is sensitive or not set. source: the layer of the value, such as Kafka's defaults. synonyms: the
    values that the setting has in different layers, beginning with the value in effect. kind: the type of the setting; None if Kafka does not know
    the setting.
    """

    name: str
    value: str | None
    source: Source
    synonyms: tuple[Synonym, ...]
    kind: str | None
    read_only: bool
    sensitive: bool


def broker_descriptions(config: ClusterConfig, broker_id: int, in_use: Mapping[str, str]) -> Iterator[Described]:
    """Describe the settings of one broker.

    in_use: maps settings that were not given at start to the values, as text, that the broker uses. They are described as if they had been given:
    a Kafka broker is always started with these settings, for example with `listeners`.

    Three kinds of settings are included only if they are set: those that Kafka marks as internal, those that cannot be given at start
    (`only_dynamic`), and those that the emulated release does not know.
    """
    names_with_values = config.names_with_values(broker_id)
    at_start = {**in_use, **_texts_at_start(config, broker_id)}
    for name, setting in config.definitions.broker.items():
        only_if_given = setting.internal or setting.only_dynamic or setting.foreign
        if not setting.hidden and (name in names_with_values or not only_if_given):
            yield _broker_description(config, broker_id, name, setting, at_start)
    for name in sorted(names_with_values - config.definitions.broker.keys()):
        yield _broker_description(config, broker_id, name, config.dynamic_setting(name), at_start)


def cluster_descriptions(config: ClusterConfig) -> Iterator[Described]:
    """Describe the dynamic settings that are set for all brokers, with unparsed values."""
    for name, text in config.dynamic_texts(ALL_BROKERS).items():
        setting = config.dynamic_setting(name)
        if not setting.hidden:
            value = None if setting.sensitive else text
            synonyms = (Synonym(name, value, Source.DYNAMIC_DEFAULT_BROKER),)
            kind = None if setting.foreign else setting.kind
            read_only = _is_read_only(setting)
            yield Described(name, value, Source.DYNAMIC_DEFAULT_BROKER, synonyms, kind, read_only, setting.sensitive)


def _texts_at_start(config: ClusterConfig, broker_id: int) -> dict[str, str]:
    """Return the settings that a broker got at start, as text. Broker id and roles are always included: no Kafka broker starts without them."""
    texts = {ROLES: "broker,controller"} | config.static_texts(broker_id)
    return texts | dict.fromkeys(OWN_ID, str(broker_id))


def _broker_description(
    config: ClusterConfig, broker_id: int, name: str, setting: Setting, at_start: Mapping[str, str]
) -> Described:
    synonyms = _broker_synonyms(config, broker_id, (name, *setting.fallbacks), at_start)
    source = synonyms[0].source if synonyms else Source.DEFAULT
    if setting.sensitive:
        synonyms = tuple(s._replace(value=None) for s in synonyms)
        value = None
    elif source == Source.STATIC_BROKER and _is_replaced(config, broker_id, name):
        value = setting.default_text
    else:
        value = as_kafka_writes(setting, synonyms[0].value) if synonyms else None
    kind = None if setting.foreign else setting.kind
    return Described(name, value, source, synonyms, kind, _is_read_only(setting), setting.sensitive)


def _is_read_only(setting: Setting) -> bool:
    """Return whether DescribeConfigs reports a setting as read-only.

    As in Kafka, the result is True for replication quotas and listener settings, although these can be changed at run time.
    """
    return setting.only_dynamic or not setting.dynamic or setting.name.startswith(LISTENER_PREFIX)


def _is_replaced(config: ClusterConfig, broker_id: int, name: str) -> bool:
    """Return whether a setting in minutes or hours has no effect because the same time is set in ms at run time (`overrideProps`)."""
    finer = config.definitions.finer.get(name)
    return finer is not None and (finer in config.dynamic_all or finer in config.dynamic_broker.get(broker_id, {}))


def _broker_synonyms(
    config: ClusterConfig, broker_id: int, names: Sequence[str], at_start: Mapping[str, str]
) -> tuple[Synonym, ...]:
    """Return the synonyms that DescribeConfigs lists for a setting: the values of the setting and of its fallbacks in all layers.

    names: the setting, followed by its fallbacks in look-up order, such as `log.retention.ms`, `log.retention.minutes`. at_start: the settings given
    at start, as text. The result is ordered by layer (set at run time, given at start, default), and within a layer like `names`. As in Kafka's
    `ConfigHelper.configSynonyms`, values of fallbacks before the first value of the setting itself are omitted. The result is empty if the setting
    itself has no value.
    """
    settings = [config.dynamic_setting(name) for name in names]
    # A setting with `only_dynamic` has no default to describe, and neither has a setting of one listener.
    defaults = {
        s.name: s.default_text
        for s in settings
        if s.default_text is not None and not s.only_dynamic and not s.name.startswith(LISTENER_PREFIX)
    }
    layers: tuple[tuple[Mapping[str, str], Source], ...] = (
        (config.dynamic_texts(broker_id), Source.DYNAMIC_BROKER),
        (config.dynamic_texts(ALL_BROKERS), Source.DYNAMIC_DEFAULT_BROKER),
        (at_start, Source.STATIC_BROKER),
        (defaults, Source.DEFAULT),
    )
    synonyms = [Synonym(name, layer[name], source) for layer, source in layers for name in names if name in layer]
    return tuple(dropwhile(lambda synonym: synonym.name != names[0], synonyms))


def as_kafka_writes(setting: Setting, text: str | None) -> str | None:
    """Return the value `text` of a setting in the form in which Kafka writes it: Kafka parses the value and formats it again.

    For example, `TRUE` becomes `true`. A list loses its spaces and, from Kafka 4.0 on, repeated items. Returns None if `text` is None, which means
    that the setting has no value.
    """
    if text is None:
        return None
    if setting.kind == "list":
        items = java_items(text)
        return ",".join(dict.fromkeys(items) if setting.distinct else items)
    return as_text(parse(setting, text))


def topic_descriptions(config: ClusterConfig, broker_id: int, overrides: Mapping[str, str]) -> Iterator[Described]:
    """Describe the settings of a topic as one broker sees them. overrides: the settings of the topic itself."""
    at_start = _texts_at_start(config, broker_id)
    for name, setting in config.definitions.topic.items():
        if setting.internal and name not in overrides:
            continue
        broker_name = config.definitions.broker_name_of_topic.get(name)
        synonyms: tuple[Synonym, ...] = ()
        if broker_name is not None:
            names = (broker_name, *config.broker_setting(broker_name).fallbacks)
            synonyms = _broker_synonyms(config, broker_id, names, at_start)
        if name in overrides:
            # Kafka's code removes spaces from a list, which the documents do not mention (D10).
            as_written = setting.kind == "list" and not setting.distinct and config.strict_kip
            value = overrides[name] if as_written else as_kafka_writes(setting, overrides[name])
            synonyms = (Synonym(name, value, Source.TOPIC), *synonyms)
        elif name == MESSAGE_FORMAT_VERSION:
            value = (
                setting.default_text
            )  # whatever the broker's setting is (`LogConfig.shouldIgnoreMessageFormatVersion`)
        else:
            value = as_kafka_writes(setting, as_text(config.topic_value(broker_id, overrides, name)))
        source = synonyms[0].source if synonyms else Source.DEFAULT
        yield Described(name, value, source, synonyms, setting.kind, False, setting.sensitive)


def effective_topic_values(
    config: ClusterConfig, broker_id: int, overrides: Mapping[str, str]
) -> Iterator[tuple[str, str | None, Source]]:
    """Yield (name, value, source) of each setting of a new topic, as CreateTopics returns them (`KafkaConfigSchema`).

    The source is the layer that the value comes from; the value is None if no layer has a value. If the value is derived from a setting in minutes or
    hours, the source is the layer of that setting. This differs from DescribeConfigs, which reports the source without regard to settings in minutes
    or hours. overrides: the settings of the topic itself. broker_id: the broker whose settings are the defaults.
    """
    at_start = _texts_at_start(config, broker_id)
    for name, setting in config.definitions.topic.items():
        if name in overrides:
            yield name, overrides[name], Source.TOPIC
        elif not setting.internal:
            broker_name = config.definitions.broker_name_of_topic.get(name)
            names = () if broker_name is None else (broker_name, *config.broker_setting(broker_name).fallbacks)
            source = min((config.layers(broker_id, broker_name)[0][1] for broker_name in names), default=Source.DEFAULT)
            as_written = at_start.get(names[0]) if source == Source.STATIC_BROKER else None
            yield name, as_written or as_text(config.topic_value(broker_id, overrides, name)), source


def group_descriptions(config: ClusterConfig, broker_id: int, group_id: str) -> Iterator[Described]:
    """Describe the settings of a group as one broker sees them. The group need not exist."""
    own = config.groups.get(group_id, {})
    for name, setting in config.definitions.group.items():
        value = as_text(config.group_value(broker_id, own, name))
        source = Source.GROUP if name in own else Source.DEFAULT
        yield Described(name, value, source, (Synonym(name, value, source),), setting.kind, False, setting.sensitive)
