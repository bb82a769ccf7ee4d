"""The members of a group, each a client library in a process of its own, and the one pipe to which all of them write."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

from kafkaproto.testing import TestCluster
from tests.support.clients.building import go, java, node, python
from tests.support.groups.history import History, Partition

WAIT_SECONDS = 45.0
COMMIT_SECONDS = 3.0
SESSION_MS = 10_000
SESSION_SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
}
"""Broker settings with which the session of a killed member expires soon."""
READ_BYTES = 1 << 16
PROGRAMS = Path(__file__).parent / "programs"
COMMANDS: dict[str, Callable[[], list[str]]] = {
    "java": lambda: java(PROGRAMS / "Member.java"),
    "confluent-kafka": lambda: python("tests.support.groups.programs.confluent_member"),
    "kafka-python": lambda: python("tests.support.groups.programs.kafka_python_member"),
    "aiokafka": lambda: python("tests.support.groups.programs.aiokafka_member"),
    "franz-go": lambda: go(PROGRAMS / "go"),
    "kafkajs": lambda: node(PROGRAMS / "node" / "member.js"),
}
"""The functions that return the commands of the member programs, by client library."""


class Client(NamedTuple):
    """A client library, the group protocol that it uses ("classic" or "consumer"), and its assignor."""

    library: str
    protocol: str
    assignor: str


class Members:
    """The running members of one group, and their history. Use as a context manager: members that still run are killed at the end."""

    def __init__(self, cluster: TestCluster, group: str, topic: str) -> None:
        self.history = History()
        self._cluster = cluster
        self._group = group
        self._topic = topic
        self._reader, self._writer = os.pipe()
        self._rest = b""
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._prepared: subprocess.Popen[bytes] | None = None
        self._launched = self._ready = 0
        """The number of programs that were launched, and of those that are ready for the command `start`."""
        self._errors: dict[str, IO[bytes]] = {}
        self.clients: dict[str, Client] = {}
        """The client of each member that was ever started, by the member's name."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for process in [*self._processes.values(), *([self._prepared] if self._prepared else [])]:
            process.kill()
            process.communicate()
        for file in self._errors.values():
            file.close()
        os.close(self._reader)
        os.close(self._writer)

    @property
    def running(self) -> list[str]:
        """The names of the members that have been started and neither stopped nor killed, in the order of their start."""
        return list(self._processes)

    def prepare(self, member: str, client: Client) -> None:
        """Launch the program of the member that is started next, and wait until it is ready. A JVM needs seconds for this on a busy machine."""
        self._prepared = self._launch(member, client)
        self.wait(lambda: self._ready == self._launched, f"the program of {member} is ready")

    def _launch(self, member: str, client: Client) -> subprocess.Popen[bytes]:
        self._launched += 1
        errors = self._errors[member] = tempfile.TemporaryFile()  # noqa: SIM115  closed by __exit__
        return subprocess.Popen(COMMANDS[client.library](), stdin=subprocess.PIPE, stdout=self._writer, stderr=errors)

    def start(self, member: str, client: Client, instance_id: str | None = None) -> None:
        """Start a member that subscribes to the topic."""
        self._processes[member] = self._prepared or self._launch(member, client)
        self.clients[member] = client
        self._prepared = None
        self.send(
            member,
            command="start",
            member=member,
            bootstrap=self._cluster.bootstrap,
            group=self._group,
            topics=[self._topic],
            protocol=client.protocol,
            assignor=client.assignor,
            instance_id=instance_id,
            session_timeout_ms=SESSION_MS,
        )

    def send(self, name: str, **fields: object) -> None:
        """Send a command to a member."""
        stdin = self._processes[name].stdin
        assert stdin is not None
        stdin.write(json.dumps(fields).encode() + b"\n")
        stdin.flush()

    def stop(self, member: str) -> None:
        """Let a member leave the group and end."""
        self.send(member, command="stop")
        self.wait(lambda: member in self.history.stopped, f"{member} stops")
        self._processes.pop(member).communicate(timeout=WAIT_SECONDS)

    def kill(self, member: str) -> None:
        """Kill a member with SIGKILL."""
        process = self._processes.pop(member)
        process.kill()
        process.communicate()
        # Behind the last event of the member in the pipe.
        os.write(self._writer, json.dumps({"member": member, "event": "killed"}).encode() + b"\n")
        self.wait(lambda: member in self.history.stopped, f"{member} is killed")

    def commit(self, offsets: dict[Partition, int]) -> None:
        """Let all members commit repeatedly until `offsets` are committed: in a rebalance, a commit may fail, or come before all records are read.

        Raises TimeoutError.
        """
        for _ in range(int(WAIT_SECONDS / COMMIT_SECONDS)):
            for member in self.running:
                self.send(member, command="commit")
            with suppress(TimeoutError):
                self.wait(lambda: self._committed(offsets), "everything is committed", COMMIT_SECONDS)
                return
        raise self._timeout(f"{offsets} are committed")

    def _committed(self, offsets: dict[Partition, int]) -> bool:
        return all(self.history.committed.get(partition) == offset for partition, offset in offsets.items())

    def wait(self, reached: Callable[[], object], goal: str, seconds: float = WAIT_SECONDS) -> None:
        """Apply events until `reached` returns true.

        Raises AssertionError for an event that breaks a rule or a member that ends by itself, and TimeoutError.
        """
        deadline = time.monotonic() + seconds
        while True:
            self._check()
            if reached():
                return
            if time.monotonic() > deadline:
                raise self._timeout(goal)
            self._read(0.1)

    def settle(self, seconds: float) -> None:
        """Apply all events of some time. Raises AssertionError for an event that breaks a rule."""
        deadline = time.monotonic() + seconds
        while (remaining_s := deadline - time.monotonic()) > 0:
            self._read(remaining_s)
        self._check()

    def _read(self, seconds: float) -> None:
        if select.select([self._reader], [], [], seconds)[0]:
            *lines, self._rest = (self._rest + os.read(self._reader, READ_BYTES)).split(b"\n")
            for line in lines:
                event: dict[str, Any] = json.loads(line)
                if event["event"] == "ready":
                    self._ready += 1
                else:
                    self.history.apply(event)

    def _check(self) -> None:
        exited = {member: process for member, process in self._processes.items() if process.poll() is not None}
        if exited:
            self._read(0)  # their last events may still be in the pipe
        assert not self.history.faults, f"{self.history.faults}\n{self._state()}"
        for member, process in exited.items():
            assert member in self.history.stopped, f"{member} ended with {process.returncode}\n{self._state()}"

    def _timeout(self, goal: str) -> TimeoutError:
        return TimeoutError(f"not reached: {goal}\n{self._state()}")

    def _state(self) -> str:
        error_texts = {}
        for member, file in self._errors.items():
            file.seek(0)
            error_texts[member] = file.read()[-1500:].decode(errors="replace")
        errors = "\n".join(f"--- {member}\n{text}" for member, text in error_texts.items() if text)
        return f"{self._cluster.groups().get(self._group)}\nowners {self.history.owners}\n{self.history.latest()}\n{errors}"
