"""The race: the same raw work against the broker and against the floor of bare asyncio, in turn, in one run. Writes BENCHMARKS.md.

Only ratios count: the two run on the same machine in the same minute, rounds interleaved, medians of three.

usage: python -m benchmarks.race [--check] [--rounds 3]      (make race)
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import raw_client as client
from benchmarks.report import write_section

MEMORY = "4G"
BUDGET_BYTES = 4 << 30
BASELINE = "import asyncio, ssl, construct"
STARTS = 9
IDLE_LIMIT_MB, AFTER_LIMIT_MB, START_LIMIT = 45.0, 150.0, 2.5


@dataclass
class Racer:
    """A program that serves one address."""

    name: str
    command: list[str]
    process: subprocess.Popen[str] | None = None
    address: str = ""
    idle_mb: float = 0.0
    seen: dict[str, list[float]] = field(default_factory=dict)

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        time.sleep(0.3)
        self.idle_mb = self.resident_mb()

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()

    def resident_mb(self) -> float:
        assert self.process is not None
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("VmRSS is not told here; the race runs on Linux")

    def memory_file_bytes(self) -> int:
        """Blocks of all memory files that the process holds open."""
        assert self.process is not None
        total = 0
        folder = Path(f"/proc/{self.process.pid}/fd")
        for entry in folder.iterdir():
            try:
                if "memfd:" in os.readlink(entry):
                    total += os.stat(entry).st_blocks * 512
            except FileNotFoundError:
                continue
        return total

    def pin(self, cores: set[int]) -> None:
        """A single round trip is bistable otherwise: same core as its client, or not."""
        assert self.process is not None
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), cores)


def work() -> list[tuple[str, Callable[[Racer], dict[str, float]]]]:
    """(what, run) of each discipline; `run` returns the numbers by row."""

    def stream(label: str, records: int, value_bytes: int, count: int) -> Callable[[Racer], dict[str, float]]:
        batch = client.batch_of(records, value_bytes)

        def run(racer: Racer) -> dict[str, float]:
            topic = client.new_topic(racer.address)
            produced = client.produce(racer.address, topic, batch, count)
            fetched = client.fetch(racer.address, topic, len(batch) * count)
            return {f"produce, {label} batches": produced, f"fetch of {label} batches": fetched}

        return run

    def one_trip(racer: Racer) -> dict[str, float]:
        free = os.sched_getaffinity(0)
        racer.pin({min(free)})
        os.sched_setaffinity(0, {max(free)})
        try:
            return {"round trips, one connection": client.round_trips(racer.address)}
        finally:
            os.sched_setaffinity(0, free)
            racer.pin(free)

    return [
        ("1 KB", stream("1 KB", 1, 1000, 15000)),
        ("16 KB", stream("16 KB", 16, 1000, 6000)),
        ("1 MB", stream("1 MB", 1000, 1000, 400)),
        ("rpc", one_trip),
        ("pipe", lambda r: {"round trips, pipelined 64 deep": client.pipelined(r.address)}),
        ("many", lambda r: {"round trips, 64 connections": client.many_connections(r.address)}),
    ]


WANTED = {
    "produce, 1 KB batches": 0.25,
    "produce, 16 KB batches": 0.4,
    "produce, 1 MB batches": 0.6,
    "fetch of 1 KB batches": 0.4,
    "fetch of 16 KB batches": 0.5,
    "fetch of 1 MB batches": 0.6,
    "round trips, one connection": 0.7,
    "round trips, 64 connections": 0.25,
    "round trips, pipelined 64 deep": 0.25,
}


def seconds_to_first_line(command: list[str]) -> float:
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    process.stdout.readline()
    seconds = time.perf_counter() - begun
    process.terminate()
    process.wait()
    return seconds


def start_ratio() -> float:
    """Start to the first line of stdout, against an interpreter that imports what any such broker must. Both compiled, as installed."""
    subprocess.run([sys.executable, "-m", "compileall", "-q", "kafkaproto", "broker"], check=True)
    baseline, ours = [], []
    for _ in range(STARTS):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", BASELINE], check=True)
        baseline.append(time.perf_counter() - begun)
        ours.append(seconds_to_first_line([sys.executable, "-m", "broker", "--port", "0"]))
    return statistics.median(ours) / statistics.median(baseline)


def race(rounds: int) -> tuple[Racer, Racer, int]:
    ours = Racer("broker", [sys.executable, "-m", "broker", "--port", "0", "--memory", MEMORY, "--log-level", "error"])
    floor = Racer("floor", [sys.executable, "-m", "benchmarks.floor", "0"])
    largest = 0
    try:
        for racer in (ours, floor):
            racer.start()
        for number in range(rounds):
            for _, run in work():
                for racer in (ours, floor):
                    for row, value in run(racer).items():
                        racer.seen.setdefault(row, []).append(value)
                largest = max(largest, ours.memory_file_bytes())
            print(f"round {number + 1} of {rounds} done", file=sys.stderr, flush=True)
        ours.seen["after"] = [ours.resident_mb()]
    finally:
        for racer in (ours, floor):
            racer.stop()
    return ours, floor, largest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="fail when a ratio is below what is wanted")
    options = parser.parse_args()
    if platform.system() != "Linux":
        print("the race reads /proc and pins cores: it runs on Linux only", file=sys.stderr)
        return 2
    start = start_ratio()
    ours, floor, largest = race(options.rounds)
    rows, failed = [], []
    for row, wanted in WANTED.items():
        ratio = statistics.median(ours.seen[row]) / statistics.median(floor.seen[row])
        rows.append((row, f"{ratio:.2f}", f"≥ {wanted}"))
        if ratio < wanted:
            failed.append(row)
    limits = [
        ("start to the first line of stdout, against `import asyncio, ssl, construct`", start, START_LIMIT, "{:.2f}"),
        ("resident when idle, MB", ours.idle_mb, IDLE_LIMIT_MB, "{:.0f}"),
        ("resident after the race, MB", ours.seen["after"][0], AFTER_LIMIT_MB, "{:.0f}"),
        ("most memory files held, share of --memory 4G", largest / BUDGET_BYTES, 1.0, "{:.2f}"),
    ]
    for row, value, limit, form in limits:
        rows.append((row, form.format(value), f"≤ {limit:g}"))
        if value > limit:
            failed.append(row)
    text = write_section(
        "race",
        "The race against bare asyncio",
        "make race",
        f"Broker (`--memory {MEMORY}`) against the floor (`benchmarks/floor.py`), interleaved in one run, medians of {options.rounds}; "
        "throughputs and round trips as ratios to the floor.",
        ("work", "broker", "wanted"),
        rows,
    )
    print(text)
    for row in failed:
        print(f"missed: {row}", file=sys.stderr)
    return 1 if failed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
