"""One replica of a partition on one broker: its role, its in-sync replicas and its high watermark.

Corresponds to `Partition` and `Replica` in Kafka. A leader learns only from the fetches of its followers which offsets they have reached (N-11). This
module works with offsets and broker ids. It does not depend on wire messages, connections or quotas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.compaction import CleaningLimits
from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.log.retention import Expiry, RetentionLimits
from kafkaproto.broker.log.validation import TopicLimits
from kafkaproto.broker.metadata.image import PartitionState, Topic
from kafkaproto.error_codes import ErrorCode

UNKNOWN_OFFSET = -1


class Watcher(Protocol):
    """Interface of a delayed operation. When a partition changes, `check` completes the operation if its condition is met."""

    def check(self, now_ms: int) -> None: ...


class Collected(Protocol):
    """Interface of records that a coordinator has collected and not appended yet. `flush` appends them."""

    def flush(self, now_ms: int) -> None: ...


class FollowerFetcher(Protocol):
    """Interface of a follower's fetcher, with the methods that a partition calls when its leader, offsets or settings change.

    A fetch without new records waits at the leader. `refetch_soon` makes the fetcher fetch the partition again when the wait times out.
    """

    def leader_changed(self, partition: Partition, now_ms: int) -> None: ...

    def refetch_soon(self, partition: Partition, now_ms: int) -> None: ...

    def note_idle_fetches(self, now_ms: int) -> None: ...

    def count_idle_fetches(self, now_ms: int) -> None: ...


class Follower:
    """What a leader knows about one follower from its fetches. The follower's offsets are -1 before its first fetch.

    caught_up_ms: the time in ms when the follower last had all records. fetch_ms: the time in ms of its last fetch. leader_end_at_fetch:
    the leader's log end offset at that fetch.
    """

    __slots__ = (
        "caught_up_ms",
        "fetch_ms",
        "high_watermark",
        "leader_end_at_fetch",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, caught_up_ms: int) -> None:
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.high_watermark = UNKNOWN_OFFSET
        """The high watermark in the leader's last response to this follower (D5); -1 before the first response."""
        self.caught_up_ms = caught_up_ms
        self.fetch_ms = caught_up_ms
        self.leader_end_at_fetch = 0

    def record_fetch(self, offset: int, log_start_offset: int, leader_end: int, now_ms: int) -> None:
        """Record a fetch of this follower, and when the follower was last caught up (N-11).

        offset: the fetch offset. log_start_offset: where the follower's log starts. leader_end: the leader's log end offset at the time `now_ms` of
        the fetch. If `offset` has reached `leader_end`, the follower is caught up at `now_ms`. If `offset` has only reached the leader's log end
        offset at the previous fetch, the follower was caught up at the time of the previous fetch. Otherwise `caught_up_ms` stays unchanged.
        """
        if offset >= leader_end:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_at_fetch:
            self.caught_up_ms = max(self.caught_up_ms, self.fetch_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.leader_end_at_fetch = leader_end
        self.fetch_ms = now_ms

    def repeated(self, at_ms: int) -> None:
        """Record that the follower fetched at `at_ms` from the same offset as in its previous fetch, while the leader's log had not changed."""
        if self.log_end_offset >= self.leader_end_at_fetch:
            self.caught_up_ms = max(self.caught_up_ms, at_ms)
        self.fetch_ms = at_ms


class Partition:
    """The replica of one partition on broker `broker_id`.

    watchers: delayed operations to check when the partition changes. fetchers: if this replica is the leader, maps the id of each follower's broker
    to the fetcher with which that broker copies this replica's records; otherwise empty.
    """

    __slots__ = (
        "_change_isr",
        "_is_alive",
        "_soon",
        "_woken",
        "broker_id",
        "cleaning",
        "collected",
        "deletes",
        "down_converts",
        "epoch_start_offset",
        "expiry",
        "fetchers",
        "followers",
        "following",
        "gone",
        "held_from",
        "index",
        "is_leader",
        "isr",
        "lag_max_ms",
        "leader_epoch",
        "leader_id",
        "limits",
        "log",
        "min_isr",
        "partition_epoch",
        "replicas",
        "retention",
        "topic",
        "topic_id",
        "watchers",
    )

    def __init__(
        self,
        topic: Topic,
        index: int,
        broker_id: int,
        log: ReplicaLog,
        *,
        lag_max_ms: int,
        soon: Callable[[Callable[[int], None]], None],
        change_isr: Callable[[Partition, frozenset[int]], None],
        is_alive: Callable[[int], bool],
    ) -> None:
        self.topic = topic.name
        self.topic_id = topic.topic_id
        self.index = index
        self.broker_id = broker_id
        self.log = log
        self.leader_id = -1
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.epoch_start_offset = 0
        self.is_leader = False
        self.gone = False
        self.held_from = (0, 0)
        """(time in ms when this replica was created, number of bytes appended to the partition before that time).

        `bytes_in_rate` computes the average rate from these numbers.
        """
        self.replicas: tuple[int, ...] = ()
        self.isr: frozenset[int] = frozenset()
        self.followers: dict[int, Follower] = {}
        self.fetchers: dict[int, FollowerFetcher] = {}
        self.following: FollowerFetcher | None = None
        """The fetcher that copies the leader's records to this replica, None while this replica follows no leader."""
        self.watchers: dict[Watcher, None] = {}
        self.collected: Collected | None = None
        """The records of an internal topic that its coordinator has not appended yet; None if there are none."""
        self.lag_max_ms = lag_max_ms
        self.min_isr = 1
        self.deletes = True
        """Whether the topic's `cleanup.policy` allows DeleteRecords requests."""
        self.limits: TopicLimits
        self.down_converts = True
        self.retention = RetentionLimits()
        self.cleaning: CleaningLimits | None = None
        """The settings for the compaction of this replica's log; None if the topic is not compacted."""
        self.expiry: Expiry | None = None
        """When the oldest segment of the log expires by age, as the latest check computed it; None before the first check."""
        self._soon = soon
        self._change_isr = change_isr
        self._is_alive = is_alive
        self._woken = False

    def __repr__(self) -> str:
        role = "leader" if self.is_leader else f"follower of {self.leader_id}"
        return f"<{self.topic}-{self.index} on {self.broker_id}, {role}, epoch {self.leader_epoch}>"

    # ---- roles ---------------------------------------------------------------------------------------------------------------

    def apply(self, state: PartitionState, now_ms: int) -> None:
        """Apply `state`, the controller's decision about leader and ISR.

        A new leader adds its leader epoch to its log before any other write (E-3).
        """
        was_leader, old_epoch = self.is_leader, self.leader_epoch
        self.replicas = state.replicas
        self.isr = frozenset(state.isr)
        self.leader_id = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.is_leader = state.leader == self.broker_id
        if self.is_leader and (not was_leader or old_epoch != state.leader_epoch):
            self.epoch_start_offset = self.log.log_end_offset
            self.log.drop_uncommitted_high_watermark()  # elected uncleanly, it may know a high watermark of records that it never received
            self.log.lead(self.leader_epoch)
            self.followers = {
                r: Follower(now_ms if r in self.isr else 0) for r in state.replicas if r != self.broker_id
            }
        elif not self.is_leader:
            self.log.follow()
            self.followers = {}
        else:
            other_ids = [r for r in state.replicas if r != self.broker_id]
            self.followers = {r: self.followers.get(r) or Follower(0) for r in other_ids}
        if self.is_leader:
            self.advance_high_watermark(now_ms)
        self.changed()

    @property
    def effective_min_isr(self) -> int:
        """Return min.insync.replicas, but at most the replication factor (P-7, since 3.7)."""
        return min(self.min_isr, len(self.replicas))

    def check_leader_epoch(self, current_leader_epoch: int) -> int:
        """Return the error code for the leader epoch that a client sent, 0 for no error (F-25, E-2, L-4).

        The error is FENCED_LEADER_EPOCH (74) if the client's epoch is older than the current one, UNKNOWN_LEADER_EPOCH (75) if it is newer. A client
        that knows no leader epoch sends -1, which is never an error.
        """
        if current_leader_epoch == -1 or current_leader_epoch == self.leader_epoch:
            return 0
        older = current_leader_epoch < self.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH

    # ---- leader --------------------------------------------------------------------------------------------------------------

    def check_in_sync(self) -> None:
        """Raise KafkaError NOT_ENOUGH_REPLICAS (19) if the ISR is too small for acks=-1 (P-7)."""
        if len(self.isr) < self.effective_min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.topic}-{self.index} has {len(self.isr)} in-sync replicas; with acks=all, the topic needs {self.effective_min_isr}.",
            )

    def appended(self, now_ms: int) -> None:
        """Advance the high watermark after an append to this leader's log, and schedule a check of the fetches that wait for records."""
        if not self.followers:
            self.log.commit(self.log.log_end_offset)  # one replica is always its own ISR
            if self.watchers:
                self.changed()
            return
        self.advance_high_watermark(now_ms)
        self.changed()

    def follower_fetched(self, follower_id: int, offset: int, log_start_offset: int, now_ms: int) -> None:
        """Record that a follower fetched from `offset` on. This shows that the follower has all records before `offset`.

        May advance the high watermark, and may add the follower to the ISR. log_start_offset: where the follower's log starts.
        """
        follower = self.followers.get(follower_id)
        if follower is None:
            return
        start_moved = follower.log_start_offset != log_start_offset
        follower.record_fetch(offset, log_start_offset, self.log.log_end_offset, now_ms)
        if follower_id not in self.isr and self._may_join(offset):
            self._change_isr(self, self.isr | {follower_id})
        if self.advance_high_watermark(now_ms) or start_moved:
            self.changed()

    def _may_join(self, follower_end: int) -> bool:
        return follower_end >= self.log.high_watermark and follower_end >= self.epoch_start_offset

    def advance_high_watermark(self, now_ms: int) -> bool:
        """Raise the high watermark to the smallest log end offset of the in-sync replicas, unless the ISR has fewer than min.insync.replicas (P-15).

        A live follower that was caught up recently also limits the high watermark, even if it is not yet in the ISR. Returns whether the high
        watermark changed.
        """
        if len(self.isr) < self.effective_min_isr:
            return False
        lowest = self.log.log_end_offset
        for follower_id, follower in self.followers.items():
            if follower.log_end_offset < lowest and (
                follower_id in self.isr or self._is_about_to_join(follower_id, follower, now_ms)
            ):
                lowest = follower.log_end_offset
        if lowest <= self.log.high_watermark:
            return False
        self.log.commit(lowest)
        return True

    def _is_about_to_join(self, follower_id: int, follower: Follower, now_ms: int) -> bool:
        return now_ms - follower.caught_up_ms <= self.lag_max_ms and self._is_alive(follower_id)

    def high_watermark_unknown(self) -> bool:
        """Return whether the high watermark of a new leader is still below the first offset of its leader epoch (KIP-207)."""
        return self.log.high_watermark < self.epoch_start_offset

    def delete_records_before(self, offset: int) -> int:
        """Raise this leader's log start to `offset` for DeleteRecords (KIP-107). An `offset` of -1 stands for the high watermark.

        Returns `offset`, or the high watermark if `offset` is -1. An offset below the log start changes nothing. Raises KafkaError POLICY_VIOLATION
        (44) if the topic is only compacted, OFFSET_OUT_OF_RANGE (1) for an offset below 0 or above the high watermark, KAFKA_STORAGE_ERROR (56) if
        the new log start cannot be persisted.
        """
        if not self.deletes:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"The records of {self.topic} cannot be deleted: its cleanup.policy does not contain delete.",
            )
        new_start = self.log.high_watermark if offset == UNKNOWN_OFFSET else offset
        if not 0 <= new_start <= self.log.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"The offset before which records of {self.topic}-{self.index} are deleted must be from 0 to the high watermark "
                f"{self.log.high_watermark} (got {offset}).",
            )
        if new_start > self.log.log_start_offset:
            try:
                self.log.raise_log_start(new_start)
            except StorageError as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            self.changed()
        return new_start

    def low_watermark(self) -> int:
        """Return the smallest log start of all live replicas; -1 until every live follower has reported its log start (`lowWatermarkIfLeader`)."""
        starts = [f.log_start_offset for i, f in self.followers.items() if self._is_alive(i)]
        return min([self.log.log_start_offset, *starts])

    def first_lag_expiry_ms(self) -> int | None:
        """Return the earliest time in ms at which a lagging in-sync follower must leave the ISR, None if no in-sync follower lags."""
        end = self.log.log_end_offset
        due_times = [
            f.caught_up_ms + self.lag_max_ms + 1
            for i, f in self.followers.items()
            if i in self.isr and f.log_end_offset != end
        ]
        return min(due_times, default=None)

    def shrink_isr(self, now_ms: int) -> None:
        """Remove followers from the ISR that lag for more than replica.lag.time.max.ms (`Partition.maybeShrinkIsr`)."""
        for fetcher in self.fetchers.values():
            fetcher.note_idle_fetches(now_ms)
        end = self.log.log_end_offset
        lagging_ids = {
            i
            for i, f in self.followers.items()
            if i in self.isr and f.log_end_offset != end and now_ms - f.caught_up_ms > self.lag_max_ms
        }
        if lagging_ids:
            self._change_isr(self, self.isr - lagging_ids)

    def expired(self, now_ms: int) -> None:
        """Schedule a check of the requests that wait for this replica, because retention has deleted old records and raised the log start offset.

        If this replica is a follower, it reports the new log start offset to the leader in its next fetch (N-15).
        """
        self.changed()
        if self.following is not None:
            self.following.refetch_soon(self, now_ms)

    def bytes_in_rate(self, now_ms: int) -> float:
        """Return the average bytes per second that leaders have appended to the partition since the replica on this broker was created."""
        since_ms, position_before = self.held_from
        return (self.log.store.end_position - position_before) * 1000 / max(1, now_ms - since_ms)

    # ---- waiting requests -----------------------------------------------------------------------------------------------------

    def changed(self) -> None:
        """Schedule a check of the client requests and follower fetches that wait for this replica, because its offsets or its role have changed."""
        if not self._woken and (self.watchers or self.fetchers):
            self._woken = True
            self._soon(self._wake)

    def _wake(self, now_ms: int) -> None:
        self._woken = False
        for fetcher in tuple(self.fetchers.values()):
            fetcher.leader_changed(self, now_ms)
        for watcher in tuple(self.watchers):
            watcher.check(now_ms)
