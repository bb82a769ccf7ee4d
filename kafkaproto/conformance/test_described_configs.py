"""Tests of DescribeConfigs: sources, types, read-only settings and synonyms of brokers and topics, and the settings in a CreateTopics response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pytest

from kafkaproto.conformance.scene import new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.describe_log_dirs import DescribeLogDirsRequest
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.messages.metadata import MetadataRequest

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 1, 2, 3, 4, 5
BOOLEAN, STRING, INT, LONG, DOUBLE, LIST, PASSWORD = 1, 2, 3, 5, 6, 7, 9
WEEK_MS = "604800000"
NODE = "0"


class Setting(NamedTuple):
    """A setting in a DescribeConfigs response of version 4. synonyms: (name, value, source) of each synonym, in the order of the response."""

    value: str | None
    source: int
    type: int
    read_only: bool
    sensitive: bool
    synonyms: list[tuple[str, str | None, int]]


def described(subject: Subject, kind: int, name: str, keys: list[str] | None = None) -> dict[str, Setting]:
    """Return the settings of a broker or topic by name, with their synonyms, from DescribeConfigs.

    kind: the resource type, `TOPIC` or `BROKER`. name: the topic or the broker id. keys: the settings to request; None requests all.
    """
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, keys)], include_synonyms=True)
    [result] = subject.ask(subject.connect(), request, 4).results
    assert result.error_code == 0
    return {
        config.name: Setting(
            config.value,
            config.config_source,
            config.config_type,
            config.read_only,
            config.is_sensitive,
            [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms],
        )
        for config in result.configs
    }


def source_of(subject: Subject, kind: int, name: str, key: str) -> int:
    """Return the config source of a setting of a broker or topic, as DescribeConfigs numbers it: 1 for a dynamic topic setting, for example.

    kind: the resource type, `TOPIC` or `BROKER`. name: the topic or the broker id. key: the setting.
    """
    return described(subject, kind, name, [key])[key].source


def alter(subject: Subject, kind: int, name: str, values: Mapping[str, str | None]) -> None:
    """Set settings of a broker or topic, or delete those whose value is None.

    kind: the resource type, `TOPIC` or `BROKER`. name: the topic or the broker id. values: maps names of settings to values.
    """
    configs = [AlterableConfig(key, DELETE if value is None else SET, value) for key, value in values.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, configs)])
    [result] = subject.ask_once(request, 1).responses
    assert result.error_code == 0


@pytest.mark.rule("CF-1", "CF-2", "CF-8")
def test_describe_configs_returns_value_type_source_and_synonyms_of_topic_settings(subject: Subject) -> None:
    topic = new_topic(subject).name
    alter(subject, TOPIC, topic, {"retention.ms": None})
    wait_until(
        subject,
        lambda: source_of(subject, TOPIC, topic, "retention.ms") == DEFAULT,
        f"retention.ms of topic {topic} has the default value",
    )
    keys = ["retention.ms", "cleanup.policy", "preallocate", "min.cleanable.dirty.ratio", "segment.index.bytes"]
    settings = described(subject, TOPIC, topic, keys)
    assert {name: (setting.value, setting.source, setting.type) for name, setting in settings.items()} == {
        "retention.ms": (WEEK_MS, DEFAULT, LONG),
        "cleanup.policy": ("delete", DEFAULT, LIST),
        "preallocate": ("false", DEFAULT, BOOLEAN),
        "min.cleanable.dirty.ratio": ("0.5", DEFAULT, DOUBLE),
        "segment.index.bytes": ("10485760", DEFAULT, INT),
    }
    assert settings["retention.ms"].synonyms == []  # log.retention.ms is not set
    assert settings["cleanup.policy"].synonyms == [("log.cleanup.policy", "delete", DEFAULT)]
    alter(subject, TOPIC, topic, {"retention.ms": "5000", "cleanup.policy": "compact"})
    wait_until(
        subject,
        lambda: source_of(subject, TOPIC, topic, "cleanup.policy") == DYNAMIC_TOPIC,
        f"cleanup.policy of topic {topic} has the value set for this topic",
    )
    settings = described(subject, TOPIC, topic, keys)
    own = ("cleanup.policy", "compact", DYNAMIC_TOPIC)
    assert settings["retention.ms"].synonyms == [("retention.ms", "5000", DYNAMIC_TOPIC)]
    assert settings["cleanup.policy"].synonyms == [own, ("log.cleanup.policy", "delete", DEFAULT)]
    assert not [name for name, setting in settings.items() if setting.read_only or setting.sensitive]


@pytest.mark.releases(first="2.7", before="4.0")
@pytest.mark.rule("CF-1")
def test_describe_configs_v0_returns_is_default_false_even_for_default_values(subject: Subject) -> None:
    topic = new_topic(subject).name
    requested = DescribeConfigsResource(TOPIC, topic, ["retention.ms", "cleanup.policy"])
    [result] = subject.ask_once(DescribeConfigsRequest([requested]), 0).results
    assert {(c.name, c.is_default) for c in result.configs} == {("retention.ms", False), ("cleanup.policy", False)}


@pytest.mark.rule("CF-1", "CF-7")
def test_describe_configs_synonyms_list_broker_then_cluster_wide_then_default_value(subject: Subject) -> None:
    """The synonyms of a setting list first the value set for one broker, then the value set for all brokers, then Kafka's default."""
    name = "log.cleaner.max.compaction.lag.ms"
    most = str(2**63 - 1)
    [before] = described(subject, BROKER, NODE, [name]).values()
    assert (before.value, before.source, before.synonyms) == (most, DEFAULT, [(name, most, DEFAULT)])
    try:
        alter(subject, BROKER, "", {name: "7000000"})
        wait_until(
            subject,
            lambda: source_of(subject, BROKER, NODE, name) == DYNAMIC_DEFAULT,
            f"broker {NODE} has the value of {name} that was set for all brokers",
        )
        alter(subject, BROKER, NODE, {name: "8000000"})
        wait_until(
            subject,
            lambda: source_of(subject, BROKER, NODE, name) == DYNAMIC_BROKER,
            f"broker {NODE} has the value of {name} that was set for this broker",
        )
        [setting] = described(subject, BROKER, NODE, [name]).values()
        assert setting.value == "8000000"
        assert setting.synonyms == [
            (name, "8000000", DYNAMIC_BROKER),
            (name, "7000000", DYNAMIC_DEFAULT),
            (name, most, DEFAULT),
        ]
        assert described(subject, BROKER, "")[name].value == "7000000"
    finally:
        alter(subject, BROKER, NODE, {name: None})
        alter(subject, BROKER, "", {name: None})


@pytest.mark.rule("CF-3", "CF-4", "CF-5", "CF-7")
def test_describe_configs_of_a_broker_returns_all_settings_with_their_read_only_flag(subject: Subject) -> None:
    settings = described(subject, BROKER, NODE)
    assert len(settings) > 300
    assert settings["num.partitions"].read_only and not settings["log.retention.ms"].read_only
    assert (settings["log.retention.ms"].value, settings["log.retention.ms"].synonyms) == (None, [])
    password = settings["ssl.keystore.password"]
    assert (password.value, password.type, password.sensitive) == (None, PASSWORD, True)
    node = settings["node.id"]
    assert (node.value, node.source, node.type, node.read_only) == (NODE, STATIC, INT, True)
    assert (settings["replica.selector.class"].type, settings["replica.selector.class"].read_only) == (STRING, True)


@pytest.mark.rule("CF-25")
def test_describe_configs_returns_the_listeners_and_log_directory_in_use(subject: Subject) -> None:
    """The addresses are those in the Metadata response, and the directory is that of DescribeLogDirs. The source is the broker's file of settings."""
    [own] = [b for b in subject.ask_once(MetadataRequest([]), 1).brokers if b.node_id == int(NODE)]
    directories = ",".join(result.log_dir for result in subject.ask_once(DescribeLogDirsRequest([]), 1).results)
    settings = described(subject, BROKER, NODE, ["listeners", "advertised.listeners", "log.dirs", "log.dir"])
    listeners, advertised = settings["listeners"], settings["advertised.listeners"]
    assert advertised.value is not None and listeners.value is not None
    addresses = [endpoint.partition("://")[2] for endpoint in advertised.value.split(",")]
    assert f"{own.host}:{own.port}" in addresses
    assert listeners.synonyms == [
        ("listeners", listeners.value, STATIC),
        ("listeners", "PLAINTEXT://:9092", DEFAULT),
    ]
    assert (listeners.source, listeners.read_only) == (STATIC, False)
    assert advertised.synonyms == [("advertised.listeners", advertised.value, STATIC)]
    assert (settings["log.dirs"].value, settings["log.dirs"].read_only) == (directories, True)
    assert settings["log.dirs"].synonyms == [("log.dirs", directories, STATIC)]
    assert (settings["log.dir"].value, settings["log.dir"].source) == ("/tmp/kafka-logs", DEFAULT)


@pytest.mark.rule("CF-3", "SN-72")
@pytest.mark.releases(before="4.0")
def test_describe_configs_marks_advertised_listeners_as_not_read_only_before_4_0(subject: Subject) -> None:
    assert not described(subject, BROKER, NODE)["advertised.listeners"].read_only


@pytest.mark.rule("CF-3", "SN-72")
@pytest.mark.releases(first="4.0")
def test_describe_configs_marks_advertised_listeners_as_read_only_from_kafka_4_0_on(subject: Subject) -> None:
    assert described(subject, BROKER, NODE)["advertised.listeners"].read_only


@pytest.mark.rule("CF-5", "CF-6", "SN-72")
def test_describe_configs_rejects_wrong_broker_ids_and_missing_topics(subject: Subject) -> None:
    resources = [(BROKER, "77"), (BROKER, "x"), (TOPIC, subject.new_name("missing"))]
    requests = [DescribeConfigsResource(kind, name, None) for kind, name in resources]
    results = subject.ask(subject.connect(), DescribeConfigsRequest(requests), 4).results
    assert [result.error_code for result in results] == [42, 42, 3]
    assert results[0].error_message == "Unexpected broker id, expected 0 or empty string, but received 77"
    values = described(subject, BROKER, NODE, ["no.such.setting", "num.partitions"])
    assert list(values) == ["num.partitions"]


def created(subject: Subject, configs: dict[str, str]) -> tuple[int, dict[str, tuple[str | None, int, bool]]]:
    """Create a topic, and return (error code, settings of the topic) from the CreateTopics response.

    configs: maps names of settings in the request to values. The result maps the name of each setting in the response to (value, source, whether it
    is read-only). A source is a config source, as DescribeConfigs numbers it. A value is None if the setting has none.
    """
    topic = CreatableTopic(
        subject.new_name(), 1, 1, configs=[CreatableTopicConfig(*config) for config in configs.items()]
    )
    [result] = subject.ask_once(CreateTopicsRequest([topic], 30_000), 5).topics
    settings = {config.name: (config.value, config.config_source, config.read_only) for config in result.configs or ()}
    return result.error_code, settings


@pytest.mark.rule("CF-10")
def test_create_topics_response_has_the_settings_of_the_new_topic(subject: Subject) -> None:
    error, settings = created(subject, {"retention.ms": "5000"})
    assert error == 0
    assert settings["retention.ms"] == ("5000", DYNAMIC_TOPIC, False)
    assert settings["cleanup.policy"] == ("delete", DEFAULT, False)


REMOVED = {"message.format.version", "message.timestamp.difference.max.ms", "message.downconversion.enable"}


@pytest.mark.rule("CF-11", "CF-12", "SN-72")
@pytest.mark.releases(before="4.0")
def test_topic_setting_message_format_version_is_accepted_in_3_9(subject: Subject) -> None:
    error, settings = created(subject, {"message.format.version": "3.0-IV0"})
    assert error == 0 and settings.keys() >= REMOVED


@pytest.mark.rule("CF-11", "CF-12", "SN-72")
@pytest.mark.releases(first="4.0")
def test_topic_settings_removed_in_kafka_4_0_are_rejected_from_4_0_on(subject: Subject) -> None:
    for name in REMOVED:
        assert created(subject, {name: "1"})[0] == 40
    assert not created(subject, {})[1].keys() & REMOVED
