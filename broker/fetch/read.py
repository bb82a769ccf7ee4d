"""One read over many partitions within byte limits (KIP-74): who may read what, up to where, how much (`ReplicaManager.readFromLog`).

Request limit, partition limit, and the privilege: until some partition has yielded bytes, the next one may exceed its limit by
one whole record batch, so that a consumer always gets on (F-4 to F-13). Must never know wire messages, sessions or quotas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkaproto.broker.log.errors import OffsetOutOfRange
from kafkaproto.broker.metadata.image import Image
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.replication.replica_manager import ReplicaManager
from kafkaproto.broker.replication.selector import ClientMetadata
from kafkaproto.error_codes import ErrorCode

CONSUMER = -1
DEBUGGING_CONSUMER = -2
FIRST_VERSION_WITH_PRIVILEGE = 3
FIRST_VERSION_WITH_CLIENT_METADATA = 11
UNKNOWN = -1
EMPTY = b""


@dataclass(slots=True)
class FetchParams:
    """What holds for a whole fetch. replica_id >= 0: a follower. client: rack and address, only from version 11 on (KIP-392)."""

    version: int
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    read_committed: bool
    client: ClientMetadata | None
    from_follower: bool = field(init=False)

    def __post_init__(self) -> None:
        self.from_follower = self.replica_id >= 0


@dataclass(slots=True)
class PartitionFetch:
    """One partition of a request. `error`: found wrong before any reading (F-23), then nothing else counts.

    wanted_epoch and last_epoch: -1 when the client did not say.
    """

    topic: str
    index: int
    offset: int
    max_bytes: int
    log_start_offset: int
    wanted_epoch: int
    last_epoch: int
    error: int = 0


@dataclass(slots=True)
class PartitionRead:
    """What a partition answers. records: bytes, or a range of a file. diverging_end: (epoch, end offset) where the logs part (F-26).

    lists_aborted: aborted transactions are listed, which without transactions is an empty list; else they are null (F-20).
    """

    error_code: int = 0
    high_watermark: int = UNKNOWN
    last_stable_offset: int = UNKNOWN
    log_start_offset: int = UNKNOWN
    records: Any = EMPTY
    size_bytes: int = 0
    preferred_read_replica: int = UNKNOWN
    diverging_end: tuple[int, int] | None = None
    lists_aborted: bool = False

    @property
    def has_records(self) -> bool:
        return self.size_bytes > 0

    @property
    def diverging(self) -> bool:
        return self.diverging_end is not None


def failed(error_code: int) -> PartitionRead:
    """An error: no offsets are told (F-16, F-19)."""
    return PartitionRead(error_code=int(error_code))


def refused(error_code: int) -> PartitionRead:
    """The client's version cannot be told these records: neither offsets nor records, which are null and not empty (F-22)."""
    return PartitionRead(error_code=int(error_code), records=None, lists_aborted=True)


class Reader:
    """Reads for one broker. strict_kip: the `semantics` switch (D1 to D3)."""

    def __init__(self, replicas: ReplicaManager, strict_kip: bool) -> None:
        self._replicas = replicas
        self._strict_kip = strict_kip

    def read_all(
        self, params: FetchParams, fetches: Sequence[PartitionFetch], image: Image, now_ms: int
    ) -> list[PartitionRead]:
        """F-6 to F-11: in order; once the limit is used up later partitions are still there, with real offsets and 0 bytes."""
        remaining = params.max_bytes
        privileged = params.version >= FIRST_VERSION_WITH_PRIVILEGE
        results = []
        for fetch in fetches:
            result = self.read(params, fetch, remaining, privileged, image, now_ms)
            if result.size_bytes:
                privileged = False
                remaining = max(0, remaining - result.size_bytes)
            results.append(result)
        return results

    def read(
        self,
        params: FetchParams,
        fetch: PartitionFetch,
        remaining: int,
        privileged: bool,
        image: Image,
        now_ms: int,
    ) -> PartitionRead:
        """One partition, checked in the order of F-24."""
        if fetch.error:
            return PartitionRead(error_code=int(fetch.error), lists_aborted=True)
        partition = self._replicas.partitions.get((fetch.topic, fetch.index))
        if partition is None:
            return failed(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        error = self.check(params, fetch, partition)
        if error:
            return failed(error)
        if self._goes_elsewhere(params, partition):
            assert params.client is not None
            preferred = self._replicas.preferred_read_replica(partition, image, fetch.offset, params.client, now_ms)
            if preferred >= 0:
                result = self._offsets(partition)
                result.preferred_read_replica = preferred
                return result
        return self._slice(params, fetch, partition, remaining, privileged, now_ms)

    def check(self, params: FetchParams, fetch: PartitionFetch, partition: Partition) -> int:
        """Epoch, leadership, membership (F-21, F-24, F-25); 0 when the partition may be read."""
        error = partition.check_leader_epoch(fetch.wanted_epoch)
        if error:
            return error
        leader_only = params.from_follower or params.version < FIRST_VERSION_WITH_CLIENT_METADATA
        if leader_only and not partition.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        # The leader is no follower of its own either (`Partition.followerReplicaOrThrow`).
        if params.from_follower and params.replica_id not in partition.followers:
            named = fetch.wanted_epoch >= 0
            return ErrorCode.UNKNOWN_LEADER_EPOCH if named else ErrorCode.NOT_LEADER_OR_FOLLOWER
        return 0

    @staticmethod
    def _goes_elsewhere(params: FetchParams, partition: Partition) -> bool:
        return params.client is not None and partition.is_leader and not params.from_follower

    def _slice(
        self,
        params: FetchParams,
        fetch: PartitionFetch,
        partition: Partition,
        remaining: int,
        privileged: bool,
        now_ms: int,
    ) -> PartitionRead:
        log = partition.log
        result = self._offsets(partition)
        if fetch.last_epoch >= 0:
            try:
                result.diverging_end = log.divergence(fetch.last_epoch, fetch.offset)
            except OffsetOutOfRange:
                return self._out_of_range(result)
            if result.diverging_end is not None:
                return result
        early = self._out_of_bounds(params, fetch, partition, result)
        if early is not None:
            return early
        limit = min(fetch.max_bytes, remaining)
        if limit < 0:
            # F-13: with something to read a negative limit is an error of the server, without it is not looked at.
            readable = log.bytes_between(fetch.offset, self.bound(params, partition)) > 0
            return failed(ErrorCode.UNKNOWN_SERVER_ERROR) if readable else result
        if params.replica_id >= 0 and self.throttles(params, partition, now_ms):
            return result
        part = log.read(fetch.offset, limit, self.bound(params, partition), at_least_one=privileged)
        result.records = part.records
        result.size_bytes = part.size_bytes
        cut_short = 0 < limit < part.first_batch_bytes and not part.size_bytes
        result.lists_aborted = params.read_committed and not params.from_follower and not cut_short
        return result

    def _out_of_bounds(
        self, params: FetchParams, fetch: PartitionFetch, partition: Partition, result: PartitionRead
    ) -> PartitionRead | None:
        """F-16, F-17 and the switch: what an offset outside the readable range answers; None when it is inside."""
        log, offset = partition.log, fetch.offset
        heard = log.high_watermark  # under `kip` a follower may have heard of more than it holds (D2)
        if log.log_start_offset <= offset <= log.log_end_offset:
            if not self._strict_kip or params.from_follower or offset <= heard:
                return None
            result.error_code = int(ErrorCode.OFFSET_NOT_AVAILABLE)
            return result
        if self._strict_kip and not partition.is_leader and log.log_end_offset < offset <= heard:
            result.error_code = int(ErrorCode.OFFSET_NOT_AVAILABLE)
            return result
        return self._out_of_range(result)

    def _out_of_range(self, result: PartitionRead) -> PartitionRead:
        """Error 1, with the replica's real offsets under `kip` and without any under `kafka` (D3)."""
        if not self._strict_kip:
            return failed(ErrorCode.OFFSET_OUT_OF_RANGE)
        result.error_code = int(ErrorCode.OFFSET_OUT_OF_RANGE)
        return result

    def throttles(self, params: FetchParams, partition: Partition, now_ms: int) -> bool:
        """R-4: whether a follower gets nothing of a partition now. Never those in sync (D11); consumers are not asked about (R-8)."""
        quota = self._replicas.leader_quota
        return (
            quota.active
            and params.replica_id not in partition.isr
            and quota.lists(partition.topic, partition.index)
            and quota.exceeded(now_ms)
        )

    def has_stale_high_watermark(self, params: FetchParams, partition: Partition) -> bool:
        """D5: under `kip` a follower that has not heard the current high watermark is answered at once."""
        if not self._strict_kip or not params.from_follower:
            return False
        follower = partition.followers.get(params.replica_id)
        return follower is not None and follower.high_watermark != partition.log.high_watermark

    def _offsets(self, partition: Partition) -> PartitionRead:
        high_watermark = min(partition.log.high_watermark, partition.log.log_end_offset)
        if self._strict_kip and not partition.is_leader:
            high_watermark = partition.log.high_watermark
        return PartitionRead(
            0, high_watermark, min(high_watermark, self.last_stable_offset(partition)), partition.log.log_start_offset
        )

    @staticmethod
    def last_stable_offset(partition: Partition) -> int:
        """F-19. Transactions come with a later issue: without them it is the high watermark."""
        return partition.log.high_watermark

    def bound(self, params: FetchParams, partition: Partition) -> int:
        """F-15: up to where this fetch may see."""
        log = partition.log
        if params.from_follower:
            return log.log_end_offset
        stable = self.last_stable_offset(partition) if params.read_committed else log.high_watermark
        return min(stable, log.log_end_offset)
