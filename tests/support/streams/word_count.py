"""Instances of a word count with Kafka Streams, and its output as a consumer with `isolation.level=read_committed` reads it."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, TopicPartition

from kafkaproto.testing import TestCluster
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
        self._bootstrap = cluster.bootstrap
        self._command = java(SOURCE, version, streams=True)
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._output = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "output",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        self._output.assign([TopicPartition(OUTPUT, index, 0) for index in range(cluster.topics()[OUTPUT])])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for name in list(self._processes):
            self.kill(name)
        self._output.close()

    def start(self, name: str) -> None:
        arguments = [self._bootstrap, APPLICATION, str(self._folder / name), INPUT, OUTPUT]
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen([*self._command, *arguments], stdin=subprocess.PIPE, stderr=log)

    def close(self, name: str) -> None:
        """Let an instance close. Raises AssertionError if the instance does not close cleanly."""
        process = self._processes.pop(name)
        process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == 0, f"{name} ended with {process.returncode}: {self._said()}"

    def kill(self, name: str) -> None:
        """Kill an instance with SIGKILL."""
        process = self._processes.pop(name)
        process.kill()
        process.communicate()

    def wait_for(self, expected: Counter[str]) -> None:
        """Read the output until the counts are as expected. Raises AssertionError if a count skips or repeats a number."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self.counts != expected:
            assert time.monotonic() < deadline, f"missing: {expected - self.counts}\n{self._said()}"
            for message in self._output.consume(500, 0.2):
                error, key, value = message.error(), message.key(), message.value()
                assert error is None and key is not None and value is not None, error
                word, count = key.decode(), int(value)
                assert count == self.counts[word] + 1, f"{word} is {count} after {self.counts[word]}"
                self.counts[word] = count

    def _said(self) -> str:
        logs = sorted(self._folder.glob("*.log"))
        return "\n".join(f"--- {log.stem}\n{log.read_text()[-3000:]}" for log in logs)
