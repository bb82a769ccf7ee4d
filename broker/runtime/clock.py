"""Three clocks with one interface. Their time is in milliseconds since the epoch (1970, UTC), like the timestamps of Kafka's records.

Other modules get the time only from these clocks. Nothing in this module sleeps or waits.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

monotonic_ns = time.monotonic_ns
"""Return real time in nanoseconds, independent of the broker's clock, for code that measures durations."""


class Clock(Protocol):
    """A source of time that never goes backwards.

    is_wall: whether the clock advances with real time. Only with such a clock can the broker measure handler times, for the request-time quotas.
    """

    is_wall: bool

    def now_ms(self) -> int: ...

    def precise_ms(self) -> float:
        """Return the current time with fractions of a millisecond, to measure handling times."""
        ...

    def real_delay_ms(self, deadline_ms: int) -> float | None:
        """Return how many milliseconds of real time pass until `deadline_ms`; None if the clock stands still until a test advances it."""
        ...


def clock_text(clock: Clock) -> str:
    """Return a text with the kind of a clock and the time that it shows, in UTC and in ms since the epoch."""
    now_ms = clock.now_ms()
    time_utc = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return f"<{type(clock).__name__} {time_utc} ({now_ms} ms)>"


class SystemClock:
    """A clock that reads wall time once, when it is created, and then adds monotonic time. Later changes of the system time have no effect."""

    is_wall = True

    def __init__(self) -> None:
        self._zero_ms = time.time() * 1000.0 - time.monotonic() * 1000.0

    def __repr__(self) -> str:
        return clock_text(self)

    def now_ms(self) -> int:
        return int(self._zero_ms + time.monotonic() * 1000.0)

    def precise_ms(self) -> float:
        return self._zero_ms + time.monotonic() * 1000.0

    def real_delay_ms(self, deadline_ms: int) -> float | None:
        return deadline_ms - (self._zero_ms + time.monotonic() * 1000.0)


class JumpClock(SystemClock):
    """A clock that shows wall time plus an offset. `advance` increases the offset, so that tests can skip waiting."""

    def __init__(self) -> None:
        super().__init__()
        self._offset_ms = 0

    def advance(self, delta_ms: int) -> None:
        if delta_ms < 0:
            raise ValueError(f"advance({delta_ms}): the time to advance by must be at least 0 ms")
        self._offset_ms += delta_ms
        self._zero_ms += delta_ms

    def reset(self) -> None:
        """Show wall time again, after a reset of the cluster. Only this method may set the clock back."""
        self._zero_ms -= self._offset_ms
        self._offset_ms = 0


class ManualClock:
    """A clock that stands still until `advance` is called, for tests and simulations that control the time."""

    is_wall = False

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms

    def __repr__(self) -> str:
        return clock_text(self)

    def now_ms(self) -> int:
        return self._now_ms

    def precise_ms(self) -> float:
        return float(self._now_ms)

    def advance(self, delta_ms: int) -> None:
        if delta_ms < 0:
            raise ValueError(f"advance({delta_ms}): the time to advance by must be at least 0 ms")
        self._now_ms += delta_ms

    def real_delay_ms(self, deadline_ms: int) -> float | None:
        return 0.0 if deadline_ms <= self._now_ms else None
