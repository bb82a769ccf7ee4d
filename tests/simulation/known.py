"""The state of a process when it ends, which the next process on the same data directory must recover.

A process killed between two steps leaves exactly its state. If it is killed in the middle of a step, its last write, not yet acted upon,
may be present too. Nothing acknowledged is lost in either case. It only reads; every check raises AssertionError.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.metadata.image import Topic
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.records.batch import check_crc


class Batch(NamedTuple):
    base_offset: int
    next_offset: int
    crc: int
    epoch: int
    max_timestamp: int


class Log(NamedTuple):
    """The state of one replica. epochs: those with batches. producers: id to epoch, start of the open transaction, and remembered batches.

    aborted: the aborted transactions.
    """

    start: int
    end: int
    batches: list[Batch]
    epochs: list[Any]
    producers: dict[int, Any]
    aborted: tuple[Any, ...]


class Known:
    """The state of a process. in_a_step: it was killed within a step. forgets_elections: the disk refused writes since the last elections."""

    def __init__(self, cluster: Cluster, in_a_step: bool) -> None:
        self.in_a_step = in_a_step
        self.forgets_elections = cluster.persistence is not None and cluster.persistence.metadata_log.lacks
        self._topics = cluster.controller.image.topics
        self._logs = {
            (topic.topic_id, state.index): [
                _log(replica) for replica in _leaders(cluster, topic, state.index, in_a_step)
            ]
            for topic in self._topics.values()
            for state in topic.partitions
        }

    def check(self, cluster: Cluster) -> None:
        """Check that `cluster` continues from the state of the previous process."""
        topics = cluster.controller.image.topics
        surely = topics.keys() == self._topics.keys() or self.in_a_step
        assert surely, f"topics changed: {sorted(self._topics)} became {sorted(topics)}"
        for name, before in self._topics.items():
            after = topics.get(name)
            if after is None or (self.in_a_step and after.topic_id != before.topic_id):
                continue  # the last write
            assert after.topic_id == before.topic_id, f"{name} is another topic"
            assert after.configs == before.configs or self.in_a_step, f"{name} has other settings"
            for state in before.partitions:
                self._check_partition(cluster, after, state.index)

    def _check_partition(self, cluster: Cluster, topic: Topic, index: int) -> None:
        before = self._logs[topic.topic_id, index]
        state = topic.partitions[index]
        if state.leader < 0 or not before:
            return
        for broker_id in state.replicas:
            log_text = _log(cluster.nodes[broker_id].replicas.partitions[topic.name, index])
            compacts = "compact" in topic.configs.get("cleanup.policy", "")
            is_continued = self.forgets_elections or any(
                self._continues(
                    log, _without_own(log_text, log, cluster.now_ms()) if topic.internal else log_text, compacts
                )
                for log in before
            )
            assert is_continued, f"{topic.name}-{index} on {broker_id}: {before} became {log_text}"

    def _continues(self, before: Log, after: Log, compacts: bool) -> bool:
        if before == after or not self.in_a_step:
            return before == after
        if compacts:
            return before.end <= after.end
        remaining = [batch for batch in before.batches if batch.next_offset > after.start]
        more = len(after.batches) - len(remaining)
        return before.start <= after.start and after.batches[: len(remaining)] == remaining and more in (0, 1)


def _without_own(after: Log, before: Log, now_ms: int) -> Log:
    """Return a log without what a coordinator of the new process has written: it removes the offsets of a deleted topic when it loads them."""
    own = [batch for batch in after.batches if batch.base_offset >= before.end and batch.max_timestamp == now_ms]
    if not own or own[0].base_offset != before.end:
        return after
    epochs = [entry for entry in after.epochs if entry.start_offset < before.end]
    return after._replace(end=before.end, batches=after.batches[: -len(own)], epochs=epochs)


def _leaders(cluster: Cluster, topic: Topic, index: int, in_a_step: bool) -> list[Partition]:
    """Return the current or last leader; during an election also the previous leader.

    A stopped broker may still have a topic of that name that has been deleted since.
    """
    partitions = [node.replicas.partitions.get((topic.name, index)) for node in cluster.nodes]
    led = [p for p in partitions if p is not None and p.is_leader and p.topic_id == topic.topic_id]
    led.sort(key=lambda partition: partition.leader_epoch, reverse=True)
    return led if in_a_step else led[:1]


def _log(partition: Partition) -> Log:
    log = partition.log
    lines = []
    for position, header in log.batches(log.log_start_offset):
        assert check_crc(memoryview(log.store.read(position, header.size))), f"{partition}: {header} is incomplete"
        lines.append(
            Batch(
                header.base_offset, header.next_offset, header.crc, header.partition_leader_epoch, header.max_timestamp
            )
        )
    producers = {i: (e.epoch, e.first_open_offset, list(e.batches)) for i, e in log.producers.producers.items()}
    epochs = [entry for entry in log.epochs.entries() if entry.start_offset < log.log_end_offset]
    return Log(log.log_start_offset, log.log_end_offset, lines, epochs, producers, log.producers.transactions.aborted)
