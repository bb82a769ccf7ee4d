"""One turn: an instant at which something comes in, and all that follows from it before the next thing does.

A change of a partition wakes parked fetches and followers; their answers let connections go on with the next frame. Done by
calls inside calls this would nest without end, so each consequence is queued here and run flat, in order, at the same instant.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

logger = logging.getLogger("kafkaproto.actions")

Step = Callable[[int], None]


class ActionQueue:
    """`now_ms` is the instant of the turn. `soon(step)` queues, `run(now_ms)` runs all, including what the steps queue."""

    __slots__ = ("_running", "_steps", "now_ms")

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self._steps: deque[Step] = deque()
        self._running = False

    def soon(self, step: Step) -> None:
        self._steps.append(step)

    def run(self, now_ms: int) -> None:
        """A step that raises is logged and the others go on: one bad operation never harms another (W-8)."""
        if self._running:
            return
        self.now_ms = now_ms
        self._running = True
        steps = self._steps
        try:
            while steps:
                step = steps.popleft()
                try:
                    step(now_ms)
                except Exception:
                    logger.exception("a step of the turn failed; the others go on")
        finally:
            self._running = False
