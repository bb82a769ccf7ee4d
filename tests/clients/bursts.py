"""What one consumer gets of its quota in 30 seconds, five times on our broker and five times on Apache Kafka, and why it is not always the same.

Both brokers stand behind the recording proxy, so that the two journals are made alike: each fetch of the consumer, when it came, how many
records it brought and for how long it was throttled. Writes BURSTS.md.

usage: python -m tests.clients.bursts
"""

from __future__ import annotations

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
"""Records: a burst of one sample's room has ten, one of a whole window a hundred."""
CHARGED_BYTES = 20_137
"""Of a fetch with one record (Q-12)."""
SEEDS = 25
FETCHES_MS = (1, 4, 8, 16)
RETURNS_MS = ((0, 0), (5, 5), (0, 5), (0, 100))
MOST_HISTORIES = 1000
"""Of a journal: how many sequences of moments are followed up at a time."""
PAUSE_MS = 500
"""A burst ends with a throttle longer than this."""
CLOCK_MS = 1
"""How far the proxy's clock and the broker's may be apart."""


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
    """One fetch as the proxy saw it. at_ms, until_ms: when request and response passed, since the first request. value: what it is charged
    (Q-12), 0 for one without records."""

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
    """One run of 30 seconds. ratio: bytes of values read / what the quota is worth."""

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
    """Read the consumer's fetches out of a trace, from the first one with records on. One record lies in each fetch that has any."""
    found = []
    for path in sorted(folder.glob("*.kptrace")):
        for entry in Trace(path).entries():
            if isinstance(entry, Exchange):
                fetched = _fetched(entry)
                if fetched is not None:
                    found.append(fetched)
    begins = next(i for i, one in enumerate(found) if one.value)
    zero_ms = found[begins].at_ms
    return [replace(one, at_ms=one.at_ms - zero_ms, until_ms=one.until_ms - zero_ms) for one in found[begins:]]


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
    found: list[Burst] = []
    at_ms, records = 0, 0
    for one in journal:
        if one.at_ms >= SECONDS * 1000:
            break
        if one.value:
            at_ms = at_ms if records else one.at_ms
            records += 1
        elif records and one.throttle_ms > PAUSE_MS:
            found.append(Burst(at_ms, records, one.throttle_ms))
            records = 0
    if records:
        found.append(Burst(at_ms, records, 0))
    return found


def as_transcribed(journal: Sequence[Fetched]) -> tuple[int, int]:
    """Return (fetches that were throttled, how many of them as Q-2 to Q-6 say).

    The proxy knows between which moments the broker charged a fetch. Each moment that explains the throttle time so far is followed up.
    """
    rates = [SlowRate(SAMPLES)]
    size = next(one.value for one in journal if one.value)
    throttled = right = 0
    for one in journal:
        possible: dict[object, SlowRate] = {}
        for rate, at_ms in product(rates, range(one.at_ms - CLOCK_MS, one.until_ms + CLOCK_MS + 1)):
            charged = _charged(rate, size, at_ms)
            if charged.throttle_ms(at_ms, QUOTA) == one.throttle_ms:
                if one.throttle_ms:
                    charged.record(-size, at_ms)
                possible.setdefault((charged.current, *((s.start_ms, s.value) for s in charged.slots)), charged)
        throttled += one.throttle_ms > 0
        right += bool(possible) and one.throttle_ms > 0
        rates = list(possible.values())[:MOST_HISTORIES] or [_charged(rate, one.value, one.at_ms) for rate in rates]
    return throttled, right


def _charged(rate: SlowRate, value: float, at_ms: int) -> SlowRate:
    """Return a copy of the rate in which the value is recorded."""
    charged = SlowRate(SAMPLES)
    charged.slots, charged.current = [copy(sample) for sample in rate.slots], rate.current
    charged.record(value, at_ms)
    return charged


def alone(seed: int, fetch_ms: int, least_ms: int, most_ms: int) -> float:
    """Return the ratio of a made-up client without any broker.

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
    """Write the page from the repetitions on our broker and those on Apache Kafka."""
    return "\n".join([*_beginning(), *_ratios(here, there), *_journals(here[0], there[0]), *_cause(here, there)]) + "\n"


def _beginning() -> Iterator[str]:
    yield "# What a consumer gets of its quota in 30 seconds"
    yield ""
    yield f"Made by `python -m tests.clients.bursts` on {datetime.now(UTC):%Y-%m-%d}, against Apache Kafka {KAFKA_VERSION}."
    yield ""
    yield (
        f"kafka-python reads records of {REQUEST_BYTES:,} bytes, one with each fetch, under `consumer_byte_rate={QUOTA}` with Kafka's own"
        f" windows: eleven samples of one second. Once in the long run it got 1.147 of its quota from our broker and 1.097 from Kafka: 5.0"
        f" points, more than `make long` accepted. This page has {REPETITIONS} repetitions on each, and shows why."
    )
    yield ""


def _ratios(here: Sequence[Repetition], there: Sequence[Repetition]) -> Iterator[str]:
    yield "| repetition | bytes read / quota, ours | Kafka |"
    yield "| --- | --- | --- |"
    for number, (ours, theirs) in enumerate(zip(here, there, strict=True), 1):
        yield f"| {number} | {ours.ratio:.3f} | {theirs.ratio:.3f} |"
    middle = [median(one.ratio for one in side) for side in (here, there)]
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
            cell for one in pair for cell in (("", "", "") if one is None else (one.at_ms, one.records, one.then_ms))
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
        judged = [as_transcribed(one.journal) for one in side]
        throttled, right = sum(one[0] for one in judged), sum(one[1] for one in judged)
        small = [len([b for b in bursts(one.journal) if b.records <= SMALL]) for one in side]
        large = [sum(b.records for b in bursts(one.journal) if b.records > SMALL) for one in side]
        yield (
            f"- {name}: {right} of {throttled} throttle times are those of Q-2 to Q-6 for a moment between request and response;"
            f" small bursts in each repetition: {', '.join(map(str, small))}; records in large ones: {', '.join(map(str, large))}."
        )


def main() -> int:
    """Play all repetitions, and write the page."""
    here: list[Repetition] = []
    there: list[Repetition] = []
    for number in range(REPETITIONS):
        for side, play in ((here, ours), (there, kafka)):
            with tempfile.TemporaryDirectory() as folder:
                side.append(play(Path(folder)))
        sys.stdout.write(f"{number + 1} of {REPETITIONS}: {here[-1].ratio:.3f}, Kafka {there[-1].ratio:.3f}\n")
        sys.stdout.flush()
    PAGE.write_text(page(here, there))
    return 0


if __name__ == "__main__":
    sys.exit(main())
