"""The steps of the demo, and the function that runs them against three brokers."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from datetime import date
from importlib import import_module

from kafkaproto.pipeline.demo.table import Cell, Progress, Step, markdown, write_page

STEPS = (
    ("records", "kafka-python: write and read in each compression kind"),
    ("groups", "kafka-python: a consumer group rebalances"),
    ("racks", "confluent-kafka: read from the closest replica"),
    ("quotas", "confluent-kafka: a producer and a consumer under a quota"),
    ("limits", "kafka-python: limits smaller than a record"),
    ("spark", "Spark: its own Kafka source and sink"),
    ("report", "Spark: report of what the brokers recorded"),
)
WITH_SPARK = ("spark", "report")
"""The modules of the demo's steps that need pyspark. The demo imports the modules of only those steps that it runs."""

Work = Callable[..., list[Cell]]


def run(selected: Sequence[tuple[str, str]], with_page: bool) -> int:
    """Run steps of the demo and print a table that compares the expected with the measured results.

    selected: (module, title) of each step, from `STEPS`. with_page: whether to write the table into docs/status.md, too, if all steps ran.
    Returns the exit status: 0 if every result is as expected, otherwise 1.
    """
    progress = Progress()
    steps = _run_each(selected, progress)
    print(f"\n{markdown(steps)}\n")
    if with_page and len(steps) == len(STEPS):
        code = subprocess.run(["git", "describe", "--always"], capture_output=True, text=True, check=True)
        write_page(steps, f"{date.today()} at {code.stdout.strip()}")
    differences = [f"{step.name}: {cell.what}" for step in steps for cell in step.cells if not cell.ok]
    if differences:
        print(f"{len(differences)} of {sum(len(step.cells) for step in steps)} cells differ: {'; '.join(differences)}")
        return 1
    print(f"All {sum(len(step.cells) for step in steps)} cells are as expected; total time {progress.seconds:.0f} s.")
    return 0


def _run_each(selected: Sequence[tuple[str, str]], progress: Progress) -> list[Step]:
    from kafkaproto.pipeline.demo.brokers import Brokers

    modules = [
        import_module(f"kafkaproto.pipeline.demo.{module}") for module, _ in selected
    ]  # a missing package is reported before the brokers start
    steps = []
    with Brokers() as brokers:
        progress.note(f"three brokers are ready after {brokers.ready_seconds:.2f} s: {brokers.bootstrap}")
        for number, (module, (_, name)) in enumerate(zip(modules, selected, strict=True), 1):
            progress.begin(number, len(selected), name)
            start = time.perf_counter()
            work: Work = module.run
            steps.append(Step(name, work(brokers, progress), time.perf_counter() - start))
    progress.note(f"the brokers stopped within {brokers.end_seconds:.2f} s")
    return steps
