"""The conditions under which a fetch waits for data, and under which its wait ends (`DelayedFetch` in Kafka).

When the wait is over, the broker reads again and discards the results of the first read. This module does not depend on wire messages, sessions or
client quotas.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkaproto.broker.fetch.read import FetchParams, PartitionFetch, PartitionRead, Reader
from kafkaproto.broker.replication.partition import Partition, Watcher
from kafkaproto.broker.replication.replica_manager import ReplicaManager
from kafkaproto.error_codes import ErrorCode


def must_respond_now(
    params: FetchParams, min_bytes: int, fetches: Sequence[PartitionFetch], results: Sequence[PartitionRead]
) -> bool:
    """Return whether the broker responds to a fetch right after the first read instead of waiting for more records (F-28).

    True in each of these cases:

    A. max_wait_ms is 0 or less.
    B. Each partition had an error before reading (F-23). If only some partitions had one, the fetch may still wait.
    C. `min_bytes` were read.
    D. Reading a partition failed.
    E. The client's log diverges from this broker's log.
    F. A consumer is sent to a closer replica.

    min_bytes: the number of bytes in case C; the field `min_bytes` of `params` is not used. results: the results of the first read, one for each of
    `fetches`.
    """
    if params.max_wait_ms <= 0 or sum(r.size_bytes for r in results) >= min_bytes:
        return True
    readable = [result for fetch, result in zip(fetches, results, strict=True) if not fetch.error]
    return not readable or any(r.error_code or r.diverging or r.preferred_read_replica >= 0 for r in readable)


class FetchCondition:
    """The condition under which a waiting fetch gets its response: `min_bytes` are available, or waiting for more records is pointless."""

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
        """Return, for each partition of the fetch, the set of requests that wait for a change of the partition, as the keys of a dict.

        A fetch that waits adds itself to each of these sets. When a partition changes, the broker checks again whether the requests in the
        partition's set must wait.
        """
        return [partition.watchers for _, partition in self._partitions]

    def is_due(self, now_ms: int) -> bool:
        """Return whether the response must be sent now: `min_bytes` are available, or waiting is pointless (F-29).

        As in Kafka, this is also checked before a fetch begins to wait.
        """
        return self._pointless(now_ms) or self._available(now_ms) >= self._min_bytes

    def _pointless(self, now_ms: int) -> bool:
        """Return whether waiting for more records is pointless, because one of these cases applies to a partition of the fetch.

        A. The partition was deleted.
        B. The leadership or the leader epoch of the partition changed.
        C. The requested offset is below the log start offset, or above the limit up to which this client may read, such as the high watermark (D1).
        D. The segment with the requested offset ends before the limit of case C, so that a read, which returns bytes of only one segment, cannot
           reach this limit. This case is ignored while the replication quota throttles the partition (R-6).
        E. The client's log diverges from the log of this broker.
        F. The fetch comes from a follower that knows an outdated high watermark (D5).
        """
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
        """Return the number of bytes that the client may read now from the requested offsets on (F-30).

        The bytes of each partition are limited to the maximum that the client requested for it. A partition that the replication quota throttles has
        0 bytes (R-6).
        """
        total = 0
        for fetch, partition in self._partitions:
            bound = self._reader.bound(self._params, partition)
            if fetch.offset < bound and not self._is_throttled(partition, now_ms):
                total += min(partition.log.bytes_between(fetch.offset, bound), max(0, fetch.max_bytes))
        return total

    def _is_throttled(self, partition: Partition, now_ms: int) -> bool:
        return self._params.replica_id >= 0 and self._reader.throttles(self._params, partition, now_ms)

    def note_gone_partitions(self) -> None:
        """Set an error for each partition that was deleted while the fetch waited: UNKNOWN_TOPIC_OR_PARTITION (3).

        Call it before the other partitions are read for the response.
        """
        for fetch, partition in self._partitions:
            if partition.gone:
                fetch.error = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
