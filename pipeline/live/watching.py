"""The command `kafkaproto live`: runs the live job until SIGINT or SIGTERM, and prints the changed rows of its table after each micro-batch."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kafkaproto.pipeline.live.job import BatchSummary, Job, Limits, Windows
from kafkaproto.pipeline.session import ConnectorMissing, local_session

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

POLL_SECONDS = 0.2
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
    """Run the job in a Spark session of its own until SIGINT or SIGTERM, and return the exit status.

    bootstrap: host:port of brokers, separated by commas. folder: the folder for the checkpoint and the table. journal: the topic to read.
    alerts_topic: the topic that receives the alerts. every_s: seconds between micro-batches; with None, the job stops once all records that exist
    now are in the table. windows: length of the windows, and the time between their starts. limits: the job sends an alert for a client that
    reaches one of them. Returns 1 if the query fails, 2 if Spark's Kafka connector cannot be downloaded, else 0.
    """
    try:
        with local_session("kafkaproto live", connector=True) as spark:
            stopped = False

            def stop(*_: object) -> None:
                nonlocal stopped
                stopped = True

            job = Job(
                spark, bootstrap, folder, journal, alerts_topic, windows, limits, lambda summary: _print(text(summary))
            )
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, stop)  # replaces Spark's handler, which would cancel the running micro-batch
            query = job.start(every_s)
            _print(f"watching {journal} of {bootstrap}; alerts go to {alerts_topic}")
            return _watch(query, lambda: stopped)
    except ConnectorMissing as error:
        sys.stderr.write(f"kafkaproto live: {error}\n")
        return 2
    except KeyboardInterrupt:  # before the query started
        return 0


def _watch(query: StreamingQuery, is_stopped: Callable[[], bool]) -> int:
    """Wait until the query ends or the user stops the job, then stop the query. Returns the exit status: 1 if the query failed, otherwise 0.

    is_stopped: returns whether the user has stopped the job. A running micro-batch gets up to a minute to finish, so that the next run of the job
    need not repeat it.
    """
    while query.isActive and not is_stopped():
        time.sleep(POLL_SECONDS)
    give_up = time.monotonic() + LAST_BATCH_SECONDS
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < give_up:
        time.sleep(POLL_SECONDS)
    failure = query.exception()
    query.stop()
    if failure is not None:
        sys.stderr.write(f"kafkaproto live: the query failed: {str(failure).splitlines()[0]}\n")
        return 1
    _print("stopped; run again with the same --checkpoint to continue")
    return 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def text(summary: BatchSummary) -> str:
    """Return a line about a micro-batch, followed by a table of its worst rows (`summary.worst`).

    These are at most 20: first rows with alerts, then those with the longest throttle times, then those with the largest lags.
    """
    lines: list[tuple[str, ...]] = [HEAD]
    for row in summary.worst:
        start = time.strftime("%H:%M:%S", time.gmtime(row.window_start_ms / 1000))
        lags = ["" if lag is None else f"{lag:,}" for lag in (row.lag_max, row.lag_last)]
        throttled = (f"{row.throttled_ms:,}", f"{row.share:.0%}", f"{row.longest_ms:,}")
        lines.append(
            (start, row.client_id or "(none)", f"{row.throttles:,}", *throttled, *lags, "ALERT" if row.alert else "")
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    head = f"batch {summary.batch}: {summary.rows:,} rows changed in {summary.windows:,} windows, {summary.alerts:,} new alerts"
    return "\n".join([head, *("  " + _aligned(line, widths) for line in lines)])


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(w) if i in (0, 1, len(HEAD) - 1) else cell.rjust(w)
        for i, (cell, w) in enumerate(zip(line, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
