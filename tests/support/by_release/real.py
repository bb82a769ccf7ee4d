"""Real brokers of the releases in the table, started from their jars. Those before 3.0 keep their metadata in ZooKeeper, and run on a JDK 17, too."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION, zookeeper_kafka_jars
from benchmarks.rivals.real_kafka import JVM, READY_SECONDS, KafkaCluster, brokers_known, free_ports
from kafkaproto.conformance.subject import settings_of
from tests.support.by_release.programs.tasks import BROKERS

VERSIONS = {"0.11": "0.11.0.3", "1.1": "1.1.1", "2.8": "2.8.2", "3.9": KAFKA_VERSION, "4.2": NEWER_VERSION}
"""Maps a release to the Kafka version that is run for this release."""
WITH_ZOOKEEPER = ("0.11", "1.1", "2.8")
ZOOKEEPER_SETTINGS = ("-Dzookeeper.jmx.log4j.disable=true", "-Dzookeeper.admin.enableServer=false")
LATER_SETTINGS = ("replica.selector.class",)
"""Settings of the profile that releases with ZooKeeper may not have; no task needs them."""
METADATA_VERSION = 4
"""The version of Metadata that all of these releases have."""


@contextmanager
def real(release: str) -> Iterator[str]:
    """Run three brokers of a real Kafka. Yields their addresses, separated by commas. Raises NotStarted, and TimeoutError before 3.0."""
    if release in WITH_ZOOKEEPER:
        with _with_zookeeper(VERSIONS[release]) as bootstrap:
            yield bootstrap
        return
    kafka = KafkaCluster(settings_of("default"), VERSIONS[release])
    try:
        yield ",".join(f"{host}:{port}" for host, port in kafka.bootstrap)
    finally:
        kafka.stop()


@contextmanager
def _with_zookeeper(version: str) -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(prefix="kafka-"))
    zookeeper, *ports = free_ports(1 + BROKERS)
    common = {name: value for name, value in settings_of("default").items() if name not in LATER_SETTINGS}
    try:
        with ExitStack() as stack:
            jars = zookeeper_kafka_jars(VERSIONS["2.8"])
            main_class = "org.apache.zookeeper.server.ZooKeeperServerMain"
            data = str(folder / "zookeeper")
            stack.enter_context(_process(folder, jars, *ZOOKEEPER_SETTINGS, main_class, str(zookeeper), data))
            for broker_id, port in enumerate(ports):
                settings = {
                    **common,
                    "broker.id": str(broker_id),
                    "listeners": f"PLAINTEXT://127.0.0.1:{port}",
                    "zookeeper.connect": f"127.0.0.1:{zookeeper}",
                    "log.dirs": str(folder / f"data-{broker_id}"),
                }
                path = folder / f"{broker_id}.properties"
                path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
                stack.enter_context(_process(folder, zookeeper_kafka_jars(version), "kafka.Kafka", str(path)))
            _wait_until_ready(ports, folder)
            yield ",".join(f"127.0.0.1:{port}" for port in ports)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _process(folder: Path, jars: Path, *arguments: str) -> Iterator[None]:
    with (folder / "output").open("ab") as out:
        command = ["java", *JVM, "-cp", f"{jars}/*", *arguments]
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=folder)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _wait_until_ready(ports: list[int], folder: Path) -> None:
    """Wait until every broker knows all brokers. Raises TimeoutError with the end of their output."""
    deadline = time.monotonic() + READY_SECONDS
    waiting = list(ports)
    while waiting:
        if time.monotonic() > deadline:
            raise TimeoutError(f"not ready within {READY_SECONDS} s: {(folder / 'output').read_text()[-3000:]}")
        with suppress(OSError, EOFError):  # not listening yet
            waiting = [p for p in waiting if len(brokers_known(("127.0.0.1", p), METADATA_VERSION)) < BROKERS]
        time.sleep(0.2 if waiting else 0)
