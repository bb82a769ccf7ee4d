"""Step 4 of the demo: a producer and a consumer under a quota, checked against the arithmetic of Kafka's quota windows.

A Kafka quota does not set a fixed rate: the samples of its window determine how many bytes can pass at once, and when. The expected throttle times
are therefore computed from the client's requests, with the broker's arithmetic (`kafkaproto.broker.quota.windows`). The clients do not delay requests
themselves: the brokers respond at once with the throttle time, and mute the connection for that long (KIP-219).
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
WRITTEN, WRITE_BYTES = 58, 250_000  # one record per request
READ, READ_BYTES = 140, 100_000  # one record per fetch
OVERHEAD_BYTES = 150  # header, topic and batch header of a request or response
PRODUCER, CONSUMER = "demo-limited-producer", "demo-limited-consumer"
TO_WRITE, TO_READ = "demo-limited-writes", "demo-limited-reads"
SLACK_MS = 100  # largest difference between the clocks that broker and client read
RATE_TOLERANCE = 0.15
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class MeasuredResponse:
    """A response that the client received.

    at_ms: time since the start of the step. throttle_ms: the throttle time in the response. empty: True for a fetch that was throttled and therefore
    returned no records.
    """

    at_ms: float
    throttle_ms: int
    empty: bool = False


@dataclass(slots=True)
class Run:
    """The results of the demo's producer or consumer.

    count: records written or read. seconds: duration. failure: the exception that ended the client, or None.
    """

    count: int = 0
    seconds: float = 0.0
    responses: list[MeasuredResponse] = field(default_factory=list)
    failure: Exception | None = None

    @property
    def throttles_ms(self) -> list[int]:
        return [response.throttle_ms for response in self.responses if response.throttle_ms]


def run(brokers: Brokers, progress: Progress) -> list[Cell]:
    brokers.create_topic(TO_WRITE, 1, assignments={0: [0]})
    brokers.create_topic(TO_READ, 1, assignments={0: [1]})
    _fill(brokers)
    set_client_quota(brokers.addresses[0], PRODUCER, producer_byte_rate=QUOTA)
    set_client_quota(brokers.addresses[0], CONSUMER, consumer_byte_rate=QUOTA)
    written, read = Run(), Run()
    progress.note(
        f"quota {QUOTA:,} B/s each; writing {WRITTEN * WRITE_BYTES:,} B and reading {READ * READ_BYTES:,} B at the same time"
    )
    threads = [_start(_write, brokers, written), _start(_read, brokers, read)]
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    for result in (written, read):
        if result.failure is not None:
            raise result.failure
    return [
        *_cells("producer", written, WRITTEN * WRITE_BYTES, WRITE_BYTES + OVERHEAD_BYTES, _expected_writes(), progress),
        *_cells("consumer", read, READ * READ_BYTES, READ_BYTES + 2 * OVERHEAD_BYTES, _expected_reads(), progress),
    ]


def _cells(
    client: str, result: Run, total_bytes: int, event_bytes: int, expected_seconds: float, progress: Progress
) -> list[Cell]:
    """Compare the results of a client with the expected results, and return the checks. Also reports the results to `progress`.

    client: "producer" or "consumer". total_bytes: size of all values. event_bytes: number of bytes that the quota charges for one request or
    response. expected_seconds: how long the transfer of all values should take under the quota.
    """
    size = total_bytes // (WRITTEN if client == "producer" else READ)
    rate, expected_rate = result.count * size / result.seconds, total_bytes / expected_seconds
    throttles = f"throttled {len(result.throttles_ms)} times, {max(result.throttles_ms, default=0):,} ms at most"
    progress.note(f"{client}: {result.count * size:,} B in {result.seconds:.1f} s = {rate:,.0f} B/s; {throttles}")
    correct, total = (
        len(result.responses) - len(throttle_mismatches(result.responses, event_bytes)),
        len(result.responses),
    )
    throttled = bool(result.throttles_ms)
    return [
        same(f"{client}, quota {QUOTA:,} B/s: bytes", total_bytes, result.count * size),
        Cell(
            f"{client}: throttle times",
            "each as the windows predict",
            f"{correct} of {total}; {throttles}",
            correct == total and throttled,
        ),
        within(
            f"{client}: rate", expected_rate * (1 - RATE_TOLERANCE), expected_rate * (1 + RATE_TOLERANCE), rate, "B/s"
        ),
    ]


def _start(work: Callable[[Brokers, Run], None], brokers: Brokers, result: Run) -> threading.Thread:
    def guarded() -> None:
        try:
            work(brokers, result)
        except Exception as error:  # noqa: BLE001 - raised again by the main thread
            result.failure = error

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    return thread


def _fill(brokers: Brokers) -> None:
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "batch.num.messages": 1})
    for i in range(READ):
        producer.produce(TO_READ, value=b"%0*d" % (READ_BYTES, i))
        producer.poll(0)
    producer.flush(30)


def _write(brokers: Brokers, result: Run) -> None:
    throttle_times_ms: list[int] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": brokers.bootstrap,
        "client.id": PRODUCER,
        "linger.ms": 0,
        "throttle_cb": lambda event: throttle_times_ms.append(_milliseconds(event)),
    }
    producer = Producer(settings)
    producer.list_topics(TO_WRITE, timeout=10)
    started = time.monotonic()
    for i in range(WRITTEN):
        throttle_times_ms.clear()
        producer.produce(TO_WRITE, value=b"%0*d" % (WRITE_BYTES, i))
        if producer.flush(PATIENCE_SECONDS):
            raise TimeoutError(f"record {i} of topic {TO_WRITE} was not acknowledged within {PATIENCE_SECONDS} s")
        result.responses.append(MeasuredResponse((time.monotonic() - started) * 1000, sum(throttle_times_ms)))
        result.count += 1
    result.seconds = time.monotonic() - started


def _read(brokers: Brokers, result: Run) -> None:
    started = time.monotonic()

    def record_throttle(event: ThrottleEvent) -> None:
        if event.throttle_time > 0:
            result.responses.append(
                MeasuredResponse((time.monotonic() - started) * 1000, _milliseconds(event), empty=True)
            )

    settings: dict[str, Any] = {
        "bootstrap.servers": brokers.bootstrap,
        "client.id": CONSUMER,
        "group.id": CONSUMER,
        "enable.auto.commit": False,
        "max.partition.fetch.bytes": READ_BYTES + OVERHEAD_BYTES,
        "throttle_cb": record_throttle,
    }
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(TO_READ, 0, OFFSET_BEGINNING)])
        while result.count < READ:
            message = consumer.poll(PATIENCE_SECONDS)
            if message is None:
                raise TimeoutError(
                    f"the demo stopped: it read only {result.count} records of topic {TO_READ}, and no more came within {PATIENCE_SECONDS} s"
                )
            if message.error() is None:
                result.responses.append(MeasuredResponse((time.monotonic() - started) * 1000, 0))
                result.count += 1
        result.seconds = (result.responses[-1].at_ms - result.responses[0].at_ms) / 1000
    finally:
        consumer.close()


def _milliseconds(event: ThrottleEvent) -> int:
    return round(event.throttle_time * 1000)


def _expected_writes() -> float:
    """Return the number of seconds that the producer of step 4 of the demo should need under its quota of 1 MB/s.

    The producer sends 58 requests of 250,000 bytes, and after each request it waits for the throttle time that the broker's quota windows give.
    """
    rate, now_ms, throttle_ms = SampledRate(), 0, 0
    for _ in range(WRITTEN):
        now_ms += throttle_ms + 1
        throttle_ms = rate.record_and_throttle(WRITE_BYTES + OVERHEAD_BYTES, now_ms, QUOTA)
    return now_ms / 1000


def _expected_reads() -> float:
    """Return the number of seconds that the consumer of step 4 of the demo should need under its quota of 1 MB/s.

    The consumer fetches 140 records of 100,000 bytes, one per request. A throttled fetch is empty, its bytes are not charged, and after the throttle
    time the consumer repeats it (Q-13).
    """
    rate, now_ms, remaining = SampledRate(), 0, READ
    size = READ_BYTES + 2 * OVERHEAD_BYTES
    while remaining:
        throttle_ms = rate.record_and_throttle(size, now_ms, QUOTA)
        if throttle_ms:
            rate.record(-size, now_ms)
        else:
            remaining -= 1
        now_ms += throttle_ms + 1
    return now_ms / 1000


def throttle_mismatches(responses: Sequence[MeasuredResponse], event_bytes: int) -> list[MeasuredResponse]:
    """Return the responses whose throttle time differs from the time that Kafka's quota windows give.

    The time is computed as if the broker had charged the request at the time of the response, and 100 ms (`SLACK_MS`) earlier or later, because the
    clocks of client and broker may differ. A throttle time counts as different if it is more than 100 ms below or above all three results. responses:
    the responses, with their times and throttle times. event_bytes: number of bytes that the quota charges for each request or response.
    """
    rate = SampledRate()
    mismatches = []
    for response in responses:
        at_ms = round(response.at_ms) + SLACK_MS
        possible = [
            copy.deepcopy(rate).record_and_throttle(event_bytes, at_ms + shift_ms, QUOTA)
            for shift_ms in (-SLACK_MS, 0, SLACK_MS)
        ]
        if not min(possible) - SLACK_MS <= response.throttle_ms <= max(possible) + SLACK_MS:
            mismatches.append(response)
        rate.record(event_bytes, at_ms)
        if response.empty:
            rate.record(-event_bytes, at_ms)
    return mismatches
