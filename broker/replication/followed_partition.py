"""One partition that a fetcher follows: the leader's replica, the follower's replica, and the offsets that they last reported to each other.

This module does not depend on timers, other partitions of the fetcher, wire messages or clients.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kafkaproto.broker.quota.replication_quotas import ReplicationQuota
from kafkaproto.broker.replication.partition import Partition


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """The settings of a fetcher: replica.fetch.* (R-9), kafkaproto.replica.delay.ms and `semantics`. Sizes are in bytes, times in ms.

    delay_ms: the time from an append at the leader until the follower fetches it. strict_kip: True for `semantics=kip`, with which the
    broker follows the KIPs where Kafka's code differs: the leader responds at once to a follower with a stale high watermark, and a follower accepts
    a high watermark beyond its own log end (D2, D5).
    """

    partition_max_bytes: int
    response_max_bytes: int
    min_bytes: int
    wait_max_ms: int
    backoff_ms: int
    delay_ms: int
    strict_kip: bool


@dataclass(slots=True)
class FetcherOverrides:
    """The limits that a test has set for a follower's fetches of one partition: an offset at which they stop, and a delay.

    hold_at: the follower fetches no batch that begins at or above this offset, None for no limit. delay_ms: the delay of
    each fetch in ms, None for no delay.
    """

    hold_at: int | None = None
    delay_ms: int | None = None


class FollowedPartition:
    """The leader's and the follower's replica of one partition, and the state of the fetches between them.

    - due: whether the leader's next response is to include the partition.
    - ready_ms: until this time in ms, no response includes the partition, because a test has set a delay; 0 without a delay.
    - requested: whether the fetch in progress includes the partition.
    - left_out: whether the follower's quota keeps the partition out of fetches (R-7).
    - lag: how many offsets the follower was behind the leader's high watermark after the last response with records; None before the first response.
    - reported: (high watermark, log start offset) in the last response; None before the first response and after the partition was left out.
    """

    __slots__ = (
        "_settings",
        "due",
        "follower",
        "lag",
        "leader",
        "left_out",
        "overrides",
        "ready_ms",
        "reported",
        "requested",
    )

    def __init__(
        self, leader: Partition, follower: Partition, settings: FetcherSettings, overrides: FetcherOverrides | None
    ) -> None:
        self.leader = leader
        self.follower = follower
        self._settings = settings
        self.overrides = overrides
        self.due = True
        self.ready_ms = 0
        self.requested = False
        self.left_out = False
        self.lag: int | None = None
        self.reported: tuple[int, int] | None = None

    @property
    def name(self) -> tuple[str, int]:
        """Return (topic, index) of the partition."""
        return self.leader.topic, self.leader.index

    def own_overrides(self, overrides: dict[tuple[str, int], FetcherOverrides]) -> FetcherOverrides:
        """Return the object with the stop offset and the delay that a test has set for the partition. The caller may change it.

        overrides: maps each (topic, index) to such an object. If the partition has none yet, an empty one is created and added to `overrides`.
        """
        if self.overrides is None:
            self.overrides = overrides[self.name] = FetcherOverrides()
        return self.overrides

    @property
    def hold_at(self) -> int | None:
        """Return the offset at which the follower's fetches stop because of a test; None if no test has set one."""
        return None if self.overrides is None else self.overrides.hold_at

    @property
    def is_held(self) -> bool:
        """Return whether the partition is not fetched now: a test has set an offset at which the fetches stop, and the follower has reached it."""
        hold_at = self.hold_at
        return hold_at is not None and self.follower.log.log_end_offset >= hold_at

    def is_delayed(self, now_ms: int) -> bool:
        """Return whether the next fetch of the partition is due, but a delay set by a test has not passed yet."""
        return self.due and self.ready_ms > now_ms

    # ---- what the leader has that the follower lacks -------------------------------------------------------------------------

    def has_more(self) -> bool:
        """Return whether the leader has records that the follower lacks and may fetch. If a test has set `hold_at`, it may fetch only those below."""
        end = self.leader.log.log_end_offset
        bound = end if self.hold_at is None else min(end, self.hold_at)
        # The runs end before the log where compaction left a gap at the end and a new leader wrote nothing yet.
        return self.follower.log.log_end_offset < min(bound, self.leader.log.runs.end_offset)

    def available_bytes(self) -> int | None:
        """Return how many bytes the leader counts for this partition towards replica.fetch.min.bytes; None if it responds at once (F-29, F-30).

        The leader responds at once if a later segment has further records, because a fetch returns records of one segment only. It also responds at
        once if the follower's fetch offset is out of range.
        """
        log, offset = self.leader.log, self.follower.log.log_end_offset
        if not log.log_start_offset <= offset <= log.log_end_offset or log.is_on_older_segment(
            offset, log.log_end_offset
        ):
            return None
        return min(log.bytes_between(offset, log.log_end_offset), self._settings.partition_max_bytes)

    @property
    def missing(self) -> int:
        """Return how many offsets the log end of the follower is behind that of the leader."""
        return max(0, self.leader.log.log_end_offset - self.follower.log.log_end_offset)

    def is_stale(self) -> bool:
        """Return whether the leader's high watermark has changed since it was last sent to the follower."""
        follower_state = self.leader.followers.get(self.follower.broker_id)
        return follower_state is not None and follower_state.high_watermark != self.leader.log.high_watermark

    def starts_later(self) -> bool:
        """Return whether the follower's log start is below the leader's log start and can be raised.

        It can be raised if it is below the follower's high watermark and the follower's log end.
        """
        log = self.follower.log
        return log.log_start_offset < min(self.leader.log.log_start_offset, log.high_watermark, log.log_end_offset)

    # ---- quotas --------------------------------------------------------------------------------------------------------------

    def is_throttled(self, leader_quota: ReplicationQuota, now_ms: int) -> bool:
        """Return whether the leader sends no records: the follower is listed as throttled and not in sync, and `leader_quota` is exceeded (R-4)."""
        return (
            leader_quota.active
            and self.follower.broker_id not in self.leader.isr
            and leader_quota.lists(*self.name)
            and leader_quota.exceeded(now_ms)
        )

    def exceeds(self, follower_quota: ReplicationQuota, now_ms: int) -> bool:
        """Return whether the next fetch must leave the partition out (R-7).

        Returns True if the follower's replica is listed as throttled, `follower_quota` is exceeded, and `lag` is unknown or above 0.
        """
        return (
            follower_quota.active
            and self.lag != 0
            and follower_quota.lists(*self.name)
            and follower_quota.exceeded(now_ms)
        )

    def charge(self, follower_quota: ReplicationQuota, size_bytes: int, now_ms: int) -> None:
        """Count `size_bytes` received bytes in `follower_quota` if the follower's replica is listed as throttled, whether in sync or not (R-7)."""
        if follower_quota.active and follower_quota.lists(*self.name):
            follower_quota.record(size_bytes, now_ms)

    # ---- a response and the next request -------------------------------------------------------------------------------------

    def receive(self, remaining_bytes: int, at_least_one: bool, throttled: bool) -> int:
        """Receive a response: append the leader's records, if not `throttled`, and apply the leader's high watermark and log start (N-9).

        remaining_bytes: the bytes that the response may still contain. at_least_one: whether the first batch is appended even if it exceeds this
        limit. Returns how many bytes were appended.
        """
        leader, follower = self.leader, self.follower
        # F-18: the response carries the high watermark as it was before this follower's own fetch moved it.
        high_watermark = leader.log.high_watermark
        limit = min(self._settings.partition_max_bytes, remaining_bytes)
        if not leader.log.log_start_offset <= follower.log.log_end_offset <= leader.log.log_end_offset:
            # Out of the leader's range: continue at the leader's end or start (`ReplicaFetcherThread.fetchOffsetAndTruncate`).
            follower.log.truncate_to(leader.log.log_end_offset)
            if follower.log.log_end_offset < leader.log.log_start_offset:
                follower.log.restart_at(leader.log.log_start_offset)
        elif leader.log.starts_inside_a_batch(follower.log.log_end_offset):
            # DeleteRecords cut into the leader's first batch, and all records of this replica lie below: it cannot continue in the
            # middle of a batch (`Partition.appendRecordsToFollowerOrFutureReplica`, which does so only for a log that is empty).
            follower.log.restart_at(leader.log.log_start_offset)
        if self._settings.min_bytes > 1:
            # The wait for replica.fetch.min.bytes of the records in the next segment is a new one.
            limit = min(limit, leader.log.one_read_bytes(follower.log.log_end_offset, leader.log.log_end_offset))
        size_bytes = 0
        if not throttled:
            size_bytes = follower.log.replicate_from(
                leader.log, limit, at_least_one=at_least_one, end_offset=self.hold_at
            )
        if size_bytes or self.lag is None:
            self.lag = max(0, high_watermark - follower.log.log_end_offset)
        self.reported = (high_watermark, leader.log.log_start_offset)
        high_watermark_before = follower.log.high_watermark
        committed = high_watermark if self._settings.strict_kip else min(high_watermark, follower.log.log_end_offset)
        committed = max(committed, follower.log.log_start_offset)
        if committed != high_watermark_before:
            follower.log.commit(committed)
        follower_state = leader.followers.get(follower.broker_id)
        if follower_state is not None:
            follower_state.high_watermark = high_watermark
        if leader.log.log_start_offset > follower.log.log_start_offset:
            reachable = min(follower.log.high_watermark, follower.log.log_end_offset)
            follower.log.raise_log_start(min(leader.log.log_start_offset, reachable))
        if size_bytes or follower.log.high_watermark != high_watermark_before:
            follower.changed()
        return size_bytes

    def acknowledge(self, now_ms: int) -> None:
        """Report the follower's log end and log start to the leader, as Kafka's follower does with its next fetch."""
        log = self.follower.log
        self.leader.follower_fetched(self.follower.broker_id, log.log_end_offset, log.log_start_offset, now_ms)

    def repeat(self, at_ms: int) -> None:
        """Report to the leader that the follower fetched again at `at_ms`, from the same offset as in its previous fetch.

        This replaces the empty fetches that Kafka's follower sends while the leader has nothing new. Does nothing while a test stops the fetches of
        the partition. It also does nothing if the partition is `due` or `left_out`: the next fetch then informs the leader of the follower's offsets.
        """
        follower_state = self.leader.followers.get(self.follower.broker_id)
        if follower_state is not None and not self.is_held and not self.due and not self.left_out:
            follower_state.repeated(at_ms)


def has_min_bytes(
    followed_partitions: Iterable[FollowedPartition],
    settings: FetcherSettings,
    leader_quota: ReplicationQuota,
    now_ms: int,
) -> bool:
    """Return whether the leader has replica.fetch.min.bytes of records for a follower's fetch (R-6, R-9).

    The records of all partitions of the fetch count together. Partitions that are throttled, left out or stopped by a test do not count. As in Kafka,
    the leader waits for at most as many bytes as its response may contain (F-5).
    """
    needed_bytes = min(settings.min_bytes, settings.response_max_bytes)
    if needed_bytes <= 1:
        return True
    for followed in followed_partitions:
        if followed.left_out or followed.is_held or followed.is_throttled(leader_quota, now_ms):
            continue
        available_bytes = followed.available_bytes()
        if available_bytes is None or available_bytes >= needed_bytes:
            return True
        needed_bytes -= available_bytes
    return False
