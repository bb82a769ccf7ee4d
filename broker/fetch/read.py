"""Reading of many partitions within byte limits (KIP-74), and the offsets that a client may read (`ReplicaManager.readFromLog`).

There is a limit for the request and one for each partition. The first partition that returns bytes returns at least one whole record batch, even if
this batch exceeds both limits, so that a consumer always makes progress (F-4 to F-13). This module does not depend on wire messages, sessions or
client quotas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkaproto.broker.log.errors import OffsetOutOfRange
from kafkaproto.broker.log.transaction_index import AbortedTransaction
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
    """The parameters of a Fetch request that apply to all its partitions.

    replica_id: the broker id of a follower; negative for a consumer. read_committed: whether the client reads only committed transactions. client:
    the rack and address of a consumer that may be sent to a closer replica (KIP-392). It is None for followers, for Fetch versions before 11, and if
    the broker has no replica selector. from_follower: whether a follower sent the request.
    """

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
    """One partition of a fetch request. error: the code of an error detected before reading (F-23); if it is not 0, the other fields have no meaning.

    offset: the first offset to read. log_start_offset: the log start offset of a follower. leader_epoch: the current leader epoch as the client
    knows it; a different epoch at the broker is an error. last_epoch: the epoch of the last record that the client has. `log_start_offset`,
    `leader_epoch` and `last_epoch` are -1 if the client did not send them.
    """

    topic: str
    index: int
    offset: int
    max_bytes: int
    log_start_offset: int
    leader_epoch: int
    last_epoch: int
    error: int = 0


@dataclass(slots=True)
class PartitionRead:
    """The result of reading one partition. An offset is -1 if the response does not report it.

    records: bytes or a range of a file; None if the client's Fetch version does not support the format of the records. size_bytes: the size of
    `records`. preferred_read_replica: the broker id of a closer replica, from which the consumer should fetch; -1 for none. diverging_end: (epoch,
    end offset of this epoch in the broker's log); the client must truncate its log to this end offset; None if the logs do not diverge (F-26).
    lists_aborted: True if the response contains the list `aborted` of aborted transactions, even an empty one; False if it contains null (F-20).
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
    aborted: Sequence[AbortedTransaction] = ()

    @property
    def has_records(self) -> bool:
        return self.size_bytes > 0

    @property
    def diverging(self) -> bool:
        return self.diverging_end is not None


def failed(error_code: int) -> PartitionRead:
    """Return the result of a read that failed: the error, without offsets and records (F-16, F-19)."""
    return PartitionRead(error_code=int(error_code))


def refused(error_code: int) -> PartitionRead:
    """Return a result for a client whose Fetch version does not support the format of the records (F-22).

    The result has `error_code`, no offsets, null instead of records, and an empty list of aborted transactions.
    """
    return PartitionRead(error_code=int(error_code), records=None, lists_aborted=True)


class Reader:
    """Reads the partitions of one broker. strict_kip: whether to follow the KIPs where they differ from Kafka's code (D1 to D3, D5)."""

    def __init__(self, replicas: ReplicaManager, strict_kip: bool) -> None:
        self._replicas = replicas
        self._strict_kip = strict_kip

    def read_all(
        self, params: FetchParams, fetches: Sequence[PartitionFetch], image: Image, now_ms: int
    ) -> list[PartitionRead]:
        """Read all partitions in order (F-6 to F-11). Once the byte limit is reached, further results have no records, but current offsets.

        params: the parameters of the Fetch request, such as its byte limit. fetches: the requested partitions; the results have the same order.
        image: the metadata of the cluster, from which a replica closer to a consumer is chosen.
        """
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
        """Read one partition, after the checks of leader epoch, leadership, replica membership and offset, in Kafka's order (F-24).

        params, fetch: the parameters of the Fetch request, and its entry for this partition. remaining: the bytes left of the request's limit.
        privileged: whether the first batch is returned even if it exceeds the limits (F-7). image: the metadata of the cluster, from which a replica
        closer to a consumer is chosen.
        """
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
        """Return the error code if leader epoch, leadership or replica membership forbid reading (F-21, F-24, F-25), otherwise 0.

        params, fetch: the parameters of the Fetch request, and its entry for this partition.
        """
        error = partition.check_leader_epoch(fetch.leader_epoch)
        if error:
            return error
        leader_only = params.from_follower or params.version < FIRST_VERSION_WITH_CLIENT_METADATA
        if leader_only and not partition.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        # A leader is not a follower of itself either (`Partition.followerReplicaOrThrow`).
        if params.from_follower and params.replica_id not in partition.followers:
            has_epoch = fetch.leader_epoch >= 0
            return ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
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
            # F-13: a negative limit is a server error if there is something to read, and ignored otherwise.
            readable = log.bytes_between(fetch.offset, self.bound(params, partition)) > 0
            return failed(ErrorCode.UNKNOWN_SERVER_ERROR) if readable else result
        if params.replica_id >= 0 and self.throttles(params, partition, now_ms):
            return result
        part = log.read(fetch.offset, limit, self.bound(params, partition), at_least_one=privileged)
        result.records = part.records
        result.size_bytes = part.size_bytes
        cut_short = 0 < limit < part.first_batch_bytes and not part.size_bytes
        if params.read_committed and not params.from_follower and not cut_short:
            result.lists_aborted = True
            if part.first_batch_bytes:
                result.aborted = log.aborted_transactions(fetch.offset, part.size_bytes)
        return result

    def _out_of_bounds(
        self, params: FetchParams, fetch: PartitionFetch, partition: Partition, result: PartitionRead
    ) -> PartitionRead | None:
        """Return an error result if the requested offset is not readable (F-16, F-17, D1); None if the offset is readable.

        params: the parameters of the Fetch request. fetch: the entry of the request for this partition. result: a result that already contains the
        offsets of this replica. The method sets the error in `result` and returns it, with one exception: if the broker follows Kafka's code instead
        of the KIPs (`semantics=kafka`), OFFSET_OUT_OF_RANGE is returned in a new result without offsets.
        """
        log, offset = partition.log, fetch.offset
        high_watermark = log.high_watermark  # under `kip` a follower's high watermark may be beyond its log end (D2)
        if log.log_start_offset <= offset <= log.log_end_offset:
            if not self._strict_kip or params.from_follower or offset <= high_watermark:
                return None
            result.error_code = int(ErrorCode.OFFSET_NOT_AVAILABLE)
            return result
        if self._strict_kip and not partition.is_leader and log.log_end_offset < offset <= high_watermark:
            result.error_code = int(ErrorCode.OFFSET_NOT_AVAILABLE)
            return result
        return self._out_of_range(result)

    def _out_of_range(self, result: PartitionRead) -> PartitionRead:
        """Return a result with the error OFFSET_OUT_OF_RANGE (1) (D3).

        result: a result that already contains the replica's offsets. If the broker follows the KIPs (the setting `semantics=kip`), the error is set
        in `result`, which keeps these offsets. If it follows Kafka's code, a new result without offsets is returned.
        """
        if not self._strict_kip:
            return failed(ErrorCode.OFFSET_OUT_OF_RANGE)
        result.error_code = int(ErrorCode.OFFSET_OUT_OF_RANGE)
        return result

    def throttles(self, params: FetchParams, partition: Partition, now_ms: int) -> bool:
        """Return whether the replication quota withholds the records of a partition from a follower now (R-4).

        The records are never withheld from in-sync followers (D11). Call this only for followers: replication quotas never affect consumers (R-8).
        params: the parameters of the follower's Fetch request.
        """
        quota = self._replicas.leader_quota
        return (
            quota.active
            and params.replica_id not in partition.isr
            and quota.lists(partition.topic, partition.index)
            and quota.exceeded(now_ms)
        )

    def has_stale_high_watermark(self, params: FetchParams, partition: Partition) -> bool:
        """Return whether the high watermark that a follower knows is out of date, so that its fetch must not wait (D5).

        Always False if the broker follows Kafka's code instead of the KIPs (`semantics=kafka`), and for consumers. params: the parameters of the
        Fetch request.
        """
        if not self._strict_kip or not params.from_follower:
            return False
        follower = partition.followers.get(params.replica_id)
        return follower is not None and follower.high_watermark != partition.log.high_watermark

    def _offsets(self, partition: Partition) -> PartitionRead:
        high_watermark = min(partition.log.high_watermark, partition.log.log_end_offset)
        if self._strict_kip and not partition.is_leader:
            high_watermark = partition.log.high_watermark
        return PartitionRead(
            0, high_watermark, min(high_watermark, partition.log.last_stable_offset), partition.log.log_start_offset
        )

    def bound(self, params: FetchParams, partition: Partition) -> int:
        """Return the first offset that the client of this fetch must not see, such as the high watermark for a consumer (F-15).

        For a follower, this is the log end offset. params: the parameters of the Fetch request, such as the isolation level.
        """
        log = partition.log
        if params.from_follower:
            return log.log_end_offset
        stable = log.last_stable_offset if params.read_committed else log.high_watermark
        return min(stable, log.log_end_offset)
