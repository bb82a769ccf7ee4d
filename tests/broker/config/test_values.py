"""Parsing and validation of setting values, and the precedence of settings layers; names, types and ranges are those of Kafka."""

from __future__ import annotations

import re

import pytest

from kafkaproto.broker.config.cluster_config import ClusterConfig, Source
from kafkaproto.broker.config.definitions import Setting, definitions_of
from kafkaproto.broker.config.description import Described, broker_descriptions, topic_descriptions
from kafkaproto.broker.config.values import (
    ConfigError,
    as_text,
    broker_setting,
    check_topic_settings,
    parse,
    split_broker,
    topic_setting,
)

OLDER, NEWER = definitions_of("3.9"), definitions_of("4.2")


@pytest.mark.parametrize(
    "table",
    [OLDER.broker, OLDER.topic, NEWER.broker, NEWER.topic, NEWER.group],
    ids=["broker-3.9", "topic-3.9", "broker-4.2", "topic-4.2", "group-4.2"],
)
def test_default_of_every_setting_is_a_valid_value(table: dict) -> None:  # type: ignore[type-arg]
    for name, setting in table.items():
        assert setting.name == name
        if setting.default is not None:
            text = as_text(setting.default)
            assert text is not None
            assert parse(setting, text) == setting.default


@pytest.mark.parametrize("release", ["0.11", "3.9", "4.0", "4.2"])
def test_topic_setting_defaults_equal_the_matching_broker_setting_defaults(release: str) -> None:
    config, definitions = ClusterConfig(release=release), definitions_of(release)
    assert len(definitions.broker_name_of_topic) > 25
    for name, broker_name in definitions.broker_name_of_topic.items():
        assert definitions.topic[name].default == config.get(0, broker_name)
        assert definitions.topic[name].kind == definitions.broker[broker_name].kind


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
def test_setting_text_is_parsed_into_a_value_of_the_type_of_the_setting(name: str, text: str, value: object) -> None:
    assert parse(broker_setting(name), text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fetch.max.bytes", "1023"),
        ("fetch.max.bytes", str(2**31)),
        ("fetch.max.bytes", "many"),
        ("fetch.max.bytes", "1_024"),
        ("fetch.max.bytes", "1024.0"),
        ("fetch.max.bytes", ""),
        ("fetch.max.bytes", "9" * 5000),
        ("replica.fetch.min.bytes", str(-(2**31) - 1)),
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
def test_invalid_setting_value_raises_single_line_error_with_setting_name_and_value(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(broker_setting(name), text)
    message = str(raised.value)
    assert message.startswith(f"{name} must be ")
    assert message.endswith(f'(got "{text}")')
    assert "\n" not in message


def test_unknown_setting_name_gets_an_error_that_suggests_the_nearest_name() -> None:
    with pytest.raises(
        ConfigError, match=r'^unknown broker setting "fetch\.max\.byte"; did you mean "fetch\.max\.bytes"\?$'
    ):
        broker_setting("fetch.max.byte")
    with pytest.raises(ConfigError, match=r'unknown topic setting "retention"; did you mean "retention\.(ms|bytes)"\?'):
        topic_setting("retention")
    with pytest.raises(ConfigError, match=r"unknown broker setting .*; `kafkaproto settings` lists the known ones"):
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
def test_setting_key_is_split_into_its_broker_id_prefix_and_the_setting_name(
    key: str, broker: int | None, name: str
) -> None:
    assert split_broker(key) == (broker, name)


@pytest.mark.rule("CF-1")
def test_broker_setting_has_the_value_of_the_highest_priority_source_that_sets_it() -> None:
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
        (OLDER.broker["fetch.max.bytes"].default, Source.DEFAULT),
    ]
    config.reset()
    assert (config.get(0, "fetch.max.bytes"), config.get(1, "fetch.max.bytes")) == (2000, 3000)


def test_topic_setting_overrides_the_broker_setting() -> None:
    config = ClusterConfig({"message.max.bytes": "5000", "1.message.max.bytes": "6000"})
    assert config.for_broker(0).topic({}, "max.message.bytes") == 5000
    assert config.for_broker(1).topic({}, "max.message.bytes") == 6000
    assert config.for_broker(1).topic({"max.message.bytes": "70"}, "max.message.bytes") == 70
    assert config.for_broker(0).topic({}, "segment.jitter.ms") == 0


def topic(config: ClusterConfig, name: str, **overrides: str) -> Described:
    """Describe one setting of a topic; dots in the names of its own settings are written as underscores."""
    own = {key.replace("_", "."): value for key, value in overrides.items()}
    return next(d for d in topic_descriptions(config, 0, own) if d.name == name)


def broker(config: ClusterConfig, name: str, broker_id: int = 0) -> Described:
    return next(d for d in broker_descriptions(config, broker_id, {}) if d.name == name)


@pytest.mark.rule("CF-8")
def test_described_topic_setting_lists_no_synonyms_if_the_broker_setting_is_not_set() -> None:
    """Kafka 3.9.1 and 4.2.0 behave like this: log.retention.ms is null, and a value from log.retention.hours has source 5."""
    config = ClusterConfig()
    own = topic(config, "retention.ms", retention_ms="5000")
    assert own.synonyms == (("retention.ms", "5000", Source.TOPIC),)
    untouched = topic(config, "retention.ms")
    assert (untouched.value, untouched.source, untouched.synonyms) == ("604800000", Source.DEFAULT, ())
    from_hours = topic(ClusterConfig({"log.retention.hours": "1"}), "retention.ms")
    assert (from_hours.value, from_hours.source, from_hours.synonyms) == ("3600000", Source.DEFAULT, ())
    exact = topic(ClusterConfig({"log.retention.ms": "7", "log.retention.hours": "1"}), "retention.ms")
    assert exact.synonyms == (
        ("log.retention.ms", "7", Source.STATIC_BROKER),
        ("log.retention.hours", "1", Source.STATIC_BROKER),
        ("log.retention.hours", "168", Source.DEFAULT),
    )


def test_described_setting_contains_its_value_its_source_and_lower_priority_values() -> None:
    config = ClusterConfig({"message.max.bytes": "5000"})
    described = topic(config, "max.message.bytes", max_message_bytes="70")
    assert (described.value, described.source) == ("70", Source.TOPIC)
    assert described.synonyms == (
        ("max.message.bytes", "70", Source.TOPIC),
        ("message.max.bytes", "5000", Source.STATIC_BROKER),
        ("message.max.bytes", "1048588", Source.DEFAULT),
    )
    assert broker(config, "auto.create.topics.enable").value == "true"
    assert broker(config, "broker.rack").value is None


def test_settings_without_effect_are_listed_in_the_order_in_which_they_were_set() -> None:
    config = ClusterConfig({"log.preallocate": "true", "fetch.max.bytes": "2000", "1.num.io.threads": "3"})
    assert config.without_effect() == ["log.preallocate", "1.num.io.threads"]


def test_topic_setting_with_an_unknown_name_or_an_invalid_value_is_rejected() -> None:
    check_topic_settings({"max.message.bytes": "100", "cleanup.policy": "compact"})
    with pytest.raises(ConfigError, match=r"max\.message\.bytes must be an integer from 0 "):
        check_topic_settings({"max.message.bytes": "-1"})
    with pytest.raises(ConfigError, match="unknown topic setting"):
        check_topic_settings({"message.max.bytes": "100"})


LAG = "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent frequent changes in ISR"
SOCKET = "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent unnecessary socket timeouts"
QUEUED = "queued.max.request.bytes must be larger or equal to socket.request.max.bytes"
ADDRESS = "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."
CONTROL = "control.plane.listener.name"
MIGRATION = "zookeeper.metadata.migration.enable"
NO_ZOOKEEPER = f"If using `{MIGRATION}` in KRaft mode, `zookeeper.connect` must also be set."
IDS = "You must set `node.id` to the same value as `broker.id`."
NO_DIRECTORY = "At least one log directory must be defined via log.dirs or log.dir."
IDLE = (
    "should always be less than connections.max.idle.ms=100 to prevent failed authentication responses from timing out"
)


@pytest.mark.rule("CF-18")
@pytest.mark.parametrize("release", ["3.9", "4.2"])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"replica.lag.time.max.ms": "499"}, LAG),
        ({"replica.fetch.wait.max.ms": "30001"}, SOCKET),
        ({"replica.fetch.wait.max.ms": "30001", "replica.lag.time.max.ms": "100"}, SOCKET),
        ({"queued.max.request.bytes": "5"}, QUEUED),
        ({"queued.max.request.bytes": "5", "max.connections.per.ip": "0"}, QUEUED),
        ({"queued.max.request.bytes": "0"}, None),
        ({"queued.max.request.bytes": "-7"}, None),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, ADDRESS),
        ({"advertised.listeners": "PLAINTEXT://[::]:1"}, None),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1", "replica.lag.time.max.ms": "100"}, LAG),
        ({"node.id": "0", "broker.id": "8"}, IDS),
        ({"node.id": "0", "broker.id": "8", "log.roll.ms": "0"}, IDS),
        ({"node.id": "8", "broker.id": "8"}, None),
        ({"node.id": "8"}, None),
        ({"broker.id": "8"}, None),
        ({"log.cleaner.threads": "0"}, "log.cleaner.threads must be at least 1 (got 0)"),
        ({"log.cleaner.threads": "0", "log.roll.ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        ({"connections.max.idle.ms": "100"}, f"connection.failed.authentication.delay.ms=100 {IDLE}"),
    ],
)
def test_contradictory_broker_settings_are_rejected_at_start(
    settings: dict[str, str], message: str | None, release: str
) -> None:
    assert error_of(settings, release) == message


@pytest.mark.rule("CF-18")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({MIGRATION: "true"}, NO_ZOOKEEPER),
        ({MIGRATION: "true", "zookeeper.connect": "localhost:2181"}, None),
        ({MIGRATION: "true", "node.id": "0", "broker.id": "8"}, IDS),
        ({"log.dirs": ""}, NO_DIRECTORY),
        ({"log.dirs": " , ", "log.dir": "/a"}, NO_DIRECTORY),
        ({"log.dirs": "/a,", "log.dir": ""}, None),
        ({CONTROL: "x"}, f"Listener with X defined in {CONTROL} not found in listener.security.protocol.map."),
        ({CONTROL: "plaintext"}, None),
        ({CONTROL: "plaintext", "process.roles": "broker"}, f"{CONTROL} is not supported in KRaft mode."),
    ],
)
def test_contradictory_zookeeper_settings_are_rejected_at_start_before_4_0(
    settings: dict[str, str], message: str | None
) -> None:
    assert error_of(settings, "3.9") == message
    if message != NO_DIRECTORY and "log.dirs" not in settings:
        assert error_of(settings, "4.2") == (IDS if message == IDS else None)


NOT_EMPTY_IN_4_2 = (
    *("listeners", "advertised.listeners", "controller.listener.names", "process.roles", "log.dirs", "log.dir"),
    *("group.consumer.assignors", "group.coordinator.rebalance.protocols", "group.share.assignors"),
)


@pytest.mark.rule("CF-23")
def test_exactly_nine_list_settings_of_a_broker_must_not_be_empty_from_4_0_on() -> None:
    assert {s.name for s in NEWER.broker.values() if s.kind == "list" and s.not_empty} == set(NOT_EMPTY_IN_4_2)
    for name in NOT_EMPTY_IN_4_2:
        with pytest.raises(ConfigError, match=rf"^{re.escape(name)} must be a list of at least one .*\(got ..\)$"):
            parse(NEWER.broker[name], " ")
        assert parse(OLDER.broker.get(name, Setting(name, "list")), "") == ""


@pytest.mark.rule("CF-18")
def test_setting_that_only_another_release_has_accepts_any_value() -> None:
    assert error_of({"group.share.assignors": "", "group.share.max.share.sessions": "many"}, "3.9") is None
    assert error_of({"group.share.max.share.sessions": "many"}, "4.2") is not None
    assert error_of({"zookeeper.session.timeout.ms": "many"}, "4.2") is None


def error_of(settings: dict[str, str], release: str) -> str | None:
    try:
        ClusterConfig(settings, release=release)
    except ConfigError as error:
        return str(error)
    return None
