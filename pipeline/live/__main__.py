"""`kafkaproto live BOOTSTRAP --checkpoint DIR`: reads a broker's journal topic, prints a table of clients and writes alerts, until SIGINT.

A later run with the same DIR continues where this run stopped. Exit status: 0 stopped by a signal or finished with --once, 1 the query failed, 2 an
option is invalid or Spark's Kafka connector cannot be downloaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kafkaproto.pipeline.live.job import FolderError, claim
from kafkaproto.pipeline.live.journal import problem
from kafkaproto.pipeline.live.limits import Limits, Windows
from kafkaproto.pipeline.live.watching import run
from kafkaproto.pipeline.options import parser


def main(arguments: Sequence[str] | None = None) -> int:
    command = parser("live")
    options = command.parse_args(arguments)
    slide_s = options.slide_s or options.window_s
    if slide_s > options.window_s:
        command.error(f"--slide-s must be at most --window-s={options.window_s} (got {slide_s})")
    if options.alerts_topic == options.journal:
        command.error(f"--alerts-topic must not be the journal topic (got {options.journal})")
    windows = Windows(options.window_s, slide_s, options.late_s)
    try:
        claim(options.checkpoint, options.journal, windows)
    except FolderError as error:
        command.error(str(error))
    if (journal_problem := problem(options.bootstrap, options.journal, options.checkpoint)) is not None:
        command.error(journal_problem)
    return run(
        options.bootstrap,
        options.checkpoint,
        options.journal,
        options.alerts_topic,
        windows,
        Limits(options.threshold_ms, options.lag),
        None if options.once else options.every_s,
    )


if __name__ == "__main__":
    sys.exit(main())
