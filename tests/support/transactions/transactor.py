"""A client library that uses transactions, in a process of its own."""

from __future__ import annotations

import json
import select
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION
from tests.support.clients.building import go, java, node, python

WAIT_SECONDS = 40.0
PROGRAMS = Path(__file__).parent / "programs"
COMMANDS: dict[str, Callable[[], list[str]]] = {
    f"java-{KAFKA_VERSION}": lambda: java(PROGRAMS / "Transactor.java", KAFKA_VERSION),
    f"java-{NEWER_VERSION}": lambda: java(PROGRAMS / "Transactor.java", NEWER_VERSION),
    "confluent-kafka": lambda: python("tests.support.transactions.programs.confluent_transactor"),
    "kafka-python": lambda: python("tests.support.transactions.programs.kafka_python_transactor"),
    "aiokafka": lambda: python("tests.support.transactions.programs.aiokafka_transactor"),
    "franz-go": lambda: go(PROGRAMS / "go"),
    "kafkajs": lambda: node(PROGRAMS / "node" / "transactor.js"),
}
"""The functions that return the commands of the programs, by client library."""


class TransactorError(Exception):
    """An error of the client. name: its class or code, as the client names it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


class Transactor:
    """A running program. Use as a context manager: it is killed at the end."""

    def __init__(self, library: str, bootstrap: str) -> None:
        self.library = library
        self._bootstrap = bootstrap
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by __exit__
        self._process = subprocess.Popen(
            COMMANDS[library](), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.kill()
        self._errors.close()

    def kill(self) -> None:
        """Kill the program with SIGKILL."""
        self._process.kill()
        self._process.communicate()

    def init(self, transactional_id: str, group: str | None = None, source: str = "", timeout_ms: int = 60_000) -> None:
        """Create a producer and initialise its transactions. group, source: the group whose offsets in a topic it commits."""
        self.call(
            "init",
            bootstrap=self._bootstrap,
            transactional_id=transactional_id,
            timeout_ms=timeout_ms,
            group=group,
            input=source,
        )

    def read(self, topic: str, partitions: int, isolation: str, last: str, further_ms: int = 0) -> list[list[str]]:
        """Return the values that a consumer reads from each partition until it has read `last`, and for another `further_ms`."""
        response = self.call(
            "read",
            bootstrap=self._bootstrap,
            topic=topic,
            partitions=partitions,
            isolation=isolation,
            last=last,
            further_ms=further_ms,
        )
        values: list[list[str]] = response["values"]
        return values

    def call(self, command: str, **fields: object) -> dict[str, Any]:
        """Let the program carry out a command. Returns its response. Raises TransactorError, and AssertionError if the program ends."""
        self.send(command, **fields)
        return self.response(command)

    def response(self, command: str) -> dict[str, Any]:
        """Wait for the response to a command that was sent, and return it. Raises TransactorError, and AssertionError if the program ends."""
        assert self.responds(WAIT_SECONDS), f"{self.library} does not answer {command}"
        stdout = self._process.stdout
        assert stdout is not None
        line = stdout.readline()
        assert line, f"{self.library} ended in {command}: {self._said()}"
        response: dict[str, Any] = json.loads(line)
        if response["error"] is not None:
            raise TransactorError(response["error"], response["message"])
        return response

    def send(self, command: str, **fields: object) -> None:
        """Send a command without waiting for its response."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(json.dumps({"command": command, **fields}).encode() + b"\n")
        stdin.flush()

    def responds(self, within_seconds: float) -> bool:
        """Return whether the program responds, or ends, within a number of seconds. Does not read the response."""
        stdout = self._process.stdout
        assert stdout is not None
        return bool(select.select([stdout], [], [], within_seconds)[0])

    def _said(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-1500:].decode(errors="replace")
