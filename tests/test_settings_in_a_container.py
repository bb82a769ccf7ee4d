"""`kafkaproto broker --container DIR`: precedence of settings sources, and addresses of brokers without listeners."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.config.listeners import Listener, listeners_of
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.server.main import parser
from kafkaproto.broker.server.settings import settings_of_options


def settings(folder: Path, *arguments: str, **variables: str) -> dict[str, str]:
    return settings_of_options(parser().parse_args(["--container", str(folder), *arguments]), variables)


def listeners(folder: Path, *arguments: str, **variables: str) -> list[list[Listener]]:
    """Return the listeners of each broker."""
    options = parser().parse_args(["--container", str(folder), *arguments])
    cluster = Cluster(options.brokers, settings_of_options(options, variables))
    return [listeners_of(node.config, "not used", 1) for node in cluster.nodes]


def test_container_options_override_environment_variables_which_override_files(tmp_path: Path) -> None:
    lines = [f"{name}=mounted" for name in ("broker.rack", "metric.reporters", "log.dir", "log.dirs")]
    (tmp_path / "server.properties").write_text("\n".join(lines))
    (tmp_path / "own.properties").write_text("metric.reporters=config\nlog.dir=config\nlog.dirs=config\n")
    settings_read = settings(
        *(tmp_path, "--config", str(tmp_path / "own.properties"), "-c", "log.dirs=option"),
        KAFKA_LOG_DIR="variable",
        KAFKA_LOG_DIRS="variable",
    )
    assert settings_read["broker.rack"] == "mounted"
    assert settings_read["metric.reporters"] == "config"
    assert settings_read["log.dir"] == "variable"
    assert settings_read["log.dirs"] == "option"


def test_kafka_environment_variables_are_ignored_by_a_broker_outside_a_container() -> None:
    assert settings_of_options(parser().parse_args([]), {"KAFKA_BROKER_RACK": "a"}) == {}


def test_unknown_environment_variable_does_not_prevent_the_start_of_a_container(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings_read = settings(tmp_path, KAFKA_NUM_PARTITION="3", KAFKA_BROKER_RACK="a")
    assert settings_read["broker.rack"] == "a" and "num.partition" not in settings_read
    assert [(record.levelname, "KAFKA_NUM_PARTITION:" in record.message) for record in caplog.records] == [
        ("WARNING", True)
    ]
    with pytest.raises(ConfigError, match="KAFKA_NUM_PARTITIONS"):
        settings(tmp_path, KAFKA_NUM_PARTITIONS="many")


def test_error_in_a_mounted_properties_file_starts_with_file_path_and_line_number(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("\nnum.partitions=many")
    with pytest.raises(ConfigError) as error:
        settings(tmp_path)
    assert str(error.value).startswith(f"{path}:2: num.partitions must be an integer from 1")


NAMED_LISTENERS = {
    "KAFKA_LISTENERS": "INSIDE://:1,OUTSIDE://:2,CONTROLLER://:3",
    "KAFKA_ADVERTISED_LISTENERS": "INSIDE://elsewhere:1,OUTSIDE://elsewhere:2",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "INSIDE",
    "KAFKA_EARLY_START_LISTENERS": "CONTROLLER",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_PROCESS_ROLES": "broker,controller",
}
"""Variables that define and name listeners, all of which `--host` and `--port` replace."""


def test_container_without_listeners_binds_every_address_and_advertises_localhost(tmp_path: Path) -> None:
    assert listeners(tmp_path / "missing") == [[Listener("PLAINTEXT", "0.0.0.0", 9092, "localhost", 9092)]]
    assert listeners(tmp_path, "--brokers", "3", KAFKA_NUM_PARTITIONS="3") == [
        [Listener("PLAINTEXT", "0.0.0.0", port, "localhost", port)] for port in (9092, 9093, 9094)
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--port", "19092"), ("0.0.0.0", 19092, "localhost", 19092)),
        (("--port", "0"), ("0.0.0.0", 0, "localhost", 0)),
        (("--host", "127.0.0.1"), ("127.0.0.1", 9092, "127.0.0.1", 9092)),
        (("--host", "::"), ("::", 9092, "localhost", 9092)),
        (("--host", "::1"), ("::1", 9092, "::1", 9092)),
        (("-c", "advertised.listeners=PLAINTEXT://kafka:9"), ("0.0.0.0", 9092, "kafka", 9)),
        (("-c", "listeners=PLAINTEXT://127.0.0.1:7"), ("127.0.0.1", 7, "", 0)),
        (("-c", "0.listeners=PLAINTEXT://127.0.0.1:7"), ("127.0.0.1", 7, "", 0)),
    ],
)
def test_command_line_options_set_the_listener_of_a_container(
    arguments: tuple[str, ...], expected: tuple[object, ...], tmp_path: Path
) -> None:
    variables = NAMED_LISTENERS if arguments[0] in ("--port", "--host") else {}
    [[listener]] = listeners(tmp_path, *arguments, **variables)
    assert listener == Listener("PLAINTEXT", *expected)


def test_container_uses_the_listeners_of_the_mounted_properties_file(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("listeners=A://:7\nadvertised.listeners=A://kafka:8\n")
    assert listeners(tmp_path) == [[Listener("A", "", 7, "kafka", 8)]]
    of_variable = listeners(tmp_path, KAFKA_ADVERTISED_LISTENERS="A://other:9")
    assert of_variable == [[Listener("A", "0.0.0.0", 9, "other", 9)]]


def test_two_brokers_with_a_single_advertised_port_from_the_environment_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="brokers 0 and 1 cannot listen on the same port"):
        settings(tmp_path, "--brokers", "2", KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://localhost:9092")
