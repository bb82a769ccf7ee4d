"""The steps of the demo, and running them against three brokers."""

from __future__ import annotations

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


def run(wanted: Sequence[tuple[str, str]], readme: bool) -> int:
    """Run steps of `STEPS` and print their table. readme: also write it into README.md, if no step is left out.

    Returns 0 if every cell is as expected, else 1.
    """
    progress = Progress()
    steps = _run_each(wanted, progress)
    print(f"\n{markdown(steps)}\n")
    if readme and len(steps) == len(STEPS):
        write_readme(steps)
    differ = [f"{step.name}: {cell.what}" for step in steps for cell in step.cells if not cell.ok]
    if differ:
        print(f"{len(differ)} of {sum(len(step.cells) for step in steps)} cells differ: {'; '.join(differ)}")
        return 1
    print(f"All {sum(len(step.cells) for step in steps)} cells are as expected; {progress.seconds:.0f} s in all.")
    return 0


def _run_each(wanted: Sequence[tuple[str, str]], progress: Progress) -> list[Step]:
    from kafkaproto.pipeline.demo.brokers import Brokers

    steps = []
    with Brokers() as brokers:
        progress.note(f"three brokers are ready after {brokers.ready_seconds:.2f} s: {brokers.bootstrap}")
        for number, (module, name) in enumerate(wanted, 1):
            progress.begin(number, len(wanted), name)
            begun = time.perf_counter()
            work: Work = import_module(f"kafkaproto.pipeline.demo.{module}").run
            steps.append(Step(name, work(brokers, progress), time.perf_counter() - begun))
    progress.note(f"the brokers have ended after {brokers.end_seconds:.2f} s")
    return steps
