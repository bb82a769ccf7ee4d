"""Timers: their order, cancelling, and what callbacks may do."""

from __future__ import annotations

import gc
import weakref

from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.broker.runtime.timers import Timer, Timers
from tests.support.memory import Living


def test_timers_fire_in_order_of_time_and_then_of_creation() -> None:
    timers, fired = Timers(), []
    for name, at_ms in (("c", 30), ("a1", 10), ("b", 20), ("a2", 10), ("a3", 10)):
        timers.at(at_ms, lambda _, name=name: fired.append(name))  # type: ignore[misc]
    assert timers.next_deadline_ms() == 10
    assert timers.run_due(20) == 4
    assert fired == ["a1", "a2", "a3", "b"]
    assert timers.next_deadline_ms() == 30
    assert len(timers) == 1


def test_timer_callback_gets_the_current_time_and_fires_once() -> None:
    timers, calls = Timers(), []
    timers.at(10, calls.append)
    assert timers.run_due(9) == 0
    timers.run_due(17)
    timers.run_due(100)
    assert calls == [17]
    assert timers.next_deadline_ms() is None


def test_timer_set_for_a_past_time_by_a_timer_callback_fires_immediately() -> None:
    timers, fired = Timers(), []
    timers.at(10, lambda now_ms: timers.at(now_ms - 5, fired.append))
    assert timers.run_due(10) == 2
    assert fired == [10]


def test_cancelled_timer_does_not_fire_and_can_be_cancelled_again() -> None:
    timers, fired = Timers(), []
    timer = timers.at(10, fired.append)
    other = timers.at(20, fired.append)
    timer.cancel()
    timer.cancel()
    assert len(timers) == 1
    assert timers.next_deadline_ms() == 20
    timers.run_due(50)
    other.cancel()
    assert (fired, len(timers)) == ([50], 0)


def test_timer_callback_may_cancel_a_timer_due_at_the_same_time() -> None:
    timers, fired = Timers(), []
    timers.at(10, lambda _: later.cancel())
    later = timers.at(10, fired.append)
    assert timers.run_due(10) == 1
    assert fired == []


def test_timer_whose_callback_raises_an_error_is_removed_and_other_timers_remain() -> None:
    timers, fired = Timers(), []
    timers.at(10, lambda _: 1 / 0)  # type: ignore[arg-type, return-value]
    timers.at(10, fired.append)
    try:
        timers.run_due(10)
    except ZeroDivisionError:
        fired.append(-1)
    timers.run_due(10)
    assert fired == [-1, 10]


def test_cancelled_timers_are_removed_so_that_they_use_no_memory() -> None:
    timers, alive = Timers(), Living(Timer)
    for _ in range(100):
        new_timers = [timers.at(1_000_000 + i, lambda _: None) for i in range(100)]
        for timer in new_timers:
            timer.cancel()
    assert len(timers) == 0
    del new_timers, timer
    assert alive.count() <= 200


def test_cancelled_timer_releases_its_callback() -> None:
    class DelayingPeer:
        def fire(self, now_ms: int) -> None: ...

    timers, held = Timers(), DelayingPeer()
    peer_reference = weakref.ref(held)
    timer = timers.at(10, held.fire)
    timer.cancel()
    del held
    gc.collect()
    assert peer_reference() is None


def test_timers_still_fire_when_a_callback_cancels_300_other_timers() -> None:
    timers, fired = Timers(), []
    many = [timers.at(20, lambda _: None) for _ in range(300)]

    def cancel_all(now_ms: int) -> None:
        for timer in many:
            timer.cancel()

    timers.at(10, cancel_all)
    timers.at(10, fired.append)
    timers.at(30, fired.append)
    assert timers.run_due(40) == 3
    assert fired == [40, 40]


@given(st.lists(st.tuples(st.sampled_from(["set", "cancel", "run"]), st.integers(0, 40)), max_size=150))
def test_random_timers_fire_in_the_same_order_as_a_sorted_list_of_their_times(steps: list[tuple[str, int]]) -> None:
    timers = Timers()
    model: dict[int, tuple[int, Timer]] = {}
    fired: list[int] = []
    expected: list[int] = []
    now_ms = 0
    for number, (action, value) in enumerate(steps):
        if action == "set":
            model[number] = now_ms + value, timers.at(now_ms + value, lambda _, n=number: fired.append(n))  # type: ignore[misc]
        elif action == "cancel" and model:
            chosen = sorted(model)[value % len(model)]
            model.pop(chosen)[1].cancel()
        elif action == "run":
            now_ms += value
            due = sorted((at_ms, n) for n, (at_ms, _) in model.items() if at_ms <= now_ms)
            expected += [n for _, n in due]
            for _, n in due:
                del model[n]
            timers.run_due(now_ms)
        assert fired == expected
        assert len(timers) == len(model)
        assert timers.next_deadline_ms() == min((at_ms for at_ms, _ in model.values()), default=None)
