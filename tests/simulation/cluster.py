"""The cluster of a simulation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafkaproto.broker.testing.memory import VirtualCluster


class SimulatedCluster(VirtualCluster):
    """A cluster to which bytes of several clients can come at one instant, before anything follows from them."""

    _delivering = False

    @contextmanager
    def delivering(self) -> Iterator[None]:
        """Let bytes come without running what follows from them: the turn that they came in does that."""
        self._delivering = True
        try:
            yield
        finally:
            self._delivering = False

    def run(self) -> None:
        if not self._delivering:
            super().run()
