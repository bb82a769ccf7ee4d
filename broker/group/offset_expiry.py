"""The periodic check that deletes committed offsets past their retention (KIP-211).

Corresponds to `cleanupGroupMetadata` of Kafka's group coordinators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.group import GroupState
from kafkaproto.broker.group.migration import AnyGroup
from kafkaproto.broker.group.offsets import PartitionKey, expired
from kafkaproto.broker.group.rebalance import Rebalance
from kafkaproto.broker.runtime.timers import Timer, Timers


class ExpiringGroups(Protocol):
    """Interface of the collection of one coordinator's groups, with the methods that `OffsetExpiry` uses. `Registry` implements it."""

    def __iter__(self) -> Iterator[AnyGroup]: ...

    def drop(self, group: AnyGroup, keys: Iterable[PartitionKey], now_ms: int, *, is_check: bool = False) -> int: ...


class OffsetExpiry:
    """Deletes expired offsets every `offsets.retention.check.interval.ms`, while the coordinator has groups.

    rebalance: has the settings of the coordinator, such as the retention time of offsets.
    """

    def __init__(self, groups: ExpiringGroups, rebalance: Rebalance, timers: Timers) -> None:
        self._groups = groups
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

    def _expire(self, group: AnyGroup, now_ms: int) -> None:
        """Delete the committed offsets of a group that are past their retention (KIP-211).

        a. In a classic group that had members and has none now, retention counts from the time when the last member left.
        b. In a stable classic group with protocol type "consumer", offsets of subscribed topics are kept. For other topics retention counts from each
           commit.
        c. In a classic group that never had members, retention counts from each commit.
        d. In a group of the new protocol (KIP-848), in any state, offsets of subscribed topics are kept. For other topics retention counts from each
           commit.
        e. In other classic groups nothing expires: the group rebalances, its protocol type is not "consumer", or a subscription cannot be decoded.
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
            return
        self._groups.drop(group, [key for key in expired_keys if key not in group.writing], now_ms, is_check=True)

    def _expire_later(self, now_ms: int) -> None:
        interval_ms = self._rebalance.settings.offsets_retention_check_interval_ms
        self._timer = self._timers.at(now_ms + interval_ms, self._expire_all)

    def _expire_all(self, now_ms: int) -> None:
        """Delete the offsets of all groups that are past their retention, and groups that then have neither members nor offsets."""
        self._timer = None
        for group in self._groups:
            self._expire(group, now_ms)
        if any(True for _ in self._groups):
            self._expire_later(now_ms)
