"""The settings of the group coordinator. Their names are Kafka's, with underscores instead of dots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""The time in ms after which a new member is removed if its first JoinGroup has no response yet (`NewMemberJoinTimeoutMs` in Kafka)."""

ASSIGNOR_NAMES = "uniform", "range"
"""The names of all assignors of consumer groups, in the order of Kafka's default for `group.consumer.assignors`."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The settings of classic groups, with Kafka's defaults. offsets_retention_ms is `offsets.retention.minutes` in milliseconds."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2**31 - 1
    group_initial_rebalance_delay_ms: int = 3_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_interval_ms: int = 600_000

    def allows_session_timeout(self, timeout_ms: int) -> bool:
        """Return whether the session timeout `timeout_ms` is within the limits for members of classic groups."""
        return self.group_min_session_timeout_ms <= timeout_ms <= self.group_max_session_timeout_ms


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    """The settings of the new protocol (KIP-848), with Kafka's defaults (GN-67).

    is_on: whether the settings enable the protocol. is_new_coordinator: whether `group.coordinator.new.enable` enables Kafka's group coordinator in
    Java, which serves classic groups, too. is_finalized: a function that returns whether the finalized level of the feature `group.version` allows
    the protocol. is_release_4, is_release_4_1, is_release_4_2: whether the broker behaves as Kafka 4.0, 4.1, 4.2 or later. max_size: the maximum
    number of members of a group. assignors: the names of the assignors, the default first. may_upgrade: whether a classic group with members may be
    converted to the new protocol (`group.consumer.migration.policy`, GN-54). may_downgrade: whether a group of the new protocol with members may be
    converted to a classic one. forgets_empty_groups: whether a rejected JoinGroup with a member id removes an empty group from memory, as in Kafka
    (GN-63). regex_refresh_ms: how often regular expressions are matched with the topics again. session_timeout_ms, heartbeat_interval_ms: functions
    that return the value for a group id, because each group may have its own (GN-69).
    """

    is_on: bool = False
    is_new_coordinator: bool = False
    is_finalized: Callable[[], bool] = lambda: True
    is_release_4: bool = False
    is_release_4_1: bool = False
    is_release_4_2: bool = False
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ASSIGNOR_NAMES
    may_upgrade: bool = False
    may_downgrade: bool = False
    forgets_empty_groups: bool = False
    regex_refresh_ms: int = 600_000
    session_timeout_ms: Callable[[str], int] = lambda group_id: 45_000
    heartbeat_interval_ms: Callable[[str], int] = lambda group_id: 5_000

    @property
    def has_new_coordinator(self) -> bool:
        """Return whether Kafka's group coordinator in Java serves all groups.

        True from 4.0 on. Before 4.0, true if `group.coordinator.new.enable` is set or the new protocol (KIP-848) is enabled.
        """
        return self.is_on or self.is_new_coordinator or self.is_release_4
