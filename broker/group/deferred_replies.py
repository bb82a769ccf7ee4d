"""Answers that wait until the state they speak of is complete.

An answer may let a connection go on with its next request, which may come back into the coordinator at once. So answers
are collected while a group changes and given out when it has changed. Knows nothing of groups.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class DeferredReplies:
    """`put` collects, `flush` gives out in order. A flush within a flush gives out what is left."""

    __slots__ = ("_answers",)

    def __init__(self) -> None:
        self._answers: deque[tuple[Callable[[Any, int], None], Any]] = deque()

    def put(self, reply: Callable[[T, int], None], result: T) -> None:
        self._answers.append((reply, result))

    def flush(self, now_ms: int) -> None:
        answers = self._answers
        while answers:
            reply, result = answers.popleft()
            reply(result, now_ms)
