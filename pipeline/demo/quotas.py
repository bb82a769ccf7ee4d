"""Step 4: a producer and a consumer under a quota, checked against the arithmetic of Kafka's windows.

Kafka's quota is no bound on the long run: what may be read at once, and when, follows from eleven sampled windows of a second. So the
expectation is no number of its own but the same arithmetic (`kafkaproto.broker.quota.windows`), fed with what the client did. The clients wait
nowhere: the brokers answer at once, say how long, and then do not read from the connection for that long (KIP-219).
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, ThrottleEvent, TopicPartition

from kafkaproto.broker.quota.windows import SampledRate
from kafkaproto.pipeline.ask import set_client_quota
from kafkaproto.pipeline.demo.brokers import Brokers
from kafkaproto.pipeline.demo.table import Cell, Progress, same, within

QUOTA = 1_000_000  # bytes per second
WRITTEN, WRITE_BYTES = 58, 250_000  # one record a request
READ, READ_BYTES = 140, 100_000  # one record a fetch
OVERHEAD_BYTES = 150  # header, topic, batch header: what a request or an answer has beside its value
PRODUCER, CONSUMER = "demo-limited-producer", "demo-limited-consumer"
TO_WRITE, TO_READ = "demo-limited-writes", "demo-limited-reads"
SLACK_MS = 100  # between the broker's reading of the clock and the client's
RATE_TOLERANCE = 0.15
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as the client saw it: when, and how long it was told to wait. A throttled fetch brings no record."""

    at_ms: float
    throttle_ms: int
    empty: bool = False


@dataclass(slots=True)
class Run:
    """What one client saw. count: records written or read."""

    count: int = 0
    seconds: float = 0.0
    answers: list[Answer] = field(default_factory=list)
    failure: Exception | None = None

    @property
    def throttles_ms(self) -> list[int]:
        return [answer.throttle_ms for answer in self.answers if answer.throttle_ms]


def run(brokers: Brokers, progress: Progress) -> list[Cell]:
    brokers.create_topic(TO_WRITE, 1, assignments={0: [0]})
    brokers.create_topic(TO_READ, 1, assignments={0: [1]})
    _fill(brokers)
    set_client_quota(brokers.addresses[0], PRODUCER, producer_byte_rate=QUOTA)
    set_client_quota(brokers.addresses[0], CONSUMER, consumer_byte_rate=QUOTA)
    written, read = Run(), Run()
    progress.note(
        f"quota {QUOTA:,} B/s each; writing {WRITTEN * WRITE_BYTES:,} B and reading {READ * READ_BYTES:,} B, side by side"
    )
    threads = [_start(_write, brokers, written), _start(_read, brokers, read)]
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    for seen in (written, read):
        if seen.failure is not None:
            raise seen.failure
    return [
        *_cells("producer", written, WRITTEN * WRITE_BYTES, WRITE_BYTES + OVERHEAD_BYTES, _expected_writes(), progress),
        *_cells("consumer", read, READ * READ_BYTES, READ_BYTES + 2 * OVERHEAD_BYTES, _expected_reads(), progress),
    ]


def _cells(
    who: str, seen: Run, wanted: int, event_bytes: int, expected_seconds: float, progress: Progress
) -> list[Cell]:
    """wanted: bytes in values. event_bytes: what one request, or one answer of a fetch, counts."""
    size = wanted // (WRITTEN if who == "producer" else READ)
    rate, wanted_rate = seen.count * size / seen.seconds, wanted / expected_seconds
    told = f"told to wait {len(seen.throttles_ms)} times, {max(seen.throttles_ms, default=0):,} ms at most"
    progress.note(f"{who}: {seen.count * size:,} B in {seen.seconds:.1f} s = {rate:,.0f} B/s; {told}")
    right, answers = len(seen.answers) - len(wrong(seen.answers, event_bytes)), len(seen.answers)
    throttled = bool(seen.throttles_ms)
    return [
        same(f"{who}, quota {QUOTA:,} B/s: bytes", wanted, seen.count * size),
        Cell(
            f"{who}: throttle times",
            "each as the windows give",
            f"{right} of {answers}; {told}",
            right == answers and throttled,
        ),
        within(f"{who}: rate", wanted_rate * (1 - RATE_TOLERANCE), wanted_rate * (1 + RATE_TOLERANCE), rate, "B/s"),
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
    told: list[int] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": brokers.bootstrap,
        "client.id": PRODUCER,
        "linger.ms": 0,
        "throttle_cb": lambda event: told.append(_milliseconds(event)),
    }
    producer = Producer(settings)
    producer.list_topics(TO_WRITE, timeout=10)
    started = time.monotonic()
    for i in range(WRITTEN):
        told.clear()
        producer.produce(TO_WRITE, value=b"%0*d" % (WRITE_BYTES, i))
        if producer.flush(PATIENCE_SECONDS):
            raise TimeoutError(f"{TO_WRITE}: record {i} was not acknowledged")
        seen.answers.append(Answer((time.monotonic() - started) * 1000, sum(told)))
        seen.count += 1
    seen.seconds = time.monotonic() - started


def _read(brokers: Brokers, seen: Run) -> None:
    started = time.monotonic()

    def told(event: ThrottleEvent) -> None:
        if event.throttle_time > 0:
            seen.answers.append(Answer((time.monotonic() - started) * 1000, _milliseconds(event), empty=True))

    settings: dict[str, Any] = {
        "bootstrap.servers": brokers.bootstrap,
        "client.id": CONSUMER,
        "group.id": CONSUMER,
        "enable.auto.commit": False,
        "max.partition.fetch.bytes": READ_BYTES + OVERHEAD_BYTES,
        "throttle_cb": told,
    }
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(TO_READ, 0, OFFSET_BEGINNING)])
        while seen.count < READ:
            message = consumer.poll(PATIENCE_SECONDS)
            if message is None:
                raise TimeoutError(f"{TO_READ}: {seen.count} records came, then none")
            if message.error() is None:
                seen.answers.append(Answer((time.monotonic() - started) * 1000, 0))
                seen.count += 1
        seen.seconds = (seen.answers[-1].at_ms - seen.answers[0].at_ms) / 1000
    finally:
        consumer.close()


def _milliseconds(event: ThrottleEvent) -> int:
    return round(event.throttle_time * 1000)


def _expected_writes() -> float:
    """The seconds of a client that writes as fast as it is let."""
    rate, now_ms, throttle_ms = SampledRate(), 0, 0
    for _ in range(WRITTEN):
        now_ms += throttle_ms + 1
        throttle_ms = rate.record_and_throttle(WRITE_BYTES + OVERHEAD_BYTES, now_ms, QUOTA)
    return now_ms / 1000


def _expected_reads() -> float:
    """The same for reading: a throttled fetch is empty, its bytes are taken back, and it is made again (Q-13)."""
    rate, now_ms, left = SampledRate(), 0, READ
    size = READ_BYTES + 2 * OVERHEAD_BYTES
    while left:
        throttle_ms = rate.record_and_throttle(size, now_ms, QUOTA)
        if throttle_ms:
            rate.record(-size, now_ms)
        else:
            left -= 1
        now_ms += throttle_ms + 1
    return now_ms / 1000


def wrong(answers: Sequence[Answer], event_bytes: int) -> list[Answer]:
    """The answers whose throttle time the windows do not give for when they came, or SLACK_MS around."""
    rate = SampledRate()
    found = []
    for answer in answers:
        at_ms = round(answer.at_ms) + SLACK_MS
        possible = [
            copy.deepcopy(rate).record_and_throttle(event_bytes, at_ms + shift_ms, QUOTA)
            for shift_ms in (-SLACK_MS, 0, SLACK_MS)
        ]
        if not min(possible) - SLACK_MS <= answer.throttle_ms <= max(possible) + SLACK_MS:
            found.append(answer)
        rate.record(event_bytes, at_ms)
        if answer.empty:
            rate.record(-event_bytes, at_ms)
    return found
