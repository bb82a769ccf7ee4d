"""The periodic check that deletes committed offsets past their retention (KIP-211).

Corresponds to `cleanupGroupMetadata` of Kafka's group coordinators.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Protocol

from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.group import GroupState
from kafkaproto.broker.group.groups_with_offsets import GroupsWithOffsets
from kafkaproto.broker.group.migration import AnyGroup
from kafkaproto.broker.group.offsets import PartitionKey, expired
from kafkaproto.broker.group.rebalance import Rebalance
from kafkaproto.broker.group.storage import GroupStorage
from kafkaproto.broker.group.tombstone_order import order_of_expired
from kafkaproto.broker.group.tombstones import Tombstones
from kafkaproto.broker.runtime.timers import Timer, Timers


def is_unused(group: AnyGroup) -> bool:
    """Return whether a group has neither members nor offsets, so that it can be deleted.

    Offsets that are not replicated yet or in open transactions count, too. With Kafka's group coordinator in Scala (3.9), so does an open
    transaction whose pending offsets have all been deleted.
    """
    if group.members or group.offsets or group.staged or group.pending_offsets:
        return False
    return isinstance(group, ConsumerGroup) or group.is_in(GroupState.EMPTY)


class ExpiringGroups(Protocol):
    """Interface of the collection of one coordinator's groups, with the methods that `OffsetExpiry` uses. `Registry` implements it."""

    def __iter__(self) -> Iterator[AnyGroup]: ...

    @property
    def with_offsets(self) -> GroupsWithOffsets: ...

    def in_table_order(self) -> list[AnyGroup]: ...

    def remove(self, group: AnyGroup, now_ms: int) -> None: ...


class OffsetExpiry:
    """Deletes expired offsets every `offsets.retention.check.interval.ms`, while the coordinator has groups.

    storage: writes the tombstones. rebalance: has the settings of the coordinator, such as the retention time of offsets.
    """

    def __init__(self, groups: ExpiringGroups, storage: GroupStorage, rebalance: Rebalance, timers: Timers) -> None:
        self._groups = groups
        self._storage = storage
        self._rebalance = rebalance
        self._timers = timers
        self._timer: Timer | None = None

    def watch(self, now_ms: int) -> None:
        """Start the periodic check if it does not run yet. `Registry` calls this when it adds a group."""
        if self._timer is None:
            self._expire_later(now_ms)

    def stop(self) -> None:
        """Stop the periodic check. `Registry` calls this when it has no group left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expired(self, group: AnyGroup, now_ms: int) -> list[PartitionKey]:
        """Return the partitions whose committed offsets are past their retention (KIP-211) and can be deleted, in the order of their tombstones.

        a. In a classic group that had members and has none now, retention counts from the time when the last member left.
        b. In a stable classic group with protocol type "consumer", offsets of subscribed topics are kept. For other topics retention counts from each
           commit.
        c. In a classic group that never had members, retention counts from each commit.
        d. In a group of the new protocol (KIP-848), in any state, offsets of subscribed topics are kept. For other topics retention counts from each
           commit.
        e. In other classic groups nothing expires: the group rebalances, its protocol type is not "consumer", or a subscription cannot be decoded.

        Kafka's group coordinator in Java keeps an offset if an open transaction has a commit for its partition. The one in Scala keeps an offset if a
        commit outside transactions is not replicated yet; it deletes offsets for which transactions have commits, and keeps those commits (GO-24).
        """
        retention_ms = self._rebalance.settings.offsets_retention_ms
        none: frozenset[str] = frozenset()
        if isinstance(group, ConsumerGroup):
            expired_keys = expired(group.offsets, None, frozenset(group.subscribed_topics()), retention_ms, now_ms)
        elif group.protocol_type is None:
            expired_keys = expired(group.offsets, None, none, retention_ms, now_ms)
        elif group.is_in(GroupState.EMPTY):
            expired_keys = expired(group.offsets, group.state_since_ms, none, retention_ms, now_ms)
        elif group.is_in(GroupState.STABLE) and group.subscribed is not None:
            expired_keys = expired(group.offsets, None, group.subscribed, retention_ms, now_ms)
        else:
            return []
        is_java = self._storage.is_new_coordinator
        kept: Container[PartitionKey] = group.pending_offsets.partitions() if is_java else group.staged
        keys = [key for key in expired_keys if key not in kept]
        return order_of_expired(keys, group.offsets, is_java=is_java)

    def _delete(self, expired_keys: Mapping[str, list[PartitionKey]], now_ms: int) -> None:
        """Delete expired offsets and write their tombstones, also those of groups that then have neither members nor offsets (GO-9).

        expired_keys: maps group ids to the partitions of the expired offsets, in the order of their tombstones; to an empty list if only the group is
        deleted. If a tombstone cannot be written, Kafka's group coordinator in Java keeps the offset, and the next check tries again.
        """
        tombstones = Tombstones(self._storage)
        deletions = []
        for group in self._groups.in_table_order() if len(expired_keys) > 1 else self._groups:
            keys = expired_keys.get(group.group_id)
            if keys is None:
                continue
            offsets = {key: group.offsets.pop(key) for key in keys}
            deletes_group = is_unused(group)
            tombstones.add(group, keys, group_too=deletes_group)
            deletions.append((group, offsets, deletes_group))
        codes = tombstones.write(now_ms, may_split=True)
        for group, offsets, deletes_group in deletions:
            own_codes = codes[group.group_id]
            # The codes of the group's own tombstones follow those of its offsets.
            kept = {key for key, code in zip(offsets, own_codes, strict=False) if code}
            group.offsets.put_all({key: offset for key, offset in offsets.items() if key in kept})
            group.pending_offsets.reinstate([key for key in offsets if key not in kept])
            self._groups.with_offsets.update(group)
            if deletes_group and not any(own_codes):
                self._groups.remove(group, now_ms)

    def _expire_later(self, now_ms: int) -> None:
        interval_ms = self._rebalance.settings.offsets_retention_check_interval_ms
        self._timer = self._timers.at(now_ms + interval_ms, self._expire_all)

    def _expire_all(self, now_ms: int) -> None:
        """Delete the offsets of all groups that are past their retention, and groups that then have neither members nor offsets."""
        self._timer = None
        expired_keys: dict[str, list[PartitionKey]] = {}
        for group in self._groups:
            keys = self._expired(group, now_ms)
            if keys or is_unused(group):
                expired_keys[group.group_id] = keys
        if expired_keys:
            self._delete(expired_keys, now_ms)
        if any(True for _ in self._groups):
            self._expire_later(now_ms)
