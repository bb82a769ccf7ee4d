"""One node of Apache Kafka, broker and controller in one, started from a properties file as a user would start it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.raw_client import frame, read_response_frame
from benchmarks.rivals.jars import kafka_jars
from benchmarks.rivals.real_kafka import (
    CLUSTER_ID,
    JVM,
    READY_SECONDS,
    STOP_SECONDS,
    NotStarted,
    brokers_known,
    free_ports,
)
from kafkaproto.client import key_of, read_response

ANSWER_SECONDS = 20.0


class StandaloneKafka:
    """A node with id 1 on free ports, with its data in a temporary folder. Use as a context manager.

    settings: lines of its properties file, in addition to the ports and the folder. Raises NotStarted.
    """

    def __init__(self, version: str, settings: Mapping[str, str]) -> None:
        self._jars = kafka_jars(version)
        self._folder = Path(tempfile.mkdtemp(prefix="kafka-"))
        port, controller_port = free_ports(2)
        self.address = ("127.0.0.1", port)
        self.settings = {
            **settings,
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(self._folder / "data"),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        path = self._folder / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in self.settings.items()))
        java = ["java", *JVM, "-cp", f"{self._jars}/*"]
        try:
            tool = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(path)]
            completed = subprocess.run(tool, capture_output=True, text=True, check=False)
            if completed.returncode:
                raise NotStarted(f"format: {completed.stdout[-2000:]}{completed.stderr[-2000:]}")
            with (self._folder / "out").open("ab") as out:
                self._process = subprocess.Popen([*java, "kafka.Kafka", str(path)], stdout=out, stderr=out)
            self._wait_until_ready(self._process)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop()

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            if process.poll() is not None:
                raise NotStarted(f"it ended: {(self._folder / 'out').read_text()[-2000:]}")
            with suppress(OSError, EOFError):  # not listening yet
                if brokers_known(self.address):
                    return
            if time.monotonic() > deadline:
                raise NotStarted(f"it was not ready within {READY_SECONDS} s")
            time.sleep(0.1)

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)

    def ask(self, request: Any, version: int) -> Any:
        """Send one request on its own connection and return the response message."""
        with socket.create_connection(self.address, ANSWER_SECONDS) as sock:
            sock.sendall(frame(version, request))
            return read_response(key_of(request), version, read_response_frame(sock)).message
