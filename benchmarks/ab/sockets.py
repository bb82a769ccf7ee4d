"""Measurements of the brokers of two commits over real sockets: speed in alternation, and memory when idle."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from benchmarks import race
from benchmarks import raw_client as client
from benchmarks.ab.sides import BASE, NOW, Side
from benchmarks.programs import Program
from benchmarks.race import Cell, fetched, produced
from kafkaproto.api import ApiKey
from kafkaproto.messages.metadata import MetadataRequest

STARTS = 7
IDLE = "idle memory, MB"


class Row(NamedTuple):
    """A measurement of speed over real sockets, short enough for many rounds. Its result is a row of the printed table.

    run: takes the address of a broker and returns the measured speed; a larger number is better. brokers: number of brokers in the cluster.
    """

    name: str
    run: Callable[[str], float]
    brokers: int = 1


ROWS = [
    Row("produce, 1 KB batches", produced(1, 2000)),
    Row("produce, 16 KB batches", produced(16, 1200)),
    Row("produce, 1 MB batches", produced(1000, 80)),
    Row("fetch of 16 KB batches", fetched(16, 2000)),
    Row("fetch of 1 MB batches", fetched(1000, 100)),
    Row("round trips, one connection", lambda address: client.round_trips(address, 0.3)),
    Row("round trips, 64 connections", lambda address: client.many_connections(address, 0.3)),
    Row("round trips, pipelined 64 deep", lambda address: client.pipelined(address, 0.3)),
    Row("incremental fetches of 1000 partitions", race.fetched_of_many(True)),
    Row("librdkafka: produce, 1 KiB values", race.librdkafka_produced(1024, 10_000)),
    Row("librdkafka: consume, 1 KiB values", race.librdkafka_consumed(1024, 10_000)),
    Row("produce, 16 KB batches, three replicas, acks=all", race.produced_to_three, brokers=3),
]


def broker(side: Side, brokers: int = 1) -> Program:
    """Return a program that runs a cluster with the code of one of the two commits. brokers: number of brokers in the cluster.

    The program is `python -m broker` in the folder of `side`.
    """
    command = [str(side.python), "-P", "-m", "broker", "--port", "0", "--log-level", "error", "--brokers", str(brokers)]
    return Program(side.name, command, folder=side.folder, environment=side.environment())


def raced(sides: Sequence[Side], rows: Sequence[Row], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Measure speeds with the brokers of both commits. Returns the speed in each round, by name of the measurement and then of the side.

    sides: the other commit and the working tree. Their order alternates from round to round, and client and broker run on different cores. Each round
    gives a ratio: the speed of the working tree divided by the speed of the other commit. rows: the measurements. rounds: how often each measurement
    is repeated. A measurement whose median ratio is then below 0.95 is repeated another `rounds` times, because a busy machine may be the cause.
    """
    speeds: dict[str, dict[str, list[float]]] = {}
    for brokers in sorted({row.brokers for row in rows}):
        todo = [row for row in rows if row.brokers == brokers]
        programs = [broker(side, brokers) for side in sides]
        with race.running(programs):
            _alternate(programs, todo, rounds)
            again = [row for row in todo if _is_slow(programs, row.name)]
            if again:
                print(
                    f"these rows missed their limit and are measured again: {'; '.join(row.name for row in again)}",
                    file=sys.stderr,
                )
                _alternate(programs, again, rounds)
        for row in todo:
            speeds[row.name] = {program.name: program.seen[row.name] for program in programs}
    return speeds


def _alternate(programs: Sequence[Program], rows: Sequence[Row], rounds: int) -> None:
    cells = [Cell(row.name, row.run, dict.fromkeys((BASE, NOW), 0.0), apart=True) for row in rows]
    race.run_cells(programs, cells, rounds)


def _is_slow(programs: Sequence[Program], name: str) -> bool:
    from benchmarks.ab.verdicts import paired

    speeds = {program.name: program.seen[name] for program in programs}
    return paired(name, speeds[BASE], speeds[NOW]).missed


def idle_mb(sides: Sequence[Side], starts: int = STARTS) -> dict[str, float]:
    """Return the resident memory in MiB of each commit's broker after one request, by name of the side: the median of several starts.

    sides: the two commits, whose starts alternate. starts: how often each broker is started.
    """
    resident_mb_by_side: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(starts):
        for side in sides if number % 2 == 0 else reversed(sides):
            with ExitStack() as stack:
                program = broker(side)
                stack.enter_context(race.running([program]))
                client.ask(program.address, ApiKey.METADATA, 4, MetadataRequest([]))
                resident_mb_by_side[side.name].append(program.resident_mb())
    return {name: statistics.median(numbers) for name, numbers in resident_mb_by_side.items()}
