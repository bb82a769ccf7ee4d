"""`kafkaproto live BOOTSTRAP --checkpoint DIR`: watch a broker's journal, print the table, write alerts, until SIGINT.

Run again with the same DIR it goes on where it ended. Exit status: 0 ended when told to, 1 the query failed, 2 something must be given
otherwise.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkaproto.pipeline.ask import ask
from kafkaproto.pipeline.live.job import FolderError, Job, Limits, Told, Windows, claim, goes_on_at
from kafkaproto.pipeline.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

METADATA_VERSION = 9
LIST_OFFSETS_VERSION = 6
LATEST = -1
LOOK_SECONDS = 0.2
LAST_BATCH_SECONDS = 60.0
HEAD = ("window", "client", "throttles", "throttled ms", "share", "longest ms", "lag max", "lag last", "")


class _Parser(argparse.ArgumentParser):
    """One line for a mistake, and status 2."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"live: {message}; --help shows all options\n")
        sys.exit(2)


def _number(low: int) -> Callable[[str], int]:
    def check(text: str) -> int:
        if not text.isdigit() or int(text) < low:
            raise argparse.ArgumentTypeError(f"{text!r}: allowed is {low} or more, for example {max(low, 10)}")
        return int(text)

    return check


def _addresses(text: str) -> str:
    for one in text.split(","):
        host, _, port = one.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise argparse.ArgumentTypeError(f"{one!r}: allowed is HOST:PORT, for example 127.0.0.1:9092")
    return text


def parser() -> argparse.ArgumentParser:
    """The options of the job."""
    made = _Parser(prog="kafkaproto live", description="Who is throttled and who lags, from a broker's journal.")
    made.add_argument("bootstrap", type=_addresses, metavar="HOST:PORT[,HOST:PORT]", help="of kafkaproto broker")
    made.add_argument(
        "--checkpoint", type=Path, required=True, metavar="DIR", help="what outlives a run; the table too"
    )
    made.add_argument("--journal", default="__journal", metavar="TOPIC", help="what the broker publishes (__journal)")
    made.add_argument("--alerts-topic", default="throttle-alerts", metavar="TOPIC", help="(throttle-alerts)")
    limits, windows = Limits(), Windows()
    options = (
        ("--threshold-ms", 1, limits.throttled_ms, "MS", "throttled in one window: an alert"),
        ("--lag", 1, limits.lag, "RECORDS", "behind in one partition: an alert"),
        ("--window-s", 1, windows.window_s, "S", "how long a window is"),
        ("--slide-s", 1, None, "S", "how far apart windows begin; as long as they are"),
        ("--late-s", 0, windows.late_s, "S", "how long a window may change after a later record"),
        ("--every-s", 1, 5, "S", "from one table to the next"),
    )
    for name, low, default, metavar, text in options:
        told = text if default is None else f"{text} ({default})"
        made.add_argument(name, type=_number(low), default=default, metavar=metavar, help=told)
    made.add_argument("--once", action="store_true", help="end when all that is there now is in the table")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    made = parser()
    options = made.parse_args(arguments)
    slide_s = options.slide_s or options.window_s
    if slide_s > options.window_s:
        made.error(f"--slide-s {slide_s}: allowed is up to --window-s, which is {options.window_s}")
    if options.alerts_topic == options.journal:
        made.error(f"--alerts-topic {options.journal}: it is the journal; name another topic")
    windows = Windows(options.window_s, slide_s, options.late_s)
    try:
        claim(options.checkpoint, options.journal, windows)
    except FolderError as error:
        made.error(str(error))
    if (wrong := _trouble(options.bootstrap, options.journal, options.checkpoint)) is not None:
        made.error(wrong)
    try:
        with local_session("kafkaproto live", connector=True) as spark:
            return _run(spark, options, windows)
    except KeyboardInterrupt:  # before anything was begun
        return 0


def _run(spark: SparkSession, options: argparse.Namespace, windows: Windows) -> int:
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    job = Job(
        spark,
        options.bootstrap,
        options.checkpoint,
        options.journal,
        options.alerts_topic,
        windows,
        Limits(options.threshold_ms, options.lag),
        lambda told: _say(text(told)),
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)  # after Spark's, which would cancel what goes on
    query = job.start(None if options.once else options.every_s)
    _say(f"watching {options.journal} of {options.bootstrap}; alerts go to {options.alerts_topic}")
    return _watch(query, lambda: stopped)


def _trouble(bootstrap: str, journal: str, folder: Path) -> str | None:
    """What is wrong with the broker, if anything is: Spark would try for minutes, and not say what to do."""
    why: object = None
    for address in bootstrap.split(","):
        try:
            request = MetadataRequest([MetadataRequestTopic(name=journal)], allow_auto_topic_creation=False)
            answer = ask(address, request, METADATA_VERSION)
            if answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return f"{address} has no topic {journal}; start it as kafkaproto broker --journal-topic {journal}"
            end, begin = _end(answer, journal), goes_on_at(folder, journal)
        except (OSError, EOFError, DecodeError) as error:
            why = error
            continue
        if end < begin:
            return (
                f"{journal} of {address} ends at offset {end}, and {folder} goes on at {begin}: the broker was started anew; "
                "give another --checkpoint, or the broker a --data-dir"
            )
        return None
    return f"no broker answers at {bootstrap} ({why}); start one with kafkaproto broker --journal-topic {journal}"


def _end(answer: MetadataResponse, journal: str) -> int:
    """The end offset of the journal's one partition, as its leader has it. Raises OSError, EOFError."""
    leader = next((b for b in answer.brokers if b.node_id == answer.topics[0].partitions[0].leader_id), None)
    if leader is None:
        raise OSError(f"nobody leads {journal}")
    wanted = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=journal, partitions=[wanted])])
    told = ask(f"{leader.host}:{leader.port}", request, LIST_OFFSETS_VERSION)
    return int(told.topics[0].partitions[0].offset)


def _watch(query: StreamingQuery, is_stopped: Callable[[], bool]) -> int:
    """Wait for the end. What goes on is finished before, so that the next run has nothing to do again."""
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
    """A line about a micro-batch, and its worst rows as a table."""
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


if __name__ == "__main__":
    sys.exit(main())
