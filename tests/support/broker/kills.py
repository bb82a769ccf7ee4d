"""Broker processes that are killed with `kill -9`, each started on the data directory of the one before, and a blocking client of these brokers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kafkaproto.client import key_of, read_response
from kafkaproto.frame import read_frame
from tests.support.raw import frame

PATIENCE_SECONDS = 20.0
LIFE_SECONDS = 0.05, 0.5
"""The shortest and longest time in seconds from the start of the clients' work until a broker is killed."""


class Client:
    """A blocking connection to broker 0. Raises OSError or EOFError when the broker was killed."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), PATIENCE_SECONDS)

    def send(self, request: Any, version: int) -> None:
        self.socket.sendall(frame(request, version))

    def answer(self, request: Any, version: int) -> Any:
        return read_response(key_of(request), version, read_frame(self.socket.recv_into)).message

    def ask(self, request: Any, version: int) -> Any:
        self.send(request, version)
        return self.answer(request, version)


class BrokerProcess:
    """One running process. addresses: where its brokers listen."""

    def __init__(self, pid: int, addresses: list[str]) -> None:
        self.pid = pid
        self.addresses = addresses
        self._killer: threading.Timer | None = None

    def kill_after(self, seconds: float) -> None:
        """Kill the process after some time; the end of the block that started it waits for that."""
        self._killer = threading.Timer(seconds, os.kill, (self.pid, signal.SIGKILL))
        self._killer.start()

    def end(self) -> None:
        """Kill the process now, or wait for the kill that `kill_after` planned."""
        if self._killer is None:
            os.kill(self.pid, signal.SIGKILL)
        else:
            self._killer.join()


class BrokerProcesses:
    """Starts broker processes quickly: they are forked from a process that has imported all modules (`process_runner`)."""

    def __init__(self, runner: subprocess.Popen[str]) -> None:
        self._runner = runner

    @contextmanager
    def start(self, options: Sequence[str], brokers: int) -> Iterator[BrokerProcess]:
        """Start `kafkaproto broker` with these options. The process is killed at the end of the block, unless `kill_after` does it."""
        assert self._runner.stdin is not None and self._runner.stdout is not None
        self._runner.stdin.write(json.dumps(options) + "\n")
        self._runner.stdin.flush()
        process = BrokerProcess(int(self._runner.stdout.readline()), [])
        try:
            process.addresses += [self._runner.stdout.readline().strip() for _ in range(brokers)]
            yield process
        finally:
            process.end()
        assert self._runner.stdout.readline() == "ended\n"

    def kill_while_starting(self, options: Sequence[str], wait: Callable[[], None]) -> bool:
        """Start `kafkaproto broker` with these options and kill it when `wait` returns.

        Returns whether the process was killed before it printed an address.
        """
        assert self._runner.stdin is not None and self._runner.stdout is not None
        self._runner.stdin.write(json.dumps(options) + "\n")
        self._runner.stdin.flush()
        pid = int(self._runner.stdout.readline())
        wait()
        os.kill(pid, signal.SIGKILL)
        printed = list(iter(self._runner.stdout.readline, "ended\n"))
        return not printed


@contextmanager
def broker_processes() -> Iterator[BrokerProcesses]:
    """Start the process from which broker processes are forked."""
    runner = subprocess.Popen(
        [sys.executable, "-m", "tests.support.broker.process_runner"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield BrokerProcesses(runner)
    finally:
        assert runner.stdin is not None and runner.stdout is not None
        runner.stdin.close()
        runner.wait(PATIENCE_SECONDS)
        runner.stdout.close()
