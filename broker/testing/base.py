"""The common base class of test clusters: access to the cluster's internals, and calls of functions in the broker's event loop."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.server.server import Server
from kafkaproto.broker.testing.tracebacks import is_hidden

__tracebackhide__ = is_hidden

T = TypeVar("T")


class Base(ABC):
    """Base class of the test clusters, which run between `start` and `stop`."""

    _server: Server | None = None
    """The cluster's server, with its listening sockets, as the last `start` created it; None before the first `start`."""
    _running = False
    _process_id = 0
    """The id of the process that called `start`; 0 before the first start."""

    @property
    def server(self) -> Server:
        """Return the object that has the cluster's listening sockets, for tests that need internals. Raises RuntimeError before the first start."""
        if self._server is None:
            raise RuntimeError("the cluster is not started: call start(), or use it inside its `with` block")
        return self._server

    @property
    def state(self) -> Cluster:
        """Return the state of the cluster, for tests that need internals; use it in `run_in_loop`. Raises RuntimeError before the first start."""
        return self.server.cluster

    @property
    def is_running(self) -> bool:
        """Return whether the cluster has started and not stopped."""
        return self._running

    @property
    def has_started(self) -> bool:
        """Return whether the cluster has started at least once. The result stays True after the cluster has stopped."""
        return self._server is not None

    def _running_server(self) -> Server:
        """Return the cluster's server. Raises RuntimeError unless the cluster runs, and runs in this process."""
        server = self.server
        self._refuse_in_fork()
        if not self._running:
            raise RuntimeError("the cluster is stopped: call start() again, or use it inside its `with` block")
        return server

    def _is_in_fork(self) -> bool:
        return self._running and self._process_id != os.getpid()

    def _refuse_in_fork(self) -> None:
        """Raise RuntimeError in a forked child of the process that runs the cluster, because the broker's thread exists only in the parent."""
        if self._is_in_fork():
            raise RuntimeError(
                f"process {os.getpid()} is a fork of process {self._process_id}, which runs the cluster: call the cluster's methods "
                "in that process, connect to `bootstrap` with a client, or start another cluster in the fork"
            )

    def _read(self, action: Callable[[], T]) -> T:
        """Run `action` in the broker's event loop and return its result. If the cluster is stopped, run `action` directly, in the current thread.

        Raises RuntimeError before the first start.
        """
        return self._run(action) if self._running or self._server is None else action()

    @abstractmethod
    def _run(self, action: Callable[[], T]) -> T:
        """Run `action` in the broker's loop and return its result."""

    def run_in_loop(self, action: Callable[[], T]) -> T:
        """Run a function without arguments in the broker's event loop, and return its result.

        For example, `c.run_in_loop(lambda: c.state.timers.next_deadline_ms())`.
        """
        return self._run(action)
