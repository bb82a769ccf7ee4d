"""`kafkaproto broker --config FILE` and `kafkaproto settings`: precedence, rejected settings, and the list of settings."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaproto import cli
from kafkaproto.broker.config.definitions import definitions_of
from kafkaproto.broker.server.main import main
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.pipeline.ask import ask

STOCK = Path(__file__).parent / "broker" / "config" / "stock"
READY_SECONDS = 20.0
STATIC, DEFAULT = 4, 5

Start = Callable[..., "Running"]


class Running:
    """A broker process; `address` is the first line that it printed."""

    def __init__(self, arguments: tuple[str, ...]) -> None:
        command = [sys.executable, "-m", "broker", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def settings(self, broker_id: str = "0") -> dict[str, tuple[str | None, int]]:
        """Return setting name to (value, source) as DescribeConfigs shows them."""
        assert self.address, self.end()
        [result] = ask(self.address, DescribeConfigsRequest([DescribeConfigsResource(4, broker_id, None)]), 4).results
        return {c.name: (c.value, c.config_source) for c in result.configs}

    def end(self) -> str:
        """Stop the process and return its log."""
        self.process.terminate()
        return self.process.communicate(timeout=READY_SECONDS)[1]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[Running] = []

    def begin(*arguments: str) -> Running:
        running.append(Running(arguments))
        return running[-1]

    yield begin
    for process in running:
        if process.process.poll() is None:
            process.end()


def written(folder: Path, text: str, name: str = "server.properties") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("name", "release", "broker_id"),
    [("kraft-3.9.1", "3.9", "1"), ("zookeeper-3.9.1", "3.9", "0"), ("kraft-4.2.0", "4.2", "1")],
)
def test_broker_starts_with_a_server_properties_file_that_kafka_ships(
    start: Start, name: str, release: str, broker_id: str
) -> None:
    running = start("--config", str(STOCK / f"{name}.properties"), "--port", "0", "--release", release)
    settings = running.settings(broker_id)
    assert settings["log.retention.hours"] == ("168", STATIC)
    assert settings["num.network.threads"] == ("3", STATIC)
    assert settings["background.threads"] == ("10", DEFAULT)
    assert settings["node.id"] == (broker_id, STATIC)
    [line] = [line for line in running.end().splitlines() if "accepted but have no effect" in line]
    assert "num.network.threads" in line and "socket.request.max.bytes" not in line


def test_options_override_properties_files_and_later_files_override_earlier_files(start: Start, tmp_path: Path) -> None:
    properties = "num.partitions=1\nmessage.max.bytes=1\noffsets.topic.num.partitions=7\n0.broker.rack=of-file\n"
    first = written(tmp_path, properties + "fetch.max.bytes=2000", "first.properties")
    second = written(tmp_path, "message.max.bytes=2\nfetch.max.bytes=3000", "second.properties")
    of_options = ("-c", "fetch.max.bytes=4000", "-c", "broker.rack=of-option", "-c", "num.io.threads=3")
    running = start("--config", first, "--config", second, "--port", "0", *of_options, "-c", "fetch.max.bytes=5000")
    settings = running.settings()
    assert settings["num.partitions"] == ("1", STATIC)
    assert settings["message.max.bytes"] == ("2", STATIC)
    assert settings["fetch.max.bytes"] == ("5000", STATIC)
    assert settings["broker.rack"] == ("of-option", STATIC)
    assert settings["offsets.topic.num.partitions"] == ("7", STATIC)  # overrides the profile
    assert settings["group.initial.rebalance.delay.ms"] == ("0", STATIC)  # from the profile
    assert "num.io.threads is accepted, but has no effect" in running.end()


def test_broker_uses_listeners_of_a_properties_file_unless_an_option_overrides_them(
    start: Start, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = written(tmp_path, f"listeners=INSIDE://127.0.0.1:{port}\nadvertised.listeners=INSIDE://localhost:{port}")
    of_file = start("--config", file)
    assert of_file.address == f"localhost:{port}"
    of_port = start("--config", file, "--port", "0")
    assert of_port.address.startswith("127.0.0.1:") and of_port.address != f"127.0.0.1:{port}"
    assert "listeners" in of_port.settings()
    of_file.end()
    of_host = start("--config", file, "--host", "127.0.0.1", "-c", f"listeners=OWN://127.0.0.1:{port}")
    assert of_host.address == f"127.0.0.1:{port}"


def test_unknown_setting_in_a_properties_file_logs_a_warning(start: Start, tmp_path: Path) -> None:
    running = start("--config", written(tmp_path, "# one\nnum.partition=3\nsegment.bytes=1000000\n"))
    log_text = running.end()
    assert (
        'server.properties:2: the unknown broker setting "num.partition" is ignored; did you mean "num.partitions"?'
        in log_text
    )
    assert (
        'server.properties:3: the unknown broker setting "segment.bytes" is ignored; did you mean "log.segment.bytes"?'
        in log_text
    )


@pytest.mark.parametrize(
    ("text", "arguments", "messages"),
    [
        ("fetch.max.bytes=1", (), (":1: fetch.max.bytes must be an integer from 1024",)),
        ("9.broker.rack=a", (), ("9.broker.rack: there is no broker 9",)),
        (
            "authorizer.class.name=a.B",
            (),
            (':1: authorizer.class.name must be empty (got "a.B"): access control lists are not served',),
        ),
        ("listeners=SASL_SSL://:9092", (), ("listener SASL_SSL", "TLS and SASL are not served")),
        (
            "listeners=PLAINTEXT://:9092",
            ("--brokers", "3"),
            ("brokers 0 and 1 cannot listen on the same port", "--port"),
        ),
        ("log.segment.bytes=100", ("--release", "4.2"), (":1: log.segment.bytes must be an integer from 1048576",)),
    ],
)
def test_broker_with_invalid_properties_file_prints_1_line_and_exits_with_status_2(
    tmp_path: Path, text: str, arguments: tuple[str, ...], messages: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["--config", written(tmp_path, text), "--log-level", "error", *arguments])
    out, err = capsys.readouterr()
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert all(message in err for message in messages), err


def listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> tuple[int, Any, str]:
    """Run `kafkaproto settings` and return its status, heading to {name: the other columns}, and stderr."""
    monkeypatch.setattr(sys, "argv", ["kafkaproto", "settings", *arguments])
    status = cli.main()
    out, err = capsys.readouterr()
    tables: dict[str, dict[str, list[str]]] = {}
    for line in out.splitlines():
        if " settings of Kafka " in line:
            tables[line] = {}
        elif line and not line.startswith("name "):
            name, *columns = line.split()
            list(tables.values())[-1][name] = columns
    return status, tables, err


@pytest.mark.parametrize(
    ("release", "table"), [("3.9", "3.9.1"), ("2.8", "3.9.1"), ("0.11", "3.9.1"), ("4.0", "4.2.0")]
)
def test_settings_command_lists_all_settings_of_a_release(
    release: str, table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, tables, _ = listed(capsys, monkeypatch, "--release", release)
    definitions = definitions_of(release)
    assert status == 0
    assert tables[f"Broker settings of Kafka {table}"].keys() == definitions.broker.keys()
    assert tables[f"Topic settings of Kafka {table}"].keys() == definitions.topic.keys()
    assert (f"Group settings of Kafka {table}" in tables) == (table == "4.2.0")


def test_settings_command_prints_the_default_value_and_the_range_of_each_setting(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, tables, _ = listed(capsys, monkeypatch)
    broker, topic = tables.values()
    assert broker["fetch.max.bytes"] == ["int", "start", "acts", "57671680", "1024", "or", "more"]
    assert broker["background.threads"] == ["int", "dynamic", "none", "10", "1", "or", "more"]
    assert broker["ssl.protocol"][:3] == ["string", "broker", "none"]
    assert broker["authorizer.class.name"][:4] == ["string", "start", "refused", '""']
    assert broker["log.retention.ms"][:4] == ["long", "dynamic", "acts", "(none)"]
    assert topic["compression.gzip.level"][1:] == ["dynamic", "acts", "-1", "-1", "or", "1", "to", "9"]
    assert topic["message.timestamp.type"][-3:] == ["CreateTime", "|", "LogAppendTime"]
    assert broker["kafkaproto.replica.delay.ms"][2] == "acts"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("log.retention.m", {"log.retention.ms", "log.retention.minutes"}),
        ("*.retention.ms", {"log.local.retention.ms", "log.retention.ms", "metadata.max.retention.ms"}),
        ("NUM.PARTITIONS", {"num.partitions"}),
    ],
)
def test_settings_command_lists_names_that_match_a_substring_or_a_wildcard_pattern(
    pattern: str, names: set[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, tables, _ = listed(capsys, monkeypatch, pattern)
    assert names <= set(next(iter(tables.values())))
    for table in tables.values():
        assert all(pattern.strip("*").lower() in name for name in table)


def test_settings_command_suggests_the_nearest_name_if_a_pattern_matches_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, tables, err = listed(capsys, monkeypatch, "fetch.max.byts")
    assert (status, tables) == (1, {})
    assert err == 'kafkaproto settings: no setting matches "fetch.max.byts"; did you mean "fetch.max.bytes"?\n'
