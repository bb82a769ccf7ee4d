"""The committed offsets of groups: which members may commit them, and how they are fetched and deleted.

This module does not depend on wire messages. Corresponds to the offset half of Kafka's `GroupCoordinator` and `GroupMetadataManager`.
`transactional_commits` handles offsets that are committed in transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from kafkaproto.broker.group.consumer_group import ConsumerGroup, ConsumerMember
from kafkaproto.broker.group.deletions import Deletions
from kafkaproto.broker.group.group import Group, GroupState
from kafkaproto.broker.group.migration import AnyGroup
from kafkaproto.broker.group.offsets import NO_TOPIC_ID, CommittedOffset, PartitionKey, split_by_metadata
from kafkaproto.broker.group.partition_table import PartitionTable
from kafkaproto.broker.group.rebalance import Rebalance
from kafkaproto.broker.group.registry import Registry
from kafkaproto.broker.group.repeated_offsets import OffsetsToStore, parts_to_write
from kafkaproto.broker.group.results import UNKNOWN_MEMBER_ID
from kafkaproto.broker.group.settings import ConsumerGroupSettings
from kafkaproto.broker.group.storage import DeletionReply, GroupStorage, gathered
from kafkaproto.broker.group.subscription import CONSUMER_PROTOCOL
from kafkaproto.broker.group.transactional_commits import TransactionalCommits
from kafkaproto.error_codes import ErrorCode

OffsetDeletionReply = Callable[[dict[PartitionKey, int] | int, int], None]
"""A function that is called once, with the result and the current time (ms).

The result is a dict of partitions to error codes, or a single error code for the whole group.
"""
CommitReply = Callable[[dict[PartitionKey, int], int], None]
"""A function that is called once, with an error code for each partition and the current time (ms)."""


class Commits:
    """The committed offsets of the groups of a broker.

    rebalance: provides the settings and the session timers of members. consumers: the settings of the new protocol (KIP-848), which also say whether
    the rules of Kafka 4.0 and 4.1 apply.
    """

    def __init__(
        self,
        groups: Registry,
        rebalance: Rebalance,
        storage: GroupStorage,
        consumers: ConsumerGroupSettings,
    ) -> None:
        self._groups = groups
        self._rebalance = rebalance
        self._storage = storage
        self._is_release_4 = consumers.is_release_4
        self._deletes_share_groups_first = consumers.is_release_4_1
        self.transactional = TransactionalCommits(
            groups,
            storage,
            lambda: rebalance.settings.offset_metadata_max_bytes,
            is_release_4=consumers.is_release_4,
        )
        """Handles offsets that producers commit in transactions."""
        self.deletions = Deletions(groups, storage, is_release_4=consumers.is_release_4)
        """Deletes groups and offsets at once, without waiting for replicas."""

    def commit(
        self,
        group_id: str,
        generation_id: int,
        member_id: str,
        group_instance_id: str | None,
        offsets: Mapping[PartitionKey, CommittedOffset],
        now_ms: int,
        reply: CommitReply,
        *,
        has_member_epoch: bool = True,
    ) -> None:
        """Store offsets for OffsetCommit. `reply` is called with an error code for each partition when the offsets are replicated.

        A client that stores offsets without joining the group sends a generation_id of -1 and an empty member id. This is allowed while the group has
        no members. has_member_epoch: whether the version of the request (9 or later) has a member epoch; without one, a group of the new protocol
        (KIP-848) rejects the request. group_instance_id: None for a dynamic member.
        """
        group = self._groups.get_any(group_id)
        if group is None:
            if generation_id >= 0:
                not_found = self._storage.is_new_coordinator and has_member_epoch
                unknown = ErrorCode.GROUP_ID_NOT_FOUND if not_found else ErrorCode.ILLEGAL_GENERATION
                reply(dict.fromkeys(offsets, unknown), now_ms)
                return
            group = self._groups.create(group_id, now_ms)
        if isinstance(group, ConsumerGroup):
            error = _refusal_of_consumer(group, generation_id, member_id, has_member_epoch=has_member_epoch)
        else:
            error = _refusal(group, generation_id, member_id, group_instance_id)
        if error:
            reply(dict.fromkeys(offsets, error), now_ms)
            return
        if isinstance(group, Group) and not group.is_in(GroupState.EMPTY):
            self._rebalance.sessions.restart_timeout(group, group.members[member_id], now_ms)
        self._store(group, offsets, now_ms, reply)

    def to_store(self, offsets: Sequence[tuple[PartitionKey, CommittedOffset]], *, checks_each: bool) -> OffsetsToStore:
        """Return the offset to store for each partition of a request. The request may name a partition more than once.

        checks_each: how to choose from several offsets of a partition. False chooses the last one. True, as in Kafka's group coordinator in Java
        (default from 4.0 on), chooses the last one whose metadata is not too long, or the last of all if the metadata of each is too long (GO-15,
        GO-21).
        """
        return OffsetsToStore(offsets, self._rebalance.settings.offset_metadata_max_bytes, checks_each=checks_each)

    def fetch(
        self,
        group_id: str,
        partitions: Iterable[PartitionKey] | None,
        topic_ids: Mapping[str, bytes] | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[PartitionKey, CommittedOffset | None]:
        """Return the committed offset of each partition for OffsetFetch, None for a partition without one. The state of the group does not matter.

        partitions: None for all partitions that have a committed offset; with Kafka's group coordinator in Java (default from 4.0 on), they are in
        the order of its tables (GO-36). topic_ids: maps the names of topics that the request names by id to their ids. An offset that was committed
        for another id, because the topic was deleted and created again, is returned as None (GO-34).
        require_stable: True uses the newest state of the group, False the state up to the high watermark, in which a group that was just created may
        be missing, and a deleted offset may still exist (GC-66). With Kafka's group coordinator in Scala (3.9), commits that are not replicated yet
        are ignored in both cases.
        """
        if require_stable:
            group = self._groups.get_any(group_id)
            offsets: PartitionTable[CommittedOffset] = PartitionTable() if group is None else group.offsets
        else:
            offsets = self._groups.visible.offsets(group_id)
        if partitions is None:
            return dict(offsets.in_table_order() if self._storage.is_new_coordinator else offsets)
        fetched_offsets = {key: offsets.get(key) for key in partitions}
        if topic_ids:
            for key, committed in fetched_offsets.items():
                if committed is not None and not committed.belongs_to(topic_ids.get(key[0], NO_TOPIC_ID)):
                    fetched_offsets[key] = None
        return fetched_offsets

    def refuses_fetch(
        self, group_id: str, member_id: str | None, member_epoch: int, *, require_stable: bool = False
    ) -> int:
        """Return the error code with which an OffsetFetch with this member id and member epoch is rejected, or 0 if it is allowed (GO-31).

        Only groups of the new protocol (KIP-848) check the id and the epoch. A client that is not a member sends None as its member id and -1 as its
        epoch. Any other epoch without a member id gets UNKNOWN_SERVER_ERROR (-1), as in Kafka. require_stable: whether to check the newest state of
        the group instead of the state up to the high watermark.
        """
        group = self._groups.get_any(group_id) if require_stable else self._groups.visible.get(group_id)
        if not isinstance(group, ConsumerGroup) or (member_id is None and member_epoch < 0):
            return ErrorCode.NONE
        if member_id is None:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        member = group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return _check_epoch(member, member_epoch)

    def unstable(self, group_id: str) -> Collection[PartitionKey]:
        """Return the partitions of a group for which an OffsetFetch with `require_stable` gets UNSTABLE_OFFSET_COMMIT (GO-29).

        These are the partitions with a commit in an open transaction. With Kafka's group coordinator in Scala, partitions with a commit that is not
        replicated yet are included. With the coordinator in Java (default from 4.0 on) these are not included, because OffsetFetch waits for such
        commits first (`await_stable`).
        """
        group = self._groups.get_any(group_id)
        if group is None:
            return ()
        pending = group.pending_offsets.partitions()
        return pending.keys() | group.staged.keys() if group.staged else pending

    def await_stable(self, group_id: str, now_ms: int, done: Callable[[int, int], None]) -> None:
        """Call `done` with an error code and the current time (ms) when all earlier changes of the group are replicated (GO-29).

        Waits for all records that the group's partition of `__consumer_offsets` contains now. Does not wait for the end of open transactions. The
        error is NOT_COORDINATOR if the changes cannot be replicated. Before 4.0, it is REQUEST_TIMED_OUT if replication takes longer than
        `offsets.commit.timeout.ms`.
        """

        def stored(error_code: int, at_ms: int) -> None:
            is_timeout = error_code == ErrorCode.REQUEST_TIMED_OUT and not self._is_release_4
            done(error_code if is_timeout or not error_code else ErrorCode.NOT_COORDINATOR, at_ms)

        self._storage.await_writes(group_id, now_ms, stored, errors={})

    def delete(self, group_id: str, keys: Sequence[PartitionKey], now_ms: int, reply: OffsetDeletionReply) -> None:
        """Delete a group's committed offsets of the partitions `keys`, which may contain a partition more than once (GO-9).

        Kafka's group coordinator in Scala also deletes the group if it then has neither members nor offsets (GC-64). `reply` gets an error code for
        each partition, or a single error code for the whole group (GC-60). `reply` is called at once, or, if the broker emulates Kafka's group
        coordinator in Java (default from 4.0 on), when the tombstones are replicated.
        """
        results = self._delete(group_id, keys, now_ms)
        if isinstance(results, int):
            reply(results, now_ms)
            return

        def stored(errors: dict[str, int], at_ms: int) -> None:
            reply(errors[group_id] or results, at_ms)

        self._storage.await_tombstones([group_id], now_ms, stored)

    def delete_groups(self, group_ids: Sequence[str], now_ms: int, reply: DeletionReply) -> None:
        """Delete groups with their offsets. Only groups without members can be deleted (GC-59).

        `reply` gets an error code for each group id. `reply` is called at once, or, if the broker emulates Kafka's group coordinator in Java (default
        from 4.0 on), when the tombstones are replicated.

        From 4.1 on, groups are checked and deleted only after all earlier records in their partitions of `__consumer_offsets` are replicated. Groups
        for which this wait fails are not deleted. Kafka waits because it deletes share groups first; this broker has no share groups, but waits as
        well.
        """
        if not self._deletes_share_groups_first:
            self._delete_groups(group_ids, now_ms, reply)
            return
        add_results = gathered(set(group_ids), now_ms, reply)

        def replicated(partition_ids: Sequence[str], error_code: int, at_ms: int) -> None:
            if error_code:
                add_results(dict.fromkeys(partition_ids, error_code), at_ms)
            else:
                self._delete_groups(partition_ids, at_ms, add_results)

        by_partition: dict[int, list[str]] = {}
        for group_id in dict.fromkeys(group_ids):
            by_partition.setdefault(self._storage.partition_of(group_id), []).append(group_id)
        for partition_ids in by_partition.values():
            self._storage.await_writes(partition_ids[0], now_ms, partial(replicated, partition_ids))

    def _delete_groups(self, group_ids: Sequence[str], now_ms: int, reply: DeletionReply) -> None:
        results = self.deletions.delete_groups(group_ids, now_ms)

        def stored(errors: dict[str, int], at_ms: int) -> None:
            reply({group_id: errors[group_id] or error for group_id, error in results.items()}, at_ms)

        self._storage.await_tombstones(results, now_ms, stored)

    def _delete(self, group_id: str, keys: Sequence[PartitionKey], now_ms: int) -> dict[PartitionKey, int] | int:
        group = self._groups.get_any(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if isinstance(group, Group) and not group.is_in(GroupState.EMPTY) and group.protocol_type != CONSUMER_PROTOCOL:
            return ErrorCode.NON_EMPTY_GROUP
        results = {key: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.reads(key[0]) else ErrorCode.NONE for key in keys}
        deletable = [key for key in keys if not results[key]]
        failure = self.deletions.delete_offsets(group, deletable, now_ms) if deletable else ErrorCode.NONE
        if failure:
            return failure
        return {key: int(error) for key, error in results.items()}

    def _store(
        self, group: AnyGroup, offsets: Mapping[PartitionKey, CommittedOffset], now_ms: int, reply: CommitReply
    ) -> None:
        accepted, results = split_by_metadata(
            offsets,
            self._rebalance.settings.offset_metadata_max_bytes,
            in_scala_order=not self._storage.is_new_coordinator,
        )
        if not accepted:
            self._storage.await_writes(
                group.group_id,
                now_ms,
                lambda error, at_ms: reply(dict.fromkeys(results, error) if error else results, at_ms),
            )
            return
        parts = parts_to_write(offsets, accepted)
        entries = self._storage.offset_entries(group.group_id, parts)  # raises before the commit is staged
        is_scala = not self._storage.is_new_coordinator
        last_number = group.pending_offsets.last_number
        if is_scala:
            group.staged.update(accepted)

        def take_effect() -> None:
            # A group that was converted to the other protocol meanwhile has the same offsets.
            for part in parts:
                effective = {key: part[key] for key in part if key in group.staged} if is_scala else part
                group.offsets.put_all(effective)
                if group.pending_offsets:
                    group.pending_offsets.supersede(effective, last_number)
            self._groups.with_offsets.update(group)

        def stored(error_code: int, at_ms: int) -> None:
            if is_scala:
                for key in [key for key in accepted if group.staged.get(key) is accepted[key]]:
                    del group.staged[key]
            reply(results | dict.fromkeys(accepted, error_code), at_ms)

        self._storage.store_offsets(group.group_id, parts, now_ms, stored, entries=entries, take_effect=take_effect)


def _refusal(group: Group, generation_id: int, member_id: str, instance_id: str | None) -> int:
    """Return the error code with which a classic group rejects an offset commit, or 0 if the commit is allowed.

    A client that is not a member of the group sends a generation_id below 0 and an empty member_id. instance_id: the `group.instance.id`, None for a
    dynamic member.
    """
    if generation_id < 0 and group.is_in(GroupState.EMPTY):
        return ErrorCode.NONE
    if generation_id < 0 and member_id == UNKNOWN_MEMBER_ID and instance_id is None:
        # While there are members, only they commit.
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.not_a_member(member_id, instance_id)
    if error:
        return error
    if generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if group.is_in(GroupState.COMPLETING_REBALANCE):
        # It has a valid generation, so it has joined again, and should commit only after it was assigned partitions.
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _refusal_of_consumer(group: ConsumerGroup, member_epoch: int, member_id: str, *, has_member_epoch: bool) -> int:
    """Return the error code with which a group of the new protocol (KIP-848) rejects an offset commit, or 0 if it is allowed (SN-36).

    has_member_epoch: whether the version of the request has a member epoch (9 and later).
    """
    if member_epoch < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not has_member_epoch and member.classic is None:
        return ErrorCode.UNSUPPORTED_VERSION
    return _check_epoch(member, member_epoch)


def _check_epoch(member: ConsumerMember, member_epoch: int) -> int:
    """Return 0 if `member_epoch` is the current epoch of the member, otherwise an error code (GN-56).

    The code is STALE_MEMBER_EPOCH for a member of the new protocol (KIP-848) and ILLEGAL_GENERATION for one of the classic protocol.
    """
    if member_epoch == member.current.epoch:
        return ErrorCode.NONE
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
