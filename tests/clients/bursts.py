"""Measure which share of its quota a consumer gets in 30 seconds, and write tests/clients/BURSTS.md.

The page says why the share varies. The program runs the consumer five times on this broker and five
times on Apache Kafka, which takes about six minutes and needs a JDK. A recording proxy in front of
both brokers records each fetch: its time, the number of records in its response and its throttle
time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product, zip_longest
from pathlib import Path
from random import Random
from statistics import median

from benchmarks.rivals.jars import KAFKA_VERSION
from kafkaproto.api import ApiKey
from kafkaproto.conformance.slow_rate import SlowRate
from kafkaproto.trace.decoded import Decoded
from kafkaproto.trace.format import Exchange
from kafkaproto.trace.reading import Trace
from tests.support.clients.paced import Run
from tests.support.clients.quota_runs import (
    QUOTA,
    REQUEST_BYTES,
    SAMPLES,
    Via,
    Who,
    against_kafka,
    against_ours,
    name_of,
    ratio,
)
from tests.support.proxied import proxied

PAGE = Path(__file__).with_name("BURSTS.md")
WHO: Who = ("consumer", "kafka-python")
SECONDS, REPETITIONS = 30, 5
SMALL = 20
"""The number of records in a small burst: a burst limited by one sample has about ten, one limited by the whole window a hundred."""
CHARGED_BYTES = 20_137
"""The charged bytes of a fetch with one record (Q-12)."""
SEEDS = 25
FETCHES_MS = (1, 4, 8, 16)
RETURNS_MS = ((0, 0), (5, 5), (0, 5), (0, 100))
MOST_HISTORIES = 1000
"""The most sequences of possible charge times that are followed at once for a journal."""
PAUSE_MS = 500
"""A burst ends with a throttle longer than this."""
CLOCK_MS = 1
"""The largest difference between the clocks of proxy and broker."""


CAUSE = """\
The bytes are divided by the time since the oldest sample began (Q-3 to Q-5), which grows from ten seconds to eleven and falls back to ten
when that sample leaves. So there is room for up to ten more records late in a second, 3.3 points of 30 seconds, and none early in it. A
throttled fetch begins samples too, although its bytes are taken back, so each return of the client moves these edges. Whether it comes
back a millisecond before or behind an edge decides whether it gets a small burst of about ten records, one record, or none.

The proxy sees when a request and its response pass; the broker charges it at a moment between. A throttle time counts below as that of Q-2
to Q-6 if some sequence of such moments gives it and all before it. By our broker's own journal all are (X-6,
`tests/clients/test_quotas_seen_by_clients.py` and `make long`).
"""


@dataclass(frozen=True, slots=True)
class Fetched:
    """One fetch as the proxy saw it. at_ms, until_ms: times of request and response, since the first request.

    value: its charged bytes (Q-12), 0 without records.
    """

    at_ms: int
    until_ms: int
    value: int
    throttle_ms: int


@dataclass(frozen=True, slots=True)
class Burst:
    """Fetches with records and without a long throttle between them. at_ms: of the first. then_ms: the throttle that ended it."""

    at_ms: int
    records: int
    then_ms: int


@dataclass(frozen=True, slots=True)
class Repetition:
    """One run of 30 seconds. ratio: bytes of values read / bytes that the quota allows."""

    ratio: float
    journal: list[Fetched]


def ours(folder: Path) -> Repetition:
    with against_ours(SECONDS, [WHO], _recorded(folder)) as run:
        return _repetition(run.runs[WHO], folder)


def kafka(folder: Path) -> Repetition:
    return _repetition(against_kafka(SECONDS, [WHO], _recorded(folder))[WHO], folder)


def _recorded(folder: Path) -> Via:
    return lambda bootstrap: proxied(bootstrap, folder)


def _repetition(run: Run, folder: Path) -> Repetition:
    return Repetition(ratio(run, SECONDS), _journal(folder))


def _journal(folder: Path) -> list[Fetched]:
    """Read the consumer's fetches out of a trace, from the first one with records. Each fetch returns at most one record."""
    entries = []
    for path in sorted(folder.glob("*.kptrace")):
        for entry in Trace(path).entries():
            if isinstance(entry, Exchange):
                fetched = _fetched(entry)
                if fetched is not None:
                    entries.append(fetched)
    first_index = next(i for i, item in enumerate(entries) if item.value)
    zero_ms = entries[first_index].at_ms
    return [
        replace(item, at_ms=item.at_ms - zero_ms, until_ms=item.until_ms - zero_ms) for item in entries[first_index:]
    ]


def _fetched(entry: Exchange) -> Fetched | None:
    decoded = Decoded(entry)
    header = decoded.header
    if header is None or header.api_key != ApiKey.FETCH or header.client_id != name_of(WHO):
        return None
    value = entry.response_bytes - (1 if header.api_version >= 12 else 0) if sum(entry.response_records) else 0
    ready_ms = entry.ready_ns // 1_000_000
    return Fetched(entry.received_ns // 1_000_000, ready_ms, value, decoded.response.throttle_time_ms)


def bursts(journal: Sequence[Fetched]) -> list[Burst]:
    """Return the bursts of a journal that begin in its 30 seconds."""
    all_bursts: list[Burst] = []
    at_ms, records = 0, 0
    for entry in journal:
        if entry.at_ms >= SECONDS * 1000:
            break
        if entry.value:
            at_ms = at_ms if records else entry.at_ms
            records += 1
        elif records and entry.throttle_ms > PAUSE_MS:
            all_bursts.append(Burst(at_ms, records, entry.throttle_ms))
            records = 0
    if records:
        all_bursts.append(Burst(at_ms, records, 0))
    return all_bursts


def as_transcribed(journal: Sequence[Fetched]) -> tuple[int, int]:
    """Return (number of throttled fetches, how many of them agree with Q-2 to Q-6).

    The proxy knows only the interval in which the broker charged a fetch. Every possible time that explains the throttle times so far is
    followed.
    """
    rates = [SlowRate(SAMPLES)]
    size = next(entry.value for entry in journal if entry.value)
    throttled = right = 0
    for entry in journal:
        possible: dict[object, SlowRate] = {}
        for rate, at_ms in product(rates, range(entry.at_ms - CLOCK_MS, entry.until_ms + CLOCK_MS + 1)):
            charged = _charged(rate, size, at_ms)
            if charged.throttle_ms(at_ms, QUOTA) == entry.throttle_ms:
                if entry.throttle_ms:
                    charged.record(-size, at_ms)
                possible.setdefault((charged.current, *((s.start_ms, s.value) for s in charged.slots)), charged)
        throttled += entry.throttle_ms > 0
        right += bool(possible) and entry.throttle_ms > 0
        rates = list(possible.values())[:MOST_HISTORIES] or [_charged(rate, entry.value, entry.at_ms) for rate in rates]
    return throttled, right


def _charged(rate: SlowRate, value: float, at_ms: int) -> SlowRate:
    """Return a copy of the rate with the value recorded."""
    charged = SlowRate(SAMPLES)
    charged.slots, charged.current = [copy(sample) for sample in rate.slots], rate.current
    charged.record(value, at_ms)
    return charged


def alone(seed: int, fetch_ms: int, least_ms: int, most_ms: int) -> float:
    """Return the ratio of a simulated client without any broker.

    fetch_ms: the duration of a fetch. least_ms, most_ms: bounds of the random pause between the end of a throttle and the next fetch.
    """
    rate, returns, at_ms, records = SlowRate(SAMPLES), Random(seed), 0, 0
    while at_ms < SECONDS * 1000:
        rate.record(CHARGED_BYTES, at_ms)
        throttle_ms = rate.throttle_ms(at_ms, QUOTA)
        if throttle_ms:
            rate.record(-CHARGED_BYTES, at_ms)
            at_ms += throttle_ms + returns.randint(least_ms, most_ms)
        else:
            records += 1
            at_ms += fetch_ms
    return records * REQUEST_BYTES / (QUOTA * SECONDS)


def page(here: Sequence[Repetition], there: Sequence[Repetition]) -> str:
    """Return the page for the repetitions on this broker and those on Apache Kafka."""
    return "\n".join([*_beginning(), *_ratios(here, there), *_journals(here[0], there[0]), *_cause(here, there)]) + "\n"


def _beginning() -> Iterator[str]:
    yield "# What a consumer gets of its quota in 30 seconds"
    yield ""
    yield f"Made by `python -m tests.clients.bursts` on {datetime.now(UTC):%Y-%m-%d}, against Apache Kafka {KAFKA_VERSION}."
    yield ""
    yield (
        f"kafka-python reads records of {REQUEST_BYTES:,} bytes, one with each fetch, under `consumer_byte_rate={QUOTA}` with Kafka's own"
        f" windows: samples of one second, and `quota.window.num=11`. Once in the long run it got 1.147 of its quota from our broker and"
        f" 1.097 from Kafka: 5.0 points, more than `make long` accepted. This page has {REPETITIONS} repetitions on each, and shows why."
    )
    yield ""


def _ratios(here: Sequence[Repetition], there: Sequence[Repetition]) -> Iterator[str]:
    yield "| repetition | bytes read / quota, ours | Kafka |"
    yield "| --- | --- | --- |"
    for number, (ours, theirs) in enumerate(zip(here, there, strict=True), 1):
        yield f"| {number} | {ours.ratio:.3f} | {theirs.ratio:.3f} |"
    middle = [median(burst.ratio for burst in side) for side in (here, there)]
    yield f"| median | {middle[0]:.3f} | {middle[1]:.3f} |"
    yield ""


def _journals(ours: Repetition, theirs: Repetition) -> Iterator[str]:
    yield "## The journals of the first repetition, side by side"
    yield ""
    yield f"Fetches with records and without a throttle of more than {PAUSE_MS} ms between them are one burst. The last column of each half is"
    yield "the throttle that ended it."
    yield ""
    yield "| ours: begins, ms | records | throttled for, ms | Kafka: begins, ms | records | throttled for, ms |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for pair in zip_longest(bursts(ours.journal), bursts(theirs.journal)):
        cells = [
            cell
            for entry in pair
            for cell in (("", "", "") if entry is None else (entry.at_ms, entry.records, entry.then_ms))
        ]
        yield "| " + " | ".join(map(str, cells)) + " |"
    yield ""


def _cause(here: Sequence[Repetition], there: Sequence[Repetition]) -> Iterator[str]:
    yield "## The cause"
    yield ""
    yield from CAUSE.splitlines()
    yield ""
    yield (
        f"- The transcription of Q-2 to Q-6 alone, without any broker. A made-up client whose fetch takes {' or '.join(map(str, FETCHES_MS))} ms,"
        f" {SEEDS} runs each:"
    )
    for least_ms, most_ms in RETURNS_MS:
        ratios = sorted(
            alone(seed, fetch_ms, least_ms, most_ms) for seed, fetch_ms in product(range(SEEDS), FETCHES_MS)
        )
        yield f"  - back {least_ms} to {most_ms} ms after each throttle: {ratios[0]:.3f} to {ratios[-1]:.3f}, median {median(ratios):.3f}"
    yield (
        "- A client that is later still gets less: three large bursts and nothing between them are 324 records of 300, 1.080, as in the lowest"
        " repetitions above."
    )
    for name, side in (("our broker", here), (f"Kafka {KAFKA_VERSION}", there)):
        judged = [as_transcribed(burst.journal) for burst in side]
        throttled, right = sum(burst[0] for burst in judged), sum(burst[1] for burst in judged)
        small = [len([b for b in bursts(burst.journal) if b.records <= SMALL]) for burst in side]
        large = [sum(b.records for b in bursts(burst.journal) if b.records > SMALL) for burst in side]
        yield (
            f"- {name}: {right} of {throttled} throttle times are those of Q-2 to Q-6 for a moment between request and response;"
            f" small bursts in each repetition: {', '.join(map(str, small))}; records in large ones: {', '.join(map(str, large))}."
        )


def main() -> int:
    """Run all repetitions and write the page."""
    argparse.ArgumentParser(
        prog="python -m tests.clients.bursts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    broker_repetitions: list[Repetition] = []
    kafka_repetitions: list[Repetition] = []
    for number in range(REPETITIONS):
        for side, play in ((broker_repetitions, ours), (kafka_repetitions, kafka)):
            with tempfile.TemporaryDirectory() as folder:
                side.append(play(Path(folder)))
        sys.stdout.write(
            f"{number + 1} of {REPETITIONS}: {broker_repetitions[-1].ratio:.3f}, "
            f"Kafka {kafka_repetitions[-1].ratio:.3f}\n"
        )
        sys.stdout.flush()
    PAGE.write_text(page(broker_repetitions, kafka_repetitions))
    return 0


if __name__ == "__main__":
    sys.exit(main())
