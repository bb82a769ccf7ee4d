"""Session timeouts of members, and timeouts of member ids that were given to new members but not used yet.

This module only sets the timers. The module `rebalance` decides what happens when a timer fires. Corresponds to Kafka's `DelayedHeartbeat`.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkaproto.broker.group.group import Group, Member
from kafkaproto.broker.runtime.timers import Timer, Timers


def cancel(timer: Timer | None) -> None:
    """Cancel a timer; None is ignored."""
    if timer is not None:
        timer.cancel()


def cancel_all(group: Group) -> None:
    """Cancel the timers of a group and of its members, and remove the member ids that were given to new members but not used yet."""
    for timer in (group.join_timer, group.sync_timer, *group.pending.values()):
        cancel(timer)
    group.pending.clear()
    for member in group.members.values():
        cancel(member.session_timer)


class Sessions:
    """The session timers of the members of all groups.

    member_expired: called with (group, member, current time in ms) when the member's session times out. id_expired: called with (group, member id,
    current time in ms) when a new member has not joined again in time with the member id that it was given.
    """

    def __init__(
        self,
        timers: Timers,
        member_expired: Callable[[Group, Member, int], None],
        id_expired: Callable[[Group, str, int], None],
    ) -> None:
        self._timers = timers
        self._member_expired = member_expired
        self._id_expired = id_expired

    def restart_timeout(self, group: Group, member: Member, now_ms: int) -> None:
        """Restart the session timeout of a member that has just sent a request."""
        self.expect(group, member, member.session_timeout_ms, now_ms)

    def expect(self, group: Group, member: Member, timeout_ms: int, now_ms: int) -> None:
        """Restart the session timer of a member, so that it fires after `timeout_ms` instead of the member's own session timeout."""
        cancel(member.session_timer)
        member.session_timer = self._timers.at(
            now_ms + timeout_ms, lambda at_ms: self._member_expired(group, member, at_ms)
        )

    def await_pending_member(self, group: Group, member_id: str, session_timeout_ms: int, now_ms: int) -> None:
        """Set a timer that fires if a new member does not join again, with the id that it was given, within its session timeout."""
        group.pending[member_id] = self._timers.at(
            now_ms + session_timeout_ms, lambda at_ms: self._id_expired(group, member_id, at_ms)
        )

    def forget_pending_member(self, group: Group, member_id: str) -> None:
        """Remove a member id that was given to a new member, and cancel its timer. Does nothing if the id is not pending."""
        cancel(group.pending.pop(member_id, None))
