"""Environment variables as settings, with the mapping of the apache/kafka image."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.config.definitions import Definitions, definitions_of
from kafkaproto.broker.config.environment import (
    ignored_variables,
    setting_of,
    settings_of_environment,
    variable_of,
)
from kafkaproto.broker.config.listeners import Listener, listeners_of
from kafkaproto.broker.config.values import ConfigError

OLDER, NEWER = definitions_of("3.9"), definitions_of("4.2")

SINGLE_NODE = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@broker:29093",
    "KAFKA_LISTENERS": "CONTROLLER://:29093,PLAINTEXT_HOST://:9092,PLAINTEXT://:19092",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR": "1",
    "KAFKA_LOG_DIRS": "/tmp/kraft-combined-logs",
}
"""The variables of a single-node cluster in the documentation of the apache/kafka image."""

TESTCONTAINERS = {
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,BROKER://:9093,CONTROLLER://:9094,TC-0://kafka:19092",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TC-0:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_NODE_ID": "1",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "9223372036854775807",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:55001,BROKER://0123456789ab:9093,TC-0://kafka:19092",
}
"""The variables that the Kafka module of Testcontainers sets, plus one more listener."""

KUBERNETES = {
    "KAFKA_PORT": "tcp://10.0.0.7:9092",
    "KAFKA_PORT_9092_TCP": "tcp://10.0.0.7:9092",
    "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.7",
    "KAFKA_PORT_9092_TCP_PORT": "9092",
    "KAFKA_PORT_9092_TCP_PROTO": "tcp",
    "KAFKA_SERVICE_HOST": "10.0.0.7",
    "KAFKA_SERVICE_PORT": "9092",
    "KAFKA_SERVICE_PORT_CLIENTS": "9092",
    "KAFKA_UI_SERVICE_HOST": "10.0.0.8",
}
"""The variables that Kubernetes sets in containers next to services named `kafka` and `kafka-ui`."""


def listeners(variables: Mapping[str, str]) -> list[Listener]:
    """Return the listeners of a broker with the settings of these variables."""
    settings = settings_of_environment(variables, NEWER)
    return listeners_of(ClusterConfig(settings, release="4.2").for_broker(0), "127.0.0.1", 1)


@pytest.mark.parametrize(
    ("variable", "setting"),
    [
        ("KAFKA_ABC_DEF", "abc.def"),
        ("KAFKA_ABC__DEF", "abc_def"),
        ("KAFKA_ABC___DEF", "abc-def"),
        ("KAFKA_ABC_DEF__GHI___JKL_M", "abc.def_ghi-jkl.m"),
        ("KAFKA_1_BROKER_RACK", "1.broker.rack"),
        ("KAFKA_KAFKAPROTO_REPLICA_DELAY_MS", "kafkaproto.replica.delay.ms"),
    ],
)
def test_environment_variable_with_triple_underscore_sets_a_setting_with_a_hyphen(variable: str, setting: str) -> None:
    assert setting_of(variable) == setting
    assert variable_of(setting) == variable


@pytest.mark.parametrize("definitions", [OLDER, NEWER], ids=["3.9.1", "4.2.0"])
def test_every_broker_setting_can_be_set_by_an_environment_variable(definitions: Definitions) -> None:
    names = [name for name in definitions.broker if name.islower()]  # but `zookeeper.clientCnxnSocket`
    assert len(names) > 200
    assert [setting_of(variable_of(name)) for name in names] == names
    assert ignored_variables(dict.fromkeys(map(variable_of, names), "")) == []


def test_environment_variables_that_begin_with_kafka_underscore_set_broker_settings() -> None:
    variables = {
        "KAFKA_NUM_PARTITIONS": "3",
        "KAFKA_LOG_RETENTION_MS": "-1",
        "KAFKA_BROKER_RACK": " a\\u00e9\\tb ",
        "KAFKA_1_BROKER_RACK": "of 1",
        "PATH": "/bin",
        "kafka_fetch_max_bytes": "not a variable of Kafka",
    }
    assert settings_of_environment(variables, OLDER) == {
        "num.partitions": "3",
        "log.retention.ms": "-1",
        "broker.rack": "aé\tb ",
        "1.broker.rack": "of 1",
    }


def test_environment_variable_with_several_lines_sets_several_settings() -> None:
    assert settings_of_environment({"KAFKA_NUM_PARTITIONS": "3\nbroker.rack=a\n"}, OLDER) == {
        "num.partitions": "3",
        "broker.rack": "a",
    }
    warnings: list[str] = []
    variables = {"KAFKA_NUM_PARTITIONS": "3\nbroker.rac=a\nbroker.rack=b"}
    assert settings_of_environment(variables, OLDER, warnings.append) == {"num.partitions": "3", "broker.rack": "b"}
    assert warnings == [
        'KAFKA_NUM_PARTITIONS: the unknown broker setting "broker.rac" is ignored; did you mean KAFKA_BROKER_RACK?'
    ]


@pytest.mark.parametrize(
    ("variable", "setting", "hint"),
    [
        ("KAFKA_NUM_PARTITION", "num.partition", "; did you mean KAFKA_NUM_PARTITIONS?"),
        ("KAFKA_1_BROKER_RACKS", "broker.racks", "; did you mean KAFKA_BROKER_RACK?"),
        ("KAFKA_QQQ", "qqq", ""),
    ],
)
def test_environment_variable_of_an_unknown_setting_is_ignored_with_a_warning(
    variable: str, setting: str, hint: str
) -> None:
    warnings: list[str] = []
    variables = {variable: "3", "KAFKA_NUM_PARTITIONS": "4"}
    assert settings_of_environment(variables, OLDER, warnings.append) == {"num.partitions": "4"}
    assert warnings == [f'{variable}: the unknown broker setting "{setting}" is ignored{hint}']


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("KAFKA_FETCH_MAX_BYTES", "1k", "KAFKA_FETCH_MAX_BYTES: fetch.max.bytes must be an integer from 1024"),
        ("KAFKA_NUM_PARTITIONS", "", "KAFKA_NUM_PARTITIONS: num.partitions must be an integer from 1"),
        ("KAFKA_BROKER_RACK", "\\u00", "KAFKA_BROKER_RACK: malformed escape \\u00"),
        (
            "KAFKA_AUTHORIZER_CLASS_NAME",
            "a.B",
            'KAFKA_AUTHORIZER_CLASS_NAME: authorizer.class.name must be empty (got "a.B"): access control',
        ),
        ("KAFKA_PROCESS_ROLES", "controller", "a controller alone serves no clients"),
    ],
)
def test_environment_variable_error_names_the_variable_and_the_allowed_values(
    variable: str, value: str, message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        settings_of_environment({variable: value}, OLDER)
    assert str(error.value).startswith(f"{variable}: ") and message in str(error.value)


@pytest.mark.parametrize("variables", [SINGLE_NODE, TESTCONTAINERS])
def test_listeners_set_by_docker_variables_are_opened_except_controller_listeners(variables: dict[str, str]) -> None:
    bound = {listener.name: listener[1:] for listener in listeners(variables)}
    if variables is SINGLE_NODE:
        assert bound == {
            "PLAINTEXT_HOST": ("", 9092, "localhost", 9092),
            "PLAINTEXT": ("", 19092, "broker", 19092),
        }
    else:
        assert bound == {
            "PLAINTEXT": ("", 9092, "localhost", 55001),
            "BROKER": ("", 9093, "0123456789ab", 9093),
            "TC-0": ("kafka", 19092, "kafka", 19092),
        }


@pytest.mark.parametrize(
    ("advertised", "derived"),
    [
        ("PLAINTEXT://localhost:9092", [("0.0.0.0", 9092)]),
        ("INSIDE://kafka:29092,OUTSIDE://localhost:9092", [("0.0.0.0", 29092), ("0.0.0.0", 9092)]),
        ("PLAINTEXT://[::1]:9092", [("0.0.0.0", 9092)]),
        ("PLAINTEXT://:9092", [("0.0.0.0", 9092)]),
    ],
)
def test_broker_listens_on_all_addresses_if_only_advertised_listeners_are_set(
    advertised: str, derived: list[tuple[str, int]]
) -> None:
    variables = {"KAFKA_ADVERTISED_LISTENERS": advertised}
    assert [(listener.host, listener.port) for listener in listeners(variables)] == derived
    assert listeners(variables | {"KAFKA_LISTENERS": ""}) == listeners(variables)


def test_tls_listeners_in_environment_variables_are_rejected() -> None:
    variables = {"KAFKA_ADVERTISED_LISTENERS": "SSL://localhost:9093", "KAFKA_SSL_KEYSTORE_FILENAME": "kafka.jks"}
    with pytest.raises(ConfigError, match=r"listener SSL .* TLS and SASL are not served"):
        listeners(variables)


def test_environment_variables_of_jvm_scripts_and_kubernetes_are_ignored() -> None:
    others = {
        "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "KAFKA_OPTS": "-Da=b",
        "KAFKA_JVM_PERFORMANCE_OPTS": "-server",
        "KAFKA_LOG4J_LOGGERS": "kafka=WARN",
        "KAFKA_JMX_PORT": "9101",
        **KUBERNETES,
    }
    assert settings_of_environment(others | {"KAFKA_BROKER_RACK": "a"}, OLDER) == {"broker.rack": "a"}
    assert ignored_variables(others | {"KAFKA_BROKER_RACK": "a", "PATH": "/bin"}) == sorted(others)
