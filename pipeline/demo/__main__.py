"""The command of the demo: starts the brokers, does the steps, prints the table. Exit status 1 when one cell differs."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from kafkaproto.pipeline.demo.steps import STEPS, WITH_SPARK, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when all that was seen is what was expected, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m kafkaproto.pipeline.demo", description="Real clients and Spark against three brokers."
    )
    parser.add_argument("--without-spark", action="store_true", help="leave steps 6 and 7 out")
    parser.add_argument("--write-readme", action="store_true", help="put the table into README.md")
    parser.add_argument(
        "--only", choices=[module for module, _ in STEPS], action="append", help="one step; may be repeated"
    )
    options = parser.parse_args(arguments)
    logging.getLogger("kafka").setLevel(
        logging.ERROR
    )  # it warns of every throttle, and being throttled is what step 4 is for
    wanted = [step for step in STEPS if options.only is None or step[0] in options.only]
    if options.without_spark:
        wanted = [step for step in wanted if step[0] not in WITH_SPARK]
    return run(wanted, options.write_readme)


if __name__ == "__main__":
    sys.exit(main())
