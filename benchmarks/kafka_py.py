"""Compare the speed of Spark with two data sources for Kafka: this project's kafka_py and Spark's own.

The two sources alternate in one Spark session. Values have 100 bytes. Each read counts all records
and sums their CRCs and offsets; both sources must return the same numbers. The program writes
docs/benchmarks.md.
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
REQUIRED_RATIO = 1 / 3
CONNECTOR, OURS = "kafka", "kafka_py"


class Cell(NamedTuple):
    """A measurement: its name, the number of records per batch in the topics that are read, and the options of the Spark source."""

    name: str
    batch_records: int
    options: dict[str, str]


CELLS = [
    Cell("batches of 16 KB (a producer's default)", 150, {}),
    Cell("batches of 1 MB", 8_000, {}),
    Cell("batches of 16 KB, includeHeaders", 150, {"includeHeaders": "true"}),
]


def batch_of(records: int) -> bytes:
    """Return a batch like that of a real producer: keys of several lengths, values that do not repeat, increasing timestamps.

    records: number of records in the batch.
    """
    generator = random.Random(records)
    records_made = [
        NewRecord(generator.randbytes(VALUE_BYTES), b"key-%d" % generator.randrange(10**6), 1_700_000_000_000 + i // 3)
        for i in range(records)
    ]
    return build_batch(records_made)


def filled(address: str, cell: Cell, records: int) -> tuple[str, int]:
    """Create two topics (`TOPICS`) of one partition for a measurement, and write the same number of records into each.

    address: host:port of the broker. cell: the measurement, which has the number of records per batch. records: approximately the number of records
    in all topics together. Returns (topic names separated by commas, as in the option `subscribe`; exact number of records in all topics together).
    """
    batch = batch_of(cell.batch_records)
    batches = max(1, records // TOPICS // cell.batch_records)
    names = []
    for _ in range(TOPICS):
        names.append(client.new_topic(address).name)
        client.produce(address, names[-1], batch, batches)
    return ",".join(names), TOPICS * batches * cell.batch_records


def read(spark: SparkSession, source: str, address: str, topics: str, cell: Cell) -> tuple[float, Any]:
    """Read all records once with a source. Returns (seconds, [(number of records, sum of CRCs, sum of offsets)]).

    source: name of the Spark data source. address: host:port of the broker. topics: names of the topics, separated by commas. cell: the
    measurement, which has the source options.
    """
    from pyspark.sql import functions as f

    reader = spark.read.format(source).option("kafka.bootstrap.servers", address).option("subscribe", topics)
    for name, value in cell.options.items():
        reader = reader.option(name, value)
    start = time.perf_counter()
    rows = reader.load().agg(f.count("*"), f.sum(f.crc32("value")), f.sum("offset")).collect()
    return time.perf_counter() - start, rows


def measured(spark: SparkSession, address: str, cell: Cell, records: int, rounds: int) -> dict[str, float]:
    """Return how many rows Spark reads per second from each source (the median of all rounds), by name of the source.

    address: host:port of the broker. cell: the measurement. records: approximately the number of records to read. rounds: how often each source reads
    all records. A further round at the beginning only warms up Spark and is not counted. Raises RuntimeError if the sources return different records,
    or not all records.
    """
    topics, written = filled(address, cell, records)
    seconds: dict[str, list[float]] = {CONNECTOR: [], OURS: []}
    for turn in range(rounds + 1):
        results = {}
        for source in seconds if turn % 2 else reversed(seconds):
            took, results[source] = read(spark, source, address, topics, cell)
            if turn:
                seconds[source].append(took)
        if results[CONNECTOR] != results[OURS] or results[OURS][0][0] != written:
            raise RuntimeError(
                f"{cell.name}: the Spark data sources {CONNECTOR} and {OURS} must both return all {written} records, with equal sums of the "
                f"CRCs and offsets (got records, sum of CRCs, sum of offsets: {results})"
            )
    for topic in topics.split(","):
        client.delete_topic(address, topic)
    return {source: written / statistics.median(took) for source, took in seconds.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kafka_py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rounds", type=int, default=5, metavar="N", help="how often each measurement is repeated (default: 5)"
    )
    parser.add_argument(
        "--records",
        type=int,
        default=1_000_000,
        metavar="N",
        help="number of records that each measurement reads (default: 1000000)",
    )
    parser.add_argument("--check", action="store_true", help="exit with status 1 if kafka_py is slower than its limit")
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
                if ratio < REQUIRED_RATIO:
                    missed.append(f"{cell.name}: {ratio:.2f}, required {REQUIRED_RATIO:.2f}")
        finally:
            spark.stop()
    text = (
        f"Thousands of rows per second, with {VALUE_BYTES}-byte values, that Spark {session.installed_connector().rsplit(':', 1)[1]} reads with its "
        f"own connector and with kafka_py: two tasks on two cores, shared with the broker, alternating in one session; medians of {options.rounds} "
        f"rounds. "
        f"The goal is at least a third of the connector's speed."
    )
    head = ("work", "connector", "kafka_py", "kafka_py / connector")
    print(write_section("kafka-py", "Reading with kafka_py", "python -m benchmarks.kafka_py", text, head, rows))
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
