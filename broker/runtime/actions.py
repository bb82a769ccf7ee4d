"""The queue of deferred actions: what follows from one input, such as received bytes, is done in order with the same current time.

For example, a changed partition completes waiting fetches and the fetches of followers, and a written response lets its connection handle the next
frame. If these steps called each other directly, the calls would nest without limit. So each step is added to this queue, which runs the steps one
after another.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

logger = logging.getLogger("kafkaproto.actions")

Step = Callable[[int], None]


class ActionQueue:
    """A queue of functions that all run at the same time of the cluster's clock, which is `now_ms`.

    `soon(step)` adds a function. `run(now_ms)` runs all of them, including those that are added while it runs.
    """

    __slots__ = ("_running", "_steps", "now_ms")

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self._steps: deque[Step] = deque()
        self._running = False

    def soon(self, step: Step) -> None:
        self._steps.append(step)

    def run(self, now_ms: int) -> None:
        """Run all queued functions.

        If a function raises, the exception is logged and the other functions still run (W-8). A call while the queue
        is running does nothing.
        """
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
                    logger.exception(
                        "the broker failed in %s because of a bug (please report this traceback); the broker continues",
                        step,
                    )
        finally:
            self._running = False
