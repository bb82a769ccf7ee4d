"""How a follower follows: one fetch at a time from each leader, parked there while there is nothing new (`ReplicaFetcherThread`).

One fetcher per (follower, leader) pair. An append at the leader completes the parked fetch in the same turn; the next fetch
acknowledges what came. An idle fetcher costs no event: the fetches that Kafka's follower would repeat every
replica.fetch.wait.max.ms are accounted for when somebody asks when it was last caught up. While replication from this leader
is throttled they are made, because each of them counts (R-5).
Who is throttled waits as in Kafka: at the leader for the end of a fetch's wait (R-6); left out of the request, until the next one
is built, which is replica.fetch.backoff.ms later if nothing is left to ask for (R-7).
Must never know wire messages or clients.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkaproto.broker.quota.replication_quotas import ReplicationQuota, answer_bytes
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.timers import Timer, Timers


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """replica.fetch.* (R-9); strict_kip: a follower with a stale high watermark is answered at once, and keeps what it hears (D2, D5)."""

    partition_max_bytes: int
    response_max_bytes: int
    wait_max_ms: int
    backoff_ms: int
    delay_ms: int
    strict_kip: bool


@dataclass(slots=True)
class FetcherOverrides:
    """What a test wants of a follower. hold_at: to take nothing at or above this offset. delay_ms: to fetch so much later."""

    hold_at: int | None = None
    delay_ms: int | None = None


class FollowedPartition:
    """One partition of a fetcher. due: the next answer has something for it, from ready_ms on.

    asked: the fetch that is under way asks for it. left_out: the limit forbids that (R-7).
    lag: records behind the leader's high watermark as of the last answer that brought some, None before the first answer.
    told: high watermark and log start of the last answer, None if there was none since it was left out.
    """

    __slots__ = ("asked", "due", "follower", "lag", "leader", "left_out", "overrides", "ready_ms", "told")

    def __init__(self, leader: Partition, follower: Partition, overrides: FetcherOverrides | None) -> None:
        self.leader = leader
        self.follower = follower
        self.overrides = overrides
        self.due = True
        self.ready_ms = 0
        self.asked = False
        self.left_out = False
        self.lag: int | None = None
        self.told: tuple[int, int] | None = None

    @property
    def name(self) -> tuple[str, int]:
        return self.leader.topic, self.leader.index

    @property
    def hold_at(self) -> int | None:
        return None if self.overrides is None else self.overrides.hold_at

    @property
    def is_held(self) -> bool:
        """It has what it may have, and asks for nothing more."""
        hold_at = self.hold_at
        return hold_at is not None and self.follower.log.log_end_offset >= hold_at

    def is_on_its_way(self, now_ms: int) -> bool:
        """A slow follower's fetch, not yet there."""
        return self.due and self.ready_ms > now_ms


class ReplicaFetcher:
    """What broker `follower_id` pulls from one leader. Partitions that were answered with data go to the end of the order (R-9).

    leader_quota, follower_quota: what the leader's broker may send, what this one may take.
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
        self._wishes = overrides
        """Shared by all fetchers of a broker, because an override outlives a change of leader."""
        self._settings = settings
        self._actions = actions
        self._timers = timers
        self._pulls: dict[tuple[str, int], FollowedPartition] = {}
        self._parked_ms: int | None = None
        self._timer: Timer | None = None
        self._queued = False
        self._any_left_out = False
        self._wait_ends_ms: int | None = None
        """When the parked fetch will be answered in any case; only kept while such answers count."""
        self.cut = False
        """The link to the leader is cut: nothing goes over it."""

    # ---- which partitions ----------------------------------------------------------------------------------------------------

    def add(self, leader: Partition, follower: Partition) -> None:
        """Begin to follow; the follower's log has been truncated to what the leader shares."""
        key = (leader.topic, leader.index)
        followed = self._pulls[key] = FollowedPartition(leader, follower, self._wishes.get(key))
        followed.left_out = self._leaves_out(followed, self._actions.now_ms)
        self._any_left_out |= followed.left_out  # chosen anew with the next fetch, also when no quota is left by then
        leader.fetchers[self.follower_id] = self
        follower.following = self
        self._soon()

    def remove(self, topic: str, index: int) -> None:
        followed = self._pulls.pop((topic, index), None)
        if followed is None:
            return
        if followed.leader.fetchers.get(self.follower_id) is self:
            del followed.leader.fetchers[self.follower_id]
        if followed.follower.following is self:
            followed.follower.following = None

    def close(self) -> None:
        """Follow nothing any more, and wait for nothing."""
        for topic, index in self.partitions:
            self.remove(topic, index)
        if self._timer is not None:
            self._timer.cancel()

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """In the order in which the next fetch names them."""
        return list(self._pulls)

    @property
    def lag(self) -> int:
        """Records that the leader has and this follower lacks, of all its partitions."""
        return sum(
            max(0, followed.leader.log.log_end_offset - followed.follower.log.log_end_offset)
            for followed in self._pulls.values()
        )

    # ---- from the test's side ------------------------------------------------------------------------------------------------

    def hold(self, topic: str, index: int, at: int | None, now_ms: int) -> None:
        """Let the follower take nothing at or above offset `at` (None: nothing more at all) until `release`."""
        followed = self._pulls[(topic, index)]
        self.note_idle_fetches(now_ms)
        self._overrides_of(topic, index).hold_at = followed.follower.log.log_end_offset if at is None else at

    def slow(self, topic: str, index: int, delay_ms: int) -> None:
        """Let each fetch of the follower come `delay_ms` late, until `release`."""
        self._overrides_of(topic, index).delay_ms = delay_ms

    def _overrides_of(self, topic: str, index: int) -> FetcherOverrides:
        followed = self._pulls[(topic, index)]
        if followed.overrides is None:
            followed.overrides = self._wishes[(topic, index)] = FetcherOverrides()
        return followed.overrides

    def release(self, topic: str, index: int) -> None:
        """Neither held nor slow any more, if it is one of these."""
        followed = self._pulls.get((topic, index))
        if followed is None:
            return
        followed.overrides = None
        followed.due = True
        followed.ready_ms = 0
        self._soon()

    def cut_link(self, cut: bool, now_ms: int) -> None:
        if cut:
            self.note_idle_fetches(now_ms)
        self.cut = cut
        for followed in self._pulls.values():
            followed.due = True
            followed.asked = False
        self._soon()

    # ---- fetching ------------------------------------------------------------------------------------------------------------

    def leader_changed(self, partition: Partition, now_ms: int) -> None:
        """The leader's partition has something new. A. records, or under `kip` a high watermark (D5): the parked fetch completes.

        B. only a high watermark or a log start: told with the answer to the fetch that is parked now, when its wait is over (N-10);

        C. the leader may not send more: asked again then (R-6); D. no fetch asks for it (R-7).
        """
        followed = self._pulls.get((partition.topic, partition.index))
        if followed is None or followed.is_held:
            return
        self.note_idle_fetches(now_ms)
        if followed.left_out:
            return  # no fetch asks for it; whether the next one does is decided when that is built
        stale, throttled = self._is_stale(followed), self._is_throttled(followed, now_ms)
        if (self._has_more(followed) and not throttled) or (stale and self._settings.strict_kip):
            self._fetch_next(followed, now_ms, self._settings.delay_ms)
        elif throttled or stale or self._starts_later(followed):
            followed.due = True
            self._wait_until(self._end_of_wait_ms(now_ms))

    def refetch_soon(self, partition: Partition, now_ms: int) -> None:
        """The leader is wrong about the follower: it hears the truth with the next fetch, when the parked one's wait is over.

        The follower's own log start moved (N-15), or somebody else fetched in its name (N-12).
        """
        followed = self._pulls.get((partition.topic, partition.index))
        if followed is not None and not followed.is_held and not followed.left_out:
            self.note_idle_fetches(now_ms)
            followed.due = True
            self._wait_until(self._end_of_wait_ms(now_ms))

    def _end_of_wait_ms(self, now_ms: int) -> int:
        """When the fetch that is parked now is answered in any case."""
        return (now_ms if self._parked_ms is None else self._parked_ms) + self._settings.wait_max_ms

    def note_idle_fetches(self, now_ms: int) -> None:
        """Account for the empty fetches since the fetch was parked: each came replica.fetch.wait.max.ms after the one before."""
        if self._parked_ms is None or self.cut:
            return
        wait = max(1, self._settings.wait_max_ms)
        repeated_ms = self._parked_ms + (now_ms - self._parked_ms) // wait * wait
        if repeated_ms == self._parked_ms:
            return
        self._parked_ms = repeated_ms
        for followed in self._pulls.values():
            known = followed.leader.followers.get(self.follower_id)
            # Who is due, or left out, is no repetition: the leader learns of it from the fetch that asks for it.
            if known is not None and not followed.is_held and not followed.due and not followed.left_out:
                known.repeated(repeated_ms)

    def _fetch_next(self, followed: FollowedPartition, now_ms: int, delay_ms: int) -> None:
        """There is something to get: after `delay_ms` with whatever else is due then, or after the follower's own delay."""
        if followed.is_on_its_way(now_ms):
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

    def count_idle_fetches(self, now_ms: int) -> None:
        """Replication from the leader is throttled from now on: empty fetches are made while it is."""
        self.note_idle_fetches(now_ms)
        if self._parked_ms is not None and self._wait_ends_ms is None and not self.cut:
            self._wait_ends_ms = self._parked_ms + max(1, self._settings.wait_max_ms)
            self._wait_until(self._wait_ends_ms)

    def _run(self, now_ms: int) -> None:
        """The parked fetch is answered and the next one sent, until nothing is left to tell."""
        self._queued = False
        if self._timer is not None:
            self._timer.cancel()
        if self.cut:
            return
        self.note_idle_fetches(now_ms)
        heard = self._answer(now_ms)
        if self._follower_quota.active or self._any_left_out:
            heard += self._choose(now_ms)
        for followed in heard:
            self._ask(followed, now_ms)
        self._wait(now_ms)

    def _answer(self, now_ms: int) -> list[FollowedPartition]:
        """The leader's answer. Returns whom the next fetch tells something new about."""
        remaining = self._settings.response_max_bytes
        moved = False
        heard: list[FollowedPartition] = []
        listed: list[tuple[str, int]] = []
        counts = self._leader_quota.active
        answered = self._wait_ends_ms is not None and now_ms >= self._wait_ends_ms
        for followed in [p for p in self._pulls.values() if p.due and p.ready_ms <= now_ms and not p.left_out]:
            followed.due = False
            if followed.is_held or not followed.leader.is_leader or followed.follower.is_leader:
                continue
            heard.append(followed)
            # asked before anything of this answer is counted, so that a whole answer may go over the limit
            throttled = self._is_throttled(followed, now_ms)
            if throttled and not followed.asked:
                continue  # its first fetch is parked
            before = followed.told
            size = self._take(followed, remaining, not moved, throttled)
            answered = True
            if size:
                moved = True
                remaining = max(0, remaining - size)
                self._to_the_end(followed)
            if size or followed.told != before:
                self._count_taken(followed, size, now_ms)
                if counts and self._leader_quota.lists(*followed.name):
                    listed.append((followed.leader.topic, size))
        if counts and answered:
            self._leader_quota.record(answer_bytes(listed), now_ms)
        return heard

    def _choose(self, now_ms: int) -> list[FollowedPartition]:
        """R-7: what the next request leaves out. Returns what it asks for again."""
        again: list[FollowedPartition] = []
        forgets = False
        for followed in self._pulls.values():
            was, followed.left_out = followed.left_out, self._leaves_out(followed, now_ms)
            if followed.left_out:
                forgets |= followed.asked
                followed.asked, followed.told, followed.due = False, None, True
            elif was:
                again.append(followed)
        self._any_left_out = any(followed.left_out for followed in self._pulls.values())
        if forgets and self._leader_quota.active and not self._asks:
            # The session is emptied by a request that is answered at once, with nothing.
            self._leader_quota.record(answer_bytes([]), now_ms)
        return again

    @property
    def _asks(self) -> bool:
        """Whether the next request has something to ask for."""
        return not self._any_left_out or not all(followed.left_out for followed in self._pulls.values())

    def _ask(self, followed: FollowedPartition, now_ms: int) -> None:
        """The next fetch acknowledges what the last brought, and waits at the leader for what is new."""
        if followed.left_out:
            return
        followed.asked = True
        self._acknowledge(followed, now_ms)
        throttled = self._is_throttled(followed, now_ms)
        if (self._has_more(followed) and not throttled) or (self._settings.strict_kip and self._is_stale(followed)):
            self._fetch_next(followed, now_ms, 0)
        elif throttled or followed.told is None or self._is_stale(followed) or self._starts_later(followed):
            # The fetch just sent is parked; Kafka's leader tells what is new with its next answer.
            self._wait_until(now_ms + self._settings.wait_max_ms)
            followed.due = True

    def _wait(self, now_ms: int) -> None:
        """The next request is at the leader, or cannot be made."""
        self._parked_ms = self._wait_ends_ms = None
        if not self._asks:
            self._wait_until(now_ms + max(1, self._settings.backoff_ms))
        else:
            self._parked_ms = now_ms
            if self._any_left_out or (self._leader_quota.active and self._pulls):
                self._wait_ends_ms = now_ms + max(1, self._settings.wait_max_ms)
                self._wait_until(self._wait_ends_ms)
        if self._wishes:  # else nobody is slow, and none of thousands need be asked
            later = min((p.ready_ms for p in self._pulls.values() if p.is_on_its_way(now_ms)), default=None)
            if later is not None:
                self._wait_until(later)

    def _leaves_out(self, followed: FollowedPartition, now_ms: int) -> bool:
        """R-7: listed here, not in sync as far as this follower knows, and too much has come."""
        quota = self._follower_quota
        return quota.active and followed.lag != 0 and quota.lists(*followed.name) and quota.exceeded(now_ms)

    def _is_throttled(self, followed: FollowedPartition, now_ms: int) -> bool:
        """R-4: whether the leader gives nothing now."""
        quota = self._leader_quota
        return (
            quota.active
            and self.follower_id not in followed.leader.isr
            and quota.lists(*followed.name)
            and quota.exceeded(now_ms)
        )

    def _count_taken(self, followed: FollowedPartition, size_bytes: int, now_ms: int) -> None:
        """R-7: in sync or not."""
        quota = self._follower_quota
        if quota.active and quota.lists(*followed.name):
            quota.record(size_bytes, now_ms)

    def _take(self, followed: FollowedPartition, remaining: int, at_least_one: bool, throttled: bool) -> int:
        """Append what the leader has (N-9), unless it is throttled, and hear its high watermark. Returns the bytes that moved."""
        leader, follower = followed.leader, followed.follower
        # F-18: the answer carries the high watermark as it was before this follower's own fetch moved it.
        high_watermark = leader.log.high_watermark
        limit = min(self._settings.partition_max_bytes, remaining)
        if not leader.log.log_start_offset <= follower.log.log_end_offset <= leader.log.log_end_offset:
            # Out of the leader's range: begin again where it begins (`ReplicaFetcherThread.fetchOffsetAndTruncate`).
            follower.log.truncate_to(leader.log.log_end_offset)
            if follower.log.log_end_offset < leader.log.log_start_offset:
                follower.log.restart_at(leader.log.log_start_offset)
        elif leader.log.starts_inside_a_batch(follower.log.log_end_offset):
            # DeleteRecords cut into the leader's first batch, and all that this replica has lies below: it cannot go on at that
            # batch's middle (`Partition.appendRecordsToFollowerOrFutureReplica`, which does so only for a log that is empty).
            follower.log.restart_at(leader.log.log_start_offset)
        size = 0
        if not throttled:
            size = follower.log.replicate_from(
                leader.log, limit, at_least_one=at_least_one, end_offset=followed.hold_at
            )
        if size or followed.lag is None:
            followed.lag = max(0, high_watermark - follower.log.log_end_offset)
        followed.told = (high_watermark, leader.log.log_start_offset)
        before = follower.log.high_watermark
        heard = high_watermark if self._settings.strict_kip else min(high_watermark, follower.log.log_end_offset)
        heard = max(heard, follower.log.log_start_offset)
        if heard != before:
            follower.log.commit(heard)
        known = leader.followers.get(self.follower_id)
        if known is not None:
            known.high_watermark = high_watermark
        if leader.log.log_start_offset > follower.log.log_start_offset:
            reachable = min(follower.log.high_watermark, follower.log.log_end_offset)
            follower.log.raise_log_start(min(leader.log.log_start_offset, reachable))
        if size or follower.log.high_watermark != before:
            follower.changed()
        return size

    def _acknowledge(self, followed: FollowedPartition, now_ms: int) -> None:
        log = followed.follower.log
        followed.leader.follower_fetched(self.follower_id, log.log_end_offset, log.log_start_offset, now_ms)

    def _has_more(self, followed: FollowedPartition) -> bool:
        end = followed.leader.log.log_end_offset
        bound = end if followed.hold_at is None else min(end, followed.hold_at)
        # The runs end before the log where compaction left a gap at the end and a new leader wrote nothing yet.
        return followed.follower.log.log_end_offset < min(bound, followed.leader.log.runs.end_offset)

    def _is_stale(self, followed: FollowedPartition) -> bool:
        known = followed.leader.followers.get(self.follower_id)
        return known is not None and known.high_watermark != followed.leader.log.high_watermark

    @staticmethod
    def _starts_later(followed: FollowedPartition) -> bool:
        """Whether the leader's log starts at what this follower could start at, too, and does not yet."""
        log = followed.follower.log
        return log.log_start_offset < min(followed.leader.log.log_start_offset, log.high_watermark, log.log_end_offset)

    def _to_the_end(self, followed: FollowedPartition) -> None:
        key = (followed.leader.topic, followed.leader.index)
        self._pulls[key] = self._pulls.pop(key)
