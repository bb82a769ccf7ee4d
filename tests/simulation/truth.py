"""A model of the logs beside the brokers: committed batches, leaders of each epoch, and since when followers lag.

It inspects the replicas and learns from clients what is acknowledged. It never changes anything. Every check raises AssertionError.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.metadata.image import NO_LEADER, Image, PartitionState, Topic
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.records.batch import BatchHeader, records
from tests.simulation.keys import Keys
from tests.simulation.transaction_truth import LoggedTransactions, TransactionTruth

A_DAY_MS = 24 * 3600 * 1000
A_WEEK_MS = 7 * A_DAY_MS
LAG_SLACK_MS = 1000
"""The simulation checks every 500 ms of virtual time."""


class Kept(NamedTuple):
    """A committed batch, identified by its crc."""

    base_offset: int
    next_offset: int
    crc: int
    epoch: int
    max_timestamp: int


class History:
    """The history of a partition from its creation to its deletion.

    configs: settings of its topic. internal: whether only coordinators write to it.
    """

    def __init__(
        self, name: str, configs: Mapping[str, str], transactions: TransactionTruth, *, internal: bool = False
    ) -> None:
        self.name = name
        self.transactions = LoggedTransactions(name, transactions)
        self.internal = internal
        self.compacted = "compact" in configs.get("cleanup.policy", "")
        self.unclean = configs.get("unclean.leader.election.enable") == "true"
        self.retention_ms = int(configs.get("retention.ms", A_WEEK_MS))
        self.keys = Keys(name, int(configs.get("delete.retention.ms", A_DAY_MS)))
        """The required contents, if the partition is compacted."""
        self.deleted_to = 0
        """The highest offset to which clients have requested deletion."""
        self.batches: list[Kept] = []
        self.committed_end = 0
        self.generation = 0
        """How many unclean elections have replaced the history."""
        self.leaders: dict[int, int] = {}
        """Maps a leader epoch to its leader."""
        self.watermark: tuple[int, int] = (-1, 0)
        """(leader epoch, high watermark) at the last check."""
        self.behind: dict[int, tuple[int, int, int]] = {}
        """Maps a follower to (leader epoch, its log end, since when it has lagged at this log end)."""

    def start_again(self) -> None:
        self.batches.clear()
        self.committed_end = 0
        self.generation += 1

    def at(self, offset: int) -> Kept | None:
        """Return the committed batch that contains an offset, or None."""
        place = bisect_right(self.batches, offset, key=lambda kept: kept.base_offset) - 1
        kept_batch = self.batches[place] if place >= 0 else None
        return kept_batch if kept_batch is not None and offset < kept_batch.next_offset else None

    def check_batch(self, header: BatchHeader) -> None:
        """Check that a batch below the high watermark is the committed one of its offset."""
        if self.compacted:
            return  # compaction rewrites its batches; consumers check the records
        committed_batch = self.at(header.base_offset)
        assert committed_batch is not None, f"{self.name}: {header.base_offset} was never committed"
        replica_batch = Kept(
            header.base_offset, header.next_offset, header.crc, header.partition_leader_epoch, header.max_timestamp
        )
        assert committed_batch == replica_batch, (
            f"{self.name}: a committed batch changed: {committed_batch} became {replica_batch}"
        )


class Truth:
    """All histories of a cluster, by (topic id, index)."""

    def __init__(self, cluster: Cluster, transactions: TransactionTruth) -> None:
        self._transactions = transactions
        self.histories: dict[tuple[bytes, int], History] = {}
        self._observe(cluster)

    def _observe(self, cluster: Cluster) -> None:
        self._cluster = cluster
        controller = cluster.controller
        take_over = controller.take_over

        def learn_first(old: Image, new: Image, changed: Sequence[str]) -> None:
            # Runs before the brokers apply a new image: batches committed by the old leader count.
            self._image_changes(old, new, changed)
            take_over(old, new, changed)

        controller.take_over = learn_first

    def restart(self, cluster: Cluster, forgets_elections: bool) -> None:
        """Check another process on the same data: no committed record is lost or changed, and no epoch decreases.

        forgets_elections: the disk refused writes between the last elections and the end; no record was appended in their epochs.
        """
        self._observe(cluster)
        for history in self.histories.values():
            history.behind.clear()  # followers do not lag while no process runs
        for topic in cluster.controller.image.topics.values():
            for state in topic.partitions:
                history = self.histories.get((topic.topic_id, state.index))
                if forgets_elections and history is not None:
                    history.leaders = {e: leader for e, leader in history.leaders.items() if e < state.leader_epoch}
                    history.watermark = (-1, 0)
                history = self._partition_changes(topic, None, state)
                assert state.leader_epoch >= max(history.leaders, default=-1), (
                    f"{history.name}: the epoch fell: {state}, led by {history.leaders}"
                )
                leader = self._leader(topic.name, state.index, state.leader)
                end = -1 if leader is None else leader.log.log_end_offset
                assert leader is None or end >= history.committed_end, (
                    f"{history.name}: {history.committed_end} was committed, the log ends at {end}"
                )
        self.check_contents()

    def of(self, partition: Partition) -> History:
        return self.histories[partition.topic_id, partition.index]

    # ---- decisions of the controller ---------------------------------------------------------------------------------------------

    def _image_changes(self, old: Image, new: Image, changed: Sequence[str]) -> None:
        for name in changed:
            before, after = old.topics.get(name), new.topics.get(name)
            if after is None:
                continue
            same = before is not None and before.topic_id == after.topic_id
            for index, state in enumerate(after.partitions):
                was = before.partitions[index] if same and before and index < len(before.partitions) else None
                self._partition_changes(after, was, state)

    def _partition_changes(self, topic: Topic, was: PartitionState | None, now: PartitionState) -> History:
        history = self.histories.get((topic.topic_id, now.index))
        if history is None:
            history = History(f"{topic.name}-{now.index}", topic.configs, self._transactions, internal=topic.internal)
            self.histories[topic.topic_id, now.index] = history
        assert set(now.isr) <= set(now.replicas), f"{history.name}: {now}"
        if now.leader != NO_LEADER:
            led = history.leaders.setdefault(now.leader_epoch, now.leader)
            assert led == now.leader, f"{history.name}: {led} and {now.leader} both led in epoch {now.leader_epoch}"
            assert now.leader in now.isr, f"{history.name}: the leader is not in sync: {now}"
        if was is None:
            return history
        assert now.leader_epoch >= was.leader_epoch, f"{history.name}: the epoch fell: {was} to {now}"
        old_leader = self._leader(topic.name, now.index, was.leader)
        if old_leader is not None:
            self._learn(history, old_leader)
        if now.leader not in (was.leader, NO_LEADER) and now.leader not in was.isr:
            # a replica that joins the ISR and leads in the same image has caught up
            replica = self._cluster.nodes[now.leader].replicas.partitions.get((topic.name, now.index))
            end = -1 if replica is None else replica.log.log_end_offset
            assert history.unclean or end >= history.committed_end, f"{history.name}: unclean election: {was} to {now}"
            if history.unclean:
                history.start_again()
        return history

    def _leader(self, topic: str, index: int, leader: int) -> Partition | None:
        if leader == NO_LEADER or not self._cluster.nodes[leader].running:
            return None
        replica = self._cluster.nodes[leader].replicas.partitions.get((topic, index))
        return replica if replica is not None and replica.is_leader else None

    # ---- after every step --------------------------------------------------------------------------------------------------------

    def learn(self, partition: Partition) -> History:
        """Learn the batches that a partition's leader has committed since the last check."""
        history = self.of(partition)
        leader = self._leader(partition.topic, partition.index, partition.leader_id)
        if leader is not None:
            self._learn(history, leader)
        return history

    def _learn(self, history: History, leader: Partition) -> None:
        end = leader.log.high_watermark
        if end <= history.committed_end:
            return
        at = history.committed_end
        for position, header in leader.log.batches(max(at, leader.log.log_start_offset)):
            if header.base_offset >= end:
                break
            if header.base_offset < at:
                continue
            skipped = header.base_offset > at and at >= leader.log.log_start_offset
            assert not skipped or history.compacted, (
                f"X-2: {history.name}: nothing between {at} and {header.base_offset}"
            )
            at = header.next_offset
            epoch = header.partition_leader_epoch
            assert not history.batches or epoch >= history.batches[-1].epoch, f"{history.name}: epochs fall at {at}"
            history.batches.append(Kept(header.base_offset, at, header.crc, epoch, header.max_timestamp))
            self._learn_records(history, header, leader.log.store.read(position, header.size))
        assert at <= end or history.compacted, f"{history.name}: the high watermark {end} splits a batch"
        history.committed_end = end

    @staticmethod
    def _learn_records(history: History, header: BatchHeader, batch: bytes) -> None:
        if header.producer_id >= 0 and not history.unclean:
            history.keys.decide(history.transactions.learn(header, records(batch)))
        if history.compacted and not header.is_control:
            history.keys.learn(header.base_offset, records(batch), is_open=header.is_transactional)

    def check(self, now_ms: int) -> None:
        """Check X-2 and the guarantees of replication for every partition."""
        for topic in self._cluster.controller.image.topics.values():
            for state in topic.partitions:
                history = self.histories[topic.topic_id, state.index]
                replicas = dict(self._replicas(topic, state))
                for partition in replicas.values():
                    self._check_replica(history, partition)
                    self._check_start(history, partition, now_ms)
                leader = replicas.get(state.leader)
                if state.leader != NO_LEADER:
                    assert leader is not None and leader.is_leader, f"{history.name}: {state.leader} does not lead"
                    self._learn(history, leader)
                    self._check_leader(history, state, leader)
                    self._check_followers(history, state, leader, replicas, now_ms)
                for partition in replicas.values():
                    self._find_missed_marker(history, partition)
                for partition in replicas.values() if not history.unclean else ():
                    history.transactions.check(partition.log, is_leader=partition is leader)

    def _find_missed_marker(self, history: History, replica: Partition) -> None:
        if history.compacted:
            now_ms = self._cluster.now_ms()
            retention_ms = history.keys.delete_retention_ms
            history.transactions.find_missed_marker(replica.broker_id, replica.log, retention_ms, now_ms)

    def _replicas(self, topic: Topic, state: PartitionState) -> Iterator[tuple[int, Partition]]:
        for broker_id in state.replicas:
            node = self._cluster.nodes[broker_id]
            if node.running:
                yield broker_id, node.replicas.partitions[topic.name, state.index]

    def _check_replica(self, history: History, partition: Partition) -> None:
        log = partition.log
        start, committed, end = log.log_start_offset, log.high_watermark, log.log_end_offset
        has_order = start <= end and start <= committed
        if partition.is_leader or not self._cluster.strict_kip:
            has_order = has_order and committed <= end
        assert has_order, f"X-2: {history.name} on {partition.broker_id}: {start} {committed} {end}"
        assert log.epochs.latest <= partition.leader_epoch, (
            f"{history.name} on {partition.broker_id}: epoch {log.epochs.latest} is not known yet"
        )

    @staticmethod
    def _check_start(history: History, partition: Partition, now_ms: int) -> None:
        """Check N-15: records that clients did not delete are removed after they expire, not before."""
        start = partition.log.log_start_offset
        if start <= history.deleted_to or history.unclean:
            return
        last_gone = history.at(start - 1)
        assert not history.compacted, f"{partition} begins at {start}"
        assert last_gone is None or now_ms - last_gone.max_timestamp > history.retention_ms, (
            f"{partition} begins at {start}: {last_gone} has not expired"
        )

    def _check_leader(self, history: History, state: PartitionState, leader: Partition) -> None:
        assert leader.leader_epoch == state.leader_epoch, f"{history.name}: {leader}, {state}"
        epoch, watermark = history.watermark
        now = leader.log.high_watermark
        assert epoch != leader.leader_epoch or now >= watermark, f"X-2: {history.name}: HW fell, {watermark} to {now}"
        history.watermark = leader.leader_epoch, now

    def _check_followers(
        self, history: History, state: PartitionState, leader: Partition, replicas: dict[int, Partition], now_ms: int
    ) -> None:
        end = leader.log.log_end_offset
        for stopped in history.behind.keys() - replicas.keys():
            del history.behind[stopped]
        for broker_id, follower in replicas.items():
            own_end = follower.log.log_end_offset
            assert own_end <= end, f"{history.name}: {broker_id} was not truncated: {own_end} beyond {end}"
            if broker_id in state.isr:
                committed = leader.log.high_watermark
                assert own_end >= committed, f"{history.name}: {broker_id} is in sync at {own_end}, HW {committed}"
            epoch, stood, since_ms = history.behind.get(broker_id, (-1, -1, now_ms))
            if own_end == end or (epoch, stood) != (leader.leader_epoch, own_end) or broker_id not in state.isr:
                since_ms = now_ms  # a new leader resets the time of all followers; a new follower starts now
            history.behind[broker_id] = leader.leader_epoch, own_end, since_ms
            if now_ms - since_ms > leader.lag_max_ms + LAG_SLACK_MS and broker_id in state.isr:
                # Without it too few replicas may be in sync: the high watermark stays, and its next fetch from there puts it back, as in Kafka.
                rejoins = len(state.isr) <= leader.effective_min_isr
                assert rejoins, f"{history.name}: {broker_id} has lagged since {since_ms} and is in the ISR"

    def check_contents(self) -> None:
        """Check that every replica has the committed batches below its high watermark and that its log is a prefix of its leader's."""
        for topic in self._cluster.controller.image.topics.values():
            for state in topic.partitions:
                history = self.histories[topic.topic_id, state.index]
                leader = self._leader(topic.name, state.index, state.leader)
                if leader is None:
                    continue
                for _, replica in self._replicas(topic, state):
                    self._check_content(history, leader, replica)

    def _check_content(self, history: History, leader: Partition, replica: Partition) -> None:
        log = replica.log
        at = log.log_start_offset
        own = list(log.batches(at))
        for _, header in own:
            assert header.base_offset <= at or history.compacted, f"X-2: {replica} has nothing at {at}"
            at = header.next_offset
            if at <= min(log.high_watermark, history.committed_end) and not history.unclean:
                history.check_batch(header)
        self._find_missed_marker(history, replica)
        if history.transactions.misses_marker:
            return
        if history.compacted:  # replicas are cleaned independently
            end_offset = min(log.high_watermark, log.log_end_offset, history.committed_end)
            history.keys.check(log, end_offset, self._cluster.now_ms())
            history.transactions.check_markers(log)
            return
        theirs = {header.base_offset: position for position, header in leader.log.batches(leader.log.log_start_offset)}
        for position, header in own:
            if header.base_offset >= leader.log.log_start_offset:
                assert theirs.get(header.base_offset) == position, (
                    f"{replica} diverges from its leader at {header.base_offset}"
                )

    def acknowledged(self, partition: Partition, base_offset: int, count: int, crc: int | None) -> None:
        """Note a successful acks=all response: the records are committed as sent. crc is None if the log rewrites the batch."""
        for broker_id in partition.isr:
            node = self._cluster.nodes[broker_id]
            replica = node.replicas.partitions[partition.topic, partition.index] if node.running else partition
            assert replica.log.log_end_offset >= base_offset + count, f"{replica} is in sync without {base_offset}"
        history = self.learn(partition)
        assert history.committed_end >= base_offset + count, (
            f"{history.name}: {base_offset} is acknowledged, not committed"
        )
        if crc is not None and not history.compacted:
            committed_batch = history.at(base_offset)
            # a batch acknowledged again as a duplicate may be deleted by now
            assert committed_batch is None or (committed_batch.base_offset, committed_batch.crc) == (
                base_offset,
                crc,
            ), f"{history.name}: {committed_batch}, not {crc}"
            may_be_missing = base_offset < partition.log.log_start_offset or history.unclean
            assert committed_batch is not None or may_be_missing, (
                f"{history.name}: {base_offset} is acknowledged but missing"
            )
