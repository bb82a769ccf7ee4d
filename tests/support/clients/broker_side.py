"""Inspect the broker's side in tests of client libraries, and wait for clients."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from kafkaproto.broker.testing.handle import Handle

START_MS = 1_700_000_000_000
"""The timestamp of the first record in tests that set timestamps."""
RACKS = {
    **{f"{i}.broker.rack": rack for i, rack in enumerate("abc")},
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
TOPICS = {"t": {"partitions": 3, "replication_factor": 3}}
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
PATIENCE_SECONDS = 20.0


def batch_headers(kafka: Handle, topic: str = "t") -> list[Any]:
    """Return the header of every batch of a topic from the leaders' logs."""

    def read() -> list[Any]:
        heads = []
        for partition in kafka.state.controller.image.topics[topic].partitions:
            log = kafka.state.nodes[partition.leader].replicas.partitions[(topic, partition.index)].log
            heads += [header for _, header in log.batches(0)]
        return heads

    return kafka.run_in_loop(read)


def codecs(kafka: Handle, topic: str = "t") -> set[int]:
    """Return the compression types of a topic's batches: the low three bits of their attributes."""
    return {header.attributes & 7 for header in batch_headers(kafka, topic)}


def fetched_bytes(kafka: Handle) -> dict[int, int]:
    """Return the bytes that each broker has sent in Fetch responses."""
    return {i: sum(r.response_bytes for r in kafka.journal.requests(api="Fetch", broker=i)) for i in range(3)}


def eventually(condition: Callable[[], object], description: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until `condition` holds; for states that only the client can observe."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {description}"
        time.sleep(0.005)


class Running:
    """A thread that calls `turn` in a loop until it is stopped. `stop` raises any exception of the loop."""

    def __init__(self, turn: Callable[[], object]) -> None:
        self._actions = turn
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._actions()
        except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
            self._failure = error

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()
        if self._failure is not None:
            raise self._failure
