"""When a fetch must wait for data, and until when: there is enough, or no sense in waiting (`DelayedFetch` in Kafka).

The response is read afresh when the wait is over, never kept from when it began. Must never know wire messages, sessions or quotas.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkaproto.broker.fetch.read import FetchParams, PartitionFetch, PartitionRead, Reader
from kafkaproto.broker.replication.partition import Partition, Watcher
from kafkaproto.broker.replication.replica_manager import ReplicaManager
from kafkaproto.error_codes import ErrorCode


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


class FetchCondition:
    """What a fetch waits for: enough bytes, or that there is no sense in waiting for them any more."""

    __slots__ = ("_min_bytes", "_params", "_partitions", "_reader")

    def __init__(
        self,
        params: FetchParams,
        min_bytes: int,
        fetches: Sequence[PartitionFetch],
        reader: Reader,
        replicas: ReplicaManager,
    ) -> None:
        self._params = params
        self._min_bytes = min_bytes
        self._reader = reader
        self._partitions = [(f, replicas.partitions[(f.topic, f.index)]) for f in fetches if not f.error]

    @property
    def watchers(self) -> list[dict[Watcher, None]]:
        """Where to register for a check whenever one of the partitions changes."""
        return [partition.watchers for _, partition in self._partitions]

    def is_due(self, now_ms: int) -> bool:
        """F-29: is there enough now, or no sense in waiting? Kafka asks this before it parks a fetch, too."""
        return self._pointless(now_ms) or self._available(now_ms) >= self._min_bytes

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

    def note_gone_partitions(self) -> None:
        """Set the error of those that were deleted meanwhile, before all are read for the response."""
        for fetch, partition in self._partitions:
            if partition.gone:
                fetch.error = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
