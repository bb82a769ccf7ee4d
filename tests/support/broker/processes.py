"""A data directory used by several broker processes in succession, as clusters in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kafkaproto.records.batch import batches, records
from tests.support.wire import batch, produce, produced


class Processes:
    """The successive processes of one data directory; `cluster` is the current one.

    `crash` simulates `kill -9`: it only releases the lock of the data directory, as the kernel would do.
    """

    def __init__(self, path: Path, brokers: int = 1, **options: Any) -> None:
        self.path = path
        self._brokers = brokers
        self._options = options
        self.cluster = self._new()

    def _new(self) -> VirtualCluster:
        config = self._options.get("config")
        more = {key: value for key, value in self._options.items() if key != "config"}
        return VirtualCluster(self._brokers, config, data_dir=self.path, **more)

    def crash(self) -> None:
        """Kill the process and leave its data as they are."""
        persistence = self.cluster.state.persistence
        assert persistence is not None
        persistence.abandon()

    def end(self) -> None:
        self.cluster.state.close()

    def restart(self) -> VirtualCluster:
        self.cluster = self._new()
        return self.cluster

    def crash_and_restart(self) -> VirtualCluster:
        self.crash()
        return self.restart()


def leader(cluster: VirtualCluster, topic: str, index: int = 0) -> int:
    return cluster.state.controller.image.leader_of(topic, index)[0]


def write(cluster: VirtualCluster, topic: str, *values: bytes, index: int = 0, acks: int = 1, **options: Any) -> Any:
    """Produce one batch and return its partition response."""
    client = cluster.connect(leader(cluster, topic, index))
    return produced(client.ask(produce(topic, batch(*values, **options), index, acks), 9))


def values(
    cluster: VirtualCluster, topic: str, index: int = 0, broker_id: int | None = None
) -> list[tuple[int, bytes | None]]:
    """Return (offset, value) of every record of one replica from its log start, by default the leader's."""
    broker_id = leader(cluster, topic, index) if broker_id is None else broker_id
    log = cluster.state.nodes[broker_id].replicas.partitions[(topic, index)].log
    stored_records = [record for stored_batch in batches(log.read_all()) for record in records(stored_batch.view)]
    return [(record.offset, record.value) for record in stored_records if record.offset >= log.log_start_offset]


def commit(cluster: VirtualCluster, group: str, topic: str, offset: int, index: int = 0) -> int:
    """Commit an offset without a member and return the error code."""
    broker_id = cluster.state.coordinator_of(group)
    partition = OffsetCommitRequestPartition(index, committed_offset=offset)
    request = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, partitions=[partition])])
    response = cluster.connect(broker_id).ask(request, 8)
    return int(response.topics[0].partitions[0].error_code)


def committed(cluster: VirtualCluster, group: str, topic: str, index: int = 0) -> int:
    broker_id = cluster.state.coordinator_of(group)
    response = cluster.connect(broker_id).ask(OffsetFetchRequest(group, [OffsetFetchRequestTopic(topic, [index])]), 5)
    return int(response.topics[0].partitions[0].committed_offset)
