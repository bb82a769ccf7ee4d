"""Settings: what is accepted, what is refused and how, and which layer holds (Kafka's names, types, ranges)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.config.definitions import BROKER_NAME_OF_TOPIC_SETTING, BROKER_SETTINGS, TOPIC_SETTINGS
from kafkaproto.broker.config.values import (
    ClusterConfig,
    ConfigError,
    Source,
    as_text,
    broker_setting,
    check_topic_settings,
    parse,
    split_broker,
    topic_setting,
)


@pytest.mark.parametrize("table", [BROKER_SETTINGS, TOPIC_SETTINGS], ids=["broker", "topic"])
def test_every_default_is_allowed_and_every_example_is_too(table: dict) -> None:  # type: ignore[type-arg]
    for name, setting in table.items():
        assert setting.name == name
        if setting.default is not None:
            text = as_text(setting.default)
            assert text is not None
            assert parse(setting, text) == setting.default
        key, _, example = setting.example.partition("=")
        assert key == name
        parse(setting, example)


def test_every_topic_setting_with_a_broker_setting_has_its_default() -> None:
    for name, broker_name in BROKER_NAME_OF_TOPIC_SETTING.items():
        assert TOPIC_SETTINGS[name].default == BROKER_SETTINGS[broker_name].default
        assert TOPIC_SETTINGS[name].kind == BROKER_SETTINGS[broker_name].kind


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("fetch.max.bytes", "1024", 1024),
        ("fetch.max.bytes", " +2048 ", 2048),
        ("connections.max.idle.ms", "-1", -1),
        ("log.retention.ms", str(2**63 - 1), 2**63 - 1),
        ("auto.create.topics.enable", "TRUE", True),
        ("auto.create.topics.enable", "false", False),
        ("log.cleaner.min.cleanable.ratio", "1e-1", 0.1),
        ("log.cleanup.policy", "compact,delete", "compact,delete"),
        ("broker.rack", " a ", "a"),
    ],
)
def test_text_becomes_a_value_of_its_kind(name: str, text: str, value: object) -> None:
    assert parse(broker_setting(name), text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fetch.max.bytes", "1023"),
        ("fetch.max.bytes", str(2**31)),
        ("fetch.max.bytes", "many"),
        ("fetch.max.bytes", "1_024"),
        ("fetch.max.bytes", "١٠٢٤"),
        ("fetch.max.bytes", "1024.0"),
        ("fetch.max.bytes", ""),
        ("fetch.max.bytes", "9" * 5000),
        ("replica.fetch.min.bytes", str(-(2**31) - 1)),
        ("log.retention.ms", "-2"),
        ("log.retention.ms", str(2**63)),
        ("default.replication.factor", "32768"),
        ("offsets.topic.replication.factor", "-32769"),
        ("auto.create.topics.enable", "yes"),
        ("log.cleaner.min.cleanable.ratio", "1.5"),
        ("log.cleaner.min.cleanable.ratio", "nan"),
        ("log.cleaner.min.cleanable.ratio", "inf"),
        ("log.cleanup.policy", "delete,shrink"),
        ("compression.type", "zip"),
    ],
)
def test_a_bad_value_is_one_line_with_what_is_allowed_and_an_example(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(broker_setting(name), text)
    message = str(raised.value)
    assert message.startswith(f"{name}=")
    assert "allowed is" in message
    assert f"for example {name}=" in message
    assert "\n" not in message


def test_an_unknown_name_names_its_neighbour() -> None:
    with pytest.raises(
        ConfigError, match=r"fetch\.max\.byte: no such broker setting; the nearest is fetch\.max\.bytes"
    ):
        broker_setting("fetch.max.byte")
    with pytest.raises(ConfigError, match=r"retention: no such topic setting; the nearest is retention\.(ms|bytes)"):
        topic_setting("retention")
    with pytest.raises(ConfigError, match="no such broker setting"):
        ClusterConfig({"\N{SNOWMAN}": "1"})


@pytest.mark.parametrize(
    ("key", "broker", "name"),
    [
        ("broker.rack", None, "broker.rack"),
        ("2.broker.rack", 2, "broker.rack"),
        ("10.listeners", 10, "listeners"),
        ("2", None, "2"),
        ("²x.y", None, "²x.y"),
        ("².y", None, "².y"),
        ("-1.broker.rack", None, "-1.broker.rack"),
    ],
)
def test_a_number_in_front_names_one_broker(key: str, broker: int | None, name: str) -> None:
    assert split_broker(key) == (broker, name)


def test_the_layers_of_a_broker_setting_from_the_strongest_to_the_default() -> None:
    config = ClusterConfig({"fetch.max.bytes": "2000", "1.fetch.max.bytes": "3000"}, {"num.partitions": 7})
    assert config.for_broker(0)["fetch.max.bytes"] == 2000
    assert config.for_broker(1)["fetch.max.bytes"] == 3000
    assert config.for_broker(1)["num.partitions"] == 7
    config.dynamic_all["fetch.max.bytes"] = 4000
    config.dynamic_broker[1] = {"fetch.max.bytes": 5000}
    assert (config.get(0, "fetch.max.bytes"), config.get(1, "fetch.max.bytes")) == (4000, 5000)
    assert config.layers(1, "fetch.max.bytes") == [
        (5000, Source.DYNAMIC_BROKER),
        (4000, Source.DYNAMIC_DEFAULT_BROKER),
        (3000, Source.STATIC_BROKER),
        (2000, Source.STATIC_BROKER),
        (BROKER_SETTINGS["fetch.max.bytes"].default, Source.DEFAULT),
    ]
    config.reset()
    assert (config.get(0, "fetch.max.bytes"), config.get(1, "fetch.max.bytes")) == (2000, 3000)


def test_a_topics_own_setting_is_above_its_brokers() -> None:
    config = ClusterConfig({"message.max.bytes": "5000", "1.message.max.bytes": "6000"})
    assert config.for_broker(0).topic({}, "max.message.bytes") == 5000
    assert config.for_broker(1).topic({}, "max.message.bytes") == 6000
    assert config.for_broker(1).topic({"max.message.bytes": "70"}, "max.message.bytes") == 70
    assert config.for_broker(0).topic({}, "segment.jitter.ms") == 0


def test_a_topic_setting_tells_no_default_of_a_broker_setting_that_has_coarser_ones() -> None:
    """As a real 3.9.1 does: log.retention.ms is null there, and log.retention.hours is not told."""
    config = ClusterConfig()
    told = config.describe_topic(0, {"retention.ms": "5000"}, "retention.ms")
    assert told.layers == (("retention.ms", "5000", Source.TOPIC),)
    untouched = config.describe_topic(0, {}, "retention.ms")
    assert (untouched.value, untouched.source, untouched.layers) == ("604800000", Source.DEFAULT, ())
    given = ClusterConfig({"log.retention.hours": "1"}).describe_topic(0, {}, "retention.ms")
    assert given.layers == (("log.retention.ms", "3600000", Source.STATIC_BROKER),)


def test_a_description_has_the_value_its_source_and_every_layer_below() -> None:
    config = ClusterConfig({"message.max.bytes": "5000"})
    told = config.describe_topic(0, {"max.message.bytes": "70"}, "max.message.bytes")
    assert (told.value, told.source) == ("70", Source.TOPIC)
    assert told.layers == (
        ("max.message.bytes", "70", Source.TOPIC),
        ("message.max.bytes", "5000", Source.STATIC_BROKER),
        ("message.max.bytes", "1048588", Source.DEFAULT),
    )
    assert config.describe_broker(0, "auto.create.topics.enable").value == "true"
    assert config.describe_broker(0, "broker.rack").value is None


def test_settings_without_effect_are_told_in_the_order_given() -> None:
    config = ClusterConfig({"log.preallocate": "true", "fetch.max.bytes": "2000", "1.num.io.threads": "3"})
    assert config.without_effect() == ["log.preallocate", "1.num.io.threads"]


def test_topic_settings_are_checked_by_name_and_value() -> None:
    check_topic_settings({"max.message.bytes": "100", "cleanup.policy": "compact"})
    with pytest.raises(ConfigError, match=r"max\.message\.bytes=-1"):
        check_topic_settings({"max.message.bytes": "-1"})
    with pytest.raises(ConfigError, match="no such topic setting"):
        check_topic_settings({"message.max.bytes": "100"})
