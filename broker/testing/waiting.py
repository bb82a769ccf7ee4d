"""Waiting for a condition on the journal without sleeping: it is looked at after every entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkaproto.broker.runtime.events import Observer


class JournalWatch(Observer):
    """Calls `look` after each event that the journal has taken down. Attach it after the journal."""

    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look

    def response_ready(self, *_: Any, **__: Any) -> None:
        self._look()

    def request_unanswered(self, *_: Any, **__: Any) -> None:
        self._look()

    def throttled(self, *_: Any, **__: Any) -> None:
        self._look()

    def throttle_ended(self, *_: Any, **__: Any) -> None:
        self._look()

    def noted(self, *_: Any, **__: Any) -> None:
        self._look()
