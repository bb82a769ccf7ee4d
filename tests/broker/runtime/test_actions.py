"""The action queue: steps of one turn run in order and at one time, and a failing step does not stop the others (W-8)."""

from __future__ import annotations

import logging

import pytest

from kafkaproto.broker.runtime.actions import ActionQueue


def test_action_queued_by_a_running_action_runs_after_the_actions_queued_earlier() -> None:
    actions, calls = ActionQueue(0), []

    def first(now_ms: int) -> None:
        calls.append("first")
        actions.soon(lambda _: calls.append("of the first"))

    actions.soon(first)
    actions.soon(lambda _: calls.append("second"))
    assert calls == []
    actions.run(5)
    assert calls == ["first", "second", "of the first"]


def test_action_queued_by_a_running_action_gets_the_same_time_as_that_action() -> None:
    actions, times_ms = ActionQueue(1), []
    actions.soon(lambda now_ms: actions.soon(times_ms.append) or times_ms.append(now_ms))  # type: ignore[func-returns-value]
    actions.run(42)
    assert times_ms == [42, 42]
    assert actions.now_ms == 42


def test_action_queue_runs_a_chain_of_100000_actions_without_recursion() -> None:
    actions, times_ms = ActionQueue(0), []

    def step(now_ms: int) -> None:
        times_ms.append(now_ms)
        if len(times_ms) < 100_000:
            actions.soon(step)
            actions.run(999)  # inside a turn this is the same turn

    actions.soon(step)
    actions.run(7)
    assert len(times_ms) == 100_000
    assert set(times_ms) == {7}


@pytest.mark.rule("W-8")
def test_exception_in_a_queued_action_is_logged_and_other_actions_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    actions, times_ms = ActionQueue(0), []
    actions.soon(lambda _: 1 / 0)  # type: ignore[arg-type, return-value]
    actions.soon(times_ms.append)
    actions.run(3)
    assert times_ms == [3]
    [record] = caplog.records
    assert (record.levelno, record.name) == (logging.ERROR, "kafkaproto.actions")
    actions.soon(times_ms.append)
    actions.run(4)
    assert times_ms == [3, 4]


def test_keyboard_interrupt_in_a_queued_action_is_not_caught() -> None:
    actions, times_ms = ActionQueue(0), []

    def interrupted(now_ms: int) -> None:
        raise KeyboardInterrupt

    actions.soon(interrupted)
    actions.soon(times_ms.append)
    with pytest.raises(KeyboardInterrupt):
        actions.run(1)
    actions.run(2)
    assert times_ms == [2]
