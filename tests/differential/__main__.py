"""Send random request sequences to this broker and to a real Kafka, and print each difference, shrunk and ready to be replayed.

Each sequence of requests goes to this broker and to Kafka 3.9.1, or to 4.2.0 with `--release 4.2`. Sequences of `--about settings` change settings
and quotas. Sequences of `--about groups` have members of the classic protocol, of the new protocol (KIP-848), or both. Kafka 3.9.1 has two group
coordinators: the one in Scala runs for `--about classic-groups`, and the one in Java for `--about groups` and `--about assignments`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.differential.comparing import Differing, Pair, Played, Unstable
from tests.differential.conversations import ASSIGNMENTS, CLASSIC_GROUPS, GROUPS, SETTINGS, TRANSACTIONS, conversation
from tests.differential.request_sequences import LOG, request_sequence
from tests.differential.unstable import UNSTABLE
from tests.support.conformance.ours import Ours, OursManual, OursNewer, OursNewerOnWallClock
from tests.support.conformance.real_kafka import NewerKafka, RealKafka
from tests.support.conformance.virtual import NEWER_RELEASE, RELEASE

PROFILES = {
    LOG: "default",
    TRANSACTIONS: "default",
    CLASSIC_GROUPS: "default",
    GROUPS: "migration",
    ASSIGNMENTS: "consumer",
    SETTINGS: "default",
}
"""Maps what sequences are about to the profile of the clusters. With `default`, Kafka 3.9 has its group coordinator in Scala."""


@contextmanager
def both(about: str = LOG, release: str = RELEASE) -> Iterator[Pair]:
    """Run this broker and a real Kafka of a release."""
    profile = PROFILES[about]
    ours: Ours
    if about == LOG:
        ours = OursNewerOnWallClock(profile) if release == NEWER_RELEASE else Ours(profile, "kafka")
    else:
        ours = OursNewer(profile) if release == NEWER_RELEASE else OursManual(profile, "kafka")
    real: RealKafka | None = None
    try:
        real = NewerKafka(profile) if release == NEWER_RELEASE else RealKafka(profile)
        yield Pair(ours, real)
    finally:
        ours.stop()
        if real is not None:
            real.stop()


@dataclass
class Summary:
    """The differences that a run found, by seed."""

    played: int = 0
    differing: dict[int, Differing] = field(default_factory=dict)
    unstable: dict[int, Unstable] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.played} conversations, {len(self.differing)} differ, {len(self.unstable)} unstable"


def generated(about: str, seed: int, release: str, nodes: bool = False) -> Played:
    """Return the request sequence or the conversation of a seed."""
    return request_sequence(seed, nodes, release) if about == LOG else conversation(about, seed, release)


def run(
    pair: Pair,
    first: int,
    count: int,
    nodes: int = 0,
    seconds: float = float("inf"),
    about: str = LOG,
    release: str = RELEASE,
) -> Summary:
    """Play `count` request sequences and `nodes` more in which a broker stops; print each sequence that differs."""
    summary = Summary()
    end = time.monotonic() + seconds
    for seed in range(first, first + count + nodes):
        if time.monotonic() > end:
            break
        result = pair.compare(generated(about, seed, release, nodes=seed >= first + count))
        summary.played += 1
        if isinstance(result, Differing):
            summary.differing[seed] = result
            sys.stdout.write(f"seed {seed}:\n{result.request_sequence}\n{result.difference}\n\n")
        elif result is not None:
            summary.unstable[seed] = result
            sys.stdout.write(f"seed {seed} is unstable: {result.difference}\n\n")
        sys.stdout.flush()
    return summary


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument(
        "--from",
        dest="first",
        type=int,
        default=0,
        metavar="SEED",
        help="random seed of the first sequence; each further sequence has the next seed (default: 0)",
    )
    parser.add_argument("--count", type=int, default=100, metavar="N", help="number of sequences (default: 100)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=float("inf"),
        metavar="N",
        help="start no further sequence after N seconds (default: no limit)",
    )
    parser.add_argument(
        "--nodes",
        type=int,
        default=0,
        metavar="N",
        help="number of additional sequences in which a broker stops and starts again (default: 0)",
    )
    parser.add_argument(
        "--about",
        choices=PROFILES,
        default=LOG,
        metavar="SUBJECT",
        help=f"what the sequences are about: {', '.join(PROFILES)} (default: {LOG})",
    )
    parser.add_argument(
        "--release",
        choices=(RELEASE, NEWER_RELEASE),
        default=RELEASE,
        help=f"release of Kafka (default: {RELEASE})",
    )
    options = parser.parse_args()
    if options.about != LOG and options.nodes:
        parser.error(f"--nodes is allowed only with --about {LOG} (got --about {options.about})")
    with both(options.about, options.release) as pair:
        summary = run(
            pair, options.first, options.count, options.nodes, options.seconds, options.about, options.release
        )
    sys.stdout.write(f"{summary}\n")
    unlisted = [seed for seed in summary.unstable if (options.about, options.release, seed) not in UNSTABLE]
    return 1 if summary.differing or unlisted else 0


if __name__ == "__main__":
    sys.exit(main())
