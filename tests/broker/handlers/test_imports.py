"""The request handlers that a process imports: the first request of an API imports its handler, so that a broker starts quickly."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.metadata import MetadataRequest
from tests.support.broker.kills import Client

PREFIX = "kafkaproto.broker.handlers."
PRINT_HANDLERS = f"""
import sys

def print_handlers():
    print(*(name for name in list(sys.modules) if name.startswith("{PREFIX}")), flush=True)
"""
"""Defines a function that prints the names of the imported handler modules in a line."""
COMMAND_LINE = f"""
{PRINT_HANDLERS}
import threading
from kafkaproto.broker.server.main import main

def serve_stdin():
    for _ in sys.stdin:
        print_handlers()

threading.Thread(target=serve_stdin, daemon=True).start()
main(["--port", "0"])
"""
"""Runs `kafkaproto broker`, and calls `print_handlers` for each line of stdin."""
TEST_API = f"""
{PRINT_HANDLERS}
from kafkaproto.testing import cluster

with cluster():
    print_handlers()
"""
OF_CONSUMER_GROUPS = {
    *("api_versions", "metadata", "find_coordinator", "join_group", "sync_group", "heartbeat", "leave_group"),
    *("offset_fetch", "offset_commit", "list_offsets", "fetch", "produce"),
}
"""The handlers that the first cluster in a thread imports (`broker.testing.warming`).

Otherwise the first consumer group of a test run would take over ten times as long as the second.
"""


def names_in(line: str) -> set[str]:
    """Return the names of the handler modules in a line of `print_handlers`, without the package."""
    return {name.removeprefix(PREFIX) for name in line.split()}


class BrokerCommand:
    """A process with `kafkaproto broker`. address: where the broker listens."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.address = self._line()

    def handlers(self) -> set[str]:
        """Return the names of the handler modules that the process has imported."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return names_in(self._line())

    def ask(self, request: Any, version: int) -> Any:
        """Send a request over a new connection, and return the response."""
        client = Client(self.address)
        with closing(client.socket):
            return client.ask(request, version)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def broker_command() -> Iterator[BrokerCommand]:
    """Run `kafkaproto broker`, which has printed its address, and kill it at the end."""
    command = [sys.executable, "-c", COMMAND_LINE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield BrokerCommand(process)
        finally:
            process.kill()


def test_broker_imports_the_handler_module_of_an_api_at_the_first_request() -> None:
    with broker_command() as broker:
        assert broker.handlers() == set()
        assert broker.ask(ApiVersionsRequest(), 0).error_code == 0
        assert broker.handlers() == {"api_versions"}
        assert len(broker.ask(MetadataRequest([]), 1).brokers) == 1
        assert broker.handlers() == {"api_versions", "metadata"}


def test_starting_a_test_cluster_imports_only_handlers_that_a_consumer_group_needs() -> None:
    run = subprocess.run([sys.executable, "-c", TEST_API], capture_output=True, text=True, check=True)
    assert names_in(run.stdout) == OF_CONSUMER_GROUPS
