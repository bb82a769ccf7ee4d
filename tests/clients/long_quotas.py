"""Compare client libraries under quotas on this broker and on Apache Kafka, in long runs.

The runs are longer than those of `make test-all`. The program prints one line per comparison, and
exits with status 1 if one of them fails:

- the output of kafka-configs on Apache Kafka is the output that `make test-all` expects of this
  broker
- all clients get as much of their quota here as on Apache Kafka, in runs of 30 seconds
- the clients keep to their quota on this broker, in a run of 300 seconds

It needs a JDK.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from statistics import median

from benchmarks.rivals.jars import KAFKA_VERSION
from tests.support.clients.configs_commands import COMMANDS, run_commands
from tests.support.clients.paced import number_in
from tests.support.clients.quota_runs import (
    EVERYBODY,
    QUOTA,
    REQUEST_BYTES,
    SAMPLES,
    Ours,
    Who,
    against_kafka,
    against_ours,
    name_of,
    ratio,
)
from tests.support.clients.replay import bytes_within, lateness_ms, replayed, wrong
from tests.support.conformance.real_kafka import RealKafka

SECONDS, LONG_SECONDS = 30, 300
REPETITIONS = 5
LONG_CLIENTS: list[Who] = [("producer", "confluent-kafka")]
TOLERANCE, POINTS, LONG_TOLERANCE = 0.03, 0.05, 0.05


def configs() -> tuple[str, bool]:
    """Compare the output of kafka-configs on Kafka with the expected output, and return (line, whether they are equal)."""
    kafka = RealKafka("default")
    try:
        commands_with_output = run_commands("{}:{}".format(*kafka.bootstrap[0]))
    finally:
        kafka.stop()
    commands = sum(len(part) for part in COMMANDS)
    return (
        f"kafka-configs: Kafka {KAFKA_VERSION} prints the same as this broker for all {commands} commands",
        commands_with_output == COMMANDS,
    )


def beside_kafka() -> Iterator[tuple[str, bool]]:
    """Yield (line, whether it holds) for each client under a quota: 30 seconds on this broker and on Kafka, five times each.

    The bytes of 30 seconds depend on single milliseconds, so the medians are compared.
    """
    lines: dict[Who, tuple[str, bool]] = {}
    broker_ratios: dict[Who, list[float]] = {client: [] for client in EVERYBODY}
    kafka_ratios: dict[Who, list[float]] = {client: [] for client in EVERYBODY}
    whole = dict.fromkeys(EVERYBODY, True)
    for _ in range(REPETITIONS):
        theirs = against_kafka(SECONDS, EVERYBODY)
        with against_ours(SECONDS, EVERYBODY) as ours:
            for client in EVERYBODY:
                line, holds = _judged(ours, client, SECONDS)
                if client not in lines or lines[client][1]:
                    lines[client] = (line, holds)  # the last result, or the first failure
                broker_ratios[client].append(ratio(ours.runs[client], SECONDS))
                kafka_ratios[client].append(ratio(theirs[client], SECONDS))
                whole[client] &= theirs[client].numbers == list(range(len(theirs[client].numbers)))
    for client, (line, holds) in lines.items():
        text = (
            f"{line}; record bytes / quota {_spread(broker_ratios[client])}, "
            f"with Kafka {KAFKA_VERSION} {_spread(kafka_ratios[client])}"
        )
        yield (
            text,
            holds and whole[client] and abs(median(broker_ratios[client]) - median(kafka_ratios[client])) <= POINTS,
        )


def _spread(ratios: list[float]) -> str:
    return f"{median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def for_long() -> Iterator[tuple[str, bool]]:
    """Yield (line, whether it holds) for one client on this broker for 300 seconds."""
    with against_ours(LONG_SECONDS, LONG_CLIENTS) as ours:
        line, holds = _judged(ours, LONG_CLIENTS[0], LONG_SECONDS)
        charged = bytes_within(ours.charges(LONG_CLIENTS[0]), LONG_SECONDS * 1000) / (QUOTA * LONG_SECONDS)
        share = REQUEST_BYTES / QUOTA
        text = f"{line}, requests of {share:.2f} s of quota each on one connection; charged bytes / quota {charged:.4f}"
        yield text, holds and abs(charged - 1) <= LONG_TOLERANCE


def _judged(ours: Ours, who: Who, seconds: int) -> tuple[str, bool]:
    """Return (line, whether it holds) for the throttle times, mutes, bytes and records of one client."""
    charges = ours.charges(who)
    differ = wrong(charges, QUOTA, SAMPLES)
    within_ms = seconds * 1000
    charged, possible = bytes_within(charges, within_ms), bytes_within(replayed(charges, QUOTA, SAMPLES), within_ms)
    numbers = ours.runs[who].numbers
    whole = numbers == list(range(len(numbers)))
    if who[0] == "producer":
        whole &= [number_in(value) for value in ours.records(who)] == numbers
    late_ms = lateness_ms(ours.kafka, [name_of(who)])
    throttled = sum(charge.throttle_ms > 0 for charge in charges)
    line = (
        f"{name_of(who)}, {seconds} s: {len(charges)} requests, {throttled} throttled, {len(differ)} throttle times differ from the rules; "
        f"charged bytes / possible bytes {charged / possible:.3f}; {len(numbers)} records{'' if whole else ', not all once and in order'}"
    )
    return line, not differ and whole and min(late_ms) >= 0 and abs(charged / possible - 1) <= TOLERANCE


def main() -> int:
    argparse.ArgumentParser(
        prog="python -m tests.clients.long_quotas",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    good = True
    for line, holds in (configs(), *beside_kafka(), *for_long()):
        sys.stdout.write(f"{'' if holds else 'does not hold: '}{line}\n")
        good &= holds
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
