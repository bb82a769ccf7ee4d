"""Measure how long a transaction takes to complete in Apache Kafka 3.9.1 and 4.2.0, and in this broker, one after the other (TX-39).

From the response to EndTxn until the response that accepts AddPartitionsToTxn again, so a round trip is included. Each transaction has one
partition. Prints the median of each broker. The default of `kafkaproto.transaction.completion.ms` comes from those of Kafka.

usage: python -m tests.oracle.transaction_completion [--transactions N]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median

from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import Producer
from kafkaproto.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kafkaproto.messages.end_txn import EndTxnRequest
from tests.support.conformance.ours import Ours, OursNewerOnWallClock
from tests.support.conformance.real_kafka import NewerKafka, RealKafka

WARM_UP = 50
"""Transactions before the first that counts, because a JVM is slow at first."""
SUBJECTS: dict[str, Callable[[], Subject]] = {
    f"Kafka {RealKafka.kafka}": partial(RealKafka, "default"),
    f"Kafka {NewerKafka.kafka}": partial(NewerKafka, "default"),
    "this broker as 3.9": partial(Ours, "default", "kafka"),
    "this broker as 4.2": partial(OursNewerOnWallClock, "default"),
}


def completion_times_ms(subject: Subject, transactions: int) -> list[float]:
    """Return the time in ms from the response to EndTxn until the next transaction may begin, for each of `transactions` in a row."""
    topic, producer = new_topic(subject), Producer(subject)
    producer.init()
    connection = subject.connect(producer.coordinator())
    numbers = producer.producer_id, producer.epoch
    add = AddPartitionsToTxnRequest([], producer.id, *numbers, [AddPartitionsToTxnTopic(topic.name, [0])])
    times_ms = []
    end_s = None
    for _ in range(WARM_UP + transactions + 1):
        while (
            subject.ask(connection, add, 3)
            .results_by_topic_v3_and_below[0]
            .results_by_partition[0]
            .partition_error_code
        ):
            pass
        if end_s is not None:
            times_ms.append(1000 * (time.perf_counter() - end_s))
        assert subject.ask(connection, EndTxnRequest(producer.id, *numbers, True), 3).error_code == 0
        end_s = time.perf_counter()
    return times_ms[WARM_UP:]


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Measure how long a transaction takes to complete in Kafka 3.9.1 and 4.2.0, and in this broker."
    )
    parser.add_argument(
        "--transactions", type=int, default=500, help="number of transactions to measure in each broker (default: 500)"
    )
    transactions = parser.parse_args().transactions
    for name, start in SUBJECTS.items():
        subject = start()
        try:
            times_ms = sorted(completion_times_ms(subject, transactions))
        finally:
            subject.stop()
        low, high = times_ms[len(times_ms) // 10], times_ms[-1 - len(times_ms) // 10]
        sys.stdout.write(
            f"{name}: {len(times_ms)} transactions: median {median(times_ms):.1f} ms; 80 % from {low:.1f} to {high:.1f} ms\n"
        )


if __name__ == "__main__":
    main()
