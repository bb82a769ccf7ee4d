"""DescribeConfigs compared with the committed tables of Kafka's settings, for each release."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafkaproto.broker import config
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.quota.precedence import Semantics
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafkaproto.messages.describe_cluster import DescribeClusterRequest
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.describe_log_dirs import DescribeLogDirsRequest
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE = 0, 1
OWN, ALL, STATIC, DEFAULT = 2, 3, 4, 5
TYPES = ("unknown", "boolean", "string", "int", "short", "long", "double", "list", "class", "password")
ALWAYS_GIVEN = {"node.id", "broker.id", "process.roles", "listeners", "advertised.listeners", "log.dirs"}


class Row(NamedTuple):
    """A row of a committed settings table."""

    table: str
    name: str
    kind: str
    default: str | None
    allowed: str
    mode: str
    place: str = ""
    fallbacks: str = ""


def rows(version: str, *tables: str) -> dict[str, Row]:
    path = Path(config.__path__[0]) / "tables" / f"kafka-{version}.tsv"
    settings_rows = [Row(*line.split("\t")) for line in path.read_text().splitlines()[2:]]
    return {
        row.name: row._replace(default=None if row.default == "(null)" else row.default)
        for row in settings_rows
        if row.table in tables
    }


def made(release: str = "3.9", **settings: str) -> VirtualCluster:
    """Return a cluster with the settings of profile `kafka`; dots in setting names are written as underscores."""
    settings_by_name = {name.replace("_", "."): value for name, value in settings.items()}
    cluster = VirtualCluster(1, settings_by_name, profile="kafka", release_name=release)
    cluster.topic("t")
    return cluster


def described(cluster: VirtualCluster, kind: int, name: str, version: int = 4) -> dict[str, Any]:
    [result] = (
        cluster.connect()
        .ask(DescribeConfigsRequest([DescribeConfigsResource(kind, name, None)], version > 0), version)
        .results
    )
    assert result.error_code == 0
    return {c.name: c for c in result.configs}


def alter(cluster: VirtualCluster, kind: int, name: str, key: str, operation: int, value: str | None) -> int:
    resource = AlterConfigsResource(kind, name, [AlterableConfig(key, operation, value)])
    [response] = cluster.connect().ask(IncrementalAlterConfigsRequest([resource]), 1).responses
    return int(response.error_code)


RELEASES = [("2.8", "3.9.1"), ("3.9", "3.9.1"), ("4.0", "4.2.0"), ("4.2", "4.2.0")]


@pytest.mark.rule("CF-5", "CF-2")
@pytest.mark.parametrize(("release", "table"), RELEASES)
def test_describe_configs_lists_every_broker_setting_of_kafka_with_its_default(release: str, table: str) -> None:
    cluster, expected = made(release), rows(table, "broker")
    descriptions = described(cluster, BROKER, "0")
    assert descriptions.keys() == {name for name, row in expected.items() if not row.mode.endswith("i")}
    of_all = set(described(cluster, BROKER, ""))
    for name, entry in descriptions.items():
        row = expected[name]
        assert TYPES[entry.config_type] == row.kind, name
        assert entry.read_only == (row.mode[0] == "r"), name
        assert entry.is_sensitive == (row.kind == "password"), name
        if name not in ALWAYS_GIVEN | of_all:
            assert (entry.value, entry.config_source) == (row.default, DEFAULT), name
            synonyms = [(s.name, s.value, s.source) for s in entry.synonyms]
            assert synonyms == ([] if row.default is None else [(name, row.default, DEFAULT)]), name


def test_emulated_kafka_0_11_has_the_broker_settings_and_defaults_of_kafka_3_9() -> None:
    expected = rows("3.9.1", "broker")
    descriptions = described(made("0.11"), BROKER, "0", 0)
    assert descriptions.keys() == {name for name, row in expected.items() if not row.mode.endswith("i")}
    assert all(
        e.is_default and e.value == expected[n].default for n, e in descriptions.items() if n not in ALWAYS_GIVEN
    )


@pytest.mark.parametrize(("release", "table"), RELEASES)
def test_describe_configs_lists_every_topic_setting_of_kafka_with_its_default(release: str, table: str) -> None:
    cluster, expected = made(release), rows(table, "topic")
    descriptions = described(cluster, TOPIC, "t")
    assert descriptions.keys() == {name for name, row in expected.items() if not row.mode.endswith("i")}
    for name, entry in descriptions.items():
        row = expected[name]
        assert (TYPES[entry.config_type], entry.read_only, entry.is_sensitive) == (row.kind, False, False), name
        assert entry.value == row.default, name


@pytest.mark.rule("CF-14", "CF-15")
def test_group_configs_exist_since_kafka_4_0_and_default_to_the_broker_settings() -> None:
    cluster, expected = made("4.2", group_consumer_session_timeout_ms="50000"), rows("4.2.0", "group")
    descriptions = described(cluster, GROUP, "any")
    assert descriptions.keys() == expected.keys()
    differing = {name: entry.value for name, entry in descriptions.items() if entry.value != expected[name].default}
    assert differing == {"consumer.session.timeout.ms": "50000"}
    for kind, name, release in ((GROUP, "any", "3.9"), (GROUP, "", "4.2"), (99, "any", "4.2")):
        request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, None)])
        [result] = made(release).connect().ask(request, 4).results
        assert (result.error_code, result.configs) == (42, [])


SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@pytest.mark.rule("CF-14")
def test_group_configs_cannot_be_altered_before_kafka_4_0() -> None:
    changed = AlterConfigsResource(GROUP, "any", [AlterableConfig(SESSION, 0, "50000")])
    [result] = made("3.9").connect().ask(IncrementalAlterConfigsRequest([changed]), 1).responses
    assert (result.error_code, result.error_message) == (42, "Unknown resource type 32")


@pytest.mark.rule("CF-14")
@pytest.mark.parametrize(
    ("name", "key", "value", "error"),
    [
        ("g", SESSION, "50000", 0),
        ("g", SESSION, "44999", 40),
        ("g", SESSION, "60001", 40),
        ("g", SESSION, "x", 40),
        ("g", SESSION, None, 42),
        ("g", HEARTBEAT, "16000", 40),
        ("g", "share.auto.offset.reset", "by_duration:PT1H", 0),
        ("g", "share.auto.offset.reset", "by_duration:1h", 40),
        ("g", "streams.num.standby.replicas", "3", 40),
        ("g", "group.consumer.session.timeout.ms", "50000", 40),
        ("", SESSION, "50000", 42),
    ],
)
def test_group_config_outside_the_broker_minimum_and_maximum_is_rejected(
    name: str, key: str, value: str | None, error: int
) -> None:
    cluster = made("4.2")
    assert alter(cluster, GROUP, name, key, SET, value) == error
    own = {n: (e.value, e.config_source) for n, e in described(cluster, GROUP, "g").items() if e.config_source == 8}
    assert own == ({} if error else {key: (value, 8)})
    assert alter(made("3.9"), GROUP, name, key, SET, value) == 42


@pytest.mark.rule("CF-14")
def test_group_session_timeout_must_be_longer_than_the_group_heartbeat_interval() -> None:
    cluster = made("4.2", group_consumer_min_session_timeout_ms="1", group_consumer_max_heartbeat_interval_ms="60000")
    assert alter(cluster, GROUP, "g", HEARTBEAT, SET, "45000") == 40
    assert alter(cluster, GROUP, "g", HEARTBEAT, SET, "44999") == 0
    assert alter(cluster, GROUP, "g", SESSION, SET, "44999") == 40
    assert alter(cluster, GROUP, "g", HEARTBEAT, DELETE, None) == 0
    assert alter(cluster, GROUP, "g", SESSION, SET, "44999") == 0


def places(**settings: str) -> dict[str, tuple[str | None, int, int]]:
    """Return {setting: (value, source, number of synonyms)} of the listeners and log directories of a broker that was started with `settings`."""
    entries = described(made(**settings), BROKER, "0")
    names = "listeners", "advertised.listeners", "log.dirs", "log.dir"
    return {name: (entries[name].value, entries[name].config_source, len(entries[name].synonyms)) for name in names}


@pytest.mark.rule("CF-25")
def test_describe_configs_returns_the_listeners_and_log_dirs_in_use_if_none_are_set() -> None:
    expected = {
        "listeners": ("PLAINTEXT://broker0:9092", STATIC, 2),
        "advertised.listeners": ("PLAINTEXT://broker0:9092", STATIC, 1),
        "log.dirs": ("/kafkaproto/broker-0", STATIC, 1),
        "log.dir": ("/tmp/kafka-logs", DEFAULT, 1),
    }
    assert places() == expected
    cluster = made()
    cluster.state.set_listeners(0, {"A": ("::1", 1), "B": ("host", 2)})
    assert described(cluster, BROKER, "0")["listeners"].value == "A://[::1]:1,B://host:2"
    assert alter(cluster, BROKER, "0", "listeners", SET, "A://[::1]:1,B://host:2") == 0
    listeners = described(cluster, BROKER, "0")["listeners"]
    assert [s.source for s in listeners.synonyms] == [2, STATIC, DEFAULT]


@pytest.mark.rule("CF-25")
def test_describe_configs_returns_log_dirs_as_absolute_path_of_the_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cluster = VirtualCluster(2, data_dir="data")
    for broker_id in (0, 1):
        connection = cluster.connect(broker_id)
        resource = DescribeConfigsResource(BROKER, str(broker_id), ["log.dirs"])
        [entry] = connection.ask(DescribeConfigsRequest([resource]), 4).results[0].configs
        [directory] = connection.ask(DescribeLogDirsRequest(None), 4).results
        assert (entry.value, entry.config_source) == (str(tmp_path / "data"), STATIC)
        assert directory.log_dir == entry.value
    cluster.state.close()
    configured = VirtualCluster(1, {"log.dirs": "/a"}, data_dir="data")
    assert described(configured, BROKER, "0")["log.dirs"].value == "/a"
    configured.state.close()


@pytest.mark.rule("CF-25")
def test_describe_configs_returns_the_listeners_and_log_dirs_that_the_user_set() -> None:
    place_settings = places(listeners="PLAINTEXT://:0", log_dir="/data")
    assert place_settings == {
        "listeners": ("PLAINTEXT://:0", STATIC, 2),
        "advertised.listeners": (None, DEFAULT, 0),
        "log.dirs": (None, DEFAULT, 0),
        "log.dir": ("/data", STATIC, 2),
    }
    place_settings = places(advertised_listeners="PLAINTEXT://kafka:1", log_dirs="/a, /b")
    assert place_settings["listeners"] == ("PLAINTEXT://:9092", DEFAULT, 1)
    assert place_settings["advertised.listeners"] == ("PLAINTEXT://kafka:1", STATIC, 1)
    assert place_settings["log.dir"] == ("/tmp/kafka-logs", DEFAULT, 1)


def test_describe_configs_omits_settings_whose_names_begin_with_kafkaproto() -> None:
    cluster = made(kafkaproto_replica_delay_ms="5", num_partitions="2")
    for version in range(5):
        assert not any(name.startswith("kafkaproto.") for name in described(cluster, BROKER, "0", version))
    assert cluster.state.config.get(0, "kafkaproto.replica.delay.ms") == 5


@pytest.mark.rule("CF-5")
def test_describe_configs_lists_internal_and_obsolete_settings_only_if_they_are_set() -> None:
    start_settings = {"log_initial_task_delay_ms": "100", "quota_producer_default": "1000"}
    before, after = described(made(), BROKER, "0"), described(made(**start_settings), BROKER, "0")
    assert after.keys() - before.keys() == {"log.initial.task.delay.ms", "quota.producer.default"}
    internal, removed = after["log.initial.task.delay.ms"], after["quota.producer.default"]
    assert (internal.value, internal.config_source, TYPES[internal.config_type]) == ("100", STATIC, "long")
    # Kafka describes an unknown setting as sensitive.
    assert (removed.value, removed.config_source, removed.is_sensitive) == (None, STATIC, True)
    assert TYPES[removed.config_type] == "unknown" and [s.value for s in removed.synonyms] == [None]


@pytest.mark.rule("CF-4")
def test_describe_configs_never_returns_the_values_of_secrets() -> None:
    cluster = made(ssl_key_password="secret")
    assert alter(cluster, BROKER, "0", "listener.name.plaintext.ssl.keystore.password", SET, "secret") == 0
    for entry in described(cluster, BROKER, "0").values():
        assert entry.value != "secret" and "secret" not in [s.value for s in entry.synonyms]
    assert described(cluster, BROKER, "0")["ssl.key.password"].config_source == STATIC


def create(cluster: VirtualCluster, name: str, key: str, value: str) -> tuple[int, str | None]:
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1, configs=[CreatableTopicConfig(key, value)])])
    [topic] = cluster.connect().ask(request, 7).topics
    return topic.error_code, topic.error_message


@pytest.mark.parametrize("value", ["3.0-IV1", "2.8", "2.8-IV0", "0.10.2", "0.8.2.2"])
def test_message_format_version_of_a_topic_can_be_set_in_kafka_3_9_but_not_in_4_2(value: str) -> None:
    cluster = made()
    assert create(cluster, "old", "message.format.version", value) == (0, None)
    assert described(cluster, TOPIC, "old")["message.format.version"].value == value
    assert alter(cluster, TOPIC, "t", "message.format.version", SET, value) == 0
    [code, message] = create(made("4.2"), "old", "message.format.version", value)
    assert (code, message) == (40, "Unknown topic config name: message.format.version")


@pytest.mark.parametrize("value", ["", "2", "2.8-IV9", "9.9", "latest"])
def test_unknown_message_format_version_is_rejected(value: str) -> None:
    assert create(made(), "old", "message.format.version", value)[0] == 40
    assert alter(made(), TOPIC, "t", "message.format.version", SET, value) == 40


@pytest.mark.rule("CF-26")
@pytest.mark.parametrize("name", ["node.id", "broker.id"])
def test_settings_node_id_and_broker_id_give_the_first_of_consecutive_ids(name: str) -> None:
    cluster = VirtualCluster(2, {name: "7", "8.broker.rack": "b"})
    assert cluster.state.config.without_effect() == []
    for broker_id in ("7", "8"):
        resource = DescribeConfigsResource(BROKER, broker_id, ["node.id", "broker.id"])
        [result] = cluster.connect(int(broker_id)).ask(DescribeConfigsRequest([resource]), 4).results
        assert {(entry.value, entry.config_source, entry.read_only) for entry in result.configs} == {
            (broker_id, STATIC, True)
        }
        assert len(result.configs) == 2
    response = cluster.connect(8).ask(DescribeClusterRequest(), 0)
    assert sorted((broker.broker_id, broker.rack) for broker in response.brokers) == [(7, None), (8, "b")]
    assert response.controller_id == 7


@pytest.mark.rule("CF-26")
@pytest.mark.parametrize(
    ("config", "brokers", "message"),
    [
        ({"node.id": "1", "0.broker.rack": "a"}, 3, "0.broker.rack: there is no broker 0; ids are 1 to 3"),
        ({"1.node.id": "5"}, 2, "1.node.id: the brokers have consecutive ids, so that node.id cannot be set for one broker"),
        ({"node.id": "2147483646"}, 3, "the ids of 3 brokers from 2147483646 on must be at most 2147483647"),
    ],
)  # fmt: skip
def test_start_with_broker_ids_that_are_not_consecutive_or_too_high_is_rejected(
    config: dict[str, str], brokers: int, message: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        VirtualCluster(brokers, config)


def test_setting_of_another_kafka_release_is_accepted_at_start_but_has_no_effect() -> None:
    cluster = made("4.2", zookeeper_connect="localhost:2181", log_message_downconversion_enable="false")
    assert cluster.state.config.without_effect() == ["zookeeper.connect", "log.message.downconversion.enable"]
    assert described(cluster, BROKER, "0")["zookeeper.connect"].is_sensitive
    assert cluster.state.config.for_broker(0).topic({}, "message.downconversion.enable") is True


@pytest.mark.rule("CF-9", "CF-13")
@pytest.mark.parametrize(
    ("release", "name", "key", "value", "error"),
    [
        ("3.9", "0", "background.threads", "5", 0),
        ("3.9", "", "background.threads", "5", 0),
        ("3.9", "0", "background.threads", "0", 42),
        ("3.9", "0", "node.id", "1", 42),
        ("3.9", "0", "ssl.protocol", "TLSv1.3", 0),
        ("3.9", "", "ssl.protocol", "TLSv1.3", 42),
        ("3.9", "0", "ssl.keystore.location", "/x", 42),
        ("3.9", "0", "listener.name.plaintext.ssl.keystore.location", "/x", 0),
        ("3.9", "0", "listener.name.plaintext.plain.sasl.jaas.config", "x", 0),
        ("3.9", "0", "listener.name.plaintext.num.partitions", "2", 0),
        ("3.9", "", "listener.name.plaintext.num.partitions", "2", 42),
        ("3.9", "0", "listeners", "PLAINTEXT://:1", 42),
        ("3.9", "0", "zookeeper.connect", "a:1", 42),
        ("3.9", "0", "remote.list.offsets.request.timeout.ms", "1", 0),  # unknown: Kafka 4.2 has it
        ("4.2", "0", "remote.list.offsets.request.timeout.ms", "1", 0),
        ("3.9", "0", "min.insync.replicas", "2", 0),
        ("4.0", "0", "min.insync.replicas", "2", 0),
        ("4.1", "0", "min.insync.replicas", "2", 40),
        ("4.2", "", "min.insync.replicas", "2", 0),
    ],
)
def test_alter_configs_changes_only_dynamic_settings_of_a_running_broker(
    release: str, name: str, key: str, value: str, error: int
) -> None:
    cluster = made(release)
    assert alter(cluster, BROKER, name, key, SET, value) == error
    entry = described(cluster, BROKER, "0").get(key)
    assert (entry is not None and entry.config_source in (OWN, ALL)) == (
        error == 0 or (release >= "4.1" and "insync" in key)
    )


@pytest.mark.parametrize("release", ["4.1", "4.2"])
def test_cluster_wide_min_insync_replicas_can_be_set_but_not_deleted_if_elr_is_on(release: str) -> None:
    cluster = made(release, min_insync_replicas="2")
    entry = described(cluster, BROKER, "")["min.insync.replicas"]
    assert (entry.value, entry.config_source) == ("2", ALL)
    assert alter(cluster, BROKER, "", "min.insync.replicas", DELETE, None) == 40
    assert alter(cluster, BROKER, "", "min.insync.replicas", SET, "1") == 0
    assert cluster.state.config.get(0, "min.insync.replicas") == 1
    assert described(made("4.0"), BROKER, "") == {}


def test_unset_timestamp_before_and_after_max_ms_use_timestamp_difference_max_ms() -> None:
    def limits(cluster: VirtualCluster) -> tuple[int, int]:
        partition = cluster.state.nodes[0].replicas.find("t", 0)
        assert partition is not None
        return partition.limits.timestamp_before_max_ms, partition.limits.timestamp_after_max_ms

    cluster = made(log_message_timestamp_difference_max_ms="5000")
    assert limits(cluster) == (5000, 5000)
    assert alter(cluster, TOPIC, "t", "message.timestamp.before.max.ms", SET, "7000") == 0
    assert limits(cluster) == (7000, 5000)
    assert alter(cluster, TOPIC, "t", "message.timestamp.difference.max.ms", SET, "6000") == 0
    assert limits(cluster) == (7000, 6000)
    assert limits(made("4.2")) == (2**63 - 1, 3_600_000)


def test_describe_configs_of_a_broker_drops_the_plus_sign_of_a_cluster_wide_number() -> None:
    cluster = made(log_retention_minutes="600")
    assert alter(cluster, BROKER, "", "log.retention.ms", SET, "+9000") == 0
    broker, of_all = (described(cluster, BROKER, name) for name in ("0", ""))
    assert (of_all["log.retention.ms"].value, broker["log.retention.ms"].value) == ("+9000", "9000")
    assert [(s.name, s.value, s.source) for s in broker["log.retention.ms"].synonyms] == [
        ("log.retention.ms", "+9000", ALL),
        ("log.retention.minutes", "600", STATIC),
        ("log.retention.hours", "168", DEFAULT),
    ]
    assert broker["log.retention.minutes"].value is None  # the new value replaced it
    assert alter(cluster, BROKER, "", "log.retention.ms", DELETE, None) == 0
    assert described(cluster, BROKER, "0")["log.retention.minutes"].value == "600"


@pytest.mark.parametrize(
    ("release", "key", "accepted", "rejected"),
    [
        ("3.9", "log.cleaner.threads", ("2", "1"), ("3", "100", "0")),
        ("3.9", "num.io.threads", ("16", "4"), ("17", "3")),
        ("3.9", "num.replica.fetchers", ("2",), ("3", "0", "-1")),
        ("3.9", "num.network.threads", ("6", "1"), ("7",)),
        ("4.2", "remote.log.reader.threads", ("20", "5"), ("21", "4")),
    ],
)
@pytest.mark.parametrize("name", ["0", ""])
def test_one_config_change_can_at_most_double_or_halve_a_thread_count(
    release: str, key: str, accepted: tuple[str, ...], rejected: tuple[str, ...], name: str
) -> None:
    for value in accepted:
        assert alter(made(release), BROKER, name, key, SET, value) == 0
    for value in rejected:
        cluster = made(release)
        assert alter(cluster, BROKER, name, key, SET, value) == 42
        assert described(cluster, BROKER, "0")[key].config_source == DEFAULT


def test_log_cleaner_threads_can_be_doubled_from_4_to_8_and_then_from_8_to_16() -> None:
    cluster = made(log_cleaner_threads="4")
    for value, error in (("8", 0), ("16", 0), ("7", 42), ("8", 0)):
        assert alter(cluster, BROKER, "0", "log.cleaner.threads", SET, value) == error
    assert alter(cluster, BROKER, "0", "log.cleaner.threads", DELETE, None) == 0
    assert cluster.state.config.get(0, "log.cleaner.threads") == 4


def test_min_compaction_lag_of_a_topic_cannot_exceed_max_compaction_lag() -> None:
    cluster = made(log_cleaner_max_compaction_lag_ms="60000")
    low, high = "min.compaction.lag.ms", "max.compaction.lag.ms"
    assert create(cluster, "u", low, "60001") == (
        40,
        f"conflict topic config setting {low} (60001) > {high} (60000)",
    )
    assert create(cluster, "u", low, "60000")[0] == 0
    assert alter(cluster, TOPIC, "u", high, SET, "59999") == 40
    assert alter(cluster, TOPIC, "u", low, SET, "60001") == 40
    assert alter(cluster, TOPIC, "u", low, DELETE, None) == 0
    assert alter(cluster, TOPIC, "u", high, SET, "59999") == 0


@pytest.mark.parametrize("semantics", ["kip", "kafka"])
@pytest.mark.parametrize(
    ("release", "of_topic"), [("3.9", {"kip": "compact, compact", "kafka": "compact,compact"}), ("4.2", None)]
)
def test_describe_configs_removes_duplicates_in_cleanup_policies_since_kafka_4_0(
    release: str, of_topic: dict[str, str] | None, semantics: Semantics
) -> None:
    cluster = VirtualCluster(1, {"log.cleanup.policy": "delete,delete"}, release_name=release, semantics=semantics)
    cluster.topic("t")
    assert alter(cluster, TOPIC, "t", "cleanup.policy", SET, "compact, compact") == 0
    policy = described(cluster, TOPIC, "t")["cleanup.policy"].value
    assert policy == ("compact" if of_topic is None else of_topic[semantics])
    of_broker = "delete,delete" if release == "3.9" else "delete"
    assert described(cluster, BROKER, "0")["log.cleanup.policy"].value == of_broker
    assert alter(cluster, TOPIC, "t", "leader.replication.throttled.replicas", SET, "0:0,0:0") == 0
    assert described(cluster, TOPIC, "t")["leader.replication.throttled.replicas"].value == "0:0,0:0"
