"""What time it is: three clocks with one method. Milliseconds since the epoch, as Kafka stamps records.

No other module asks the operating system for the time. Nothing here sleeps or waits.
"""

from __future__ import annotations

import time
from typing import Protocol

monotonic_ns = time.monotonic_ns
"""Real time, whatever the broker's clock says: for who measures how long something took."""


class Clock(Protocol):
    """`now_ms()` never goes backwards. `is_wall` tells whether handler time may be measured (request-time quotas)."""

    is_wall: bool

    def now_ms(self) -> int: ...

    def precise_ms(self) -> float:
        """The same with fractions, to measure handling with."""
        ...

    def real_delay_ms(self, deadline_ms: int) -> float | None:
        """Milliseconds of real time until `deadline_ms` comes by itself; None if it never does."""
        ...


class SystemClock:
    """Wall time at start plus the monotonic clock since: steps of the system time do not reach the broker."""

    is_wall = True

    def __init__(self) -> None:
        self._zero_ms = time.time() * 1000.0 - time.monotonic() * 1000.0

    def now_ms(self) -> int:
        return int(self._zero_ms + time.monotonic() * 1000.0)

    def precise_ms(self) -> float:
        return self._zero_ms + time.monotonic() * 1000.0

    def real_delay_ms(self, deadline_ms: int) -> float | None:
        return deadline_ms - (self._zero_ms + time.monotonic() * 1000.0)


class JumpClock(SystemClock):
    """Wall time plus an offset that `advance` adds to: idle clients go on, and tests need not wait."""

    def __init__(self) -> None:
        super().__init__()
        self._offset_ms = 0

    def advance(self, delta_ms: int) -> None:
        if delta_ms < 0:
            raise ValueError(f"advance({delta_ms}): time goes forwards only; give a number >= 0")
        self._offset_ms += delta_ms
        self._zero_ms += delta_ms

    def reset(self) -> None:
        """Back to wall time. The one case in which time goes backwards: between two uses of one broker."""
        self._zero_ms -= self._offset_ms
        self._offset_ms = 0


class ManualClock:
    """Stands still until told. For raw clients and the simulator."""

    is_wall = False

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def precise_ms(self) -> float:
        return float(self._now_ms)

    def advance(self, delta_ms: int) -> None:
        if delta_ms < 0:
            raise ValueError(f"advance({delta_ms}): time goes forwards only; give a number >= 0")
        self._now_ms += delta_ms

    def real_delay_ms(self, deadline_ms: int) -> float | None:
        return 0.0 if deadline_ms <= self._now_ms else None
