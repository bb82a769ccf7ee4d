"""The cluster of a simulation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafkaproto.broker.testing.memory import VirtualCluster


class SimulatedCluster(VirtualCluster):
    """A cluster that can receive bytes of several clients at one instant before it handles any of them."""

    _delivering = False

    @contextmanager
    def delivering(self) -> Iterator[None]:
        """Receive bytes without handling them; the current turn handles them at its end."""
        self._delivering = True
        try:
            yield
        finally:
            self._delivering = False

    def run(self) -> None:
        if not self._delivering:
            super().run()
