"""Three brokers in racks a, b and c, which the project's command line starts in a separate process."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from kafka import KafkaAdminClient

RACKS = ("a", "b", "c")
COMMAND = [
    *("-m", "kafkaproto.broker", "--brokers", "3", "--port", "0"),
    *(part for i, rack in enumerate(RACKS) for part in ("-c", f"{i}.broker.rack={rack}")),
    *("-c", "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector"),
]
READY_SECONDS = 20.0
FOLDER = Path("build", "demo").absolute()
"""The folder `build/demo` in the working directory. It holds the recorded trace and the report of the latest demo."""


class Brokers:
    """Three running brokers: `with Brokers() as brokers:`.

    addresses: host:port by broker id. ready_seconds: duration of the start. end_seconds: duration of the stop by SIGTERM, both in seconds. trace:
    folder of the trace that the brokers record; the trace of an earlier demo is deleted.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self.trace = folder / "trace"
        self.addresses: list[str] = []
        self.ready_seconds = 0.0
        self.end_seconds = 0.0
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open as long as the brokers run
        self._process: subprocess.Popen[str] | None = None

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses)

    def __enter__(self) -> Brokers:
        started = time.perf_counter()
        shutil.rmtree(self.trace.parent, ignore_errors=True)
        command = [sys.executable, *COMMAND, "--trace", str(self.trace)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True)
        self._process = process
        assert process.stdout is not None
        patience = threading.Timer(READY_SECONDS, process.kill)
        patience.start()
        try:
            self.addresses = [process.stdout.readline().strip() for _ in RACKS]
        finally:
            patience.cancel()
        if not all(self.addresses):
            process.kill()
            process.wait()
            raise RuntimeError(
                f"the brokers of the demo did not start within {READY_SECONDS:.0f} s; the end of their log:\n{self.log_tail()}"
            )
        self.ready_seconds = time.perf_counter() - started
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        assert process is not None
        started = time.perf_counter()
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.end_seconds = time.perf_counter() - started
        if process.stdout is not None:
            process.stdout.close()
        self._log.close()

    def log_tail(self) -> str:
        """Return the last 20 lines that the brokers wrote to stderr."""
        self._log.seek(0)
        return "".join(self._log.readlines()[-20:])

    def create_topic(
        self, name: str, partitions: int, replicas: int = 3, assignments: dict[int, list[int]] | None = None
    ) -> None:
        """Create a topic with kafka-python. assignments: broker ids by partition, leader first; overrides `partitions` and `replicas`."""
        topic: dict[str, Any] = {"num_partitions": partitions, "replication_factor": replicas}
        if assignments is not None:
            topic = {"assignments": assignments}
        admin = KafkaAdminClient(bootstrap_servers=self.addresses)
        try:
            admin.create_topics({name: topic}, wait_for_metadata=True)
        finally:
            admin.close()
