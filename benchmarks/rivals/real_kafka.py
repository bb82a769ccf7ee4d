"""Apache Kafka from its jars: three brokers and a controller of their own, on free ports of this machine, in a temporary folder.

The controller is a process of its own so that any broker can be stopped or held. Must never know what is tested.
"""

from __future__ import annotations

import base64
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from benchmarks.rivals.jars import KAFKA_VERSION, kafka_jars
from tests.support.conformance.client import Closed
from tests.support.conformance.subjects import WallClock, settings_of

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
CONTROLLER = 100
READY_SECONDS = 60.0
STOP_SECONDS = 20.0
JVM = ("-Xms96m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class NotStarted(RuntimeError):
    """Kafka did not come up; the message has the end of what it wrote."""


class RealKafka(WallClock):
    """Kafka 3.9.1, which is right by definition where `semantics=kafka`."""

    slack_ms = 500.0

    def __init__(self, profile: str) -> None:
        super().__init__()
        self.name, self.semantics = f"kafka-{KAFKA_VERSION}", "kafka"
        self._jars = kafka_jars()
        self._folder = Path(tempfile.mkdtemp(prefix="kafka-"))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._ports = dict(zip((0, 1, 2, CONTROLLER), free_ports(4), strict=True))
        self.bootstrap = [("127.0.0.1", self._ports[i]) for i in range(3)]
        try:
            for node in self._ports:
                self._write_settings(node, settings_of(profile))
            for node in self._ports:
                self._spawn(node)
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _write_settings(self, node: int, profile: dict[str, str]) -> None:
        role = "controller" if node == CONTROLLER else "broker"
        listener = f"{'CONTROLLER' if node == CONTROLLER else 'PLAINTEXT'}://127.0.0.1:{self._ports[node]}"
        settings = {
            **profile,
            "process.roles": role,
            "node.id": str(node),
            "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{self._ports[CONTROLLER]}",
            "controller.listener.names": "CONTROLLER",
            "listeners": listener,
            "log.initial.task.delay.ms": "100",  # retention begins when the profile says, not after 30 s
            "log.dirs": str(self._folder / f"data-{node}"),
        }
        if role == "broker":
            settings |= {
                "advertised.listeners": listener,
                "inter.broker.listener.name": "PLAINTEXT",
                "broker.rack": f"r{node}",
                "broker.session.timeout.ms": "30000",  # who is held is not dead
            }
        path = self._folder / f"{node}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        if role == "controller":
            self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(path))
            return
        # What the tool writes for a broker, without the second that Java needs to begin.
        data = self._folder / f"data-{node}"
        data.mkdir()
        directory_id = base64.urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()
        (data / "meta.properties").write_text(
            f"version=1\ncluster.id={CLUSTER_ID}\nnode.id={node}\ndirectory.id={directory_id}\n"
        )

    def _java(self, *arguments: str) -> None:
        command = ["java", *JVM, "-cp", f"{self._jars}/*", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotStarted(f"{' '.join(arguments)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")

    def _spawn(self, node: int) -> None:
        command = ["java", *JVM, "-cp", f"{self._jars}/*", "kafka.Kafka", str(self._folder / f"{node}.properties")]
        with (self._folder / f"{node}.out").open("ab") as out:
            self._processes[node] = subprocess.Popen(command, stdout=out, stderr=out, cwd=self._folder)

    def _wait_until_ready(self) -> None:
        """Every broker that runs knows of all that do."""
        from tests.support.conformance.scene import brokers_known

        deadline = time.monotonic() + READY_SECONDS
        running = set(self._processes) - {CONTROLLER}
        waiting = sorted(running)
        while waiting:
            for node, process in self._processes.items():
                if process.poll() is not None:
                    raise NotStarted(f"node {node} ended: {(self._folder / f'{node}.out').read_text()[-2000:]}")
            if time.monotonic() > deadline:
                raise NotStarted(f"brokers {waiting} were not ready within {READY_SECONDS} s")
            with suppress(OSError, Closed):  # not listening yet
                waiting = [i for i in waiting if not running <= brokers_known(self, i)]
            time.sleep(0.1 if waiting else 0)
        self.close_connections()

    def pid_of(self, broker_id: int) -> int:
        """The process of a broker."""
        return self._processes[broker_id].pid

    def restore(self) -> None:
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

    def hold_follower(self, topic: str, partition: int, broker_id: int) -> None:
        """All that the broker does is held: Kafka has nothing finer."""
        self._processes[broker_id].send_signal(signal.SIGSTOP)

    def release_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self._processes[broker_id].send_signal(signal.SIGCONT)

    def stop(self) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait(STOP_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports
