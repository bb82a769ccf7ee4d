"""A queue of results that are sent to clients only when the change of a group's state is complete.

Sending a response may let a connection handle its next request, which may call the coordinator again at once. Therefore results are collected while a
group changes, and sent afterwards. This module does not depend on groups.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class DeferredReplies:
    """A queue of (function, result) pairs: `put` adds a pair; `flush` calls each function with its result, in order, and empties the queue.

    If one of these functions calls `flush` again, the inner call handles the remaining pairs.
    """

    __slots__ = ("_queue",)

    def __init__(self) -> None:
        self._queue: deque[tuple[Callable[[Any, int], None], Any]] = deque()

    def put(self, reply: Callable[[T, int], None], result: T) -> None:
        self._queue.append((reply, result))

    def flush(self, now_ms: int) -> None:
        queue = self._queue
        while queue:
            reply, result = queue.popleft()
            reply(result, now_ms)
