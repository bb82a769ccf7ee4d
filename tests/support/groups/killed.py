"""A broker process for groups of client libraries: it is killed with `kill -9` and started again on the same port and data directory."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kafkaproto.conformance.wire import PRODUCE_VERSION, batch, produce, produced
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.support.broker.group_kills import LOADING
from tests.support.broker.kills import BrokerProcesses, Client
from tests.support.groups.history import Partition

TOPIC, PARTITIONS = "orders", 6
LATEST = -1
NOTHING = -1
"""The committed offset of a partition without a commit."""
LIST_OFFSETS_VERSION, OFFSET_FETCH_VERSION = 7, 9
RECORDS_BEFORE_KILL = 20
"""The number of records that are produced before the broker is killed, by default."""
PORTS = range(20_000, 32_000)
"""Ports below those that Linux gives to clients: no client gets the broker's port while the broker does not run."""


def free_port() -> int:
    """Return a random port of `PORTS` on which nothing listens: the broker of another test may just be killed. Raises OSError if there is none."""
    for port in random.sample(PORTS, len(PORTS)):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError(f"no port from {PORTS.start} to {PORTS.stop - 1} is free")


class KilledBroker:
    """One broker in successive processes, with the interface that `Members` needs, and a producer. produced: acknowledged records by partition.

    others: further topics, to which the producer does not write, with their numbers of partitions.
    """

    def __init__(
        self,
        processes: BrokerProcesses,
        folder: Path,
        release: str,
        settings: Mapping[str, str],
        others: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        port = free_port()
        self.bootstrap = f"127.0.0.1:{port}"
        self.produced = [0] * PARTITIONS
        self._processes = processes
        self._options = ["--port", str(port), "--data-dir", str(folder), "--release", release]
        for name, partitions in {TOPIC: PARTITIONS, **others}.items():
            self._options += ["--topic", f"{name}:{partitions}"]
        self._options += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]

    def groups(self) -> dict[str, Any]:
        """Return nothing: the state of the broker is in another process."""
        return {}

    @contextmanager
    def running(self, records_before_kill: int = RECORDS_BEFORE_KILL) -> Iterator[None]:
        """Run the broker. At the end of the block, records are produced, and the broker is killed when so many of them are acknowledged."""
        with self._processes.start(self._options, 1):
            yield
            thread = threading.Thread(target=self._produce_until_killed)
            before = sum(self.produced)
            thread.start()
            while sum(self.produced) < before + records_before_kill:
                assert thread.is_alive(), "the producer ended before the broker was killed"
                thread.join(0.01)
        thread.join()

    def _produce_until_killed(self) -> None:
        with suppress(OSError, EOFError):
            while True:
                self.produce()

    def produce(self) -> None:
        """Produce a record to each partition. Raises OSError or EOFError when the broker is killed."""
        with self._client() as client:
            for index in range(PARTITIONS):
                response = produced(client.ask(produce(TOPIC, batch(), index, acks=-1), PRODUCE_VERSION))
                assert response.error_code == 0, response
                self.produced[index] = response.base_offset + 1

    def check_records(self) -> None:
        """Check that no acknowledged record is lost, and count also the records whose response was lost."""
        partitions = [ListOffsetsPartition(index, timestamp=LATEST) for index in range(PARTITIONS)]
        with self._client() as client:
            request = ListOffsetsRequest(-1, topics=[ListOffsetsTopic(TOPIC, partitions)])
            [topic] = client.ask(request, LIST_OFFSETS_VERSION).topics
        ends = {partition.partition_index: partition.offset for partition in topic.partitions}
        for index, acknowledged in enumerate(self.produced):
            assert acknowledged <= ends[index] <= acknowledged + 1, f"{TOPIC}-{index}: {acknowledged} became {ends}"
            self.produced[index] = ends[index]

    def committed(self, group: str) -> dict[Partition, int]:
        """Return the offsets that the group has committed, when its coordinator has loaded them."""
        topics = [OffsetFetchRequestTopics(TOPIC, partition_indexes=list(range(PARTITIONS)))]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, None, -1, topics)], require_stable=True)
        with self._client() as client:
            while (response := client.ask(request, OFFSET_FETCH_VERSION).groups[0]).error_code in LOADING:
                pass
        assert response.error_code == 0, response
        partitions = response.topics[0].partitions
        return {(TOPIC, p.partition_index): p.committed_offset for p in partitions if p.committed_offset != NOTHING}

    @contextmanager
    def _client(self) -> Iterator[Client]:
        client = Client(self.bootstrap)
        try:
            yield client
        finally:
            client.socket.close()
