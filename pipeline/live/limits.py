"""Options of the live job: windows, and limits for alerts. This module does not import Spark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a live job. A job that continues from a checkpoint folder must use the same windows as the job that created it.

    window_s: length of a window. slide_s: time between the starts of two windows. late_s: time for which a window accepts late records. All are in
    seconds.
    """

    window_s: int = 10
    slide_s: int = 10
    late_s: int = 10


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the live job: a client that reaches a limit causes an alert.

    throttled_ms: throttle time of the client in one window. lag: by how many offsets the client is behind the high watermark of one partition.
    """

    throttled_ms: int = 1000
    lag: int = 10_000
