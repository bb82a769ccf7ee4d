"""The command of the demo: starts three brokers, runs the steps, and prints a table that compares expected with actual results."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from kafkaproto.pipeline.demo.steps import STEPS, WITH_SPARK, run
from kafkaproto.pipeline.session import ConnectorMissing

MISSING_EXTRA = 3
"""The exit status if a step needs packages of an extra (an optional group of packages) that is not installed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo. Exit status 0 if all results are as expected, 1 if not, 3 if packages of an extra are missing."""
    parser = argparse.ArgumentParser(
        prog="python -m kafkaproto.pipeline.demo",
        description="Run Kafka clients and Spark against three brokers, and compare the results with the expected ones.",
    )
    parser.add_argument(
        "--without-spark", action="store_true", help="skip the steps spark and report, which need Spark"
    )
    parser.add_argument(
        "--write-status", action="store_true", help="write the table of results into docs/status.md, if all steps ran"
    )
    parser.add_argument(
        "--only",
        choices=[module for module, _ in STEPS],
        action="append",
        help="run only this step; may be repeated (default: all)",
    )
    options = parser.parse_args(arguments)
    logging.getLogger("kafka").setLevel(
        logging.ERROR
    )  # kafka-python warns of every throttle, and step 4 is there to be throttled
    steps = [step for step in STEPS if options.only is None or step[0] in options.only]
    if options.without_spark:
        steps = [step for step in steps if step[0] not in WITH_SPARK]
    try:
        return run(steps, options.write_status)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "kafkaproto":
            raise
        sys.stderr.write(
            f"demo: {error.name} is missing: install it in a checkout with pip install '.[{extras(steps)}]'\n"
        )
        return MISSING_EXTRA
    except ConnectorMissing as error:
        sys.stderr.write(f"demo: {error}; --without-spark skips the steps that need Spark\n")
        return 1


def extras(steps: Sequence[tuple[str, str]]) -> str:
    """Return the extras (optional groups of packages) that the demo's steps need, as text for `pip install`. steps: (module, title) of each step."""
    return "demo,spark" if any(module in WITH_SPARK for module, _ in steps) else "demo"


if __name__ == "__main__":
    sys.exit(main())
