"""Instances of a word count with Kafka Streams, and its output as a consumer with `isolation.level=read_committed` reads it."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from kafkaproto.testing import ProducerSeen, TestCluster
from tests.support.clients.building import java

SOURCE = Path(__file__).with_name("WordCount.java")
WAIT_SECONDS = 60.0
INPUT, OUTPUT, APPLICATION = "lines", "counts", "word-count"


class WordCount:
    """Running instances of one application, by name. Use as a context manager: instances that still run are killed at the end.

    version: the version of Kafka Streams. folder: for the state directories of the instances, which they keep after a restart, and their logs.
    """

    def __init__(self, cluster: TestCluster, version: str, folder: Path) -> None:
        self.counts: Counter[str] = Counter()
        """The last count of each word in the output."""
        self._cluster = cluster
        self._command = java(SOURCE, version, streams=True)
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._output = self._consumer()

    def _consumer(self) -> Consumer:
        """Return a consumer that reads the whole output."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._cluster.bootstrap,
                "group.id": "output",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition(OUTPUT, index, 0) for index in self._partitions()])
        return consumer

    def _partitions(self) -> range:
        return range(self._cluster.topics()[OUTPUT])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for name in list(self._processes):
            self.kill(name)
        self._output.close()

    def start(self, name: str) -> None:
        arguments = [self._cluster.bootstrap, APPLICATION, str(self._folder / name), INPUT, OUTPUT]
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen([*self._command, *arguments], stdin=subprocess.PIPE, stderr=log)

    def close(self, name: str) -> None:
        """Let an instance close. Raises AssertionError if the instance does not close cleanly."""
        process = self._processes.pop(name)
        process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == 0, f"{name} ended with {process.returncode}: {self._log_text()}"

    def kill(self, name: str) -> None:
        """Kill an instance with SIGKILL."""
        process = self._processes.pop(name)
        process.kill()
        process.communicate()

    def wait_for(self, expected: Counter[str]) -> None:
        """Read the output until the counts are as expected. Raises AssertionError if a count skips or repeats a number."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self.counts != expected:
            assert time.monotonic() < deadline, f"missing: {expected - self.counts}\n{self._log_text()}"
            for message in self._output.consume(500, 0.2):
                if not is_end(message):
                    add(message, self.counts)

    def read_again(self) -> Counter[str]:
        """Wait until no transaction is open in the output, read all of it with a new consumer, and return the last count of each word.

        No instance may run. Raises AssertionError if a count skips or repeats a number, or if the output is not read to its last stable offset.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while any(
            producer.first_open_offset >= 0 for index in self._partitions() for producer in self._producers(index)
        ):
            assert time.monotonic() < deadline, {index: self._producers(index) for index in self._partitions()}
            time.sleep(0.1)
        stable = {index: self._cluster.last_stable_offset(OUTPUT, index) for index in self._partitions()}
        ends: dict[int, int] = {}
        counts: Counter[str] = Counter()
        consumer = self._consumer()
        while ends.keys() != stable.keys():
            assert time.monotonic() < deadline, f"read to {ends} instead of {stable}"
            for message in consumer.consume(500, 0.2):
                if is_end(message):
                    index, offset = message.partition(), message.offset()
                    assert index is not None and offset is not None
                    ends[index] = offset
                else:
                    add(message, counts)
        consumer.close()
        assert ends == stable
        return counts

    def _producers(self, index: int) -> list[ProducerSeen]:
        return self._cluster.producers(OUTPUT, index)

    def _log_text(self) -> str:
        logs = sorted(self._folder.glob("*.log"))
        return "\n".join(f"--- {log.stem}\n{log.read_text()[-3000:]}" for log in logs)


def is_end(message: Message) -> bool:
    """Return whether a message only reports that the consumer has read a partition to its end."""
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF


def add(message: Message, counts: Counter[str]) -> None:
    """Add a count from the output. Raises AssertionError if it is not the next count of its word."""
    error, key, value = message.error(), message.key(), message.value()
    assert error is None and key is not None and value is not None, error
    word, count = key.decode(), int(value)
    assert count == counts[word] + 1, f"{word} is {count} after {counts[word]}"
    counts[word] = count
