"""Stores groups and committed offsets in the group's partition of `__consumer_offsets`, and loads them from it.

This module translates the errors of the log into those that clients get (GC-39, GO-23). Corresponds to the writing half of Kafka's
`GroupMetadataManager`. This module does not depend on timers or clients.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from kafkaproto.broker.group import consumer_records
from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.group import Group
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.pending_offsets import PendingOffsets
from kafkaproto.broker.group.records import (
    KAFKA_3_9,
    ConsumerRecord,
    Entry,
    GroupRecord,
    OffsetRecord,
    RecordVersions,
    StoredGroup,
    StoredMember,
    group_entry,
    offset_entry,
    parse,
)
from kafkaproto.broker.group.results import ALWAYS
from kafkaproto.broker.runtime.internal_topics import LOG_ERRORS, KeyedRecord
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError

logger = logging.getLogger("kafkaproto.groups")

DeletionReply = Callable[[dict[str, int], int], None]
"""A function that is called with (error code by group id, time in ms) when the deletion of groups is stored."""
Stored = Callable[[int, int], None]
"""A function that is called once, with an error code (0: stored) and the current time (ms)."""

_TOO_LARGE = ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE
_COMMIT_ERRORS: dict[int, int] = {
    **LOG_ERRORS,
    **dict.fromkeys(_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
}
"""Maps errors of the log to the errors of OffsetCommit in Kafka's old group coordinator; the new one uses `_GROUP_ERRORS` (GO-23)."""
_GROUP_ERRORS: dict[int, int] = {
    **LOG_ERRORS,
    **dict.fromkeys(_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


class LoggedRecord(KeyedRecord, Protocol):
    """Interface of a record that was read from `__consumer_offsets`."""

    @property
    def producer_id(self) -> int:
        """Return the id of the producer to whose transaction this record or transaction marker belongs; -1 for a record outside transactions."""
        ...

    @property
    def ends(self) -> bool | None:
        """Return how the record ends a transaction: True for a marker that commits it, False for one that aborts it, None for a record with data."""
        ...


class OffsetsLog(Protocol):
    """Interface of the offsets topic on one broker (`replication.coordinator_log`)."""

    def append(
        self,
        index: int,
        entries: Sequence[Entry],
        now_ms: int,
        done: Stored,
        *,
        producer: tuple[int, int] | None = None,
    ) -> None:
        """Append records to partition `index` of the offsets topic. `done` is called when they are replicated, or with an error.

        entries: the records as (key, value); a value of None is a tombstone. producer: the (producer id, epoch) in whose transaction the records
        are; None for no transaction.
        """

    def append_only(self, index: int, entries: Sequence[Entry], now_ms: int) -> int:
        """Append records to partition `index` of the offsets topic without waiting for replicas. Returns the error code, 0 if they were appended.

        entries: the records as (key, value); a value of None is a tombstone.
        """
        ...

    def await_replicated(self, index: int, now_ms: int, done: Stored) -> None:
        """Call `done` when all present records of partition `index` of the offsets topic are replicated, or with an error if they cannot be."""

    def read(self, index: int) -> Iterable[LoggedRecord]:
        """Return the records of partition `index` of the offsets topic, from its start to its end."""
        ...

    def end_offset(self, index: int) -> int:
        """Return the log end offset of partition `index` of the offsets topic, 0 if this broker does not lead it."""
        ...

    def high_watermark(self, index: int) -> int:
        """Return the high watermark of partition `index` of the offsets topic, 0 if this broker does not lead it."""
        ...


class Loaded(NamedTuple):
    """The latest state of every group in a partition of `__consumer_offsets`. Each field maps group ids to their data.

    offsets: committed offsets. groups: stored generations of classic groups. consumers: groups of the new protocol. pending: offsets of open
    transactions.
    """

    offsets: dict[str, dict[PartitionKey, CommittedOffset]]
    groups: dict[str, StoredGroup]
    consumers: dict[str, ConsumerGroup]
    pending: dict[str, PendingOffsets]


class GroupStorage:
    """Writes groups and offsets to the offsets topic, `log`. partition_of: returns a group's partition index; -1 if the topic does not exist.

    is_new_coordinator: whether the broker emulates Kafka's new group coordinator (default from 4.0 on), which also stores classic groups before
    their first generation. If `log` is None, as in tests of the coordinator alone, every write succeeds at once.
    """

    def __init__(
        self,
        log: OffsetsLog | None,
        partition_of: Callable[[str], int],
        versions: RecordVersions = KAFKA_3_9,
        *,
        is_new_coordinator: bool = False,
    ) -> None:
        self._log = log
        self.is_new_coordinator = is_new_coordinator
        self.partition_of = partition_of
        self._versions = versions

    def store_offsets(
        self,
        group_id: str,
        offsets: Mapping[PartitionKey, CommittedOffset],
        now_ms: int,
        stored: Stored,
        *,
        producer: tuple[int, int] | None = None,
    ) -> None:
        """Store committed offsets as one batch. `stored` is called with the error code for the OffsetCommit response.

        producer: the (producer id, epoch) in whose transaction the offsets are committed; None for no transaction.
        """
        entries = [offset_entry(group_id, key, committed, self._versions) for key, committed in offsets.items()]
        errors = _GROUP_ERRORS if self.is_new_coordinator else _COMMIT_ERRORS

        def done(error: int, at_ms: int) -> None:
            stored(errors.get(error, error), at_ms)

        if producer is None or self._log is None:
            self._append(group_id, entries, now_ms, done)
        else:
            self._log.append(self.partition_of(group_id), entries, now_ms, done, producer=producer)

    def store_group(self, group: Group, assignments: Mapping[str, bytes], now_ms: int, stored: Stored) -> None:
        """Store the current generation with `assignments` by member id. `stored` is called with the error code for JoinGroup and SyncGroup."""
        entry = group_entry(group.group_id, snapshot(group, assignments), self._versions)
        self._append(
            group.group_id, [entry], now_ms, lambda error, at_ms: stored(_GROUP_ERRORS.get(error, error), at_ms)
        )

    def delete(
        self, group: Group | ConsumerGroup, keys: Iterable[PartitionKey], now_ms: int, *, group_too: bool
    ) -> int:
        """Write tombstones for the offsets that a group committed for the partitions `keys`, without waiting for replicas (GO-9).

        group_too: whether to write tombstones for the group itself, too. Returns an error code. It is always 0 if the broker emulates Kafka's old
        group coordinator, which deletes offsets and groups even if their tombstones cannot be written.
        """
        entries = [offset_entry(group.group_id, key, None, self._versions) for key in keys]
        if group_too:
            entries += self.tombstones(group)
        error = self._append_only(group.group_id, entries, now_ms)
        return error if self.is_new_coordinator else ErrorCode.NONE

    def tombstones(self, group: Group | ConsumerGroup) -> list[Entry]:
        """Return the tombstones of a group's own records, without those of its offsets.

        Kafka's old group coordinator (3.9) stores a classic group only from its first generation on; before that, the list is empty.
        """
        if isinstance(group, ConsumerGroup):
            return consumer_records.group_tombstones(group)
        is_stored = group.generation_id > 0 or self.is_new_coordinator
        return [group_entry(group.group_id, None, self._versions)] if is_stored else []

    def store_created(self, group: Group, replaced: ConsumerGroup | None, now_ms: int) -> int:
        """Store a classic group that its first member creates, without waiting for replicas. Returns the error code.

        Does nothing unless the broker emulates Kafka's new group coordinator (default from 4.0 on). replaced: the empty group of the new protocol
        that the classic group replaces, None if there is none.
        """
        if not self.is_new_coordinator:
            return ErrorCode.NONE
        tombstones = [] if replaced is None else self.tombstones(replaced)
        return self._append_only(group.group_id, [*tombstones, self.entry_of(group)], now_ms)

    def _append_only(self, group_id: str, entries: Sequence[Entry], now_ms: int) -> int:
        if not entries or self._log is None:
            return ErrorCode.NONE
        error = self._log.append_only(self.partition_of(group_id), entries, now_ms)
        return _GROUP_ERRORS.get(error, error)

    def entry_of(self, group: Group) -> Entry:
        """Return the record of a classic group's current generation with the assignments of its members."""
        assignments = {member.member_id: member.assignment for member in group.members.values()}
        return group_entry(group.group_id, snapshot(group, assignments), self._versions)

    def store_now(self, group: Group, now_ms: int) -> int:
        """Store a group with its offsets without waiting for replicas. Returns the log's error code, 0 if the leader has the records."""
        entries = [offset_entry(group.group_id, *entry, self._versions) for entry in group.offsets.items()]
        if group.protocol_type is not None:
            entries.append(group_entry(group.group_id, snapshot(group, {}), self._versions))
        return 0 if self._log is None else self._log.append_only(self.partition_of(group.group_id), entries, now_ms)

    def load(self, index: int) -> Loaded:
        """Return the groups that the records of partition `index` of `__consumer_offsets` contain (GO-11). Damaged records are logged and skipped."""
        loaded = Loaded({}, {}, {}, {})
        for record in () if self._log is None else self._log.read(index):
            _apply(loaded, record, index)
        for group in loaded.consumers.values():
            group.set_target(group.targets, group.assignment_epoch)
        return loaded

    def append(self, group_id: str, entries: Sequence[Entry], now_ms: int, stored: Stored) -> None:
        """Store a change of a consumer group. `stored` is called with the error code for the ConsumerGroupHeartbeat response.

        entries: the records of the change, as (key, value); a value of None is a tombstone.
        """
        self._append(group_id, entries, now_ms, lambda error, at_ms: stored(_GROUP_ERRORS.get(error, error), at_ms))

    def await_writes(self, group_id: str, now_ms: int, stored: Stored) -> None:
        """Call `stored` when all records in the group's partition are replicated, or with an error code if they cannot be replicated.

        Requests that write nothing use this method, because their responses may show changes that are not replicated yet, for example those of a
        loaded group.
        """
        if self._log is None:
            stored(ErrorCode.NONE, now_ms)
            return
        index = self.partition_of(group_id)
        self._log.await_replicated(index, now_ms, lambda error, at_ms: stored(_GROUP_ERRORS.get(error, error), at_ms))

    def await_tombstones(self, group_ids: Iterable[str], now_ms: int, done: DeletionReply) -> None:
        """Call `done` with an error code for each group when the tombstones of the groups are replicated.

        If the broker emulates Kafka's old group coordinator (3.9), `done` is called at once, without an error (GC-59, GC-60).
        """
        errors: dict[str, int] = {}
        awaited = set(group_ids)
        if not awaited or not self.is_new_coordinator:
            done(dict.fromkeys(awaited, 0), now_ms)
            return

        def stored(group_id: str, error_code: int, at_ms: int) -> None:
            errors[group_id] = error_code
            if errors.keys() == awaited:
                done(errors, at_ms)

        for group_id in sorted(awaited):
            self.await_writes(group_id, now_ms, partial(stored, group_id))

    def load_group(self, group_id: str) -> Loaded:
        """Load a single group from the records of its partition."""
        loaded = self.load(self.partition_of(group_id))
        for part in loaded:
            for other in [key for key in part if key != group_id]:
                del part[other]
        return loaded

    def end_offset(self, group_id: str) -> int:
        """Return the log end offset of the group's partition. Without a log it is -1 (`ALWAYS`), so that requests see a new group at once."""
        return -1 if self._log is None else self._log.end_offset(self.partition_of(group_id))

    def creation_offset(self, group_id: str) -> int:
        """Return the offset above which the high watermark must be before requests see a new group; -1 (`ALWAYS`) if they see it at once."""
        return self.end_offset(group_id) if self.is_new_coordinator else ALWAYS

    def high_watermark(self, group_id: str) -> int:
        """Return the high watermark of the group's partition."""
        return 0 if self._log is None else self._log.high_watermark(self.partition_of(group_id))

    def _append(self, group_id: str, entries: Sequence[Entry], now_ms: int, stored: Stored) -> None:
        if self._log is None:
            stored(ErrorCode.NONE, now_ms)
        else:
            self._log.append(self.partition_of(group_id), entries, now_ms, stored)


def _apply(loaded: Loaded, record: LoggedRecord, index: int) -> None:
    if record.ends is not None:
        _end_transaction(loaded, record.producer_id, committed=record.ends)
    if record.key is None:
        return
    try:
        parsed = parse(record.key, record.value)
    except DecodeError as error:
        logger.warning("__consumer_offsets-%d: the record at offset %d is skipped: %s", index, record.offset, error)
        return
    if isinstance(parsed, GroupRecord):
        if parsed.group is None:
            loaded.groups.pop(parsed.group_id, None)
        else:
            loaded.groups[parsed.group_id] = parsed.group
            loaded.consumers.pop(parsed.group_id, None)  # a classic group replaces one of the new protocol
    elif isinstance(parsed, ConsumerRecord):
        group = loaded.consumers.setdefault(parsed.group_id, ConsumerGroup(parsed.group_id))
        if not consumer_records.apply(group, parsed.key, parsed.value):
            del loaded.consumers[parsed.group_id]
    elif parsed is not None:
        _apply_offset(loaded, parsed, record.producer_id)


def _apply_offset(loaded: Loaded, parsed: OffsetRecord, producer_id: int) -> None:
    """Apply the record of a committed or deleted offset to `loaded`.

    loaded: the state of all groups as read from the log so far. parsed: the record. producer_id: the producer that committed it in a transaction; -1
    without a transaction.
    """
    group_id, key, committed = parsed
    if producer_id >= 0 and committed is not None:
        loaded.pending.setdefault(group_id, PendingOffsets()).add(producer_id, {key: committed})
        return
    if group_id in loaded.pending:
        if committed is not None:
            loaded.pending[group_id].supersede([key])
        else:
            loaded.pending[group_id].remove([key])
            if not loaded.pending[group_id]:
                del loaded.pending[group_id]
    if committed is not None:
        loaded.offsets.setdefault(group_id, {})[key] = committed
    elif (offsets := loaded.offsets.get(group_id)) is not None:
        offsets.pop(key, None)
        if not offsets:
            del loaded.offsets[group_id]


def _end_transaction(loaded: Loaded, producer_id: int, *, committed: bool) -> None:
    """Apply the marker that ends a producer's transaction to `loaded`, the state of all groups as read so far.

    The pending offsets of the producer are removed. If `committed`, they become committed offsets (TX-43).
    """
    for group_id, pending in list(loaded.pending.items()):
        offsets = pending.end(producer_id, committed=committed)[1]
        if offsets:
            loaded.offsets.setdefault(group_id, {}).update(offsets)
        if not pending:
            del loaded.pending[group_id]


def snapshot(group: Group, assignments: Mapping[str, bytes]) -> StoredGroup:
    """Return the current generation of a group in the form in which it is stored (GO-7).

    assignments: maps member ids to encoded assignments; a member without an entry is stored with an empty one.
    """
    members = tuple(
        StoredMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.metadata(group.protocol_name or ""),
            assignments.get(member.member_id, b""),
        )
        for member in group.members.values()
    )
    return StoredGroup(
        group.protocol_type or "",
        group.generation_id,
        group.protocol_name,
        group.leader_id,
        group.state_since_ms,
        members,
    )


def iterate(loaded: Loaded) -> Iterator[tuple[str, StoredGroup | None, dict[PartitionKey, CommittedOffset]]]:
    """Yield (group id, stored generation, committed offsets) for each classic group in `loaded` that has a generation or offsets.

    The generation is None if the group has only offsets.
    """
    for group_id in {**loaded.groups, **loaded.offsets}:
        if group_id not in loaded.consumers:
            yield group_id, loaded.groups.get(group_id), loaded.offsets.get(group_id, {})
