"""The lines that `kafkaproto broker` logs at its start, also after a restart with a data directory."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kafkaproto
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkaproto.pipeline.ask import ask
from kafkaproto.records.batch import build_batch
from kafkaproto.records.record import NewRecord

SECONDS = 20.0


class Running:
    """A broker process with its first address."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "kafkaproto.cli", "broker", "--port", "0", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def stop(self, number: int = signal.SIGTERM) -> list[str]:
        """Send a signal and return the messages on stderr, each as `LEVEL message`."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=SECONDS)
        return [re.sub(r"^\S+ \S+ (\w+) \S+: ", r"\1 ", line) for line in err.splitlines()]


Start = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[Running] = []

    def begin(*arguments: str) -> Running:
        running.append(Running(*arguments))
        return running[-1]

    yield begin
    for process in running:
        if process.process.poll() is None:
            process.process.kill()
            process.process.communicate()


def produce(address: str, topic: str, count: int) -> None:
    """Write `count` records to partition 0."""
    batch = build_batch([NewRecord(b"value", timestamp=int(time.time() * 1000)) for _ in range(count)])
    request = ProduceRequest(acks=-1, timeout_ms=5000)
    request.topic_data = [TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch)])]
    [partition] = ask(address, request, 9).responses[0].partition_responses
    assert partition.error_code == 0


def partitions_of(address: str, topic: str) -> int:
    [topic_lines] = ask(address, MetadataRequest([MetadataRequestTopic(name=topic)]), 9).topics
    assert topic_lines.error_code == 0
    return len(topic_lines.partitions)


def test_broker_logs_at_start_which_release_it_serves_and_how_to_stop_it(start: Start) -> None:
    options = ("--brokers", "2", "-c", "1.broker.rack=b", "--release", "2.8", "--topic", "orders:6:2")
    running = start(*options)
    assert running.process.stdout is not None
    second = running.process.stdout.readline().strip()
    lines = running.stop()
    assert f"INFO kafkaproto {kafkaproto.__version__} serves the API versions of Kafka 2.8 (semantics kip)" in lines
    assert f"INFO broker 0: PLAINTEXT://{running.address}" in lines
    assert f"INFO broker 1 in rack b: PLAINTEXT://{second}" in lines
    assert "INFO topic orders: 6 partitions and 2 replicas" in lines
    assert f"INFO to stop, press Ctrl-C or run: kill {running.process.pid}" in lines
    [documentation] = [line for line in lines if line.startswith("INFO documentation: ")]
    page = Path(documentation.rpartition(", ")[2])
    assert "kafkaproto" in page.read_text()


def test_startup_report_says_that_share_and_streams_groups_of_4_2_are_unsupported(start: Start) -> None:
    """Kafka serves share groups from 4.1 on, and streams groups from 4.2 on."""
    share_groups = "INFO not served, although Kafka 4.1 serves them: share groups"
    both = "INFO not served, although Kafka 4.2 serves them: share groups and streams groups"
    assert share_groups in start("--release", "4.1").stop()
    assert both in start("--release", "4.2").stop()
    assert not [line for line in start("--release", "3.9").stop() if "not served" in line]


@pytest.mark.rule("CF-25")
def test_startup_report_says_that_nothing_is_stored_in_log_dirs(start: Start, tmp_path: Path) -> None:
    settings = tmp_path / "server.properties"
    settings.write_text("log.dirs=/var/lib/kafka\n")
    line = "INFO nothing is stored in log.dirs=/var/lib/kafka; "
    assert f"{line}--data-dir DIR keeps data over restarts" in start("--config", str(settings)).stop()
    lines = start("--config", str(settings), "--data-dir", str(tmp_path / "data")).stop()
    assert f"{line}the data directory is {tmp_path / 'data'}" in lines
    lines = start("-c", "0.log.dir=/logs").stop()
    assert "INFO nothing is stored in log.dir=/logs; --data-dir DIR keeps data over restarts" in lines
    data_dir = "--data-dir", str(tmp_path / "data")
    lines = start("-c", f"log.dirs={tmp_path / 'data'},/other", *data_dir).stop()
    where = f"/other of log.dirs={tmp_path / 'data'},/other"
    assert f"INFO nothing is stored in {where}; the data directory is {tmp_path / 'data'}" in lines
    (tmp_path / "link").symlink_to(tmp_path / "data")
    same_folder = "-c", f"log.dirs={tmp_path / 'data'}", *data_dir
    linked_folder = "-c", f"log.dirs={tmp_path / 'link'}", *data_dir
    for options in ((), same_folder, linked_folder):
        assert not [line for line in start(*options).stop() if "nothing is stored" in line]


def test_startup_report_names_the_log_dirs_of_each_broker_in_which_nothing_is_stored(start: Start) -> None:
    settings = "-c", "0.log.dirs=/a", "-c", "1.log.dirs=/b", "-c", "2.log.dirs=/b"
    lines = [line for line in start("--brokers", "3", *settings).stop() if "nothing is stored" in line]
    assert [line.partition("; ")[0].partition("nothing")[2] for line in lines] == [
        " is stored in log.dirs=/a",
        " is stored in log.dirs=/b",
    ]


def test_startup_report_lists_every_address_of_every_listener(start: Start) -> None:
    listeners = "listeners=INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0"
    advertised = "advertised.listeners=INSIDE://kafka:9094,OUTSIDE://localhost:9092"
    lines = start("-c", listeners, "-c", advertised).stop()
    assert "INFO broker 0: INSIDE://kafka:9094, OUTSIDE://localhost:9092" in lines
    assert "INFO no topics; --topic NAME creates one" in lines


def test_startup_report_lists_only_20_of_23_topics_and_says_that_3_more_exist(start: Start) -> None:
    options = [word for i in range(23) for word in ("--topic", f"t{i}:1")]
    lines = start(*options).stop()
    assert sum(line.startswith("INFO topic t") for line in lines) == 20
    assert "INFO and 3 more topics" in lines


def test_startup_report_is_empty_at_log_level_warning(start: Start) -> None:
    assert start("--log-level", "warning", "--topic", "orders:1").stop() == []


@pytest.mark.parametrize(
    ("number", "stop"),
    [(signal.SIGTERM, "a clean stop"), (signal.SIGKILL, "a process that did not stop cleanly")],
    ids=["SIGTERM", "SIGKILL"],
)
def test_startup_report_after_a_restart_contains_the_number_of_recovered_records(
    start: Start, tmp_path: Path, number: int, stop: str
) -> None:
    folder = tmp_path / "data"
    first = start("--data-dir", str(folder), "--topic", "orders:3", "--topic", "audit:1")
    produce(first.address, "orders", 7)
    lines = first.stop(number)
    assert f"INFO data directory {folder} is new; the next start with it continues from here" in lines
    lines = start("--data-dir", str(folder), "--topic", "orders:3", "--topic", "new:1").stop()
    recovered = (
        f"INFO data directory {folder}: recovered after {stop}: 2 topics with 7 records, committed offsets of 0 groups, "
        "0 client quotas"
    )
    assert recovered in lines
    assert "INFO topic orders: 3 partitions and 1 replica, recovered with 7 records" in lines
    assert "INFO topic new: 1 partition and 1 replica" in lines
    assert [line for line in lines if line.startswith("WARNING")] == []


@pytest.mark.parametrize("option", ["orders:6", "orders:3:2"])
def test_topic_option_that_differs_from_the_stored_topic_is_ignored_with_a_warning(
    start: Start, tmp_path: Path, option: str
) -> None:
    folder = str(tmp_path / "data")
    start("--brokers", "2", "--data-dir", folder, "--topic", "orders:3:1").stop()
    running = start("--brokers", "2", "--data-dir", folder, "--topic", option)
    assert partitions_of(running.address, "orders") == 3
    shape = "3 partitions and 1 replica"
    warning = f"WARNING --topic {option} is ignored: the data directory already contains topic orders with {shape}"
    assert warning in running.stop()


def test_topic_option_with_only_a_name_uses_default_partition_and_replica_counts(start: Start, tmp_path: Path) -> None:
    settings = ("--brokers", "2", "-c", "num.partitions=4", "-c", "default.replication.factor=2")
    folder = str(tmp_path / "data")
    running = start(*settings, "--data-dir", folder, "--topic", "orders")
    assert partitions_of(running.address, "orders") == 4
    assert "INFO topic orders: 4 partitions and 2 replicas" in running.stop()
    lines = start("--brokers", "2", "--data-dir", folder, "--topic", "orders").stop()
    assert [line for line in lines if line.startswith("WARNING")] == []


def test_broker_with_option_memory_set_to_0_accepts_records_and_logs_no_warning(start: Start) -> None:
    running = start("--memory", "0", "--topic", "orders:1", "--log-level", "warning")
    for _ in range(3):
        produce(running.address, "orders", 100)
    assert running.stop() == []


NO_GROUPS = (
    "WARNING consumer groups cannot work: offsets.topic.replication.factor is 3, but the cluster has 1 broker; "
    "start it with -c offsets.topic.replication.factor=1 or with --brokers 3"
)


@pytest.mark.parametrize(
    ("arguments", "warns"),
    [
        ((), False),
        (("--profile", "kafka"), True),
        (("--profile", "kafka", "-c", "offsets.topic.replication.factor=1"), False),
    ],
    ids=["test", "kafka", "kafka, factor 1"],
)
def test_startup_report_warns_if_brokers_are_fewer_than_offsets_topic_replicas(
    start: Start, arguments: tuple[str, ...], warns: bool
) -> None:
    """Kafka's own default needs three brokers for the offsets topic."""
    assert (NO_GROUPS in start(*arguments).stop()) is warns


def test_broker_with_two_topic_options_for_one_topic_exits_and_creates_no_topic(start: Start, tmp_path: Path) -> None:
    folder = str(tmp_path / "d")
    refused = start("--data-dir", folder, "--topic", "orders", "--topic", "orders:2")
    _, error = refused.process.communicate(timeout=SECONDS)
    assert refused.process.returncode == 2 and "name each topic once" in error
    lines = start("--data-dir", folder, "--topic", "orders:2").stop()
    assert not any("changes nothing" in line for line in lines)
    assert any("orders" in line and "2 partitions" in line for line in lines)
