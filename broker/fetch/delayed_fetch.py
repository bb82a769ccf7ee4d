"""A fetch that waits for data: parked under its partitions, answered when there is enough or when its time is up (`DelayedFetch`).

The answer is read afresh when it completes, never kept from when it parked. Must never know wire messages, sessions or quotas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkaproto.broker.fetch.read import FetchParams, PartitionFetch, PartitionRead, Reader
from kafkaproto.broker.metadata.image import Image
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.replication.replica_manager import ReplicaManager
from kafkaproto.broker.runtime.timers import Timer, Timers
from kafkaproto.error_codes import ErrorCode

Read = Callable[[int], list[PartitionRead]]
Answer = Callable[[Read, int], None]


def must_answer_now(
    params: FetchParams, min_bytes: int, fetches: Sequence[PartitionFetch], results: Sequence[PartitionRead]
) -> bool:
    """F-28, after the first read. A. the client does not want to wait; B. nothing readable; C. enough bytes; D. a readable partition in error;

    E. logs that part; F. a replica that is closer. An error found before reading (F-23) does not end the wait by itself.
    """
    if params.max_wait_ms <= 0 or sum(r.size_bytes for r in results) >= min_bytes:
        return True
    readable = [result for fetch, result in zip(fetches, results, strict=True) if not fetch.error]
    return not readable or any(r.error_code or r.diverging or r.preferred_read_replica >= 0 for r in readable)


class DelayedFetch:
    """Parks `fetches` until `deadline_ms`. `answer(read, now_ms)` is called once, unless it is abandoned first; `read(now_ms)` gives

    the results.
    """

    __slots__ = (
        "_answer",
        "_fetches",
        "_image",
        "_min_bytes",
        "_params",
        "_partitions",
        "_reader",
        "_replicas",
        "_timer",
        "done",
    )

    def __init__(
        self,
        params: FetchParams,
        min_bytes: int,
        fetches: Sequence[PartitionFetch],
        reader: Reader,
        replicas: ReplicaManager,
        image: Callable[[], Image],
        answer: Answer,
    ) -> None:
        self._params = params
        self._min_bytes = min_bytes
        self._fetches = fetches
        self._reader = reader
        self._replicas = replicas
        self._image = image
        self._answer = answer
        self._timer: Timer | None = None
        self._partitions = [(f, replicas.partitions[(f.topic, f.index)]) for f in fetches if not f.error]
        self.done = False

    def park(self, timers: Timers, deadline_ms: int) -> None:
        for _, partition in self._partitions:
            partition.watchers[self] = None
        self._timer = timers.at(deadline_ms, self._complete)

    def is_due(self, now_ms: int) -> bool:
        """F-29: is there enough now, or no sense in waiting? Kafka asks this before it parks a fetch, too."""
        return self._pointless(now_ms) or self._available(now_ms) >= self._min_bytes

    def check(self, now_ms: int) -> None:
        """A partition changed."""
        if not self.done and self.is_due(now_ms):
            self._complete(now_ms)

    def _pointless(self, now_ms: int) -> bool:
        """A. the partition is gone; B. leadership or epoch moved; C. what may be seen ends below the asked offset (D1);

        D. one read cannot get past the end of a segment, unless nothing may be read (R-6); E. the logs part;

        F. a follower's high watermark is stale (D5)."""
        for fetch, partition in self._partitions:
            if partition.gone or self._reader.check(self._params, fetch, partition):
                return True
            log, bound = partition.log, self._reader.bound(self._params, partition)
            if fetch.offset > bound or fetch.offset < log.log_start_offset:
                return True
            if log.is_on_older_segment(fetch.offset, bound) and not self._is_throttled(partition, now_ms):
                return True
            if fetch.last_epoch >= 0 and log.divergence(fetch.last_epoch, fetch.offset) is not None:
                return True
            if self._reader.has_stale_high_watermark(self._params, partition):
                return True
        return False

    def _available(self, now_ms: int) -> int:
        """Bytes between the asked offsets and what may be seen, each partition cut to its own limit only (F-30).

        What is throttled has none (R-6)."""
        total = 0
        for fetch, partition in self._partitions:
            bound = self._reader.bound(self._params, partition)
            if fetch.offset < bound and not self._is_throttled(partition, now_ms):
                total += min(partition.log.bytes_between(fetch.offset, bound), max(0, fetch.max_bytes))
        return total

    def _is_throttled(self, partition: Partition, now_ms: int) -> bool:
        return self._params.replica_id >= 0 and self._reader.throttles(self._params, partition, now_ms)

    def _complete(self, now_ms: int) -> None:
        if self.done:
            return
        self.abandon()
        for fetch, partition in self._partitions:
            if partition.gone:
                fetch.error = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._answer(self._read, now_ms)

    def _read(self, now_ms: int) -> list[PartitionRead]:
        return self._reader.read_all(self._params, self._fetches, self._image(), now_ms)

    def abandon(self) -> None:
        """Nobody waits for the answer any more."""
        self.done = True
        if self._timer is not None:
            self._timer.cancel()
        for _, partition in self._partitions:
            partition.watchers.pop(self, None)
