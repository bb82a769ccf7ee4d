"""The settings of the group coordinator, under the names of Kafka's settings with dots for underscores."""

from __future__ import annotations

from dataclasses import dataclass

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a member that was never answered may wait in a rebalance (`GroupCoordinator.NewMemberJoinTimeoutMs`)."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Defaults are Kafka's; offsets_retention_ms is `offsets.retention.minutes` in milliseconds."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2**31 - 1
    group_initial_rebalance_delay_ms: int = 3_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_interval_ms: int = 600_000
