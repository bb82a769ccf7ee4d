"""The command of the demo: starts the brokers, does the steps, prints the table. Exit status 1 when one cell differs."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module

from kafkaproto.pipeline.demo.table import Cell, Progress, Step, markdown, write_readme

STEPS = (
    ("records", "kafka-python: write and read in each compression kind"),
    ("groups", "kafka-python: a consumer group changes hands"),
    ("racks", "confluent-kafka: read from the closest replica"),
    ("quotas", "confluent-kafka: a producer and a consumer under a quota"),
    ("limits", "kafka-python: limits smaller than a record"),
    ("spark", "Spark: its own Kafka source and sink"),
    ("report", "Spark: what the brokers recorded of all that"),
)
WITH_SPARK = ("spark", "report")
"""Module and name of each step. Modules are imported when their turn comes: without Spark nobody needs pyspark."""

Work = Callable[..., list[Cell]]


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
    progress = Progress()
    steps = _work(wanted, progress)
    print(f"\n{markdown(steps)}\n")
    if options.write_readme and len(steps) == len(STEPS):
        write_readme(steps)
    differ = [f"{step.name}: {cell.what}" for step in steps for cell in step.cells if not cell.ok]
    if differ:
        print(f"{len(differ)} of {sum(len(step.cells) for step in steps)} cells differ: {'; '.join(differ)}")
        return 1
    print(f"All {sum(len(step.cells) for step in steps)} cells are as expected; {progress.seconds:.0f} s in all.")
    return 0


def _work(wanted: Sequence[tuple[str, str]], progress: Progress) -> list[Step]:
    from kafkaproto.pipeline.demo.brokers import Brokers

    steps = []
    with Brokers() as brokers:
        progress.note(f"three brokers are ready after {brokers.ready_seconds:.2f} s: {brokers.bootstrap}")
        for number, (module, name) in enumerate(wanted, 1):
            progress.begin(number, len(wanted), name)
            begun = time.perf_counter()
            run: Work = import_module(f"kafkaproto.pipeline.demo.{module}").run
            steps.append(Step(name, run(brokers, progress), time.perf_counter() - begun))
    progress.note(f"the brokers have ended after {brokers.end_seconds:.2f} s")
    return steps


if __name__ == "__main__":
    sys.exit(main())
