"""Rows a second that Spark reads with kafka_py and with its own Kafka connector: one session, one broker, by turns. Writes BENCHMARKS.md.

Values of 100 bytes; all of them are read, counted and their CRCs added up, and both sources must come to the same sum.

usage: python -m benchmarks.kafka_py [--rounds 5] [--records 1000000] [--check]
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks import raw_client as client
from benchmarks.race import ours, running
from benchmarks.report import write_section
from kafkaproto.pipeline import session
from kafkaproto.pipeline.kafka_py.source import KafkaPy
from kafkaproto.records.batch import NewRecord, build_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUE_BYTES = 100
TOPICS = 2
WANTED = 1 / 3
CONNECTOR, OURS = "kafka", "kafka_py"


class Cell(NamedTuple):
    """A kind of topic: records in each batch, and options of the read."""

    name: str
    batch_records: int
    options: dict[str, str]


CELLS = [
    Cell("batches of 16 KB (a producer's default)", 150, {}),
    Cell("batches of 1 MB", 8_000, {}),
    Cell("batches of 16 KB, includeHeaders", 150, {"includeHeaders": "true"}),
]


def batch_of(records: int) -> bytes:
    """Keys of several lengths, values that do not repeat, times that go on: nothing that is easier than what producers send."""
    chance = random.Random(records)
    made = [
        NewRecord(chance.randbytes(VALUE_BYTES), b"key-%d" % chance.randrange(10**6), 1_700_000_000_000 + i // 3)
        for i in range(records)
    ]
    return build_batch(made)


def filled(address: str, cell: Cell, records: int) -> tuple[str, int]:
    """Topics of one partition each with the records of a cell, as a list for `subscribe`, and how many records those are."""
    batch = batch_of(cell.batch_records)
    batches = max(1, records // TOPICS // cell.batch_records)
    names = []
    for _ in range(TOPICS):
        names.append(client.new_topic(address).name)
        client.produce(address, names[-1], batch, batches)
    return ",".join(names), TOPICS * batches * cell.batch_records


def read(spark: SparkSession, source: str, address: str, topics: str, cell: Cell) -> tuple[float, Any]:
    """Seconds of one read, and what it came to."""
    from pyspark.sql import functions as f

    reader = spark.read.format(source).option("kafka.bootstrap.servers", address).option("subscribe", topics)
    for name, value in cell.options.items():
        reader = reader.option(name, value)
    begun = time.perf_counter()
    found = reader.load().agg(f.count("*"), f.sum(f.crc32("value")), f.sum("offset")).collect()
    return time.perf_counter() - begun, found


def measured(spark: SparkSession, address: str, cell: Cell, records: int, rounds: int) -> dict[str, float]:
    """Rows a second of both sources, medians; the first round warms up and does not count. RuntimeError if they disagree."""
    topics, written = filled(address, cell, records)
    seconds: dict[str, list[float]] = {CONNECTOR: [], OURS: []}
    for turn in range(rounds + 1):
        answers = {}
        for source in seconds if turn % 2 else reversed(seconds):
            took, answers[source] = read(spark, source, address, topics, cell)
            if turn:
                seconds[source].append(took)
        if answers[CONNECTOR] != answers[OURS] or answers[OURS][0][0] != written:
            raise RuntimeError(f"{cell.name}: {written} rows written, the sources say {answers}")
    for topic in topics.split(","):
        client.delete_topic(address, topic)
    return {source: written / statistics.median(took) for source, took in seconds.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--check", action="store_true", help="fail when kafka_py is slower than what is wanted")
    options = parser.parse_args()
    rows, missed = [], []
    broker = ours()
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile("w+") as log, running([broker]):
        spark = session.start("kafka_py benchmark", Path(scratch), log)
        try:
            spark.dataSource.register(KafkaPy)
            for cell in CELLS:
                rates = measured(spark, broker.address, cell, options.records, options.rounds)
                ratio = rates[OURS] / rates[CONNECTOR]
                rows.append((cell.name, *(f"{rates[name] / 1e3:.0f}" for name in (CONNECTOR, OURS)), f"{ratio:.2f}"))
                if ratio < WANTED:
                    missed.append(f"{cell.name}: {ratio:.2f}, wanted {WANTED:.2f}")
        finally:
            spark.stop()
    text = (
        f"Thousands of rows a second, of {VALUE_BYTES}-byte values, that Spark {session.CONNECTOR.rsplit(':', 1)[1]} reads with its own "
        f"connector and with kafka_py: two tasks on two cores that the broker shares, by turns in one session; medians of {options.rounds}. "
        f"Wanted is a third of the connector's."
    )
    head = ("work", "connector", "kafka_py", "kafka_py, of the connector")
    print(write_section("kafka-py", "Reading with kafka_py", "python -m benchmarks.kafka_py", text, head, rows))
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
