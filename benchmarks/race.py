"""Compare the speed of this broker with Kafka, kfake and a minimal asyncio server.

kfake is the test broker of franz-go, a Kafka client for Go. The minimal asyncio server is
`benchmarks.floor`. All four get the same requests. The results are ratios of speeds: all programs
run on the same machine at the same time, rounds are interleaved, and medians are compared. A
measurement deletes its topics when it ends. The program writes docs/benchmarks.md.

`make race` runs this module.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from benchmarks import librdkafka_client
from benchmarks import raw_client as client
from benchmarks.programs import Program
from benchmarks.report import add_limitation, limitation, write_section

MEMORY = "4G"
BUDGET_BYTES = 4 << 30
BASELINE = "import asyncio, ssl, construct"
STARTS = 9
ROUNDS = 3
IDLE_LIMIT_MB, AFTER_LIMIT_MB, START_LIMIT = 45.0, 150.0, 2.5
OURS, FLOOR, KAFKA, KFAKE = "broker", "floor", "Kafka 3.9.1", "kfake"
MANY_PARTITIONS = 1000
AHEAD = 1.0


class Cell(NamedTuple):
    """One measurement of the benchmark `benchmarks.race`.

    run: takes the address of a program and returns a speed; a larger number is better. required: maps the name of another program to the minimum
    ratio (this broker's speed divided by that program's speed). A program that is not in this dict is not measured. apart: True to run client and
    program on different cores, which single round trips need: their time otherwise jumps between two values.
    """

    name: str
    run: Callable[[str], float]
    required: dict[str, float]
    apart: bool = False


@contextmanager
def topic(address: str, partitions: int = 1, replication: int = 1) -> Iterator[client.NewTopic]:
    new_topic = client.new_topic(address, partitions, replication)
    try:
        yield new_topic
    finally:
        client.delete_topic(address, new_topic.name)


def produced(records: int, count: int) -> Callable[[str], float]:
    batch = client.batch_of(records, 1000)

    def run(address: str) -> float:
        with topic(address) as new_topic:
            return client.produce(new_topic.leader, new_topic.name, batch, count)

    return run


def fetched(records: int, count: int) -> Callable[[str], float]:
    batch = client.batch_of(records, 1000)

    def run(address: str) -> float:
        with topic(address) as new_topic:
            client.produce(new_topic.leader, new_topic.name, batch, count)
            return client.fetch(new_topic.leader, new_topic.name, len(batch) * count)

    return run


def produced_by_many(address: str) -> float:
    batch = client.batch_of(16, 1000)
    with topic(address) as new_topic:
        return client.produce_from_many(new_topic.leader, new_topic.name, batch, 6000)


def produced_to_three(address: str) -> float:
    batch = client.batch_of(16, 1000)
    with topic(address, replication=3) as new_topic:
        return client.produce(new_topic.leader, new_topic.name, batch, 3000, acks=-1)


def librdkafka_produced(value_bytes: int, count: int) -> Callable[[str], float]:
    def run(address: str) -> float:
        with topic(address, librdkafka_client.PARTITIONS) as new_topic:
            return librdkafka_client.produce(address, new_topic.name, value_bytes, count)

    return run


def librdkafka_consumed(value_bytes: int, count: int) -> Callable[[str], float]:
    def run(address: str) -> float:
        with topic(address, librdkafka_client.PARTITIONS) as new_topic:
            librdkafka_client.produce(address, new_topic.name, value_bytes, count)
            return librdkafka_client.consume(address, new_topic.name, value_bytes, count)

    return run


def fetched_of_many(incremental: bool) -> Callable[[str], float]:
    def run(address: str) -> float:
        new_topic = client.new_topic_on_one_broker(address, MANY_PARTITIONS)
        try:
            return client.fetch_many_partitions(address, new_topic.name, MANY_PARTITIONS, incremental)
        finally:
            client.delete_topic(address, new_topic.name)

    return run


def cells() -> list[Cell]:
    """Return the measurements of the benchmark `benchmarks.race` that need one broker, in the order of the rows of the table."""
    return [
        Cell("produce, 1 KB batches", produced(1, 15000), {FLOOR: 0.35, KAFKA: AHEAD, KFAKE: 0.5}),
        Cell("produce, 16 KB batches", produced(16, 6000), {FLOOR: 0.5, KAFKA: AHEAD, KFAKE: 0.5}),
        Cell("produce, 1 MB batches", produced(1000, 400), {FLOOR: 0.7, KAFKA: AHEAD, KFAKE: AHEAD}),
        Cell("produce, 16 KB batches, 64 connections", produced_by_many, {KAFKA: AHEAD}),
        Cell("fetch of 1 KB batches", fetched(1, 15000), {FLOOR: 0.7, KAFKA: 0.6, KFAKE: AHEAD}),
        Cell("fetch of 16 KB batches", fetched(16, 6000), {FLOOR: 0.7, KAFKA: 0.6, KFAKE: AHEAD}),
        Cell("fetch of 1 MB batches", fetched(1000, 400), {FLOOR: 0.7, KAFKA: 0.6, KFAKE: AHEAD}),
        Cell("round trips, one connection", client.round_trips, {FLOOR: 0.7, KAFKA: 0.7, KFAKE: 0.7}, apart=True),
        Cell("round trips, 64 connections", client.many_connections, {FLOOR: 0.25, KAFKA: 0.4, KFAKE: 0.35}),
        Cell("round trips, pipelined 64 deep", client.pipelined, {FLOOR: 0.25, KAFKA: AHEAD}),
        Cell("full fetches of 1000 partitions", fetched_of_many(False), {KAFKA: 0.6, KFAKE: AHEAD}),
        Cell("incremental fetches of 1000 partitions", fetched_of_many(True), {KAFKA: 0.6, KFAKE: AHEAD}),
        *(
            Cell(f"librdkafka: {operation}, {size} values", run(value_bytes, count), {KAFKA: kafka, KFAKE: kfake})
            for size, value_bytes, count in (
                ("100 B", 100, 200_000),
                ("1 KiB", 1024, 50_000),
                ("100 KiB", 102_400, 1000),
            )
            for operation, run, kafka, kfake in (
                ("produce", librdkafka_produced, AHEAD, 0.5),
                ("consume", librdkafka_consumed, 0.6, AHEAD),
            )
        ),
    ]


def cells_on_disk() -> list[Cell]:
    """Return the measurements of `race_on_disk`: five of the measurements of `cells`, with all records on disk.

    Each is also measured by `race`, where the records are in memory. Here, this broker and the minimal server (`benchmarks.floor`) keep all records
    in files, and only these two are compared.
    """
    return [
        Cell("produce, 1 KB batches", produced(1, 15000), {FLOOR: 0.35}),
        Cell("produce, 16 KB batches", produced(16, 6000), {FLOOR: 0.5}),
        Cell("produce, 1 MB batches", produced(1000, 400), {FLOOR: 0.7}),
        Cell("fetch of 16 KB batches", fetched(16, 6000), {FLOOR: 0.7}),
        Cell("fetch of 1 MB batches", fetched(1000, 400), {FLOOR: 0.7}),
    ]


THREE = [Cell("produce, 16 KB batches, three replicas, acks=all", produced_to_three, {KAFKA: AHEAD})]
"""The measurements of the benchmark `benchmarks.race` that need three brokers."""


def seconds_to_first_line(command: list[str]) -> float:
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    process.stdout.readline()
    seconds = time.perf_counter() - start
    process.terminate()
    process.wait()
    return seconds


def start_ratio() -> float:
    """Return the time that the broker needs to start, divided by the time of an interpreter that only imports asyncio, ssl and construct.

    The broker has started when it prints its first line. The broker's modules are compiled before the measurement, as in an installation.
    """
    subprocess.run([sys.executable, "-m", "compileall", "-q", "kafkaproto", "broker"], check=True)
    baseline, ours = [], []
    for _ in range(STARTS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", BASELINE], check=True)
        baseline.append(time.perf_counter() - start)
        ours.append(seconds_to_first_line([sys.executable, "-m", "kafkaproto.broker", "--port", "0"]))
    return statistics.median(ours) / statistics.median(baseline)


def run_cells(racers: Sequence[Program], todo: Sequence[Cell], rounds: int) -> None:
    """Run measurements against the programs. The order of the programs alternates, because one program can slow down the next.

    racers: the programs. todo: the measurements. rounds: how often each measurement is repeated. The speeds are added to the attribute `seen` of each
    program, by name of the measurement.
    """
    for number in range(rounds):
        for cell in todo:
            for racer in racers if number % 2 == 0 else reversed(racers):
                if racer.name not in cell.required and racer.name != OURS:
                    continue
                with pinned_apart(racer) if cell.apart else everywhere():
                    racer.seen.setdefault(cell.name, []).append(cell.run(racer.address))
                racer.note_memory()
        print(f"round {number + 1} of {rounds} done", file=sys.stderr, flush=True)


@contextmanager
def everywhere() -> Iterator[None]:
    yield


@contextmanager
def pinned_apart(racer: Program) -> Iterator[None]:
    free = os.sched_getaffinity(0)
    racer.pin({min(free)})
    os.sched_setaffinity(0, {max(free)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, free)
        racer.pin(free)


def ours(*more: str, memory: str = MEMORY) -> Program:
    command = [sys.executable, "-m", "kafkaproto.broker", "--port", "0", "--memory", memory, "--log-level", "error"]
    return Program(OURS, [*command, *more])


def floor(*more: str) -> Program:
    return Program(FLOOR, [sys.executable, "-m", "benchmarks.floor", "0", *more])


@contextmanager
def running(racers: Sequence[Program]) -> Iterator[None]:
    try:
        for racer in racers:
            racer.start()
        yield
    finally:
        for racer in racers:
            racer.stop()


def race(rounds: int, alone: bool) -> list[Program]:
    """Run the benchmark `benchmarks.race`, and return all programs with their results, this broker first.

    rounds: how often each measurement is repeated. alone: whether to leave out Kafka and kfake.
    """
    racers = [ours(), floor()]
    if not alone:
        from benchmarks.rivals.racers import Kafka, kfake

        racers += [Kafka(), kfake()]
    with running(racers):
        run_cells(racers, cells(), rounds)
        for racer in racers:
            racer.after_mb = racer.resident_mb()
    if not alone:
        three = [ours("--brokers", "3"), Kafka()]
        with running(three):
            run_cells(three, THREE, rounds)
        racers[0].seen |= three[0].seen
        racers[2].seen |= three[1].seen
    return racers


def race_on_disk(rounds: int) -> list[Program]:
    """Compare this broker with the minimal asyncio server (`benchmarks.floor`), while both keep all records in files.

    rounds: how often each measurement is repeated. Returns both programs with their results, the broker first.
    """
    racers = [ours(memory="0"), floor("--files")]
    with running(racers):
        run_cells(racers, cells_on_disk(), rounds)
    return racers


def ratio_rows(racers: Sequence[Program], todo: Sequence[Cell]) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return (table rows, descriptions of the ratios that are lower than required).

    racers: the programs with their results, this broker first. todo: the measurements. A measurement gives one table row: its name, then for each
    other program the speed of this broker divided by the speed of the other program, as text; an empty text if the other program was not measured.
    """
    broker, rivals = racers[0], racers[1:]
    rows, missed = [], []
    for cell in todo:
        columns = []
        for rival in rivals:
            if cell.name not in rival.seen:
                columns.append("")
                continue
            ratio = statistics.median(broker.seen[cell.name]) / statistics.median(rival.seen[cell.name])
            required = cell.required.get(rival.name, 0.0)
            columns.append(f"{ratio:.2f} (≥ {required:g})" + (" **missed**" if ratio < required else ""))
            if ratio < required:
                missed.append(f"{cell.name}: {ratio:.2f} of {rival.name}, required {required:g}")
        rows.append((cell.name, *columns))
    return rows, missed


def _rounds(count: int) -> str:
    """Return words for the text above a table: "one round", or "medians of 5 rounds" if `count` is 5."""
    return "one round" if count == 1 else f"medians of {count} rounds"


def _limits_table(limits: Iterable[tuple[str, float, float, str, list[float]]], rivals: Sequence[str]) -> str:
    """Return a Markdown table of the broker's start and memory with their limits.

    limits: for each table row, a tuple (title, value of this broker, largest allowed value, format string of the values, values of the rivals or an
    empty list). rivals: the names of the rivals, which are the other programs of the benchmark.
    """
    lines: list[Sequence[str]] = [("measurement", "broker", "goal", *rivals), ["---"] * (3 + len(rivals))]
    for title, value, limit, form, of_rivals in limits:
        cells = map(form.format, of_rivals) if of_rivals else [""] * len(rivals)
        goal = f"≤ {limit:g}" + (" **missed**" if value > limit else "")
        lines.append((title, form.format(value), goal, *cells))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.race", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=ROUNDS,
        metavar="N",
        help=f"how often each measurement is repeated (default: {ROUNDS})",
    )
    parser.add_argument(
        "--check", action="store_true", help="exit with status 1 if a ratio of speeds is below its limit"
    )
    parser.add_argument(
        "--alone",
        action="store_true",
        help="compare only with the minimal asyncio server; this needs neither a JDK nor Go",
    )
    add_limitation(parser)
    options = parser.parse_args()
    if platform.system() != "Linux":
        print(
            "the benchmark runs on Linux only, because it reads /proc and pins processes to CPU cores", file=sys.stderr
        )
        return 2
    start = start_ratio()
    racers = race(options.rounds, options.alone)
    rows, missed = ratio_rows(racers, cells() if options.alone else [*cells(), *THREE])
    broker, rivals = racers[0], racers[1:]
    limits: list[tuple[str, float, float, str, list[float]]] = [
        (
            "start to the first line of stdout, divided by the time of `import asyncio, ssl, construct`",
            start,
            START_LIMIT,
            "{:.2f}",
            [],
        ),
        ("resident when idle, MB", broker.idle_mb, IDLE_LIMIT_MB, "{:.0f}", [r.idle_mb for r in rivals]),
        (
            "resident after the race, MB (kfake keeps records in memory)",
            broker.after_mb,
            AFTER_LIMIT_MB,
            "{:.0f}",
            [r.after_mb for r in rivals],
        ),
        (
            f"memory files still held after a row, divided by `--memory {MEMORY}`",
            broker.most_memory_file_bytes / BUDGET_BYTES,
            1.0,
            "{:.2f}",
            [],
        ),
    ]
    for row, value, limit, *_ in limits:
        if value > limit:
            missed.append(f"{row}: {value:.2f}, limit {limit:g}")
    command = "make race" if options.rounds == ROUNDS else f'make race ARGS="--rounds {options.rounds}"'
    text = write_section(
        "race",
        "The race",
        command,
        f"The second table has the broker's speed (`--memory {MEMORY}`) divided by that of each rival, with the goal in brackets; interleaved in "
        f"one run, {_rounds(options.rounds)}. More than 1 means that the broker is faster. The floor (`benchmarks/floor.py`) is bare "
        "asyncio that checks almost nothing: no broker in Python can be faster. The first table has the broker's start and memory in the same "
        f"run.{limitation(options.limitation)}\n\n{_limits_table(limits, [rival.name for rival in rivals])}",
        ("work", *(rival.name for rival in rivals)),
        rows,
    )
    print(text)
    rounds_on_disk = max(1, options.rounds - 1)
    on_disk = race_on_disk(rounds_on_disk)
    rows, missed_on_disk = ratio_rows(on_disk, cells_on_disk())
    print(
        write_section(
            "race-files",
            "The race without memory for records",
            command,
            "The race with `--memory 0`, where records go to temporary files, against the floor with files of its own "
            f"(`python -m benchmarks.floor 0 --files`), in the same run; {_rounds(rounds_on_disk)}.",
            ("work", "floor"),
            rows,
        )
    )
    missed += [f"--memory 0: {line}" for line in missed_on_disk]
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
