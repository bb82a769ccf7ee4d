"""Committing and fetching offsets: who may commit to which group, what is refused, what is told.

Knows no wire message. The offset half of Kafka's `GroupCoordinator` and `GroupMetadataManager`; offsets of open
transactions come with the transaction coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.group import Group, GroupState, Member
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey, expired, is_too_long
from kafkaproto.broker.group.results import UNKNOWN_MEMBER_ID
from kafkaproto.broker.group.settings import GroupSettings
from kafkaproto.error_codes import ErrorCode


class GroupKeeper(Protocol):
    """Who remembers, for the next process, what groups must not lose."""

    def committed(
        self, group_id: str, protocol_type: str | None, offsets: Mapping[PartitionKey, CommittedOffset]
    ) -> None:
        """These offsets are about to be kept. Raises KafkaError: then they must not be."""

    def gone(self, group_id: str) -> None:
        """There is no such group any more. Never raises."""


class Commits:
    """The committed offsets of all groups.

    create: makes a group (group id, time). heard_from: a commit of a member is a sign of its life.
    """

    def __init__(
        self,
        groups: dict[str, Group],
        create: Callable[[str, int], Group],
        heard_from: Callable[[Group, Member, int], None],
        settings: Callable[[], GroupSettings],
        keeper: GroupKeeper | None,
    ) -> None:
        self._keeper = keeper
        self._groups = groups
        self._create = create
        self._heard_from = heard_from
        self._settings = settings

    def commit(
        self,
        group_id: str,
        generation_id: int,
        member_id: str,
        group_instance_id: str | None,
        offsets: Mapping[PartitionKey, CommittedOffset],
        now_ms: int,
    ) -> dict[PartitionKey, int]:
        """OffsetCommit: an error code for each partition.

        generation_id -1 without a member id: somebody who uses the group for its offsets only, and may while it has no
        members.
        """
        group = self._groups.get(group_id)
        if group is None:
            if generation_id >= 0:
                return dict.fromkeys(offsets, ErrorCode.ILLEGAL_GENERATION)
            group = self._create(group_id, now_ms)
        error = _refusal(group, generation_id, member_id, group_instance_id)
        if error:
            return dict.fromkeys(offsets, error)
        if not group.is_in(GroupState.EMPTY):
            self._heard_from(group, group.members[member_id], now_ms)
        return self._keep(group, offsets)

    def fetch(
        self, group_id: str, partitions: Iterable[PartitionKey] | None
    ) -> dict[PartitionKey, CommittedOffset | None]:
        """OffsetFetch, in any state: None for what was never committed. partitions None: all that was."""
        group = self._groups.get(group_id)
        offsets = {} if group is None else group.offsets
        if partitions is None:
            return dict(offsets)
        return {key: offsets.get(key) for key in partitions}

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted: its offsets go."""
        for group in self._groups.values():
            for key in [key for key in group.offsets if key[0] == topic]:
                del group.offsets[key]

    def expire(self, group: Group, now_ms: int) -> None:
        """Forget the offsets that are past their retention (KIP-211).

        a. members were there and are gone: retention counts since they went;
        b. a stable consumer group: topics that it reads are kept, for others each commit counts by itself;
        c. there never were members: each commit counts by itself;
        d. else (a rebalance is under way, or no consumer protocol): nothing expires.
        """
        retention_ms = self._settings().offsets_retention_ms
        none: frozenset[str] = frozenset()
        if group.protocol_type is None:
            gone = expired(group.offsets, None, none, retention_ms, now_ms)
        elif group.is_in(GroupState.EMPTY):
            gone = expired(group.offsets, group.state_since_ms, none, retention_ms, now_ms)
        elif group.is_in(GroupState.STABLE) and group.subscribed is not None:
            gone = expired(group.offsets, None, group.subscribed, retention_ms, now_ms)
        else:
            return
        for key in gone:
            del group.offsets[key]

    def _keep(self, group: Group, offsets: Mapping[PartitionKey, CommittedOffset]) -> dict[PartitionKey, int]:
        max_bytes = self._settings().offset_metadata_max_bytes
        results: dict[PartitionKey, int] = {}
        kept: dict[PartitionKey, CommittedOffset] = {}
        for key, committed in offsets.items():
            if is_too_long(committed.metadata, max_bytes):
                results[key] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                kept[key] = committed
                results[key] = ErrorCode.NONE
        if kept and self._keeper is not None:
            try:
                self._keeper.committed(group.group_id, group.protocol_type, kept)
            except KafkaError:
                # What Kafka makes of a log that cannot be written (`GroupMetadataManager.storeOffsets`).
                return results | dict.fromkeys(kept, ErrorCode.NOT_COORDINATOR)
        group.offsets.update(kept)
        return results


def _refusal(group: Group, generation_id: int, member_id: str, instance_id: str | None) -> int:
    """0 if the commit is allowed."""
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
        # It has a valid generation, so it has joined again, and should commit only when it was assigned something.
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
