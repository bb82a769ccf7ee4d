"""Fetches a follower's records from one leader's broker, one fetch at a time (`ReplicaFetcherThread`).

There is one fetcher per pair of brokers, the follower's and the leader's. A fetch without new records is parked: it waits at the leader, in Kafka's
purgatory. An append at the leader completes the parked fetch at once, at the same time of the cluster's clock, unless a setting or a test delays the
follower. With replica.fetch.min.bytes above 1, the leader waits for that many bytes, but at most replica.fetch.wait.max.ms. The next fetch
acknowledges the records.

While nothing is appended, Kafka's follower sends an empty fetch every replica.fetch.wait.max.ms. This fetcher sends no empty fetches, so it
needs no timer. Before the leader uses the time at which the follower was last caught up, `note_idle_fetches` reports the empty fetches that Kafka's
follower would have sent. The fetcher does send empty fetches in two cases: while the leader's replication quota is active, because the quota counts
every response (R-5), and while a fetch leaves out partitions.

Throttled partitions wait as in Kafka. While the leader's quota is exceeded, a throttled partition gets no records before the wait of the parked fetch
is over (R-6). While the follower's quota is exceeded, fetches leave the partition out. If a fetcher leaves out every partition, it builds its next
fetch after replica.fetch.backoff.ms (R-7). This module does not depend on wire messages or clients.
"""

from __future__ import annotations

from kafkaproto.broker.quota.replication_quotas import ReplicationQuota, response_bytes
from kafkaproto.broker.replication.followed_partition import (
    FetcherOverrides,
    FetcherSettings,
    FollowedPartition,
    has_min_bytes,
)
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.timers import Timer, Timers


class ReplicaFetcher:
    """Fetches records from one other broker, for the partitions that this other broker leads and broker `follower_id` follows.

    A partition that got records goes to the end of the fetch order (R-9). overrides: for each (topic, index), the offset at which a test stops the
    fetches, and the delay that it sets for them; all fetchers of a broker share this mapping, so that it stays in effect when the leader changes.
    leader_quota: the replication quota of the leader's broker for sending. follower_quota: the quota of broker `follower_id` for receiving.
    """

    def __init__(
        self,
        follower_id: int,
        settings: FetcherSettings,
        actions: ActionQueue,
        timers: Timers,
        overrides: dict[tuple[str, int], FetcherOverrides],
        leader_quota: ReplicationQuota,
        follower_quota: ReplicationQuota,
    ) -> None:
        self.follower_id = follower_id
        self._leader_quota = leader_quota
        self._follower_quota = follower_quota
        self._overrides = overrides
        self._settings = settings
        self._at_once = settings.min_bytes <= 1  # whether any new record completes a parked fetch
        self._actions = actions
        self._timers = timers
        self._followed: dict[tuple[str, int], FollowedPartition] = {}
        self._parked_ms: int | None = None
        self._timer: Timer | None = None
        self._queued = False
        self._any_left_out = False
        self._wait_ends_ms: int | None = None
        """The time in ms at which the leader responds to the parked fetch even without new records; None if it responds only to new records."""
        self.cut = False
        """Whether a test has cut the link to the leader, so that nothing is fetched."""

    # ---- which partitions ----------------------------------------------------------------------------------------------------

    def add(self, leader: Partition, follower: Partition) -> None:
        """Start following a partition. Before the call, records that the log of `leader` lacks must have been removed from the log of `follower`."""
        key = (leader.topic, leader.index)
        followed = self._followed[key] = FollowedPartition(leader, follower, self._settings, self._overrides.get(key))
        followed.left_out = followed.exceeds(self._follower_quota, self._actions.now_ms)
        # The next fetch decides the throttle again, also if the quota is removed by then.
        self._any_left_out |= followed.left_out
        leader.fetchers[self.follower_id] = self
        follower.following = self
        self._soon()

    def remove(self, topic: str, index: int) -> None:
        """Stop following a partition, if this fetcher follows it."""
        followed = self._followed.pop((topic, index), None)
        if followed is None:
            return
        if followed.leader.fetchers.get(self.follower_id) is self:
            del followed.leader.fetchers[self.follower_id]
        if followed.follower.following is self:
            followed.follower.following = None

    def close(self) -> None:
        """Stop following all partitions, and cancel the fetcher's timer."""
        for topic, index in self.partitions:
            self.remove(topic, index)
        if self._timer is not None:
            self._timer.cancel()

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """Return (topic, index) of each partition, in the order of the next fetch."""
        return list(self._followed)

    @property
    def lag(self) -> int:
        """Return how many offsets the follower is behind the leader's log end, summed over all partitions that this fetcher follows."""
        return sum(followed.missing for followed in self._followed.values())

    # ---- changes by tests ----------------------------------------------------------------------------------------------------

    def hold(self, topic: str, index: int, at: int | None, now_ms: int) -> None:
        """Stop fetching batches that begin at or above offset `at`, until `release` is called. None stops at the follower's log end offset."""
        followed = self._followed[(topic, index)]
        self.note_idle_fetches(now_ms)
        followed.own_overrides(self._overrides).hold_at = followed.follower.log.log_end_offset if at is None else at

    def slow(self, topic: str, index: int, delay_ms: int) -> None:
        """Delay each fetch of the partition by `delay_ms` until `release` is called."""
        self._followed[(topic, index)].own_overrides(self._overrides).delay_ms = delay_ms

    def release(self, topic: str, index: int) -> None:
        """End `hold` and `slow` for a partition, and fetch the partition at once. Does nothing if the partition is not followed."""
        followed = self._followed.get((topic, index))
        if followed is None:
            return
        followed.overrides = None
        followed.due, followed.ready_ms = True, 0
        self._soon()

    def cut_link(self, cut: bool, now_ms: int) -> None:
        """Stop fetching from the leader, or start again if `cut` is False."""
        if cut:
            self.note_idle_fetches(now_ms)
        self.cut = cut
        for followed in self._followed.values():
            followed.due, followed.requested = True, False
        self._soon()

    # ---- when to fetch -------------------------------------------------------------------------------------------------------

    def leader_changed(self, partition: Partition, now_ms: int) -> None:
        """Schedule the leader's response to this follower's waiting fetch, because the leader's replica `partition` changed.

        A. The leader responds at once if it has replica.fetch.min.bytes of new records (R-9) or, with `semantics=kip`, a new high watermark.
        B. If only the replica's high watermark or log start is new, the leader responds when the wait of the fetch times out (N-10).
        C. While the leader's replication quota is exceeded, new records of a throttled replica are treated as in case B (R-6).
        D. If fetches leave the partition out because of the follower's quota, no response is scheduled (R-7).
        """
        followed = self._followed.get((partition.topic, partition.index))
        if followed is None or followed.is_held:
            return
        self.note_idle_fetches(now_ms)
        if followed.left_out:
            return  # the next fetch decides whether to include it
        is_stale, is_throttled = followed.is_stale(), followed.is_throttled(self._leader_quota, now_ms)
        has_records = followed.has_more() and not is_throttled
        if (has_records and (self._at_once or self._has_min_bytes(now_ms))) or (is_stale and self._settings.strict_kip):
            self._fetch_next(followed, now_ms, self._settings.delay_ms)
        elif has_records or is_throttled or is_stale or followed.starts_later():
            followed.due = True
            self._wait_until(self._end_of_wait_ms(now_ms))

    def refetch_soon(self, partition: Partition, now_ms: int) -> None:
        """Fetch a partition again when the fetch that waits at the leader times out, so that the leader learns the current offsets of the follower.

        The leader's view of the follower is outdated after the follower's log start moved (N-15), or a client fetched with the follower's id (N-12).
        """
        followed = self._followed.get((partition.topic, partition.index))
        if followed is not None and not followed.is_held and not followed.left_out:
            self.note_idle_fetches(now_ms)
            followed.due = True
            self._wait_until(self._end_of_wait_ms(now_ms))

    def _has_min_bytes(self, now_ms: int) -> bool:
        return has_min_bytes(self._followed.values(), self._settings, self._leader_quota, now_ms)

    def _end_of_wait_ms(self, now_ms: int) -> int:
        """Return the time in ms when the parked fetch times out. If no fetch is parked, return when a fetch that is sent now would time out."""
        return (now_ms if self._parked_ms is None else self._parked_ms) + self._settings.wait_max_ms

    def note_idle_fetches(self, now_ms: int) -> None:
        """Report to the leader the empty fetches that Kafka's follower would have sent since the current fetch began to wait at the leader.

        The leader then knows when the follower was last caught up.
        """
        if self._parked_ms is None or self.cut:
            return
        wait = max(1, self._settings.wait_max_ms)
        repeated_ms = self._parked_ms + (now_ms - self._parked_ms) // wait * wait
        if repeated_ms == self._parked_ms:
            return
        self._parked_ms = repeated_ms
        for followed in self._followed.values():
            followed.repeat(repeated_ms)

    def count_idle_fetches(self, now_ms: int) -> None:
        """Let the parked fetch wait for replica.fetch.wait.max.ms at most, because the leader's replication quota also counts empty responses."""
        self.note_idle_fetches(now_ms)
        if self._parked_ms is not None and self._wait_ends_ms is None and not self.cut:
            self._wait_ends_ms = self._parked_ms + max(1, self._settings.wait_max_ms)
            self._wait_until(self._wait_ends_ms)

    def _fetch_next(self, followed: FollowedPartition, now_ms: int, delay_ms: int) -> None:
        """Schedule a partition's next fetch after `delay_ms`, or after a delay that a test has set. Does nothing while such a delay is running."""
        if followed.is_delayed(now_ms):
            return
        followed.due = True
        if followed.overrides is not None and followed.overrides.delay_ms:
            followed.ready_ms = now_ms + followed.overrides.delay_ms
            self._wait_until(followed.ready_ms)
        elif delay_ms:
            self._wait_until(now_ms + delay_ms)
        else:
            self._soon()

    def _soon(self) -> None:
        if not self._queued:
            self._queued = True
            self._actions.soon(self._run)

    def _wait_until(self, at_ms: int) -> None:
        timer = self._timer
        if timer is None or timer.callback is None or timer.at_ms > at_ms:
            if timer is not None:
                timer.cancel()
            self._timer = self._timers.at(at_ms, self._run)

    # ---- fetching ------------------------------------------------------------------------------------------------------------

    def _run(self, now_ms: int) -> None:
        """Receive the response to the fetch that waits at the leader, and send the next fetch."""
        self._queued = False
        if self._timer is not None:
            self._timer.cancel()
        if self.cut:
            return
        self.note_idle_fetches(now_ms)
        requested_partitions = self._receive(now_ms)
        if self._follower_quota.active or self._any_left_out:
            requested_partitions += self._leave_out(now_ms)
        for followed in requested_partitions:
            self._request(followed, now_ms)
        self._park(now_ms)

    def _receive(self, now_ms: int) -> list[FollowedPartition]:
        """Receive the leader's response. Returns the partitions to fetch next, without those that a test has stopped or a quota leaves out."""
        remaining, has_batches = self._settings.response_max_bytes, False
        received_partitions: list[FollowedPartition] = []
        sizes: list[tuple[str, int]] = []
        has_enough = self._at_once or self._has_min_bytes(now_ms)
        counts = self._leader_quota.active
        responded = self._wait_ends_ms is not None and now_ms >= self._wait_ends_ms
        for followed in [p for p in self._followed.values() if p.due and p.ready_ms <= now_ms and not p.left_out]:
            followed.due = False
            if followed.is_held or not followed.leader.is_leader or followed.follower.is_leader:
                continue
            received_partitions.append(followed)
            # decided before anything of this response is counted, so that a whole response may go over the limit
            is_throttled = followed.is_throttled(self._leader_quota, now_ms)
            if not followed.requested and (is_throttled or not has_enough):
                continue  # its first fetch is parked
            reported_before = followed.reported
            size_bytes = followed.receive(remaining, not has_batches, is_throttled)
            responded = True
            if size_bytes:
                has_batches = True
                remaining = max(0, remaining - size_bytes)
                self._followed[followed.name] = self._followed.pop(followed.name)  # to the end of the order
            if size_bytes or followed.reported != reported_before:
                followed.charge(self._follower_quota, size_bytes, now_ms)
                if counts and self._leader_quota.lists(*followed.name):
                    sizes.append((followed.leader.topic, size_bytes))
        if counts and responded:
            self._leader_quota.record(response_bytes(sizes), now_ms)
        return received_partitions

    def _leave_out(self, now_ms: int) -> list[FollowedPartition]:
        """Leave throttled partitions out of the next fetch while the follower's quota is exceeded (R-7).

        Returns the partitions that the previous fetch left out and the next fetch includes again.
        """
        included_again: list[FollowedPartition] = []
        removes = False
        for followed in self._followed.values():
            was, followed.left_out = followed.left_out, followed.exceeds(self._follower_quota, now_ms)
            if followed.left_out:
                removes |= followed.requested
                followed.requested, followed.reported, followed.due = False, None, True
            elif was:
                included_again.append(followed)
        self._any_left_out = any(followed.left_out for followed in self._followed.values())
        if removes and self._leader_quota.active and not self._has_request:
            # The fetch that removes the last partition from the session gets an empty response at once.
            self._leader_quota.record(response_bytes([]), now_ms)
        return included_again

    @property
    def _has_request(self) -> bool:
        """Return whether the next fetch includes any partition."""
        return not self._any_left_out or not all(followed.left_out for followed in self._followed.values())

    def _request(self, followed: FollowedPartition, now_ms: int) -> None:
        """Include a partition in the next fetch. The fetch reports the follower's offsets, and thereby acknowledges the records received last."""
        if followed.left_out:
            return
        followed.requested = True
        followed.acknowledge(now_ms)
        is_throttled = followed.is_throttled(self._leader_quota, now_ms)
        has_records = followed.has_more() and not is_throttled
        if (has_records and (self._at_once or self._has_min_bytes(now_ms))) or (
            self._settings.strict_kip and followed.is_stale()
        ):
            self._fetch_next(followed, now_ms, 0)
        elif has_records or is_throttled or followed.reported is None or followed.is_stale() or followed.starts_later():
            # The fetch just sent is parked; Kafka's leader sends what is new with its next response.
            self._wait_until(now_ms + self._settings.wait_max_ms)
            followed.due = True

    def _park(self, now_ms: int) -> None:
        """Let the fetch just sent wait at the leader. If no partition could be included, build the next fetch after replica.fetch.backoff.ms."""
        self._parked_ms = self._wait_ends_ms = None
        if not self._has_request:
            self._wait_until(now_ms + max(1, self._settings.backoff_ms))
        else:
            self._parked_ms = now_ms
            if self._any_left_out or (self._leader_quota.active and self._followed):
                self._wait_ends_ms = now_ms + max(1, self._settings.wait_max_ms)
                self._wait_until(self._wait_ends_ms)
        if self._overrides:  # otherwise no follower is slow, and thousands of partitions need no check
            ready_ms = min((p.ready_ms for p in self._followed.values() if p.is_delayed(now_ms)), default=None)
            if ready_ms is not None:
                self._wait_until(ready_ms)
