"""Incremental fetch sessions (KIP-227): client and broker remember the last request and response, so that only changes are sent.

There is one cache for each broker. The key of a partition is opaque here: (topic name, index) or (topic id, index), as in the request.
This module does not depend on logs, quotas or wire messages. It corresponds to Kafka's `FetchSession`, `FetchSessionCache` and
`FetchManager`. The cache is one pool of slots, as in Kafka before 3.8; later releases have eight pools (S-12).

The steps of a fetch:

- `context = cache.begin(...)` applies the request to the session: to its partitions and its epoch (S-4);
- `context.partitions()` returns the partitions to read, in order;
- `context.included(results)` returns the results to put into the response, so that its quota charge can be computed; changes nothing (Q-12);
- `context.commit(results)`, if the results are sent, stores in the session what the client now knows, or creates the session (S-2, S-9);
- `context.throttled()`, if the quota is exceeded and an empty response is sent, leaves the data in the session unchanged (S-10).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from random import Random
from typing import Generic, NamedTuple, Protocol, TypeVar

from kafkaproto.error_codes import ErrorCode

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 2**31 - 1

DEFAULT_SLOTS = 1000
EVICTION_AGE_MS = 120_000


class PartitionRequest(NamedTuple):
    """The fields of a fetch request for one partition. A value of -1 stands for a field that the client did not send."""

    fetch_offset: int
    max_bytes: int
    log_start_offset: int = -1
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1


class PartitionResult(Protocol):
    """The fields of a fetch response for one partition that a session uses. preferred_read_replica: a closer replica to fetch from, -1 for none."""

    @property
    def has_records(self) -> bool: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def preferred_read_replica(self) -> int: ...
    @property
    def error_code(self) -> int: ...
    @property
    def diverging(self) -> bool: ...


K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound=PartitionResult)
Results = Sequence[tuple[K, R]]


class SessionFields(NamedTuple, Generic[K, R]):
    """The fields of a fetch response that a session determines: error code, session id, and (key, result) of each partition in the response."""

    error_code: int
    session_id: int
    partitions: Sequence[tuple[K, R]]


def next_epoch(epoch: int) -> int:
    """Return the session epoch that follows `epoch`: 1 after 2147483647, because 0 and -1 have other meanings (S-4)."""
    return 1 if epoch == MAX_EPOCH else epoch + 1


class _Cached:
    """One partition of a fetch session: the client's last request for it, and the high watermark and log start offset that were last sent.

    Both offsets are -1 before the first response. The high watermark is -1 after an error.
    """

    __slots__ = ("high_watermark", "log_start_offset", "request")

    def __init__(self, request: PartitionRequest, high_watermark: int = -1, log_start_offset: int = -1) -> None:
        self.request = request
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset

    def is_news(self, result: PartitionResult) -> bool:
        """Return whether an incremental response lists `result`: it has records, an error, new offsets, a divergence or a preferred replica (S-6)."""
        return (
            result.has_records
            or self.high_watermark != result.high_watermark
            or self.log_start_offset != result.log_start_offset
            or result.preferred_read_replica >= 0
            or result.error_code != 0
            or result.diverging
        )

    def note_reported(self, result: PartitionResult) -> None:
        # After an error the first good result is reported even if nothing changed (S-6).
        self.high_watermark = -1 if result.error_code != 0 else result.high_watermark
        self.log_start_offset = result.log_start_offset


@dataclass(slots=True, eq=False)
class Session:
    """One fetch session. privileged: whether a follower created it. epoch: the epoch expected in the next request.

    cached_size: the number of partitions when the session was last used, as in Kafka. A full cache evicts smaller sessions first.
    """

    session_id: int
    privileged: bool
    uses_topic_ids: bool
    created_ms: int
    partitions: dict[Hashable, _Cached]
    last_used_ms: int
    epoch: int = 1
    cached_size: int = 0
    names: dict[Hashable, str] = field(default_factory=dict)
    """Maps topic ids to topic names. As in Kafka, the session keeps the name of a deleted topic (S-11)."""

    @property
    def evictable_key(self) -> tuple[bool, int, int]:
        return self.privileged, self.cached_size, self.session_id


class SessionlessContext(Generic[K, R]):
    """A fetch without a session: its epoch is -1 or its version is below 7. The response has all requested partitions (S-1)."""

    __slots__ = ("_requested", "names")

    def __init__(self, requested: dict[K, PartitionRequest]) -> None:
        self._requested = requested
        self.names: dict[Hashable, str] = {}

    def partitions(self) -> Iterable[tuple[K, PartitionRequest]]:
        return self._requested.items()

    def included(self, results: Results[K, R]) -> Results[K, R]:
        return results

    def commit(self, results: Results[K, R], now_ms: int) -> SessionFields[K, R]:
        return SessionFields(0, NO_SESSION, results)

    def throttled(self) -> SessionFields[K, R]:
        return SessionFields(0, NO_SESSION, ())


class FullContext(SessionlessContext[K, R]):
    """A full fetch (epoch 0). Sending its response creates a session, unless the cache is full and no session may be evicted (S-2)."""

    __slots__ = ("_cache", "_privileged", "_uses_topic_ids")

    def __init__(
        self, requested: dict[K, PartitionRequest], cache: SessionCache, privileged: bool, uses_topic_ids: bool
    ) -> None:
        super().__init__(requested)
        self._cache = cache
        self._privileged = privileged
        self._uses_topic_ids = uses_topic_ids

    def commit(self, results: Results[K, R], now_ms: int) -> SessionFields[K, R]:
        cached_partitions: dict[Hashable, _Cached] = {}
        for key, result in results:
            partition = cached_partitions[key] = _Cached(self._requested[key])
            partition.note_reported(result)
        session_id = self._cache.create(cached_partitions, self._privileged, self._uses_topic_ids, now_ms, self.names)
        return SessionFields(0, session_id, results)


class IncrementalContext(Generic[K, R]):
    """A fetch within a session: it reads all partitions of the session, and the response has only the changed partitions (S-6)."""

    __slots__ = ("_expected_epoch", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self._expected_epoch = session.epoch

    @property
    def names(self) -> dict[Hashable, str]:
        return self.session.names

    def partitions(self) -> Iterable[tuple[K, PartitionRequest]]:
        return [(key, cached_partition.request) for key, cached_partition in self.session.partitions.items()]  # type: ignore[misc]

    def included(self, results: Results[K, R]) -> Results[K, R]:
        if self._overtaken:
            return ()
        cached_partitions = self.session.partitions
        return [(key, result) for key, result in results if cached_partitions[key].is_news(result)]

    def commit(self, results: Results[K, R], now_ms: int) -> SessionFields[K, R]:
        if self._overtaken:
            return self._overtaken_fields()
        news = self.included(results)
        cached_partitions = self.session.partitions
        for key, result in news:
            partition = cached_partitions[key]
            partition.note_reported(result)
            if result.has_records:
                # To the end, so that partitions with much data do not starve the others (S-9).
                del cached_partitions[key]
                cached_partitions[key] = partition
        return SessionFields(0, self.session.session_id, news)

    def throttled(self) -> SessionFields[K, R]:
        return self._overtaken_fields() if self._overtaken else SessionFields(0, self.session.session_id, ())

    @property
    def _overtaken(self) -> bool:
        # Another request advanced the session while this one was parked (S-8).
        return self.session.epoch != self._expected_epoch

    def _overtaken_fields(self) -> SessionFields[K, R]:
        return SessionFields(ErrorCode.INVALID_FETCH_SESSION_EPOCH, self.session.session_id, ())


class ErrorContext(Generic[K, R]):
    """A fetch with a wrong session id, epoch or kind of topic keys (names or ids). The response has only an error, and no partition is read (S-3)."""

    __slots__ = ("error_code", "names")

    def __init__(self, error_code: int) -> None:
        self.error_code = error_code
        self.names: dict[Hashable, str] = {}

    def partitions(self) -> Iterable[tuple[K, PartitionRequest]]:
        return ()

    def included(self, results: Results[K, R]) -> Results[K, R]:
        return ()

    def commit(self, results: Results[K, R], now_ms: int) -> SessionFields[K, R]:
        return SessionFields(self.error_code, NO_SESSION, ())

    def throttled(self) -> SessionFields[K, R]:
        # The error is not sent: the client gets it with its next request (S-10).
        return SessionFields(0, NO_SESSION, ())


FetchContext = SessionlessContext[K, R] | IncrementalContext[K, R] | ErrorContext[K, R]


@dataclass(slots=True)
class SessionCache:
    """The fetch sessions of one broker, at most `slots`.

    random: generates the session ids; with the same seed, the ids are the same in each run. eviction_age_ms: a new session may evict any session that
    was not used for this time. evictions: how many sessions were evicted. partition_count: the number of partitions in all sessions.
    """

    random: Random
    slots: int = DEFAULT_SLOTS
    eviction_age_ms: int = EVICTION_AGE_MS
    evictions: int = 0
    partition_count: int = 0
    _sessions: dict[int, Session] = field(default_factory=dict)
    """Maps session ids to sessions, the least recently used first."""
    _evictable_by_all: dict[int, Session] = field(default_factory=dict)
    _evictable_by_privileged: dict[int, Session] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> Session | None:
        return self._sessions.get(session_id)

    def begin(
        self,
        session_id: int,
        epoch: int,
        partitions: Iterable[tuple[K, PartitionRequest]],
        forgotten: Iterable[K],
        uses_topic_ids: bool,
        privileged: bool,
        now_ms: int,
    ) -> FetchContext[K, PartitionResult]:
        """Apply a request to its fetch session, and return the context: an object with the methods for the further steps of this fetch.

        partitions: in the order of the request; a repeated partition gets the position of its first entry and the data of its last one (F-6).
        forgotten: the keys of partitions to remove. uses_topic_ids: whether the request identifies topics by id (Fetch version 13 and later).
        privileged: whether a follower sent the request. session_id, epoch: those of the request; 0 and -1 for Fetch versions before 7.
        """
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION:
                self.close(session_id)
            if epoch == FINAL_EPOCH:
                return SessionlessContext(dict(partitions))
            return FullContext(dict(partitions), self, privileged, uses_topic_ids)
        return self._continue(session_id, epoch, dict(partitions), forgotten, uses_topic_ids, now_ms)

    def close(self, session_id: int) -> None:
        """Remove the session with this id from the cache. Does nothing if there is no such session."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._evictable_by_all.pop(session_id, None)
            self._evictable_by_privileged.pop(session_id, None)
            self.partition_count -= session.cached_size

    def create(
        self,
        partitions: dict[Hashable, _Cached],
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
        names: dict[Hashable, str],
    ) -> int:
        """Create a session. Returns its id, 0 if the cache is full and no session may be evicted (S-2, S-13). names: maps topic ids to names."""
        if len(self._sessions) >= self.slots and not self._evict_for(privileged, len(partitions), now_ms):
            return NO_SESSION
        session = Session(self._unused_id(), privileged, uses_topic_ids, now_ms, partitions, now_ms, names=names)
        self._sessions[session.session_id] = session
        self.touch(session, now_ms)
        return session.session_id

    def touch(self, session: Session, now_ms: int) -> None:
        """Record that a session was used at `now_ms`: make it the most recently used session, and store its number of partitions."""
        session_id = session.session_id
        del self._sessions[session_id]
        self._sessions[session_id] = session
        session.last_used_ms = now_ms
        self.partition_count += len(session.partitions) - session.cached_size
        session.cached_size = len(session.partitions)
        is_old = now_ms - session.created_ms > self.eviction_age_ms
        if is_old:
            self._evictable_by_all[session_id] = session
        if is_old or not session.privileged:
            self._evictable_by_privileged[session_id] = session

    def _continue(
        self,
        session_id: int,
        epoch: int,
        partitions: dict[K, PartitionRequest],
        forgotten: Iterable[K],
        uses_topic_ids: bool,
        now_ms: int,
    ) -> FetchContext[K, PartitionResult]:
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return ErrorContext(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorContext(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        _update(session, partitions, forgotten)
        if not session.partitions:
            self.close(session_id)
            return SessionlessContext(partitions)
        self.touch(session, now_ms)
        session.epoch = next_epoch(epoch)
        return IncrementalContext(session)

    def _evict_for(self, privileged: bool, size: int, now_ms: int) -> bool:
        victim = self._stale(now_ms) or self._worth_less(privileged, size)
        if victim is None:
            return False
        self.close(victim.session_id)
        self.evictions += 1
        return True

    def _stale(self, now_ms: int) -> Session | None:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now_ms - oldest.last_used_ms <= self.eviction_age_ms:
            return None
        equally_old = takewhile(lambda s: s.last_used_ms == oldest.last_used_ms, self._sessions.values())
        return min(equally_old, key=lambda s: s.session_id)

    def _worth_less(self, privileged: bool, size: int) -> Session | None:
        candidates = self._evictable_by_privileged if privileged else self._evictable_by_all
        lowest = min(candidates.values(), key=lambda s: s.evictable_key, default=None)
        if lowest is None or (privileged, size, NO_SESSION) < lowest.evictable_key:
            return None
        return lowest

    def _unused_id(self) -> int:
        while True:
            session_id = self.random.randrange(1, MAX_EPOCH)
            if session_id not in self._sessions:
                return session_id


def _update(session: Session, partitions: dict[K, PartitionRequest], forgotten: Iterable[K]) -> None:
    # New partitions go to the end, listed ones are replaced whole, then forgotten ones are removed (S-4).
    cached_partitions = session.partitions
    for key, request in partitions.items():
        cached_partition = cached_partitions.get(key)
        if cached_partition is None:
            cached_partitions[key] = _Cached(request)
        else:
            cached_partition.request = request
    for key in forgotten:
        cached_partitions.pop(key, None)
