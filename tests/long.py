"""The full numbers of the proofs of which `make test-all` runs a part, and the published packages in empty environments; writes LONG.md.

usage: python -m tests.long [--seeds N] [--minutes N] [--conversations N] [--nodes N]      (make long)

--minutes N: the simulation stops after so many minutes, wherever it is; conversations and clients under quotas follow. Ctrl-C stops it, too, and
leaves those out. Either way LONG.md says how many seeds there were.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.rivals.jars import KAFKA_VERSION
from tests.clients.long_quotas import quota_runs
from tests.differential.__main__ import Summary, both
from tests.differential.__main__ import run as run_conversations
from tests.distribution import NotAsPublished
from tests.distribution import lines as distribution_lines
from tests.simulation.run import Broken, simulate

PAGE = Path(__file__).resolve().parent.parent / "LONG.md"
SEEDS, CONVERSATIONS, WITH_NODES = 50_000, 2000, 20
PROCESSES = 2
AT_ONCE = 10
PROGRESS_EVERY_S = 30


@dataclass
class Simulated:
    """What many seeds came to. limited_ms: virtual time under quotas; broken: seed to its conversation."""

    held: int = 0
    operations: int = 0
    virtual_ms: int = 0
    limited_ms: int = 0
    throttles: int = 0
    broken: dict[int, str] = field(default_factory=dict)

    @property
    def done(self) -> int:
        return self.held + len(self.broken)

    def add(self, other: Simulated) -> None:
        self.held += other.held
        self.operations += other.operations
        self.virtual_ms += other.virtual_ms
        self.limited_ms += other.limited_ms
        self.throttles += other.throttles
        self.broken |= other.broken


class Stop:
    """Until when to go on. The first Ctrl-C asks to stop, the second is one like any other."""

    def __init__(self, seconds: float) -> None:
        self._deadline_s = time.monotonic() + seconds
        self.interrupted = False
        signal.signal(signal.SIGINT, self._interrupt)

    @property
    def asked(self) -> bool:
        return self.interrupted or time.monotonic() >= self._deadline_s

    def _interrupt(self, *_: object) -> None:
        self.interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def over(self) -> None:
        """From here on Ctrl-C is one like any other."""
        signal.signal(signal.SIGINT, signal.default_int_handler)


def seeds(first: int, count: int) -> Simulated:
    """Some seeds, one after the other."""
    done = Simulated()
    for seed in range(first, first + count):
        try:
            outcome = simulate(seed)
        except Broken as broken:
            done.broken[seed] = str(broken)
        else:
            throttles = outcome.throttles.total()
            done.add(Simulated(1, outcome.operations, outcome.virtual_ms, outcome.limited_ms, throttles))
    return done


def all_seeds(count: int, stop: Stop) -> Simulated:
    """The first `count` seeds, or those that were begun before it is asked to stop: always the first ones, without a gap."""
    done = Simulated()
    under_way: set[Future[Simulated]] = set()
    firsts = iter(range(0, count, AT_ONCE))
    begun = said = time.monotonic()
    # A Ctrl-C in a terminal reaches every process; those that simulate finish what they are at.
    with ProcessPoolExecutor(PROCESSES, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
        while True:
            while len(under_way) < 2 * PROCESSES and not stop.asked and (first := next(firsts, None)) is not None:
                under_way.add(pool.submit(seeds, first, min(AT_ONCE, count - first)))
            if not under_way:
                return done
            finished, under_way = wait(under_way, timeout=1, return_when=FIRST_COMPLETED)
            for part in finished:
                done.add(part.result())
                for conversation in part.result().broken.values():
                    sys.stdout.write(f"{conversation}\n\n")
            now = time.monotonic()
            if now - said >= PROGRESS_EVERY_S:
                said = now
                sys.stdout.write(f"{done.done:,} of {count:,} seeds in {now - begun:.0f} s, {_broken(done)}\n")
            sys.stdout.flush()


def seeds_line(wanted: int, simulated: Simulated, simulated_s: float) -> str:
    """What LONG.md says of the simulation."""
    done = (
        f"{simulated.done:,} seeds"
        if simulated.done == wanted
        else f"stopped after {simulated.done:,} of {wanted:,} seeds"
    )
    return (
        f"- Simulation: {done}, {simulated.held:,} held, {_broken(simulated)}; "
        f"{simulated.operations:,} client operations, {simulated.virtual_ms / 3_600_000:,.0f} hours of virtual time, "
        f"{simulated.limited_ms / 1000:,.0f} virtual seconds under quotas with {simulated.throttles:,} throttles, each as Q-2 to Q-6 say, "
        f"in {simulated_s:.0f} s on {PROCESSES} processes."
    )


def _broken(simulated: Simulated) -> str:
    return f"{len(simulated.broken)} broken" + (f" {sorted(simulated.broken)}" if simulated.broken else "")


def conversations_lines(compared: Summary, compared_s: float) -> Iterator[str]:
    """What LONG.md says of the conversations with Kafka."""
    yield f"- Differential against Kafka {KAFKA_VERSION}: {compared}; in {compared_s:.0f} s."
    yield from (f"  - seed {seed} differs: {found.difference.step}" for seed, found in compared.found.items())
    yield from (f"  - seed {seed} is unstable: {one.difference.step}" for seed, one in compared.unstable.items())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.long")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS)
    parser.add_argument("--nodes", type=int, default=WITH_NODES)
    given = parser.parse_args()
    command = " ".join(["python -m tests.long", *sys.argv[1:]])
    lines = [f"# The long run\n\nWritten by `{command}` on {datetime.now(UTC):%Y-%m-%d}.\n"]
    begun = time.monotonic()
    stop = Stop(given.minutes * 60)
    simulated = all_seeds(given.seeds, stop)
    stop.over()
    lines.append(seeds_line(given.seeds, simulated, time.monotonic() - begun))
    compared, quotas_hold, published = Summary(), False, False
    try:
        if stop.interrupted:
            raise KeyboardInterrupt
        begun = time.monotonic()
        with both() as pair:
            compared = run_conversations(pair, 0, given.conversations, given.nodes)
        lines += conversations_lines(compared, time.monotonic() - begun)
        said, quotas_hold = quota_runs()
        lines += said
        lines += distribution_lines()
        published = True
    except KeyboardInterrupt:
        lines.append("- What would have followed was left out: the run was interrupted.")
    except NotAsPublished as error:
        lines.append(f"- **does not hold:** {error}")
    PAGE.write_text("\n".join(lines) + "\n")
    sys.stdout.write(PAGE.read_text())
    return 1 if simulated.broken or compared.found or not quotas_hold or not published else 0


if __name__ == "__main__":
    sys.exit(main())
