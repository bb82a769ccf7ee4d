"""A live job from its start to SIGINT: prints the table after each micro-batch."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kafkaproto.pipeline.live.job import Job, Limits, Told, Windows
from kafkaproto.pipeline.session import local_session

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_SECONDS = 0.2
LAST_BATCH_SECONDS = 60.0
HEAD = ("window", "client", "throttles", "throttled ms", "share", "longest ms", "lag max", "lag last", "")


def run(
    bootstrap: str,
    folder: Path,
    journal: str,
    alerts_topic: str,
    windows: Windows,
    limits: Limits,
    every_s: float | None,
) -> int:
    """Watch the journal in a Spark session of its own, until SIGINT or SIGTERM. See `Job` for the arguments.

    every_s: seconds from one micro-batch to the next; None: stop when everything that is there now is in the table. Returns 1 if the query
    fails, else 0.
    """
    try:
        with local_session("kafkaproto live", connector=True) as spark:
            stopped = False

            def stop(*_: object) -> None:
                nonlocal stopped
                stopped = True

            job = Job(spark, bootstrap, folder, journal, alerts_topic, windows, limits, lambda told: _say(text(told)))
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, stop)  # after Spark's, which would cancel what goes on
            query = job.start(every_s)
            _say(f"watching {journal} of {bootstrap}; alerts go to {alerts_topic}")
            return _watch(query, lambda: stopped)
    except KeyboardInterrupt:  # before anything was begun
        return 0


def _watch(query: StreamingQuery, is_stopped: Callable[[], bool]) -> int:
    """Wait for the end, finish the current micro-batch, and return the exit status. The next run then has nothing to repeat."""
    while query.isActive and not is_stopped():
        time.sleep(LOOK_SECONDS)
    give_up = time.monotonic() + LAST_BATCH_SECONDS
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < give_up:
        time.sleep(LOOK_SECONDS)
    failure = query.exception()
    query.stop()
    if failure is not None:
        sys.stderr.write(f"live: the query failed: {str(failure).splitlines()[0]}\n")
        return 1
    _say("ended; run again with the same --checkpoint to go on")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def text(told: Told) -> str:
    """Return a line about a micro-batch, and its worst rows as a table."""
    lines: list[tuple[str, ...]] = [HEAD]
    for row in told.worst:
        start = time.strftime("%H:%M:%S", time.gmtime(row.window_start_ms / 1000))
        lags = ["" if lag is None else f"{lag:,}" for lag in (row.lag_max, row.lag_last)]
        throttled = (f"{row.throttled_ms:,}", f"{row.share:.0%}", f"{row.longest_ms:,}")
        lines.append(
            (start, row.client_id or "(none)", f"{row.throttles:,}", *throttled, *lags, "ALERT" if row.alert else "")
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    head = f"batch {told.batch}: {told.rows:,} rows changed in {told.windows:,} windows, {told.alerts:,} new alerts"
    return "\n".join([head, *("  " + _aligned(line, widths) for line in lines)])


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(w) if i in (0, 1, len(HEAD) - 1) else cell.rjust(w)
        for i, (cell, w) in enumerate(zip(line, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
