"""Session timeouts: until when a member must be heard from, and an id that was given out must be used.

Sets the timers only; what it means that one runs out is decided in `rebalance`. Kafka's `DelayedHeartbeat`.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkaproto.broker.group.group import Group, Member
from kafkaproto.broker.runtime.timers import Timer, Timers


def cancel(timer: Timer | None) -> None:
    """Cancel a timer, if there is one."""
    if timer is not None:
        timer.cancel()


class Sessions:
    """The sessions of the members of all groups. member_expired, id_expired: called with the time at which the timer fires."""

    def __init__(
        self,
        timers: Timers,
        member_expired: Callable[[Group, Member, int], None],
        id_expired: Callable[[Group, str, int], None],
    ) -> None:
        self._timers = timers
        self._member_expired = member_expired
        self._id_expired = id_expired

    def heard_from(self, group: Group, member: Member, now_ms: int) -> None:
        """Restart the session timeout: the member has shown that it is alive."""
        self.expect(group, member, member.session_timeout_ms, now_ms)

    def expect(self, group: Group, member: Member, timeout_ms: int, now_ms: int) -> None:
        """Restart the session timeout with another time than the member's own."""
        cancel(member.session_timer)
        member.session_timer = self._timers.at(
            now_ms + timeout_ms, lambda at_ms: self._member_expired(group, member, at_ms)
        )

    def await_pending_member(self, group: Group, member_id: str, session_timeout_ms: int, now_ms: int) -> None:
        """Expect the member that was given this id to come back with it within its session timeout."""
        group.pending[member_id] = self._timers.at(
            now_ms + session_timeout_ms, lambda at_ms: self._id_expired(group, member_id, at_ms)
        )
