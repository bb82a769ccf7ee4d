"""The three clocks: the time they return, what advances them, and the real time until a deadline (docs/explanation/clocks.md)."""

from __future__ import annotations

import time

import pytest

from kafkaproto.broker.runtime.clock import JumpClock, ManualClock, SystemClock


@pytest.mark.parametrize("clock", [SystemClock(), JumpClock()])
def test_system_clock_and_an_unmoved_jump_clock_return_unix_time_in_milliseconds(clock: SystemClock) -> None:
    assert abs(clock.now_ms() - time.time() * 1000) < 1000
    assert clock.is_wall


def test_system_clock_advances_normally_after_the_machine_time_is_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SystemClock()
    before = clock.now_ms()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= clock.now_ms() - before < 1000


def test_system_clock_never_goes_backwards_and_has_fractions_of_milliseconds() -> None:
    clock = SystemClock()
    times = [clock.precise_ms() for _ in range(1000)]
    assert times == sorted(times)
    assert any(ms != int(ms) for ms in times)
    assert clock.now_ms() >= int(times[-1])


def test_jump_clock_advanced_by_an_hour_is_an_hour_ahead_of_the_system_clock() -> None:
    clock, wall = JumpClock(), SystemClock()
    clock.advance(3_600_000)
    assert 3_599_000 < clock.now_ms() - wall.now_ms() < 3_601_000
    clock.advance(0)
    clock.advance(1000)
    assert 3_600_000 < clock.now_ms() - wall.now_ms() < 3_602_000
    before = clock.precise_ms()
    assert clock.precise_ms() >= before


def test_jump_clock_that_was_advanced_returns_to_wall_time_when_reset() -> None:
    clock, wall = JumpClock(), SystemClock()
    clock.advance(10**9)
    clock.reset()
    clock.reset()
    assert abs(clock.now_ms() - wall.now_ms()) < 1000
    clock.advance(5000)
    assert clock.now_ms() - wall.now_ms() > 4000


@pytest.mark.parametrize("clock", [SystemClock(), JumpClock()])
def test_system_and_jump_clocks_return_the_milliseconds_left_until_a_deadline(clock: SystemClock) -> None:
    delay_ms = clock.real_delay_ms(clock.now_ms() + 5000)
    assert delay_ms is not None and 4000 < delay_ms <= 5000
    past_ms = clock.real_delay_ms(clock.now_ms() - 5000)
    assert past_ms is not None and past_ms <= -5000


def test_deadline_in_60_s_is_1_s_away_after_a_jump_clock_is_advanced_by_59_s() -> None:
    clock = JumpClock()
    deadline_ms = clock.now_ms() + 60_000
    clock.advance(59_000)
    delay_ms = clock.real_delay_ms(deadline_ms)
    assert delay_ms is not None and 0 < delay_ms <= 1000


def test_manual_clock_stands_still_until_advanced() -> None:
    clock = ManualClock(1000)
    assert (clock.now_ms(), clock.precise_ms()) == (1000, 1000.0)
    clock.advance(250)
    clock.advance(0)
    assert clock.now_ms() == 1250
    assert not clock.is_wall


def test_real_delay_ms_of_a_manual_clock_is_none_before_and_zero_after_the_deadline() -> None:
    clock = ManualClock(1000)
    assert clock.real_delay_ms(1001) is None
    assert clock.real_delay_ms(1000) == 0.0
    assert clock.real_delay_ms(1) == 0.0


@pytest.mark.parametrize("clock", [JumpClock(), ManualClock()])
def test_clocks_cannot_be_advanced_by_a_negative_time(clock: JumpClock | ManualClock) -> None:
    before = clock.now_ms()
    with pytest.raises(ValueError, match=r"advance\(-1\): the time to advance by must be at least 0 ms"):
        clock.advance(-1)
    assert clock.now_ms() >= before
