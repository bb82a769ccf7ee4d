"""Waits until the in-sync replicas have records that a coordinator has appended.

This module does not depend on groups, transactions or wire messages.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkaproto.broker.replication.awaited_partitions import AwaitedReplication
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.error_codes import ErrorCode

Done = Callable[[int, int], None]
"""A function that is called once, when records are replicated or have failed, with an error code (0 if replicated) and the current time (ms)."""


def await_append(awaited: AwaitedReplication | None, timers: Timers, now_ms: int, timeout_ms: int, done: Done) -> None:
    """Wait until an append is replicated, and then call `done`. If the append fails, or `timeout_ms` passes, `done` gets an error.

    timers: schedules the timeout. awaited: the replication to wait for; None if there is nothing to wait for, so that `done` is called at once. The
    error after a timeout is REQUEST_TIMED_OUT (7).
    """
    if awaited is None:
        done(ErrorCode.NONE, now_ms)
    else:
        _Wait(awaited, done).begin(timers, now_ms + timeout_ms)


class _Wait:
    """An append to an internal topic that waits until the in-sync replicas have the appended records."""

    __slots__ = ("_awaited", "_done", "_timer")

    def __init__(self, awaited: AwaitedReplication, done: Done) -> None:
        self._awaited = awaited
        self._done: Done | None = done

    def begin(self, timers: Timers, deadline_ms: int) -> None:
        self._awaited.partition.watchers[self] = None
        self._timer = timers.at(deadline_ms, lambda at_ms: self._finish(ErrorCode.REQUEST_TIMED_OUT, at_ms))

    def check(self, now_ms: int) -> None:
        self._awaited.check()
        if self._awaited.settled:
            self._finish(self._awaited.error_code, now_ms)

    def _finish(self, error_code: int, now_ms: int) -> None:
        callback, self._done = self._done, None
        self._timer.cancel()
        self._awaited.partition.watchers.pop(self, None)
        if callback is not None:
            callback(error_code, now_ms)
