"""Offsets that producers commit in transactions (TxnOffsetCommit): which commits are allowed, and what happens when a transaction ends.

Corresponds to `commitTransactionalOffsets` and `completeTransaction` of Kafka's group coordinator (TX-41 to TX-43, TX-45). This module does not
depend on wire messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.group import Group, GroupState
from kafkaproto.broker.group.migration import AnyGroup
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey, split_by_metadata
from kafkaproto.broker.group.registry import Registry
from kafkaproto.broker.group.repeated_offsets import parts_to_write
from kafkaproto.broker.group.results import UNKNOWN_MEMBER_ID, TransactionalCommit
from kafkaproto.broker.group.storage import GroupStorage, Stored
from kafkaproto.error_codes import ErrorCode

NO_EPOCH = -1
CommitReply = Callable[[dict[PartitionKey, int], int], None]
"""A function that is called once, with an error code for each partition and the current time (ms)."""


class TransactionalCommits:
    """Handles offsets that producers commit in transactions, for the groups of one broker.

    max_metadata_bytes: a function that returns `offset.metadata.max.bytes`. is_release_4: whether the rules of Kafka 4.0 and later apply.
    """

    def __init__(
        self,
        groups: Registry,
        storage: GroupStorage,
        max_metadata_bytes: Callable[[], int],
        *,
        is_release_4: bool = False,
    ) -> None:
        self._groups = groups
        self._storage = storage
        self._max_metadata_bytes = max_metadata_bytes
        self._is_release_4 = is_release_4

    def prepare(self, group_id: str, now_ms: int) -> None:
        """Create the group if it does not exist, as the coordinator of Kafka 3.9 does before it verifies the transaction of a commit (TX-42)."""
        if not self._storage.is_new_coordinator and self._groups.get_any(group_id) is None:
            self._groups.create(group_id, now_ms)

    def commit(
        self,
        request: TransactionalCommit,
        offsets: Mapping[PartitionKey, CommittedOffset],
        now_ms: int,
        reply: CommitReply,
    ) -> None:
        """Store offsets as a part of the producer's transaction.

        `reply` is called with an error code for each partition when the offsets are replicated. Raises KafkaError UNKNOWN_SERVER_ERROR (-1) for
        epoch -1 with the coordinator in Scala: there, an exception fails the whole request (TX-43).
        """
        group = self._groups.get_any(request.group_id)
        if group is None and request.generation_id >= 0 and self._storage.is_new_coordinator:
            reply(dict.fromkeys(offsets, int(ErrorCode.ILLEGAL_GENERATION)), now_ms)
            return
        if group is None:
            group = self._groups.create(request.group_id, now_ms)
        if isinstance(group, ConsumerGroup):
            error = _refusal_of_consumer(group, request, is_release_4=self._is_release_4)
        else:
            error = _refusal(group, request)
        if error:
            reply(dict.fromkeys(offsets, error), now_ms)
            return
        accepted, results = split_by_metadata(
            offsets, self._max_metadata_bytes(), in_scala_order=not self._storage.is_new_coordinator
        )
        if not accepted:
            self._storage.await_writes(
                group.group_id,
                now_ms,
                lambda error, at_ms: reply(dict.fromkeys(results, error) if error else results, at_ms),
            )
            return
        if request.producer_epoch == NO_EPOCH and not self._storage.is_new_coordinator:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        self._store(
            group,
            request,
            parts_to_write(offsets, accepted),
            now_ms,
            lambda error, at_ms: reply(results | dict.fromkeys(accepted, error), at_ms),
        )

    def _store(
        self,
        group: AnyGroup,
        request: TransactionalCommit,
        parts: Sequence[Mapping[PartitionKey, CommittedOffset]],
        now_ms: int,
        replicated: Stored,
    ) -> None:
        """Write the accepted offsets of a request. parts: these offsets, as `parts_to_write` returns them.

        With Kafka's group coordinator in Java (default from 4.0 on), the offsets become pending as soon as they are in the log. With the one in
        Scala, they become pending before they are written, and are dropped if they cannot be replicated. replicated: called with (error code, current
        time in ms); the code is 0 when the offsets are replicated.
        """
        entries = self._storage.offset_entries(group.group_id, parts)  # raises before the offsets are pending
        is_java = self._storage.is_new_coordinator

        def become_pending() -> None:
            for part in parts:
                group.pending_offsets.add(request.producer_id, part)
            self._groups.pending_groups.add(request.group_id, [request.producer_id])

        def stored(error_code: int, at_ms: int) -> None:
            if error_code and not is_java and self._groups.get_any(request.group_id) is group:
                for part in parts:
                    group.pending_offsets.drop(request.producer_id, part)
                if request.producer_id not in group.pending_offsets:
                    self._groups.pending_groups.remove(request.group_id, [request.producer_id])
            replicated(error_code, at_ms)

        if not is_java:
            become_pending()
        producer = request.producer_id, request.producer_epoch
        self._storage.store_offsets(
            request.group_id,
            parts,
            now_ms,
            stored,
            entries=entries,
            take_effect=become_pending if is_java else lambda: None,
            producer=producer,
        )

    def end(self, index: int, producer_id: int, *, committed: bool, now_ms: int) -> None:
        """End the transaction of a producer for the groups that partition `index` of `__consumer_offsets` stores (TX-43).

        committed: whether the pending offsets of the producer become committed offsets; otherwise they are dropped.
        """
        for group_id in self._groups.pending_groups.of(producer_id):
            if self._storage.partition_of(group_id) != index:
                continue
            self._groups.pending_groups.remove(group_id, [producer_id])
            self._groups.visible.committed.end_transaction(group_id, producer_id, committed=committed)
            group = self._groups.get_kept(group_id)
            if group is not None:
                group.offsets.update(group.pending_offsets.end(producer_id, committed=committed))
                self._groups.with_offsets.update(group)


def _refusal_of_consumer(group: ConsumerGroup, request: TransactionalCommit, *, is_release_4: bool) -> int:
    """Return the error code with which a group of the new protocol (KIP-848) refuses an offset commit, or 0 if the commit is allowed (TX-42).

    is_release_4: whether the rules of Kafka 4.0 apply. These rules allow a commit that names no member, even if the group has members; earlier rules
    allow it only if the group has no members.
    """
    if request.generation_id < 0 and not group.members:
        return ErrorCode.NONE
    if is_release_4 and request.generation_id == NO_EPOCH and _names_no_member(request):
        return ErrorCode.NONE
    member = group.members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    is_current = request.generation_id == member.current.epoch
    return ErrorCode.NONE if is_current else ErrorCode.ILLEGAL_GENERATION


def _names_no_member(request: TransactionalCommit) -> bool:
    return request.member_id == UNKNOWN_MEMBER_ID and request.group_instance_id is None


def _refusal(group: Group, request: TransactionalCommit) -> int:
    """Return the error code with which a classic group rejects an offset commit, or 0 if the commit is allowed (TX-42)."""
    if request.generation_id < 0 and _names_no_member(request):
        return ErrorCode.NONE
    if group.is_in(GroupState.EMPTY) and request.generation_id < 0:
        return ErrorCode.NONE
    return group.not_a_member(request.member_id, request.group_instance_id) or group.other_generation(
        request.generation_id
    )
