"""Properties files: parsing as in `java.util.Properties`, validation line by line, and combination with other settings sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.config.definitions import definitions_of
from kafkaproto.broker.config.listeners import listeners_of
from kafkaproto.broker.config.properties import combined, properties, settings_of_file
from kafkaproto.broker.config.values import ConfigError

STOCK = Path(__file__).with_name("stock")
OLDER = definitions_of("3.9")


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a=1", [("a", "1", 1)]),
        ("a = 1 \n", [("a", "1 ", 1)]),
        ("  a:1\n\tb 2\nc\n", [("a", "1", 1), ("b", "2", 2), ("c", "", 3)]),
        ("a==1\na:=1\na =:1", [("a", "=1", 1), ("a", "=1", 2), ("a", ":1", 3)]),
        ("# a=1\n ! b=2\n\n \t\nc=3 # no comment", [("c", "3 # no comment", 5)]),
        ("a=1,\\\n   2,\\\n\t3\nb=4", [("a", "1,2,3", 1), ("b", "4", 4)]),
        ("a=1\\\n next\\\nu", [("a", "1nextu", 1)]),
        ("a=1\\\\\nb=2", [("a", "1\\", 1), ("b", "2", 2)]),
        ("a=1\\\n# 2\nb=3", [("a", "1# 2", 1), ("b", "3", 3)]),
        ("# a\\\nb=1", [("b", "1", 2)]),
        ("a=1\r\nb=2\rc=3\\\r\n 4", [("a", "1", 1), ("b", "2", 2), ("c", "34", 3)]),
        (r"a\=b\:c\ d=1", [("a=b:c d", "1", 1)]),
        (r"a=\t\n\r\f\q\\", [("a", "\t\n\r\fq\\", 1)]),
        (r"caf\u00e9=\u00E9 \\u00e9", [("café", "é \\u00e9", 1)]),
        ("=1", [("", "1", 1)]),
        ("", []),
    ],
)
def test_properties_files_can_have_comments_escapes_and_continuation_lines(
    text: str, entries: list[tuple[str, str, int]]
) -> None:
    assert [tuple(entry) for entry in properties(text)] == entries


def written(folder: Path, text: str) -> Path:
    path = folder / "server.properties"
    path.write_bytes(text.encode("latin-1"))
    return path


def test_properties_file_is_read_as_latin_1_and_a_repeated_key_gets_its_last_value(tmp_path: Path) -> None:
    path = written(tmp_path, "broker.rack=caf\xe9\nnum.partitions=2\n1.broker.rack=b\nnum.partitions=3\n")
    assert settings_of_file(path, OLDER) == {"broker.rack": "café", "num.partitions": "3", "1.broker.rack": "b"}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("broker.rack=a,\\\n b\n\nfetch.max.bytes=\\\n12", 4, "fetch.max.bytes must be an integer from 1024"),
        ("num.partitions=many", 1, "num.partitions must be an integer"),
        ("broker.rack=a\nbroker.rack=\\u12x4", 2, "malformed escape \\u12x4"),
        ("authorizer.class.name=my.Authorizer", 1, "access control lists are not served"),
        ("process.roles=controller", 1, "a controller alone serves no clients"),
        ("security.inter.broker.protocol=SSL", 1, "TLS and SASL are not served"),
        ("remote.log.storage.system.enable=true", 1, "tiered storage is not served"),
        ("create.topic.policy.class.name=my.Policy", 1, "this broker cannot load a Java class"),
    ],
)
def test_properties_file_error_contains_file_name_line_number_setting_and_correction(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        settings_of_file(path, OLDER)
    assert str(raised.value).startswith(f"{path}:{line}: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_error_for_an_unreadable_properties_file_contains_the_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.properties: cannot be read: No such file"):
        settings_of_file(tmp_path / "none.properties", OLDER)
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        settings_of_file(tmp_path, OLDER)


def test_cluster_wide_setting_overrides_per_broker_values_of_lower_priority_sources() -> None:
    file = {"num.partitions": "1", "1.broker.rack": "a", "1.log.retention.ms": "5"}
    assert combined(file, {"num.partitions": "2", "log.retention.ms": "6"}) == {
        "num.partitions": "2",
        "1.broker.rack": "a",
        "log.retention.ms": "6",
    }
    assert combined({"broker.rack": "a"}, {"1.broker.rack": "b"}) == {"broker.rack": "a", "1.broker.rack": "b"}


@pytest.mark.parametrize(
    ("name", "release", "idle"),
    [
        ("kraft-3.9.1", "3.9", {"process.roles", "controller.quorum.voters", "log.dirs", "num.io.threads"}),
        ("zookeeper-3.9.1", "3.9", {"zookeeper.connect", "zookeeper.connection.timeout.ms", "log.dirs"}),
        ("kraft-4.2.0", "4.2", {"controller.quorum.bootstrap.servers", "num.network.threads"}),
        # A file of another release is accepted too, as by Kafka's brokers.
        ("zookeeper-3.9.1", "4.2", {"zookeeper.connect"}),
        ("kraft-4.2.0", "3.9", {"share.coordinator.state.topic.min.isr"}),
        ("kraft-3.9.1", "0.11", {"process.roles"}),
    ],
)
def test_stock_server_properties_files_of_kafka_are_accepted(name: str, release: str, idle: set[str]) -> None:
    settings = settings_of_file(STOCK / f"{name}.properties", definitions_of(release))
    config = ClusterConfig(settings, release=release)
    assert config.get(0, "num.partitions") == 1
    assert config.get(0, "offsets.topic.replication.factor") == 1
    assert idle <= set(config.without_effect())
    assert not {"num.partitions", "log.retention.hours", "socket.request.max.bytes"} & set(config.without_effect())
    [listener] = listeners_of(config.for_broker(0), "127.0.0.1", 9092)
    of_file = ("localhost", 9092) if name.startswith("kraft") else ("", 0)
    assert (listener.name, listener.port, listener[3:]) == ("PLAINTEXT", 9092, of_file)


def test_broker_with_only_controller_listeners_is_rejected() -> None:
    config = ClusterConfig({"listeners": "CONTROLLER://:9093", "controller.listener.names": "CONTROLLER"})
    with pytest.raises(
        ConfigError,
        match=r"all of these listeners belong to controllers \(controller\.listener\.names\); "
        "add one for the broker, for example listeners=PLAINTEXT",
    ):
        listeners_of(config.for_broker(0), "127.0.0.1", 9092)


def test_tls_listeners_in_a_properties_file_are_rejected_with_the_reason() -> None:
    settings = settings_of_file(STOCK / "kraft-3.9.1.properties", OLDER)
    config = ClusterConfig({**settings, "listeners": "SSL://:9092", "advertised.listeners": "SSL://localhost:9092"})
    with pytest.raises(
        ConfigError, match=r"listener SSL must have the protocol PLAINTEXT \(got SSL\): TLS and SASL are not served"
    ):
        listeners_of(config.for_broker(0), "127.0.0.1", 9092)


def test_unknown_setting_in_a_file_is_ignored_with_a_warning_that_suggests_a_name(tmp_path: Path) -> None:
    """Kafka warns of unknown names and starts."""
    lines = "num.partitions=3\n\nfetch.max.byte=2048\nmy.plugin.url=a\n1.fetch.max.byte=9\nfetch.max.byte=1\n"
    path = written(tmp_path, lines)
    warnings: list[str] = []
    assert settings_of_file(path, OLDER, warnings.append) == {"num.partitions": "3"}
    assert warnings == [
        f'{path}:3: the unknown broker setting "fetch.max.byte" is ignored; did you mean "fetch.max.bytes"?',
        f'{path}:4: the unknown broker setting "my.plugin.url" is ignored',
    ]


@pytest.mark.parametrize(
    ("encoding", "description"),
    [
        ("utf-16", "in UTF-16"),
        ("utf-16-be", "with zero bytes, as UTF-16 has them"),
        ("utf-8-sig", "in UTF-8 with a byte order mark"),
    ],
)
def test_properties_file_in_an_unsupported_encoding_is_rejected(
    tmp_path: Path, encoding: str, description: str
) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes("num.partitions=3\n".encode(encoding))
    with pytest.raises(ConfigError) as raised:
        settings_of_file(path, OLDER)
    assert str(raised.value) == (
        f"{path}: the file is encoded {description}; save it as ASCII or ISO-8859-1, or as UTF-8 without a byte order mark"
    )
