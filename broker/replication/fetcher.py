"""How a follower follows: one fetch at a time from each leader, parked there while there is nothing new (`ReplicaFetcherThread`).

One fetcher per (follower, leader) pair. An append at the leader completes the parked fetch in the same turn; the next fetch
acknowledges what came. An idle fetcher costs no event: the fetches that Kafka's follower would repeat every
replica.fetch.wait.max.ms are accounted for when somebody asks when it was last caught up.
Must never know wire messages or clients.
"""

from __future__ import annotations

from dataclasses import dataclass

from broker.replication.partition import Partition
from broker.timers import Timer, Timers
from broker.turn import Turn


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """replica.fetch.* (R-9); strict_kip: a follower with a stale high watermark is answered at once, and keeps what it hears (D2, D5)."""

    partition_max_bytes: int
    response_max_bytes: int
    wait_max_ms: int
    delay_ms: int
    strict_kip: bool


@dataclass(slots=True)
class Wish:
    """What a test wants of a follower. hold_at: to take nothing at or above this offset. delay_ms: to fetch so much later."""

    hold_at: int | None = None
    delay_ms: int | None = None


class Pull:
    """One partition of a fetcher. due: the next fetch asks for it, from ready_ms on."""

    __slots__ = ("due", "follower", "leader", "ready_ms", "wish")

    def __init__(self, leader: Partition, follower: Partition, wish: Wish | None) -> None:
        self.leader = leader
        self.follower = follower
        self.wish = wish
        self.due = True
        self.ready_ms = 0

    @property
    def hold_at(self) -> int | None:
        return None if self.wish is None else self.wish.hold_at

    @property
    def is_held(self) -> bool:
        """It has what it may have, and asks for nothing more."""
        hold_at = self.hold_at
        return hold_at is not None and self.follower.log.log_end_offset >= hold_at

    def is_on_its_way(self, now_ms: int) -> bool:
        """A slow follower's fetch, not yet there."""
        return self.due and self.ready_ms > now_ms


class ReplicaFetcher:
    """What broker `follower_id` pulls from one leader. Partitions that were answered with data go to the end of the order (R-9)."""

    def __init__(
        self,
        follower_id: int,
        settings: FetcherSettings,
        turn: Turn,
        timers: Timers,
        wishes: dict[tuple[str, int], Wish],
    ) -> None:
        self.follower_id = follower_id
        self._wishes = wishes
        """Shared by all fetchers of a broker, as a wish outlives a leader."""
        self._settings = settings
        self._turn = turn
        self._timers = timers
        self._pulls: dict[tuple[str, int], Pull] = {}
        self._parked_ms: int | None = None
        self._timer: Timer | None = None
        self._queued = False
        self.cut = False
        """The link to the leader is cut: nothing goes over it."""

    # ---- which partitions ----------------------------------------------------------------------------------------------------

    def add(self, leader: Partition, follower: Partition) -> None:
        """Begin to follow; the follower's log has been truncated to what the leader shares."""
        key = (leader.topic, leader.index)
        self._pulls[key] = Pull(leader, follower, self._wishes.get(key))
        leader.pullers[self.follower_id] = self
        follower.following = self
        self._soon()

    def remove(self, topic: str, index: int) -> None:
        pull = self._pulls.pop((topic, index), None)
        if pull is None:
            return
        if pull.leader.pullers.get(self.follower_id) is self:
            del pull.leader.pullers[self.follower_id]
        if pull.follower.following is self:
            pull.follower.following = None

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

    # ---- from the test's side ------------------------------------------------------------------------------------------------

    def hold(self, topic: str, index: int, at: int | None, now_ms: int) -> None:
        """Let the follower take nothing at or above offset `at` (None: nothing more at all) until `release`."""
        pull = self._pulls[(topic, index)]
        self.note_idle_fetches(now_ms)
        self._wish(topic, index).hold_at = pull.follower.log.log_end_offset if at is None else at

    def slow(self, topic: str, index: int, delay_ms: int) -> None:
        """Let each fetch of the follower come `delay_ms` late, until `release`."""
        self._wish(topic, index).delay_ms = delay_ms

    def _wish(self, topic: str, index: int) -> Wish:
        pull = self._pulls[(topic, index)]
        if pull.wish is None:
            pull.wish = self._wishes[(topic, index)] = Wish()
        return pull.wish

    def release(self, topic: str, index: int) -> None:
        """Neither held nor slow any more, if it is one of these."""
        pull = self._pulls.get((topic, index))
        if pull is None:
            return
        pull.wish = None
        pull.due = True
        pull.ready_ms = 0
        self._soon()

    def cut_link(self, cut: bool, now_ms: int) -> None:
        if cut:
            self.note_idle_fetches(now_ms)
        self.cut = cut
        for pull in self._pulls.values():
            pull.due = True
        self._soon()

    # ---- fetching ------------------------------------------------------------------------------------------------------------

    def leader_changed(self, partition: Partition, now_ms: int) -> None:
        """The leader's partition has something new. A. records, or under `kip` a high watermark (D5): the parked fetch completes.

        B. only a high watermark or a log start: told with the answer to the fetch that is parked now, when its wait is over (N-10).
        """
        pull = self._pulls.get((partition.topic, partition.index))
        if pull is None or pull.is_held:
            return
        self.note_idle_fetches(now_ms)
        stale = self._is_stale(pull)
        if self._has_more(pull) or (stale and self._settings.strict_kip):
            self._fetch_next(pull, now_ms, self._settings.delay_ms)
        elif stale or self._starts_later(pull):
            pull.due = True
            self._wait_until((now_ms if self._parked_ms is None else self._parked_ms) + self._settings.wait_max_ms)

    def tell_again(self, partition: Partition, now_ms: int) -> None:
        """The leader is wrong about the follower: it hears the truth with the next fetch, when the parked one's wait is over.

        The follower's own log start moved (N-15), or somebody else fetched in its name (N-12).
        """
        pull = self._pulls.get((partition.topic, partition.index))
        if pull is not None and not pull.is_held:
            self.note_idle_fetches(now_ms)
            pull.due = True
            self._wait_until((now_ms if self._parked_ms is None else self._parked_ms) + self._settings.wait_max_ms)

    def note_idle_fetches(self, now_ms: int) -> None:
        """Account for the empty fetches since the fetch was parked: each came replica.fetch.wait.max.ms after the one before."""
        if self._parked_ms is None or self.cut:
            return
        wait = max(1, self._settings.wait_max_ms)
        repeated_ms = self._parked_ms + (now_ms - self._parked_ms) // wait * wait
        if repeated_ms == self._parked_ms:
            return
        self._parked_ms = repeated_ms
        for pull in self._pulls.values():
            known = pull.leader.followers.get(self.follower_id)
            if known is not None and not pull.is_held and not pull.is_on_its_way(now_ms):
                known.repeated(repeated_ms)

    def _fetch_next(self, pull: Pull, now_ms: int, delay_ms: int) -> None:
        """There is something to get: after `delay_ms` with whatever else is due then, or after the follower's own delay."""
        if pull.is_on_its_way(now_ms):
            return
        pull.due = True
        if pull.wish is not None and pull.wish.delay_ms:
            pull.ready_ms = now_ms + pull.wish.delay_ms
            self._wait_until(pull.ready_ms)
        elif delay_ms:
            self._wait_until(now_ms + delay_ms)
        else:
            self._soon()

    def _soon(self) -> None:
        if not self._queued:
            self._queued = True
            self._turn.soon(self._run)

    def _wait_until(self, at_ms: int) -> None:
        timer = self._timer
        if timer is None or timer.callback is None or timer.at_ms > at_ms:
            if timer is not None:
                timer.cancel()
            self._timer = self._timers.at(at_ms, self._run)

    def _run(self, now_ms: int) -> None:
        """The parked fetch is answered and the next one sent, until nothing is left to tell."""
        self._queued = False
        if self.cut:
            return
        remaining = self._settings.response_max_bytes
        moved = False
        told: list[Pull] = []
        for pull in [p for p in self._pulls.values() if p.due and p.ready_ms <= now_ms]:
            pull.due = False
            if pull.is_held or not pull.leader.is_leader or pull.follower.is_leader:
                continue
            size = self._take(pull, remaining, at_least_one=not moved)
            if size:
                moved = True
                remaining = max(0, remaining - size)
                self._to_the_end(pull)
            told.append(pull)
        for pull in told:
            self._acknowledge(pull, now_ms)
            if self._has_more(pull) or (self._settings.strict_kip and self._is_stale(pull)):
                self._fetch_next(pull, now_ms, 0)
            elif self._is_stale(pull) or self._starts_later(pull):
                # The fetch just sent is parked; Kafka's leader tells what is new with its next answer.
                self._wait_until(now_ms + self._settings.wait_max_ms)
                pull.due = True
        self._parked_ms = now_ms
        if self._wishes:  # else nobody is slow, and none of thousands need be asked
            later = min((p.ready_ms for p in self._pulls.values() if p.is_on_its_way(now_ms)), default=None)
            if later is not None:
                self._wait_until(later)

    def _take(self, pull: Pull, remaining: int, at_least_one: bool) -> int:
        """Append what the leader has (N-9) and hear its high watermark. Returns the bytes that moved."""
        leader, follower = pull.leader, pull.follower
        # F-18: the answer carries the high watermark as it was before this follower's own fetch moved it.
        high_watermark = leader.log.high_watermark
        limit = min(self._settings.partition_max_bytes, remaining)
        if not leader.log.log_start_offset <= follower.log.log_end_offset <= leader.log.log_end_offset:
            # Out of the leader's range: begin again where it begins (`ReplicaFetcherThread.fetchOffsetAndTruncate`).
            follower.log.truncate_to(leader.log.log_end_offset)
            if follower.log.log_end_offset < leader.log.log_start_offset:
                follower.log.restart_at(leader.log.log_start_offset)
        size = follower.log.replicate_from(leader.log, limit, at_least_one=at_least_one, end_offset=pull.hold_at)
        before = follower.log.high_watermark
        heard = high_watermark if self._settings.strict_kip else min(high_watermark, follower.log.log_end_offset)
        follower.log.high_watermark = max(heard, follower.log.log_start_offset)
        known = leader.followers.get(self.follower_id)
        if known is not None:
            known.high_watermark = high_watermark
        if leader.log.log_start_offset > follower.log.log_start_offset:
            reachable = min(follower.log.high_watermark, follower.log.log_end_offset)
            follower.log.raise_log_start(min(leader.log.log_start_offset, reachable))
        if size or follower.log.high_watermark != before:
            follower.changed()
        return size

    def _acknowledge(self, pull: Pull, now_ms: int) -> None:
        log = pull.follower.log
        pull.leader.follower_fetched(self.follower_id, log.log_end_offset, log.log_start_offset, now_ms)

    def _has_more(self, pull: Pull) -> bool:
        end = pull.leader.log.log_end_offset
        bound = end if pull.hold_at is None else min(end, pull.hold_at)
        # The runs end before the log where compaction left a gap at the end and a new leader wrote nothing yet.
        return pull.follower.log.log_end_offset < min(bound, pull.leader.log.runs.end_offset)

    def _is_stale(self, pull: Pull) -> bool:
        known = pull.leader.followers.get(self.follower_id)
        return known is not None and known.high_watermark != pull.leader.log.high_watermark

    @staticmethod
    def _starts_later(pull: Pull) -> bool:
        """Whether the leader's log starts at what this follower could start at, too, and does not yet."""
        log = pull.follower.log
        return log.log_start_offset < min(pull.leader.log.log_start_offset, log.high_watermark, log.log_end_offset)

    def _to_the_end(self, pull: Pull) -> None:
        key = (pull.leader.topic, pull.leader.index)
        self._pulls[key] = self._pulls.pop(key)
