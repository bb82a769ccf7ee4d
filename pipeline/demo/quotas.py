"""Step 4: a producer and a consumer under a quota, checked against the arithmetic of Kafka's windows.

Kafka's quota is no bound on the long run: what may be read at once, and when, follows from eleven sampled windows of a second. So the
expectation is no number of its own but the same arithmetic (`broker.quota.windows`), fed with what the client did. The clients wait
nowhere: the brokers answer at once, say how long, and then do not read from the connection for that long (KIP-219).
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, ThrottleEvent, TopicPartition

from broker.quota.windows import SampledRate
from pipeline.ask import set_client_quota
from pipeline.demo.brokers import Brokers
from pipeline.demo.table import Cell, Progress, same, within

QUOTA = 1_000_000  # bytes per second
WRITTEN, WRITE_BYTES = 58, 250_000  # one record a request
READ, READ_BYTES = 140, 100_000  # one record a fetch
OVERHEAD_BYTES = 150  # header, topic, batch header: what a request or an answer has beside its value
PRODUCER, CONSUMER = "demo-limited-producer", "demo-limited-consumer"
TO_WRITE, TO_READ = "demo-limited-writes", "demo-limited-reads"
SLACK_MS = 100  # between the broker's reading of the clock and the client's
RATE_TOLERANCE = 0.15
PATIENCE_SECONDS = 60.0


@dataclass(slots=True)
class Run:
    """What one client saw. throttles_ms: every throttle time, in order. at_ms, told_ms: per request, when it was answered and with what."""

    count: int = 0
    seconds: float = 0.0
    throttles_ms: list[int] = field(default_factory=list)
    at_ms: list[int] = field(default_factory=list)
    told_ms: list[int] = field(default_factory=list)
    failure: Exception | None = None

    def noted(self, event: ThrottleEvent) -> None:
        if event.throttle_time > 0:
            self.throttles_ms.append(round(event.throttle_time * 1000))


def run(brokers: Brokers, progress: Progress) -> list[Cell]:
    brokers.create_topic(TO_WRITE, 1, assignments={0: [0]})
    brokers.create_topic(TO_READ, 1, assignments={0: [1]})
    _fill(brokers)
    set_client_quota(brokers.addresses[0], PRODUCER, producer_byte_rate=QUOTA)
    set_client_quota(brokers.addresses[0], CONSUMER, consumer_byte_rate=QUOTA)
    written, read = Run(), Run()
    progress.note(f"quota {QUOTA:,} B/s each; writing {WRITTEN * WRITE_BYTES:,} B and reading {READ * READ_BYTES:,} B, side by side")
    threads = [_start(_write, brokers, written), _start(_read, brokers, read)]
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    for seen in (written, read):
        if seen.failure is not None:
            raise seen.failure
    cells = _cells("producer", written, WRITTEN, WRITE_BYTES, _expected_writes(), progress)
    cells.append(same("producer: throttle times that the arithmetic does not give", 0, len(_wrong(written))))
    return cells + _cells("consumer", read, READ, READ_BYTES, _expected_reads(), progress)


def _cells(who: str, seen: Run, count: int, size: int, expected: tuple[list[int], float], progress: Progress) -> list[Cell]:
    throttles, seconds = expected
    rate, wanted = seen.count * size / seen.seconds, count * size / seconds
    longest = max(seen.throttles_ms, default=0)
    progress.note(
        f"{who}: {seen.count * size:,} B in {seen.seconds:.1f} s = {rate:,.0f} B/s; "
        f"told to wait {len(seen.throttles_ms)} times, {longest:,} ms at most"
    )
    low, high = wanted * (1 - RATE_TOLERANCE), wanted * (1 + RATE_TOLERANCE)
    return [
        same(f"{who}, quota {QUOTA:,} B/s: bytes", count * size, seen.count * size),
        within(f"{who}: longest throttle time", max(throttles) - SLACK_MS, max(throttles) + SLACK_MS, longest, "ms"),
        within(f"{who}: rate that came out", low, high, rate, "B/s"),
    ]


def _start(work: Callable[[Brokers, Run], None], brokers: Brokers, seen: Run) -> threading.Thread:
    def guarded() -> None:
        try:
            work(brokers, seen)
        except Exception as error:  # noqa: BLE001 - raised again by the main thread
            seen.failure = error

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    return thread


def _fill(brokers: Brokers) -> None:
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "batch.num.messages": 1})
    for i in range(READ):
        producer.produce(TO_READ, value=b"%0*d" % (READ_BYTES, i))
        producer.poll(0)
    producer.flush(30)


def _write(brokers: Brokers, seen: Run) -> None:
    settings: dict[str, Any] = {
        "bootstrap.servers": brokers.bootstrap,
        "client.id": PRODUCER,
        "linger.ms": 0,
        "throttle_cb": seen.noted,
    }
    producer = Producer(settings)
    producer.list_topics(TO_WRITE, timeout=10)
    started = time.monotonic()
    for i in range(WRITTEN):
        known = len(seen.throttles_ms)
        producer.produce(TO_WRITE, value=b"%0*d" % (WRITE_BYTES, i))
        if producer.flush(PATIENCE_SECONDS):
            raise TimeoutError(f"{TO_WRITE}: record {i} was not acknowledged")
        seen.at_ms.append(round((time.monotonic() - started) * 1000))
        seen.told_ms.append(sum(seen.throttles_ms[known:]))
        seen.count += 1
    # The last answer's own throttle is no part of the time that the writing took, as nothing waits for it.
    seen.seconds = time.monotonic() - started


def _read(brokers: Brokers, seen: Run) -> None:
    settings: dict[str, Any] = {
        "bootstrap.servers": brokers.bootstrap,
        "client.id": CONSUMER,
        "group.id": CONSUMER,
        "enable.auto.commit": False,
        "max.partition.fetch.bytes": READ_BYTES + OVERHEAD_BYTES,
        "throttle_cb": seen.noted,
    }
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(TO_READ, 0, OFFSET_BEGINNING)])
        started = time.monotonic()
        while seen.count < READ:
            message = consumer.poll(PATIENCE_SECONDS)
            if message is None:
                raise TimeoutError(f"{TO_READ}: {seen.count} records came, then none")
            if seen.count == 0:
                started = time.monotonic()
            if message.error() is None:
                seen.count += 1
        seen.seconds = time.monotonic() - started
    finally:
        consumer.close()


def _expected_writes() -> tuple[list[int], float]:
    """The throttle times and the seconds of a client that writes as fast as it is let."""
    rate, now_ms, throttles = SampledRate(), 0, [0]
    for _ in range(WRITTEN):
        now_ms += throttles[-1] + 1
        throttles.append(rate.record_and_throttle(WRITE_BYTES + OVERHEAD_BYTES, now_ms, QUOTA))
    return throttles, now_ms / 1000


def _expected_reads() -> tuple[list[int], float]:
    """The same for reading: a throttled fetch is empty, its bytes are taken back, and it is made again (Q-13)."""
    rate, now_ms, throttles, left = SampledRate(), 0, [0], READ
    size = READ_BYTES + 2 * OVERHEAD_BYTES
    while left:
        now_ms += throttles[-1] + 1
        throttles.append(rate.record_and_throttle(size, now_ms, QUOTA))
        if throttles[-1]:
            rate.record(-size, now_ms)
        else:
            left -= 1
    return throttles, now_ms / 1000


def _wrong(seen: Run) -> list[tuple[int, int]]:
    """(request, throttle time) of each answer that the windows do not give at the time it came, or SLACK_MS around."""
    rate = SampledRate()
    wrong = []
    for i, (at_ms, told_ms) in enumerate(zip(seen.at_ms, seen.told_ms, strict=True)):
        possible = [
            copy.deepcopy(rate).record_and_throttle(WRITE_BYTES + OVERHEAD_BYTES, max(0, at_ms + shift_ms), QUOTA)
            for shift_ms in (-SLACK_MS, 0, SLACK_MS)
        ]
        rate.record(WRITE_BYTES + OVERHEAD_BYTES, at_ms)
        if not min(possible) - SLACK_MS <= told_ms <= max(possible) + SLACK_MS:
            wrong.append((i, told_ms))
    return wrong
