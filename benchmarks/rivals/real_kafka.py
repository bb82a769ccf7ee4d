"""Apache Kafka from its jars: three brokers and a separate controller, on free ports of this machine, in a temporary folder.

The controller is a process of its own so that any broker can be stopped or paused. This module does not depend on what is measured or tested.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from uuid import uuid4

from benchmarks.raw_client import frame, read_response_frame
from benchmarks.rivals.jars import KAFKA_VERSION, kafka_jars
from kafkaproto.api import ApiKey
from kafkaproto.client import read_response
from kafkaproto.messages.metadata import MetadataRequest

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
CONTROLLER = 100
METADATA_VERSION = 12
RESPONSE_SECONDS = 15.0
READY_SECONDS = 60.0
STOP_SECONDS = 20.0
JVM = ("-Xms96m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class NotStarted(RuntimeError):
    """Raised if Kafka did not start. The message contains the end of its output."""


class KafkaCluster:
    """Three brokers of Apache Kafka and a controller. The constructor starts them and waits until they are ready.

    settings: the settings of each broker. version: the Kafka release. classes: a folder with further Java classes; None for none. java_options:
    options of each Java process; None for an option that shortens its start (`class_archive`). Raises NotStarted if a process exits or the brokers
    are not ready in time, and JarsMissing if Kafka cannot be downloaded.
    """

    def __init__(
        self,
        settings: dict[str, str],
        version: str = KAFKA_VERSION,
        classes: Path | None = None,
        java_options: Sequence[str] | None = None,
    ) -> None:
        if java_options is None:
            java_options = [f"-XX:SharedArchiveFile={class_archive(version)}"]
        self._java_command = ["java", *JVM, *java_options]
        self._class_path = f"{kafka_jars(version)}/*" + (f"{os.pathsep}{classes}" if classes else "")
        self._folder = Path(tempfile.mkdtemp(prefix="kafka-"))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._paused: set[int] = set()
        self._ports = dict(zip((0, 1, 2, CONTROLLER), free_ports(4), strict=True))
        self.bootstrap = [("127.0.0.1", self._ports[i]) for i in range(3)]
        try:
            for node in self._ports:
                self._write_settings(node, settings)
            for node in self._ports:
                self._spawn(node)
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _write_settings(self, node: int, common: dict[str, str]) -> None:
        role = "controller" if node == CONTROLLER else "broker"
        listener = f"{'CONTROLLER' if node == CONTROLLER else 'PLAINTEXT'}://127.0.0.1:{self._ports[node]}"
        settings = {
            "broker.session.timeout.ms": "30000",  # a paused broker must stay registered
            **common,
            "process.roles": role,
            "node.id": str(node),
            "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{self._ports[CONTROLLER]}",
            "controller.listener.names": "CONTROLLER",
            "listeners": listener,
            "log.initial.task.delay.ms": "100",  # retention starts when the settings say, not 30 s later
            "log.dirs": str(self._folder / f"data-{node}"),
        }
        if role == "broker":
            settings |= {
                "advertised.listeners": listener,
                "inter.broker.listener.name": "PLAINTEXT",
                "broker.rack": f"r{node}",
            }
        path = self._folder / f"{node}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        if role == "controller":
            self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(path))
            return
        # This is what StorageTool writes for a broker; the tool would take another second to start Java.
        data = self._folder / f"data-{node}"
        data.mkdir()
        directory_id = base64.urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()
        (data / "meta.properties").write_text(
            f"version=1\ncluster.id={CLUSTER_ID}\nnode.id={node}\ndirectory.id={directory_id}\n"
        )

    def _java(self, *arguments: str) -> None:
        command = [*self._java_command, "-cp", self._class_path, *arguments]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        if completed.returncode:
            raise NotStarted(f"{' '.join(arguments)}: {completed.stdout[-2000:]}{completed.stderr[-2000:]}")

    def _spawn(self, node: int) -> None:
        self._paused.discard(node)  # if the former process was paused when it was killed
        properties = str(self._folder / f"{node}.properties")
        command = [*self._java_command, "-cp", self._class_path, "kafka.Kafka", properties]
        with (self._folder / f"{node}.out").open("ab") as out:
            self._processes[node] = subprocess.Popen(command, stdout=out, stderr=out, cwd=self._folder)

    def _wait_until_ready(self) -> None:
        """Wait until every running broker knows all running brokers. Raises NotStarted if a process exits or this takes too long."""
        deadline = time.monotonic() + READY_SECONDS
        running = set(self._processes) - {CONTROLLER}
        waiting = sorted(running)
        while waiting:
            for node, process in self._processes.items():
                if process.poll() is not None:
                    raise NotStarted(
                        f"Kafka node {node} exited while it started; the end of its output: {(self._folder / f'{node}.out').read_text()[-2000:]}"
                    )
            if time.monotonic() > deadline:
                output = "\n".join((self._folder / f"{node}.out").read_text()[-1000:] for node in waiting)
                raise NotStarted(
                    f"Kafka brokers {waiting} were not ready within {READY_SECONDS} s; "
                    f"the end of their output:\n{output}"
                )
            with suppress(OSError, EOFError):  # not listening yet
                waiting = [i for i in waiting if not running <= brokers_known(self.bootstrap[i])]
            time.sleep(0.1 if waiting else 0)

    def pid_of(self, broker_id: int) -> int:
        """Return the process id of a broker."""
        return self._processes[broker_id].pid

    def start_stopped_brokers(self) -> None:
        for broker_id in range(3):
            if broker_id not in self._processes:
                self.start_broker(broker_id)

    def stop_broker(self, broker_id: int) -> None:
        process = self._processes.pop(broker_id)
        process.terminate()
        process.wait(STOP_SECONDS)

    def start_broker(self, broker_id: int) -> None:
        self._spawn(broker_id)
        self._wait_until_ready()

    def pause_broker(self, broker_id: int) -> None:
        """Pause the process of a broker with SIGSTOP, and wait until all its threads have stopped: on a busy machine, some run on for a while.

        Does nothing if the broker is paused.
        """
        if broker_id in self._paused:
            return  # waitpid would wait for another stop
        self._paused.add(broker_id)
        process = self._processes[broker_id]
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)

    def resume_broker(self, broker_id: int) -> None:
        self._processes[broker_id].send_signal(signal.SIGCONT)
        self._paused.discard(broker_id)

    def stop(self) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait(STOP_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)


def class_archive(version: str) -> Path:
    """Return the path of a file with Kafka's classes as the JVM holds them in memory (class-data sharing). Writes the file on first use.

    With the file, a cluster starts in about half the time. Each release of Java has its own file, because Java prints a warning about the file of
    another release. version: the Kafka release. Raises NotStarted if Kafka does not start, and JarsMissing if Kafka cannot be downloaded.
    """
    archive = kafka_jars(version) / f"classes-{_jvm()}.jsa"
    if not archive.exists():
        unfinished = archive.with_suffix(f".{os.getpid()}")
        cluster = KafkaCluster({}, version, java_options=[f"-XX:ArchiveClassesAtExit={unfinished}"])
        try:
            cluster.stop_broker(0)  # a process writes the file when it ends by itself
        finally:
            cluster.stop()
        unfinished.rename(archive)
    return archive


@cache
def _jvm() -> str:
    """Return a short text that identifies the installed release of Java: a hash of what `java -version` prints."""
    printed = subprocess.run(["java", "-version"], capture_output=True, check=True)
    return hashlib.sha256(printed.stderr).hexdigest()[:8]


def brokers_known(address: tuple[str, int], version: int = METADATA_VERSION) -> set[int]:
    """Return the ids of the brokers in the Metadata response of the broker at `address`.

    version: the version of Metadata, at least 1. Raises OSError if the connection fails or the response takes too long, and EOFError if the broker
    closes the connection.
    """
    with socket.create_connection(address, RESPONSE_SECONDS) as sock:
        sock.sendall(frame(version, MetadataRequest([])))
        response = read_response(ApiKey.METADATA, version, read_response_frame(sock))
    return {broker.node_id for broker in response.message.brokers}


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(listener.getsockname()[1]) for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports
