"""The command `kafkaproto conformance` on brokers that the command did not start."""

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
from tests.support.programs import program

pytestmark = pytest.mark.timeout(300)

CHOSEN = "(test_fetch_sizes or test_closest_replica) and not from_4_0 and not since_kafka_4"


@contextmanager
def brokers(
    count: int = 3, rack: str = "r", semantics: str = "kafka", release: str = "3.9", **other: str
) -> Iterator[str]:
    """Run brokers in a separate process, with the default profile except for some settings, and return the address of one."""
    settings = settings_of("default") | {key.replace("_", "."): value for key, value in other.items()}
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    options += [part for i in range(count) for part in ("-c", f"{i}.broker.rack={rack}{i}")]
    command = [
        sys.executable,
        "-m",
        "broker",
        "--brokers",
        str(count),
        "--port",
        "0",
        "--semantics",
        semantics,
        *options,
    ]
    command += ["--release", release]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(count)]
    try:
        yield lines[-1].strip()
    finally:
        process.kill()
        process.communicate()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `kafkaproto conformance` in a separate process, with a slack for a machine that runs other tests, too."""
    command = [sys.executable, "-m", "kafkaproto.cli", "conformance", "--slack-ms", "4000", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def outcomes(address: str) -> tuple[dict[str, int], str]:
    """Return the numbers of passed, unprepared and failed tests on the report card, and all printed text."""
    printed = run("--bootstrap", address, "-k", CHOSEN).stdout
    [counts] = re.findall(rf"^{re.escape(address)}: (.*)$", printed, re.MULTILINE)
    return {
        outcome: int(count) for count, outcome in re.findall(r"(\d+) (ok|not prepared|FAILED|ERROR)", counts)
    }, printed


@pytest.mark.slow
def test_conformance_command_prints_the_broker_setting_that_skipped_tests_need() -> None:
    with brokers(replica_selector_class="") as address:
        counts, printed = outcomes(address)
    assert set(counts) == {"ok", "not prepared"} and counts["not prepared"] == 5 and counts["ok"] > 15, printed
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    assert printed.count(f"not prepared: needs replica.selector.class={selector} (is (none))\n") == 5, printed


@pytest.mark.slow
def test_conformance_suite_skips_large_fetches_on_brokers_with_a_low_fetch_limit() -> None:
    with brokers(fetch_max_bytes="4096") as address:
        counts, printed = outcomes(address)
    assert set(counts) == {"ok", "not prepared"}, printed
    assert "not prepared: needs fetch.max.bytes of 8388608 or more (is 4096)" in printed


@pytest.mark.slow
def test_conformance_run_skips_only_one_test_on_brokers_with_all_required_settings() -> None:
    with brokers() as address:
        counts, printed = outcomes(address)
    assert set(counts) == {"ok", "not prepared"} and counts["ok"] > 20, printed
    assert counts["not prepared"] == 1 and "not prepared: needs control" in printed


@pytest.mark.slow
def test_conformance_suite_skips_tests_that_need_more_brokers_or_different_racks() -> None:
    with brokers(count=1) as address:
        counts, printed = outcomes(address)
    assert set(counts) == {"ok", "not prepared"} and counts["ok"] > 15, printed
    assert "not prepared: needs a broker with the id 1 (the cluster has 1 broker)" in printed
    with brokers(rack="other-") as address:
        counts, printed = outcomes(address)
    assert set(counts) == {"ok", "not prepared"} and counts["not prepared"] == 5, printed
    assert "not prepared: needs broker.rack=r0 of broker 0 (is other-0)" in printed, printed


@pytest.mark.slow
def test_conformance_suite_runs_more_tests_than_it_skips_with_default_settings() -> None:
    """Three brokers run without any settings. A test that is not prepared names the setting, its required and its actual value."""
    command = [
        sys.executable,
        "-m",
        "kafkaproto.cli",
        "broker",
        "--brokers",
        "3",
        "--port",
        "0",
        "--semantics",
        "kafka",
    ]
    with program(command) as process:
        assert process.stdout is not None
        _, _, address = [process.stdout.readline().strip() for _ in range(3)]
        completed = run(
            "--bootstrap", address, "-k", "metadata or small_limits or retention or produce or list_offsets"
        )
        process.terminate()
    [line] = re.findall(rf"^{re.escape(address)}: (.*)$", completed.stdout, re.MULTILINE)
    counts = {outcome: int(count) for count, outcome in re.findall(r"(\d+) (ok|not prepared|FAILED|ERROR)", line)}
    assert set(counts) == {"ok", "not prepared"} and counts["ok"] > counts["not prepared"] > 0, completed.stdout
    reasons = re.findall(r"not prepared: (.*)$", completed.stdout, re.MULTILINE)
    assert "needs connections.max.idle.ms=2000 (is 600000)" in reasons
    assert [
        r
        for r in reasons
        if "control over the brokers" not in r
        and not re.search(r"needs .+ \(is .+\)$|needs Kafka 4\.\d or later \(", r)
    ] == []


def test_conformance_run_that_skips_all_tests_exits_with_status_5() -> None:
    with brokers(count=1) as address:
        completed = run("--bootstrap", address, "-k", "test_small_limits")
    assert completed.returncode == 5, completed.stdout
    assert completed.stderr == (
        "kafkaproto conformance: all tests were skipped, because the cluster does not have what they need (see above); "
        "--settings PROFILE prints broker settings that tests need\n"
    )


def test_conformance_suggests_offsets_topic_replication_factor_1_for_a_single_broker() -> None:
    """The profile `kafka` has Kafka's default of 3 replicas, so one broker cannot create the topic."""
    chosen = "rejects_internal_topics"
    for factor, status in (("3", 5), ("1", 0)):
        with brokers(count=1, offsets_topic_replication_factor=factor) as address:
            completed = run("--bootstrap", address, "-k", chosen)
        assert completed.returncode == status, completed.stdout
        assert ("needs offsets.topic.replication.factor=1 (is 3)" in completed.stdout) == (factor == "3"), (
            completed.stdout
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "chosen", "needed"),
    [
        (
            "4.2",
            "framing or invariants or test_metadata or fetch_sizes or test_produce or list_offsets",
            ["Kafka before 4.0 (the cluster serves the versions of 4.2)"],
        ),
        (
            "2.0",
            "not quota and not retention and not session and not waiting",
            ["Fetch v11 (the broker serves 0 to 8)", "Produce v9 (the broker serves 0 to 6)"],
        ),
    ],
    ids=["4.2", "2.0"],
)
def test_conformance_command_names_the_api_version_or_release_a_skipped_test_needs(
    release: str, chosen: str, needed: list[str]
) -> None:
    """Tests of versions that both releases offer run; the tests of invalid frames send unsupported versions on purpose."""
    with brokers(release=release) as address:
        completed = run("--bootstrap", address, "-k", chosen)
    assert completed.returncode == 0, completed.stdout
    [line] = re.findall(rf"^{re.escape(address)}: (\d+) ok, (\d+) not prepared$", completed.stdout, re.MULTILINE)
    assert int(line[0]) > 60, completed.stdout
    assert all(f"not prepared: needs {version}\n" in completed.stdout for version in needed), completed.stdout
    for name in ("invalid_frame_closes", "api_versions_response_lists", "every_version_of_every_api"):
        assert re.search(rf"{name.replace('_', ' ')}.* \| ok ", completed.stdout), name


def test_conformance_test_fails_if_a_response_is_late_by_more_than_option_slack_ms() -> None:
    """A response to a request with `max_wait_ms` arrives always a little later than that, but not by minutes."""
    with brokers(count=1) as address:
        strict, patient = (
            run("--bootstrap", address, "-k", "behind_a_parked_fetch", "--slack-ms", slack) for slack in ("0", "60000")
        )
    assert strict.returncode == 1 and "expected 400 to 400.0" in strict.stdout, strict.stdout
    assert patient.returncode == 0, patient.stdout


@pytest.mark.slow
def test_conformance_run_deletes_its_topics() -> None:
    with brokers() as address:
        completed = run("--bootstrap", address, "-k", "test_fetch_sizes")
        host, port = address.split(":")
        connection = SocketConnection(host, int(port), "test")
        connection.send_bytes(connection.frame(MetadataRequest(None), 1))
        received = connection.take(10)
        assert received is not None
        topics = connection.decode(*received, 0.0).message.topics
        connection.close()
    assert completed.returncode == 0, completed.stdout
    assert [topic.name for topic in topics] == []


@pytest.mark.slow
def test_conformance_suite_for_kafka_code_fails_if_the_broker_follows_kip_documents() -> None:
    """The cluster follows the KIP documents, and the command expects the behaviour of Kafka's code."""
    with brokers(semantics="kip") as address:
        command = [
            sys.executable,
            "-m",
            "kafkaproto.cli",
            "conformance",
            "--bootstrap",
            address,
            "--semantics",
            "kafka",
            "-k",
            "beyond_log_end_is_out_of_range",
        ]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 1 and "F-22, D3 |" in completed.stdout and "| FAILED" in completed.stdout, (
        completed.stdout
    )
    assert (
        completed.stderr
        == "kafkaproto conformance: this cluster seems to follow --semantics kip; run again with --semantics kip\n"
    )


@pytest.mark.parametrize(("semantics", "expected"), [("kip", "the documents say"), ("kafka", "the code does")])
def test_conformance_command_prints_if_tests_expect_kip_documents_or_kafka_code(semantics: str, expected: str) -> None:
    chosen = "beyond_log_end_is_out_of_range or empty_client_id"
    with brokers(count=1, semantics=semantics) as address:
        completed = run("--bootstrap", address, "-k", chosen)
    assert (completed.returncode, completed.stderr) == (0, ""), completed.stdout
    assert f"the tests expect what {expected} (--semantics {semantics})\n" in completed.stdout
    assert f"{address}: 2 ok\n" in completed.stdout


@pytest.mark.slow
def test_conformance_suite_passes_on_a_broker_started_as_in_the_readme() -> None:
    """No test fails, and each test that is not prepared has a reason."""
    command = [sys.executable, "-m", "kafkaproto.cli", "broker", "--brokers", "3", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            completed = run("--bootstrap", address)
        finally:
            process.terminate()
    assert completed.returncode == 0, completed.stdout
    [line] = re.findall(rf"^{re.escape(address)}: (.*)$", completed.stdout, re.MULTILINE)
    counts = {outcome: int(count) for count, outcome in re.findall(r"(\d+) (ok|not prepared|FAILED|ERROR)", line)}
    assert set(counts) == {"ok", "not prepared"} and counts["ok"] > 250, line
    assert len(re.findall(r"not prepared: needs ", completed.stdout)) == counts["not prepared"]


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ([], 2, "--bootstrap HOST:PORT is missing"),
        (
            ["--slack-ms", "-1"],
            2,
            "--slack-ms: must be a number of milliseconds of at least 0, for example 1000 (got '-1')",
        ),
        (
            ["--bootstrap", "somewhere"],
            2,
            "--bootstrap must be HOST:PORT, for example localhost:9092 (got 'somewhere')",
        ),
        (["--bootstrap", "127.0.0.1:1"], 4, "no broker responds at 127.0.0.1:1"),
    ],
)
def test_conformance_command_exits_with_2_on_bad_options_and_4_if_no_broker_responds(
    arguments: list[str], status: int, text: str
) -> None:
    command = [sys.executable, "-m", "kafkaproto.cli", "conformance", *arguments]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout) == (status, "") and text in completed.stderr


def metadata_naming(port: int, node_id: int = 0) -> bytes:
    message = MetadataResponse(brokers=[MetadataResponseBroker(node_id, "127.0.0.1", port)])
    return response_frame(message, ApiKey.METADATA, 1, 1)


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (
            b"\0\0\0\4\0\0\0\x63",
            "is not a Kafka broker: received a response with the unexpected correlation id 99 (oldest pending request: 1)",
        ),
        (
            b"\0\0\0\2xx",
            "is not a Kafka broker: ResponseHeader at byte 0: a response header takes at least 4 bytes, but the frame has only 2",
        ),
        (metadata_naming(1), "the cluster advertises a broker at 127.0.0.1:1, but no broker responds at 127.0.0.1:1: "),
    ],
)
def test_conformance_command_prints_a_single_error_line_if_the_server_is_not_kafka(
    response: bytes, reason: str
) -> None:
    with answering(response) as port:
        completed = run("--bootstrap", f"127.0.0.1:{port}")
    assert (completed.returncode, completed.stdout, completed.stderr.count("\n")) == (4, "", 1), completed.stderr
    assert reason in completed.stderr


def test_conformance_suite_skips_tests_on_a_cluster_without_a_broker_with_id_0() -> None:
    with answering(lambda port: metadata_naming(port, node_id=7)) as port:
        completed = run(
            "--bootstrap",
            f"127.0.0.1:{port}",
            "-k",
            "test_metadata_returns_all_topics_for_a_null_list_and_no_topic_for_an_empty_list",
        )
    assert completed.returncode == 5, completed.stdout
    assert "not prepared: needs a broker with the id 0 (the cluster has the id 7)" in completed.stdout


def test_conformance_command_prints_no_warning_if_first_bootstrap_address_is_refused() -> None:
    with brokers(count=1) as address:
        completed = run("--bootstrap", f"127.0.0.1:1,{address}", "-k", "test_small_limits")
    assert completed.returncode == 5 and "not prepared" in completed.stdout, completed
    assert "warning" not in (completed.stdout + completed.stderr).lower()


@pytest.mark.parametrize("profile", profiles())
def test_settings_that_the_conformance_command_prints_are_accepted_by_a_broker(profile: str) -> None:
    command = [sys.executable, "-m", "kafkaproto.cli", "conformance", "--settings", profile]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    settings = dict(line.split("=", 1) for line in printed.splitlines())
    assert settings == settings_of(profile)
    Cluster(3, settings)


def test_conformance_command_without_pytest_explains_how_to_install_pytest() -> None:
    program = "import sys; sys.modules['pytest'] = None; from kafkaproto.cli import main; sys.exit(main())"
    completed = subprocess.run(
        [sys.executable, "-c", program, "conformance"], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 3
    assert (
        completed.stderr
        == "kafkaproto conformance: pytest is missing: install it in a checkout with pip install '.[conformance]'\n"
    )


@pytest.mark.slow
def test_python_m_tests_conformance_with_option_k_runs_only_the_selected_tests() -> None:
    """The package imports `tests` before pytest, which must not make pytest fail."""
    chosen = ["--subjects", "virtual-kafka", "-k", "test_framing and tagged_fields"]
    completed = subprocess.run(
        [sys.executable, "-m", "tests.conformance", *chosen], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert re.search(r"^virtual-kafka: \d+ ok$", completed.stdout, re.MULTILINE)
