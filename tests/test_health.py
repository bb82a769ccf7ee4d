"""`kafkaproto health`: brokers that respond, and those that do not respond."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkaproto import cli
from kafkaproto.broker.proxy import main as proxy
from kafkaproto.broker.server import health
from kafkaproto.testing import cluster


def check(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["kafkaproto", "health", *arguments])
    return cli.main()


@pytest.fixture
def listening() -> Iterator[tuple[str, Callable[[bytes], None]]]:
    """Yield an address, and a function that answers the first connection there with some bytes and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer(data: bytes) -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(data)

        threads: list[threading.Thread] = []

        def begin(data: bytes) -> None:
            threads.append(threading.Thread(target=answer, args=(data,)))
            threads[-1].start()

        yield f"127.0.0.1:{server.getsockname()[1]}", begin
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("release", ["0.9", "3.9", "4.2"])
def test_health_command_succeeds_for_kafka_0_9_to_4_2_and_fails_if_a_broker_stops(
    release: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(brokers=2, release=release) as c:
        addresses = c.bootstrap.split(",")
        assert check(monkeypatch, *addresses) == 0
        assert capsys.readouterr() == ("", "")
        c.broker(1).stop()
        assert check(monkeypatch, *addresses) == health.UNHEALTHY
        assert f"kafkaproto health: {addresses[1]} does not respond" in capsys.readouterr().err


@pytest.mark.parametrize("data", [b"", b"\0\0\0\x04\0\0\0\x63", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_health_command_prints_an_error_line_if_the_server_is_not_a_kafka_broker(
    data: bytes,
    listening: tuple[str, Callable[[bytes], None]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    address, respond = listening
    respond(data)
    assert check(monkeypatch, address) == health.UNHEALTHY
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kafkaproto health: {address} does not respond: ") and not line.endswith(": ")


def test_health_command_reports_a_server_that_does_not_respond_as_unhealthy(
    listening: tuple[str, Callable[[bytes], None]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(health, "TIMEOUT_SECONDS", 0.1)
    assert check(monkeypatch, listening[0]) == health.UNHEALTHY
    assert "timed out" in capsys.readouterr().err


def test_health_command_in_a_container_checks_the_addresses_in_kafka_listeners(tmp_path: Path) -> None:
    assert health.addresses_in_container(str(tmp_path), {}) == [("127.0.0.1", 9092)]
    variables = {
        "KAFKA_LISTENERS": "A://:19092,B://10.0.0.7:19093,CONTROLLER://:9093",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    }
    assert health.addresses_in_container(str(tmp_path), variables) == [("127.0.0.1", 19092), ("10.0.0.7", 19093)]
    variables |= {"KAFKA_NODE_ID": "1", "KAFKA_1_LISTENERS": "A://:29092"}
    assert health.addresses_in_container(str(tmp_path), variables) == [("127.0.0.1", 29092)]


def test_container_health_check_fails_if_no_broker_listens_at_the_advertised_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KAFKA_NUM_PARTITION", "3")  # unknown settings are ignored
    with cluster() as c:
        monkeypatch.setenv("KAFKA_ADVERTISED_LISTENERS", f"PLAINTEXT://{c.bootstrap}")
        assert check(monkeypatch, "--container", str(tmp_path)) == 0
    assert check(monkeypatch, "--container", str(tmp_path)) == health.UNHEALTHY
    monkeypatch.setenv("KAFKA_NUM_PARTITIONS", "many")
    capsys.readouterr()
    assert check(monkeypatch, "--container", str(tmp_path)) == 2
    assert "KAFKA_NUM_PARTITIONS: num.partitions must be an integer" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["9092", "localhost:", "localhost:0", "localhost:x", ":9092"])
def test_health_command_rejects_an_address_without_host_or_port(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as error:
        check(monkeypatch, text)
    assert error.value.code == 2
    assert "must be HOST:PORT, for example localhost:9092" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["::1:9092", "::1", "[::1:9092", "::1]:9092", "[]:9092", "[[::1]]:9092"])
def test_health_and_proxy_commands_reject_an_ipv6_address_without_brackets(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for parser, arguments in (
        (health.parser(), [text]),
        (proxy.parser(), ["--to", text]),
        (proxy.parser(), ["--to", "kafka:9092", "--listen", text]),
    ):
        with pytest.raises(SystemExit):
            parser.parse_args(arguments)
        error = capsys.readouterr().err
        assert (
            f"must be HOST:PORT, in which only an IPv6 address has brackets, for example localhost:9092 or [::1]:9092 (got {text!r})"
            in error
        )


@pytest.mark.parametrize(
    ("text", "host"),
    [("[::1]:9092", "::1"), ("[fe80::1%eth0]:9092", "fe80::1%eth0"), ("localhost:9092", "localhost")],
)
def test_health_and_proxy_commands_accept_a_host_name_or_an_ipv6_address_in_brackets(text: str, host: str) -> None:
    assert health.parser().parse_args([text]).addresses == [(host, 9092)]
    options = proxy.parser().parse_args(["--to", text, "--listen", text, "--trace", "t"])
    assert options.to == options.listen == (host, 9092)
