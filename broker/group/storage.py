"""Stores groups and committed offsets in the group's partition of `__consumer_offsets`, and loads them from it.

This module translates the errors of the log into the errors that clients get (GC-39, GO-23). Corresponds to the writing half of Kafka's
`GroupMetadataManager`. This module does not depend on timers or clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Protocol

from kafkaproto.broker.group import consumer_records
from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.group import Group, in_table_order
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.records import (
    KAFKA_3_9,
    Entry,
    RecordVersions,
    StoredGroup,
    StoredMember,
    group_entry,
    offset_entry,
    parse,
)
from kafkaproto.broker.group.replay import Change, CommittedOffsets, Loaded, LoggedRecord, changes, load
from kafkaproto.broker.group.results import ALWAYS
from kafkaproto.broker.runtime.internal_topics import LOG_ERRORS
from kafkaproto.error_codes import ErrorCode

DeletionReply = Callable[[dict[str, int], int], None]
"""A function that is called when the deletion of groups is stored, with a dict of group ids to error codes and the current time (ms)."""
Stored = Callable[[int, int], None]
"""A function that is called once, when a write has been replicated or has failed, with an error code (0 for success) and the current time (ms)."""

_TOO_LARGE = ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE
_COMMIT_ERRORS: dict[int, int] = {
    **LOG_ERRORS,
    **dict.fromkeys(_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
}
"""Maps the error code of a failed write to the log to the error code of OffsetCommit in Kafka's group coordinator in Scala (GO-23).

The coordinator in Java (default from 4.0 on) uses `_GROUP_ERRORS`.
"""
_GROUP_ERRORS: dict[int, int] = {
    **LOG_ERRORS,
    **dict.fromkeys(_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
_OLD_GROUP_ERRORS = {**_GROUP_ERRORS, ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS}
"""Maps the error code of a failed write to the log to the error code of JoinGroup and SyncGroup in Kafka's group coordinator in Scala (GC-39).

The coordinator in Java (default from 4.0 on) uses `_GROUP_ERRORS`.
"""


class OffsetsLog(Protocol):
    """Interface of the offsets topic on one broker, as `GroupStorage` uses it. `replication.coordinator_log` implements it."""

    def append(
        self,
        index: int,
        entries: Sequence[Entry],
        now_ms: int,
        done: Stored,
        *,
        producer: tuple[int, int] | None = None,
        appended: Callable[[int], None] | None = None,
    ) -> None:
        """Append records to partition `index` of the offsets topic. `done` is called when the records are replicated, or with an error if that fails.

        entries: the records as (key, value); a value of None is a tombstone. producer: the (producer id, epoch) in whose transaction the records
        are; None for no transaction. appended: a function that is called with the end offset of the records when they are in the log, before `done`.
        """

    def append_only(self, index: int, entries: Sequence[Entry], now_ms: int) -> int:
        """Append records to partition `index` of the offsets topic without waiting for replicas. Returns the error code, 0 if they were appended.

        entries: the records as (key, value); a value of None is a tombstone. The code is also 0 if the records are only collected, to be appended
        later.
        """
        ...

    def append_now(self, index: int, entries: Sequence[Entry], now_ms: int) -> int:
        """Append records to partition `index` of the offsets topic at once, without collecting them first. Returns the error code, 0 for success.

        entries: the records as (key, value); a value of None is a tombstone.
        """
        ...

    def await_replicated(self, index: int, now_ms: int, done: Stored) -> None:
        """Call `done` when all present records of partition `index` of the offsets topic are replicated, or with an error if they cannot be."""

    def read(self, index: int) -> Iterable[LoggedRecord]:
        """Return all records of partition `index` of the offsets topic, up to the end of the log."""
        ...

    def end_offset(self, index: int) -> int:
        """Return the log end offset of partition `index` of the offsets topic, 0 if this broker does not lead it."""
        ...

    def high_watermark(self, index: int) -> int:
        """Return the high watermark of partition `index` of the offsets topic, 0 if this broker does not lead it."""
        ...


class GroupStorage:
    """Writes groups and offsets to the offsets topic. partition_of: returns a group's partition index; -1 if the topic does not exist.

    is_new_coordinator: whether the broker emulates Kafka's group coordinator in Java (default from 4.0 on), which also stores classic groups before
    their first generation. log: the offsets topic on this broker; None, as in tests of the coordinator alone, lets every write succeed at once.
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
        self.written: Callable[[int, Change], None] = lambda index, change: None
        """A function of (partition index, change) that is called for each change when it is in the log, if `is_new_coordinator` is true."""
        self._versions = versions

    def offset_entries(self, group_id: str, parts: Sequence[Mapping[PartitionKey, CommittedOffset]]) -> list[Entry]:
        """Return the records of committed offsets: first those of the first dict in `parts`, then those of the next one, and so on.

        Raises EncodeError if a record cannot be encoded, for example because its metadata is too long.
        """
        return [
            offset_entry(group_id, key, committed, self._versions) for part in parts for key, committed in part.items()
        ]

    def store_offsets(
        self,
        group_id: str,
        parts: Sequence[Mapping[PartitionKey, CommittedOffset]],
        now_ms: int,
        stored: Stored,
        *,
        entries: Sequence[Entry],
        take_effect: Callable[[], None],
        producer: tuple[int, int] | None = None,
    ) -> None:
        """Store committed offsets as one batch. `stored` is called with the error code for the OffsetCommit response.

        parts: the offsets, in the order of their records. More than one dict is needed only for a partition with several records. The dicts must not
        be changed later. entries: the records of the offsets, as `offset_entries` returns them. take_effect: a function that adds the offsets to the
        newest state of the group. It is called once: when the offsets are in the log, as in Kafka's group coordinator in Java (default from 4.0 on),
        or, with the one in Scala, when they are replicated. It is not called if the records are rejected. producer: the (producer id, epoch) in whose
        transaction the offsets are committed; None for no transaction.
        """
        errors = _GROUP_ERRORS if self.is_new_coordinator else _COMMIT_ERRORS
        index = self.partition_of(group_id)

        def appended(end_offset: int) -> None:
            producer_id = -1 if producer is None else producer[0]
            self.written(index, Change(end_offset, [CommittedOffsets(group_id, part) for part in parts], producer_id))
            take_effect()

        def done(error: int, at_ms: int) -> None:
            if not error and not self.is_new_coordinator:
                take_effect()
            stored(errors.get(error, error), at_ms)

        if self._log is None:
            take_effect()
            stored(ErrorCode.NONE, now_ms)
        elif self.is_new_coordinator:
            self._log.append(index, entries, now_ms, done, producer=producer, appended=appended)
        else:
            self._log.append(index, entries, now_ms, done, producer=producer)

    def store_group(self, group: Group, assignments: Mapping[str, bytes], now_ms: int, stored: Stored) -> None:
        """Store the current generation with `assignments` by member id. `stored` is called with the error code for JoinGroup and SyncGroup."""
        entry = group_entry(group.group_id, snapshot(group, assignments), self._versions)
        errors = _GROUP_ERRORS if self.is_new_coordinator else _OLD_GROUP_ERRORS
        self._append(group.group_id, [entry], now_ms, lambda error, at_ms: stored(errors.get(error, error), at_ms))

    def tombstones_of(self, group: Group | ConsumerGroup, keys: Iterable[PartitionKey]) -> list[Entry]:
        """Return the tombstones of the offsets that a group committed for the partitions `keys`."""
        return [offset_entry(group.group_id, key, None, self._versions) for key in keys]

    def tombstones(self, group: Group | ConsumerGroup) -> list[Entry]:
        """Return the tombstones of a group's own records, without the tombstones of its offsets.

        Kafka's group coordinator in Scala (3.9) stores a classic group only from its first generation on; before that, the list is empty.
        """
        if isinstance(group, ConsumerGroup):
            return consumer_records.group_tombstones(group)
        is_stored = group.generation_id > 0 or self.is_new_coordinator
        return [group_entry(group.group_id, None, self._versions)] if is_stored else []

    def store_created(self, group: Group, replaced: ConsumerGroup | None, now_ms: int) -> int:
        """Store a classic group that its first member creates, without waiting for replicas. Returns the error code.

        Does nothing unless the broker emulates Kafka's group coordinator in Java (default from 4.0 on). replaced: the empty group of the new protocol
        (KIP-848) that the classic group replaces, None if there is none.
        """
        if not self.is_new_coordinator:
            return ErrorCode.NONE
        tombstones = [] if replaced is None else self.tombstones(replaced)
        return self.append_only(group.group_id, [*tombstones, self.entry_of(group)], now_ms)

    def append_only(self, group_id: str, entries: Sequence[Entry], now_ms: int, *, collects: bool = True) -> int:
        """Append records to a group's partition of `__consumer_offsets`, without waiting for replicas. Returns an error code for the client, or 0.

        collects: whether the records may first be collected, for `group.coordinator.append.linger.ms`.
        """
        if self._log is None or not entries:
            return ErrorCode.NONE
        index = self.partition_of(group_id)
        append = self._log.append_only if collects else self._log.append_now
        error = self._written(index, entries, append(index, entries, now_ms))
        return _GROUP_ERRORS.get(error, error)

    def _written(self, index: int, entries: Sequence[Entry], error: int) -> int:
        """Report the appended records to the function `written`, unless the append failed. error: the error code of the append, which is returned."""
        if self._log is not None and not error and self.is_new_coordinator:
            self.written(index, _change(self._log.end_offset(index), entries))
        return error

    def entry_of(self, group: Group) -> Entry:
        """Return the record of a classic group's current generation with the assignments of its members."""
        assignments = {member.member_id: member.assignment for member in group.members.values()}
        return group_entry(group.group_id, snapshot(group, assignments), self._versions)

    def store_now(self, group: Group, now_ms: int) -> int:
        """Store a group with its offsets without waiting for replicas. Returns the log's error code, 0 if the leader has the records."""
        entries = self.offset_entries(group.group_id, (group.offsets,))
        if group.protocol_type is not None:
            entries.append(group_entry(group.group_id, snapshot(group, {}), self._versions))
        if self._log is None:
            return ErrorCode.NONE
        index = self.partition_of(group.group_id)
        return self._written(index, entries, self._log.append_now(index, entries, now_ms))

    def read(self, index: int) -> Iterator[Change]:
        """Yield the changes in partition `index` of `__consumer_offsets` (GO-11). Damaged records are logged and skipped."""
        return changes(() if self._log is None else self._log.read(index), index)

    def append(self, group_id: str, entries: Sequence[Entry], now_ms: int, stored: Stored) -> None:
        """Append the records of a consumer group's change to `__consumer_offsets`. `stored` is called when they are replicated, or after an error.

        `stored` gets the error code for the ConsumerGroupHeartbeat response. entries: the records, as (key, value); a value of None is a tombstone.
        """
        self._append(group_id, entries, now_ms, lambda error, at_ms: stored(_GROUP_ERRORS.get(error, error), at_ms))

    def await_writes(
        self, group_id: str, now_ms: int, stored: Stored, errors: Mapping[int, int] = _GROUP_ERRORS
    ) -> None:
        """Call `stored` when all records in the group's partition of `__consumer_offsets` are replicated, or with an error code if that fails.

        Requests that write no record use this method, because their responses may show changes that are not replicated yet (GC-66). If the broker
        emulates Kafka's group coordinator in Scala (3.9), `stored` is called at once, without an error. errors: maps error codes of
        the log to the codes for `stored`.
        """
        if self._log is None or not self.is_new_coordinator:
            stored(ErrorCode.NONE, now_ms)
            return
        index = self.partition_of(group_id)
        self._log.await_replicated(index, now_ms, lambda error, at_ms: stored(errors.get(error, error), at_ms))

    def await_tombstones(self, group_ids: Iterable[str], now_ms: int, done: DeletionReply) -> None:
        """Call `done`, with an error code for each group, when the tombstones and all other records of the groups' partitions are replicated.

        If the broker emulates Kafka's group coordinator in Scala (3.9), `done` is called at once, without an error (GC-59, GC-60).
        """
        awaited_ids = set(group_ids)
        add = gathered(awaited_ids, now_ms, done)

        def stored(group_id: str, error_code: int, at_ms: int) -> None:
            add({group_id: error_code}, at_ms)

        for group_id in sorted(awaited_ids):
            self.await_writes(group_id, now_ms, partial(stored, group_id))

    def load_group(self, group_id: str) -> Loaded:
        """Return the state of a single group, loaded from the records of its partition of `__consumer_offsets`."""
        loaded = load(self.read(self.partition_of(group_id)), is_new_coordinator=self.is_new_coordinator)
        for part in (loaded.offsets, loaded.groups, loaded.consumers, loaded.pending):
            for other in [key for key in part if key != group_id]:
                del part[other]
        return loaded

    def end_offset(self, group_id: str) -> int:
        """Return the log end offset of the group's partition of `__consumer_offsets`.

        Without a log the result is -1 (`ALWAYS`), so that a new group is visible to all requests at once.
        """
        return -1 if self._log is None else self._log.end_offset(self.partition_of(group_id))

    def creation_offset(self, group_id: str) -> int:
        """Return the offset that the high watermark of a group's partition must exceed before the new group is visible in ListGroups.

        The offset `ALWAYS` (-1) makes the group visible at once.
        """
        return self.end_offset(group_id) if self.is_new_coordinator else ALWAYS

    def high_watermark(self, group_id: str) -> int:
        """Return the high watermark of the group's partition of `__consumer_offsets`."""
        return self.high_watermark_of(self.partition_of(group_id))

    def is_replicated(self, index: int) -> bool:
        """Return whether all records in partition `index` of `__consumer_offsets` are replicated. True without a log."""
        return self._log is None or self._log.high_watermark(index) >= self._log.end_offset(index)

    def high_watermark_of(self, index: int) -> int:
        """Return the high watermark of partition `index` of `__consumer_offsets`, 0 if this broker does not lead it."""
        return 0 if self._log is None else self._log.high_watermark(index)

    def _append(self, group_id: str, entries: Sequence[Entry], now_ms: int, stored: Stored) -> None:
        if self._log is None:
            stored(ErrorCode.NONE, now_ms)
            return
        index = self.partition_of(group_id)
        if not self.is_new_coordinator:
            self._log.append(index, entries, now_ms, stored)
            return

        def appended(end_offset: int) -> None:
            self.written(index, _change(end_offset, entries))

        self._log.append(index, entries, now_ms, stored, appended=appended)


def _change(end_offset: int, entries: Sequence[Entry]) -> Change:
    """Decode records that were just written outside a transaction, and return the change that they describe.

    end_offset: the offset after the last of the records.
    """
    parsed_records = (parse(key, value) for key, value in entries)
    return Change(end_offset, [record for record in parsed_records if record is not None])


def gathered(awaited: Set[str], now_ms: int, done: DeletionReply) -> DeletionReply:
    """Return a function that collects error codes by group id, and calls `done` with the codes once each group in `awaited` has one.

    If `awaited` is empty, `done` is called at once.
    """
    errors: dict[str, int] = {}
    if not awaited:
        done(errors, now_ms)

    def add(codes: dict[str, int], at_ms: int) -> None:
        errors.update(codes)
        if errors.keys() == awaited:
            done(errors, at_ms)

    return add


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
        for member in in_table_order(group)
    )
    return StoredGroup(
        group.protocol_type or "",
        group.generation_id,
        group.protocol_name,
        group.leader_id,
        group.state_since_ms,
        members,
    )
