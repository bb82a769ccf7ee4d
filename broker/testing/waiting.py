"""Waiting without sleeping: a condition is checked after each event that can make it true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kafkaproto.broker.runtime.events import Events, Observer
from kafkaproto.broker.testing.tracebacks import is_hidden

__tracebackhide__ = is_hidden


MOST_CHECKS = 10
"""The maximum number of consecutive checks of a `wait_for` condition if each check causes the next one. After that, the wait fails with RuntimeError.

A check causes another check if the condition causes an event. Without a limit, a condition that changes the cluster would be checked forever. A
condition that only reads may cause a few events, too: before a read, the cluster may run timers that are due.
"""


class Settable(Protocol):
    """Interface of a future: the methods that `asyncio.Future` and `concurrent.futures.Future` both have."""

    def done(self) -> bool: ...

    def set_result(self, result: Any, /) -> object: ...

    def set_exception(self, error: Any, /) -> object: ...


class Watch(Observer):
    """An observer of a cluster's events that calls the function `condition` until it returns a result other than None or raises an exception.

    The result or the exception is then set on `future`. The function is called by `look` and after each event for which this class has a
    method, such as a request, throttle or append. Attach this observer to the events after the journal, so that the condition finds the latest
    event in the journal.
    """

    def __init__(self, condition: Callable[[], object | None], future: Settable) -> None:
        self._condition = condition
        self._future = future
        self._is_checking = False
        self._must_repeat = False

    def check(self, *_: Any, **__: Any) -> None:
        """Check the condition of the wait now. If the condition itself makes this call, one more check follows the current check."""
        if self._is_checking:
            self._must_repeat = True
            return
        if self._future.done():
            return
        self._is_checking = True
        try:
            self._check()
        except Exception as error:  # noqa: BLE001 - raised to the waiting test
            self.end(error)
        finally:
            self._is_checking = False

    def _check(self) -> None:
        """Check the condition of the wait, and again if the condition itself triggered a check, at most 10 times (`MOST_CHECKS`)."""
        for _ in range(MOST_CHECKS):
            self._must_repeat = False
            result = self._condition()
            if self._future.done():
                return
            if result is not None:
                self._future.set_result(result)
                return
            if not self._must_repeat:
                return
        raise RuntimeError(
            f"the condition of wait_for changed the cluster in each of {MOST_CHECKS} checks, and each change causes another check; "
            "change the cluster before wait_for, and only read it in the condition"
        )

    def end(self, error: Exception) -> None:
        """Stop checking the condition. If the condition has not been fulfilled, the waiting test raises `error`."""
        if not self._future.done():
            self._future.set_exception(error)

    response_ready = check
    request_unanswered = check
    throttled = check
    throttle_ended = check
    group_changed = check
    transaction_changed = check
    offsets_moved = check
    topic_changed = check
    noted = check


def end_waits(events: Events) -> None:
    """Raise RuntimeError in all `wait_for...` calls in progress, because the cluster stops. events: the events to which the waits are attached."""
    for watch in events.observers:
        if isinstance(watch, Watch):
            watch.end(
                RuntimeError("the cluster is stopped: it stopped while the test waited; call stop() after the wait")
            )


def timed_out(timeout_s: float, instead: str, requests: str) -> TimeoutError:
    """Return the error for a wait that timed out.

    timeout_s: how long the wait lasted, in seconds. instead: the beginning of the message, which describes the state that was reached instead.
    requests: the last requests as text, one per line; "" if there are none.
    """
    return TimeoutError(f"{instead} within {timeout_s} s; last requests:\n{requests or '(none)'}")
