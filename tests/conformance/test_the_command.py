"""The command `kafkaproto conformance`: what it says of brokers that it did not start."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker.cluster import Cluster
from kafkaproto.client import response_frame
from kafkaproto.conformance.client import SocketConnection
from kafkaproto.conformance.subject import profiles, settings_of
from kafkaproto.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from tests.support.answering import answering

CHOSEN = "test_fetch_sizes or test_closest_replica"


@contextmanager
def brokers(count: int = 3, rack: str = "r", semantics: str = "kafka", **other: str) -> Iterator[str]:
    """Brokers in a process of their own, with the default profile but for some settings; the address of one of them."""
    settings = settings_of("default") | {key.replace("_", "."): value for key, value in other.items()}
    given = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    given += [part for i in range(count) for part in ("-c", f"{i}.broker.rack={rack}{i}")]
    command = [sys.executable, "-m", "broker", "--brokers", str(count), "--port", "0", "--semantics", semantics, *given]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(count)]
    try:
        yield lines[-1].strip()
    finally:
        process.kill()
        process.communicate()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `kafkaproto conformance` in a process of its own."""
    command = [sys.executable, "-m", "kafkaproto.cli", "conformance", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def outcomes(address: str) -> tuple[dict[str, int], str]:
    """How many tests passed, were not prepared, failed, as the card says; and all that was printed."""
    command = [sys.executable, "-m", "kafkaproto.cli", "conformance", "--bootstrap", address, "-k", CHOSEN]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    [counts] = re.findall(rf"^{re.escape(address)}: (.*)$", printed, re.MULTILINE)
    return {what: int(count) for count, what in re.findall(r"(\d+) (ok|not prepared|FAILED|ERROR)", counts)}, printed


@pytest.mark.slow
def test_a_broker_with_another_setting_is_not_prepared_and_nothing_passes() -> None:
    with brokers(fetch_max_bytes="4096") as address:
        counts, printed = outcomes(address)
    assert set(counts) == {"not prepared"}, printed
    assert "not prepared: needs fetch.max.bytes=2147483647" in printed


@pytest.mark.slow
def test_a_prepared_broker_passes_all_but_what_needs_control() -> None:
    with brokers() as address:
        counts, printed = outcomes(address)
    assert set(counts) == {"ok", "not prepared"} and counts["ok"] > 20, printed
    assert counts["not prepared"] == 1 and "not prepared: needs control" in printed


@pytest.mark.slow
def test_a_cluster_of_other_brokers_or_racks_is_not_prepared_and_nothing_fails() -> None:
    with brokers(count=1) as address:
        counts, printed = outcomes(address)
    assert (
        set(counts) == {"not prepared"}
        and "not prepared: needs three brokers with the ids 0, 1 and 2; there are [0]" in printed
    )
    with brokers(rack="other-") as address:
        counts, printed = outcomes(address)
    assert set(counts) == {"not prepared"} and "not prepared: needs broker.rack=r0 of broker 0" in printed, printed


def test_a_run_in_which_no_test_is_prepared_has_status_5() -> None:
    with brokers(count=1) as address:
        done = run("--bootstrap", address, "-k", "test_fetch_sizes")
    assert done.returncode == 5, done.stdout
    assert done.stderr == "kafkaproto conformance: no test ran: the cluster is not prepared for any of them\n"


@pytest.mark.slow
def test_a_run_deletes_its_topics() -> None:
    with brokers() as address:
        done = run("--bootstrap", address, "-k", "test_fetch_sizes")
        host, port = address.split(":")
        connection = SocketConnection(host, int(port), "test")
        connection.send_bytes(connection.frame(MetadataRequest(None), 1))
        found = connection.take(10)
        assert found is not None
        topics = connection.decode(*found, 0.0).message.topics
        connection.close()
    assert done.returncode == 0, done.stdout
    assert [topic.name for topic in topics] == []


@pytest.mark.slow
def test_a_broken_rule_is_a_failure_of_the_command() -> None:
    """The cluster does as the documents say, and the command expects what Kafka does."""
    with brokers(semantics="kip") as address:
        command = [
            sys.executable,
            "-m",
            "kafkaproto.cli",
            "conformance",
            "--bootstrap",
            address,
            "-k",
            "beyond_it_an_error",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "F-22, D3 |" in done.stdout and "| FAILED" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ([], 2, "--bootstrap HOST:PORT is missing"),
        (["--bootstrap", "somewhere"], 2, "--bootstrap must be HOST:PORT (got 'somewhere')"),
        (["--bootstrap", "127.0.0.1:1"], 4, "no broker answers at 127.0.0.1:1"),
    ],
)
def test_without_a_cluster_the_command_says_what_is_missing(arguments: list[str], status: int, text: str) -> None:
    command = [sys.executable, "-m", "kafkaproto.cli", "conformance", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, "") and text in done.stderr


def metadata_naming(port: int) -> bytes:
    message = MetadataResponse(brokers=[MetadataResponseBroker(0, "127.0.0.1", port)])
    return response_frame(message, ApiKey.METADATA, 1, 1)


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (b"\0\0\0\4\0\0\0\x63", "is no Kafka broker: a response to request 99 instead of 1"),
        (b"\0\0\0\2xx", "is no Kafka broker: ResponseHeader at byte 0: a frame of 2 bytes holds no response header"),
        (metadata_naming(1), "the cluster advertises 127.0.0.1:1, but no broker answers at 127.0.0.1:1: "),
    ],
)
def test_a_server_that_is_no_cluster_is_reported_in_one_line(response: bytes, reason: str) -> None:
    with answering(response) as port:
        done = run("--bootstrap", f"127.0.0.1:{port}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (4, "", 1), done.stderr
    assert reason in done.stderr


def test_each_bootstrap_address_is_tried_and_a_run_has_no_warnings() -> None:
    with brokers(count=1) as address:
        done = run("--bootstrap", f"127.0.0.1:1,{address}", "-k", "test_fetch_sizes")
    assert done.returncode == 5 and "not prepared" in done.stdout, done
    assert "warning" not in (done.stdout + done.stderr).lower()


@pytest.mark.parametrize("profile", profiles())
def test_the_command_prints_the_settings_of_a_profile_and_a_broker_takes_them(profile: str) -> None:
    command = [sys.executable, "-m", "kafkaproto.cli", "conformance", "--settings", profile]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    settings = dict(line.split("=", 1) for line in printed.splitlines())
    assert settings == settings_of(profile)
    Cluster(3, settings)


def test_without_pytest_the_command_says_how_to_get_it() -> None:
    program = "import sys; sys.modules['pytest'] = None; from kafkaproto.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", program, "conformance"], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == "kafkaproto conformance: pytest is missing: pip install 'kafkaproto[conformance]'\n"
