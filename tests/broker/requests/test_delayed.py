"""Delayed operations: registered under their keys, completed once, or abandoned with their connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkaproto.broker.requests.delayed import Build, Delayed
from kafkaproto.broker.requests.outcomes import NoReply
from kafkaproto.broker.runtime.timers import Timers

DEADLINE_MS = 500


class Wait:
    """A delayed operation that waits for `due` under two keys; `outcomes` contains its results with their times."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.keys: tuple[dict[Any, None], ...] = ({}, {})
        self.due = False
        self.expired = 0
        self.outcomes: list[tuple[int, int]] = []
        self.delayed = Delayed().wait(
            self.keys, lambda now_ms: self.due, self.timers, DEADLINE_MS, lambda now_ms: NoReply(), self._expire
        )

    def _expire(self) -> None:
        self.expired += 1

    def deliver(self, build: Build, now_ms: int) -> None:
        build()
        self.outcomes.append((now_ms, self.expired))

    def assert_forgotten(self) -> None:
        assert self.delayed.done and self.keys == ({}, {}) and self.timers.next_deadline_ms() is None


@pytest.fixture
def wait() -> Wait:
    wait = Wait()
    wait.delayed.attach(wait.deliver)
    return wait


def test_delayed_operation_stays_pending_at_each_check_until_its_condition_is_true(wait: Wait) -> None:
    assert all(wait.delayed in key for key in wait.keys)
    wait.delayed.check(100)
    assert wait.outcomes == []
    wait.due = True
    wait.delayed.check(200)
    assert wait.outcomes == [(200, 0)]
    wait.assert_forgotten()


def test_delayed_operation_expires_at_its_deadline_and_then_completes(wait: Wait) -> None:
    wait.timers.run_due(DEADLINE_MS - 1)
    assert wait.outcomes == []
    wait.timers.run_due(DEADLINE_MS)
    assert wait.outcomes == [(DEADLINE_MS, 1)]
    wait.assert_forgotten()


@pytest.mark.parametrize(
    "first",
    [
        lambda wait: wait.delayed.check(100),
        lambda wait: wait.delayed.complete(NoReply, 100),
        lambda wait: wait.timers.run_due(DEADLINE_MS),
    ],
)
def test_delayed_operation_completes_only_once(wait: Wait, first: Callable[[Wait], object]) -> None:
    wait.due = True
    first(wait)
    wait.delayed.check(600)
    wait.delayed.complete(NoReply, 600)
    wait.timers.run_due(600)
    wait.delayed.abandon()
    assert len(wait.outcomes) == 1


def test_abandoned_delayed_operation_never_completes(wait: Wait) -> None:
    wait.delayed.abandon()
    wait.assert_forgotten()
    wait.due = True
    wait.delayed.check(100)
    wait.delayed.complete(NoReply, 100)
    wait.timers.run_due(DEADLINE_MS)
    assert wait.outcomes == []


def test_outcome_of_a_delayed_operation_is_none_until_the_operation_completes() -> None:
    delayed = Delayed()
    assert delayed.outcome is None
    delayed.complete(lambda: NoReply(close=True), 7)
    assert delayed.done and delayed.outcome == NoReply(close=True)
