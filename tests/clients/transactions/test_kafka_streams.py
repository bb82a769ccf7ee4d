"""Kafka Streams with exactly_once_v2: no word is lost or counted twice, whatever happens to instances and brokers."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION
from kafkaproto.testing import TestCluster, cluster
from tests.support.streams.word_count import INPUT, OUTPUT, WordCount

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.clients, pytest.mark.timeout(400)]

PARTITIONS, LINES, WORDS_OF_A_LINE = 4, 40, 5
WORDS = ["acks", "batch", "commit", "epoch", "fetch", "group", "leader", "log", "offset", "produce", "quorum", "record"]
SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
TOPIC = {"partitions": PARTITIONS, "replication_factor": 3}


class Input:
    """Lines of random words, written to the input topic, and the number of times that each word was written."""

    def __init__(self, kafka: TestCluster) -> None:
        self.expected: Counter[str] = Counter()
        self._kafka = kafka
        self._random = random.Random(0)

    def write(self) -> None:
        for number in range(LINES):
            words = self._random.choices(WORDS, k=WORDS_OF_A_LINE)
            self._kafka.produce(INPUT, [" ".join(words)], partition=number % PARTITIONS)
            self.expected.update(words)


@pytest.mark.parametrize(("version", "release"), [(KAFKA_VERSION, "3.9"), (NEWER_VERSION, "4.2")])
def test_kafka_streams_counts_every_word_exactly_once_despite_restarts_and_kills(
    version: str, release: str, tmp_path: Path
) -> None:
    topics = {INPUT: TOPIC, OUTPUT: TOPIC}
    with (
        cluster(3, topics=topics, release=release, config=SETTINGS) as kafka,
        WordCount(kafka, version, tmp_path) as words,
    ):
        lines = Input(kafka)

        def count() -> None:
            lines.write()
            words.wait_for(lines.expected)

        words.start("first")
        count()
        words.start("second")
        count()
        words.close("first")
        count()
        words.start("first")
        count()
        lines.write()
        words.kill("second")
        count()
        words.start("second")
        for broker in range(3):
            lines.write()
            kafka.broker(broker).stop()
            count()
            kafka.broker(broker).start()
        lines.write()
        words.kill("first")
        words.kill("second")
        words.start("first")
        count()
        words.close("first")
        assert words.read_again() == lines.expected
