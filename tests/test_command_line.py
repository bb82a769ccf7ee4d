"""`python -m broker` and `kafkaproto broker`: output, rejected options and exit."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from kafkaproto.broker.server.main import main, parser
from kafkaproto.messages.describe_cluster import DescribeClusterRequest
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaproto.pipeline.ask import ask

MODULE = (sys.executable, "-m", "broker")
SCRIPT = (str(Path(sys.executable).with_name("kafkaproto")), "broker")
READY_SECONDS = 20.0
END_SECONDS = 1.0


class Running:
    """A broker process. `addresses` are the lines that it printed when it was ready."""

    def __init__(self, command: Sequence[str], brokers: int) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.addresses = [self.process.stdout.readline().rstrip("\n") for _ in range(brokers)]
        self.ended = False

    def end(self, number: int = signal.SIGTERM) -> tuple[str, str, float]:
        """Send a signal, and return the rest of stdout, all of stderr, and the seconds until the process ended."""
        start_s = time.perf_counter()
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=READY_SECONDS)
        self.ended = True
        return out, err, time.perf_counter() - start_s


Start = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[Running] = []

    def begin(*arguments: str, brokers: int = 1, command: Sequence[str] = MODULE) -> Running:
        running.append(Running([*command, *arguments], brokers))
        return running[-1]

    yield begin
    for process in running:
        if not process.ended:
            process.process.kill()
            process.process.communicate()


@pytest.mark.parametrize("command", [MODULE, SCRIPT], ids=["module", "script"])
def test_broker_command_prints_one_address_per_broker_and_no_other_output(start: Start, command: Sequence[str]) -> None:
    arguments = ("--brokers", "3", "--port", "0", "--topic", "orders:2:3", "-c", "1.broker.rack=b")
    running = start(*arguments, brokers=3, command=command)
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+", address) for address in running.addresses)
    assert len(set(running.addresses)) == 3
    response = ask(running.addresses[2], MetadataRequest([MetadataRequestTopic(name="orders")]), 9)
    assert [f"{b.host}:{b.port}" for b in sorted(response.brokers, key=lambda b: b.node_id)] == running.addresses
    assert [b.rack for b in sorted(response.brokers, key=lambda b: b.node_id)] == [None, "b", None]
    assert [len(p.replica_nodes) for p in response.topics[0].partitions] == [3, 3]
    out, err, _ = running.end()
    assert out == ""
    assert "profile test" in err
    assert running.process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_broker_command_with_connected_clients_exits_within_a_second_of_a_signal(start: Start, number: int) -> None:
    running = start("--port", "0")
    host, port = running.addresses[0].split(":")
    with socket.create_connection((host, int(port)), 5):
        out, err, seconds = running.end(number)
    assert (running.process.returncode, out) == (0, "")
    assert "Traceback" not in err
    assert seconds < END_SECONDS


def test_broker_command_uses_consecutive_ports_starting_at_the_given_port(start: Start) -> None:
    port = _three_free_ports()
    running = start("--brokers", "3", "--port", str(port), brokers=3)
    assert running.addresses == [f"127.0.0.1:{port + i}" for i in range(3)]


def test_broker_command_prints_a_single_error_line_if_its_port_is_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        result = _run("--port", str(port), "--log-level", "error")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert f"127.0.0.1:{port}" in result.stderr
    assert "in use" in result.stderr


REFUSED = [
    (("--brokers", "0"), "--brokers", "1 to 100"),
    (("--brokers", "many"), "--brokers", "for example 3"),
    (("--port", "70000"), "--port", "65535"),
    (("--topic", "orders:"), "--topic", "for example orders:6:3"),
    (("--topic", "orders:6:3:1"), "--topic", "for example orders:6:3"),
    (("--topic", "orders:0"), "--topic", "NAME:PARTITIONS"),
    (("--topic", "a/b:1"), "--topic a/b", "for example --topic orders:6:1"),
    (("--topic", "orders:1:3"), "--topic orders", "for example --topic orders:6:1"),
    (
        ("--topic", "orders", "--topic", "orders:2"),
        "--topic orders is given 2 times; ",
        "name each topic once",
    ),
    (("-c", "fetch.max.bytes"), "-c", "for example fetch.max.bytes=1048576"),
    (("-c", "fetch.max.bytes=1"), "fetch.max.bytes", "1024"),
    (("-c", "fetch.max.bytes=lots"), "fetch.max.bytes", "int"),
    (("-c", "fetch.max.byte=2048"), "fetch.max.byte", "fetch.max.bytes"),
    (("-c", "7.broker.rack=a"), "7.broker.rack", "0"),
    (("-c", "listeners=PLAINTEXT:9092"), "listeners", "for example"),
    (("-c", "advertised.listeners=OTHER://localhost:1"), "OTHER", "for example"),
    (("--semantics", "java"), "--semantics", "kip"),
    (("--release", "0.7"), "--release", "3.9"),
    (("--profile", "prod"), "--profile", "kafka"),
    (("--memory", "lots"), "--memory", "for example 256M"),
    (("--log-level", "loud"), "--log-level", "warning"),
    (("--nonsense",), "--nonsense", "--help"),
]


@pytest.mark.parametrize(("arguments", "option", "allowed"), REFUSED, ids=[" ".join(case[0]) for case in REFUSED])
def test_broker_command_with_invalid_options_prints_1_line_and_exits_with_status_2(
    arguments: Sequence[str], option: str, allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    full_arguments = arguments if "--port" in arguments else ("--port", "0", *arguments)
    try:
        status: object = main(
            ["--log-level", "error", *full_arguments] if "--log-level" not in full_arguments else full_arguments
        )
    except SystemExit as ended:
        status = ended.code
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.count("\n") == 1, err
    assert option in err
    assert allowed in err


def test_describe_cluster_returns_the_address_advertised_by_the_queried_listener(start: Start) -> None:
    inside, outside = _free_port(), _free_port()
    running = start(
        "-c",
        f"listeners=INSIDE://127.0.0.1:{inside},OUTSIDE://127.0.0.1:{outside}",
        "-c",
        f"advertised.listeners=INSIDE://kafka:{inside},OUTSIDE://localhost:{outside}",
    )
    assert running.addresses == [f"kafka:{inside}"]
    for port, host in ((inside, "kafka"), (outside, "localhost")):
        brokers = ask(f"127.0.0.1:{port}", DescribeClusterRequest(), 0).brokers
        assert [(b.host, b.port) for b in brokers] == [(host, port)]


def test_broker_command_warns_if_other_machines_can_connect(start: Start) -> None:
    running = start("--host", "0.0.0.0", "--port", "0")
    address = running.addresses[0]
    _, err, _ = running.end()
    assert "other machines can reach it" in err
    assert address.rsplit(":", 1)[1] in err
    _, quiet, _ = start("--port", "0").end()
    assert "other machines can reach it" not in quiet


def test_broker_command_with_profile_kafka_uses_the_default_settings_of_kafka(start: Start) -> None:
    running = start("--port", "0", "--profile", "kafka")
    from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

    response = ask(running.addresses[0], DescribeConfigsRequest([DescribeConfigsResource(4, "0")]), 1)
    configs = {c.name: c.value for c in response.results[0].configs}
    assert configs["offsets.topic.num.partitions"] == "50"
    assert configs["offsets.topic.replication.factor"] == "3"
    assert configs["group.initial.rebalance.delay.ms"] == "3000"
    _, err, _ = running.end()
    assert "profile" not in err


def test_broker_command_logs_that_setting_num_io_threads_has_no_effect(start: Start) -> None:
    _, err, _ = start("--port", "0", "-c", "num.io.threads=4").end()
    assert "num.io.threads" in err
    assert "no effect" in err


@pytest.mark.rule("CF-26")
def test_two_brokers_started_with_node_id_7_have_the_ids_7_and_8(start: Start) -> None:
    _, err, _ = start("--port", "0", "--brokers", "2", "-c", "node.id=7").end()
    assert "broker 7: PLAINTEXT" in err and "broker 8: PLAINTEXT" in err
    assert "no effect" not in err


@pytest.mark.rule("R-12")
def test_broker_command_logs_that_leader_replication_throttled_rate_has_no_effect(start: Start) -> None:
    _, err, _ = start("--port", "0", "-c", "leader.replication.throttled.rate=1000").end()
    assert "leader.replication.throttled.rate is accepted, but has no effect" in err


def test_broker_command_at_log_level_error_prints_nothing_if_no_error_occurs(start: Start) -> None:
    out, err, _ = start("--port", "0", "--log-level", "error").end()
    assert (out, err) == ("", "")


def test_broker_help_lists_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        parser().parse_args(["--help"])
    assert exit_info.value.code == 0
    out, _ = capsys.readouterr()
    options = [
        "--brokers",
        "--host",
        "--port",
        "--topic",
        "-c",
        "--semantics",
        "--release",
        "--profile",
        "--memory",
        "--data-dir",
        "--journal-topic",
        "--seed",
        "--log-level",
    ]
    assert [option for option in options if option not in out] == []


def test_restart_with_the_same_data_dir_and_topic_option_does_not_recreate_the_topic(
    start: Start, tmp_path: Path
) -> None:
    arguments = ("--port", "0", "--data-dir", str(tmp_path / "d"), "--topic", "orders:2")
    ids = []
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGTERM):
        running = start(*arguments)
        response = ask(running.addresses[0], MetadataRequest([MetadataRequestTopic(name="orders")]), 12)
        ids.append((response.cluster_id, response.topics[0].topic_id))
        running.end(number)
    assert len(set(ids)) == 1
    assert running.process.returncode == 0


@pytest.mark.parametrize(
    ("options", "name"), [(("--journal-topic",), "__journal"), (("--journal-topic", "events"), "events")]
)
def test_option_journal_topic_creates_a_topic_with_the_default_or_the_given_name(
    start: Start, options: tuple[str, ...], name: str
) -> None:
    running = start("--port", "0", *options)
    response = ask(running.addresses[0], MetadataRequest([MetadataRequestTopic(name=name)]), 12)
    assert (response.topics[0].error_code, len(response.topics[0].partitions)) == (0, 1)
    running.end()
    assert running.process.returncode == 0


def test_illegal_topic_name_in_option_journal_topic_prints_a_single_error_line() -> None:
    result = _run("--port", "0", "--journal-topic", "a b")
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1
    assert "cannot create the topic 'a b', to which the journal is written" in result.stderr


def test_kafkaproto_script_without_a_command_prints_its_usage() -> None:
    result = subprocess.run([SCRIPT[0]], capture_output=True, text=True, timeout=READY_SECONDS, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("usage: kafkaproto broker")


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MODULE, *arguments], capture_output=True, text=True, timeout=READY_SECONDS, check=False)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _three_free_ports() -> int:
    """Return the first of three consecutive free ports."""
    while True:
        first = _free_port()
        try:
            with socket.create_server(("127.0.0.1", first + 1)), socket.create_server(("127.0.0.1", first + 2)):
                return first
        except OSError:
            continue


def test_broker_at_log_level_debug_logs_each_request_with_topics_and_errors(start: Start) -> None:
    running = start("--port", "0", "--log-level", "debug", "--topic", "orders:1")
    ask(running.addresses[0], MetadataRequest([MetadataRequestTopic(name="a b")]), 9)
    _, err, _ = running.end()
    assert re.search(r"\+\d+\.\d{3} s broker 0 connection 1 opened from 127\.0\.0\.1 on listener PLAINTEXT", err)
    assert re.search(r"broker 0 connection 1 .*: Metadata v9 a b INVALID_TOPIC_EXCEPTION \(#1, ", err)
